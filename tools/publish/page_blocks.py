"""The code blocks of a Markdown page, in their order."""

import re
from typing import NamedTuple

FENCE = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```\n?", re.MULTILINE | re.DOTALL)
NAMED = re.compile(r"\A# ([\w.]+\.(?:toml|py|csv))\n")


class Block(NamedTuple):
    language: str  # "" for prose
    text: str

    @property
    def file(self) -> str | None:
        """The file that a reader saves this block as: its first line is `# name.toml`."""
        named = NAMED.match(self.text)
        return named[1] if named else None


def split(page: str) -> list[Block]:
    """Prose and code in turn."""
    parts, end = [], 0
    for fence in FENCE.finditer(page):
        parts += [Block("", page[end : fence.start()]), Block(fence[1], fence[2])]
        end = fence.end()
    return [block for block in [*parts, Block("", page[end:])] if block.text.strip()]


def with_output(page: str) -> list[tuple[Block, str | None]]:
    """Each block of Python with the output that the page shows right below it, if any."""
    blocks = split(page)
    following = [*blocks[1:], Block("", "")]
    return [
        (block, below.text if below.language == "text" else None)
        for block, below in zip(blocks, following, strict=True)
        if block.language == "python" and not block.file
    ]


def same_but_numbers(first: str, second: str) -> bool:
    """Whether two outputs differ in numbers and spaces at most: digits depend on the machine."""
    forms = [
        re.sub(r"[-+]?\d[\d,._]*(?:e[-+]?\d+)?", "#", text).split() for text in (first, second)
    ]
    return forms[0] == forms[1]


def code_blocks(page: str) -> list[Block]:
    return [block for block in split(page) if block.language]
