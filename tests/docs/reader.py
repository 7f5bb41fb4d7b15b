"""Who follows a page of the docs: saves its files, runs its code and gives its commands."""

import io
import shlex
import subprocess
import sys
from contextlib import redirect_stdout
from pathlib import Path

from tests.service.http.reader import curl
from tools.publish.page_blocks import Block, code_blocks, same_but_numbers, with_output

SERVICE = ("localhost:8000", "127.0.0.1:8000")


def needs_service(page: str) -> bool:
    return any(address in page for address in SERVICE)


def follow(page: str, name: str, port: int | None = None) -> int:
    """In the current folder, block after block in one namespace; returns how many there were."""
    for address in SERVICE:
        page = page.replace(address, f"127.0.0.1:{port}")
    names: dict[str, object] = {"__name__": "__main__"}
    followed, outputs = 0, dict(with_output(page))
    for number, block in enumerate(code_blocks(page)):
        if block.file:
            Path(block.file).write_text(block.text)
        elif block.language == "python":
            printed = io.StringIO()
            with redirect_stdout(printed):
                exec(compile(block.text, f"{name}, block {number}", "exec"), names)
            print(printed.getvalue(), end="")
            check_output(block, outputs, printed.getvalue())
        elif block.language == "sh":
            for line in block.text.splitlines():
                give(line)
        else:
            continue
        followed += 1
    return followed


def check_output(block: Block, outputs: dict[Block, str | None], printed: str) -> None:
    """What the page shows below a block is what the block prints, but for numbers."""
    shown = outputs[block]
    assert shown is None or same_but_numbers(shown, printed), f"shown:\n{shown}\nis:\n{printed}"


def give(line: str) -> None:
    if line.startswith("driftbandits "):
        command = [sys.executable, "-m", "driftbandits", *shlex.split(line, comments=True)[1:]]
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, (line, done.stdout, done.stderr)
        assert done.stdout, line
    elif line.startswith("curl "):
        curl(line, Path.cwd())
