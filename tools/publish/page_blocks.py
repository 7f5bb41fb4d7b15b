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


def code_blocks(page: str) -> list[Block]:
    return [block for block in split(page) if block.language]
