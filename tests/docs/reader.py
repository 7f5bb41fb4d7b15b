"""Who follows a page of the docs: saves its files, runs its code and gives its commands."""

import shlex
import subprocess
import sys
from pathlib import Path

from tests.service.http.reader import curl
from tools.publish.page_blocks import code_blocks

SERVICE = ("localhost:8000", "127.0.0.1:8000")


def needs_service(page: str) -> bool:
    return any(address in page for address in SERVICE)


def follow(page: str, name: str, port: int | None = None) -> int:
    """In the current folder, block after block in one namespace; returns how many there were."""
    for address in SERVICE:
        page = page.replace(address, f"127.0.0.1:{port}")
    names: dict[str, object] = {"__name__": "__main__"}
    followed = 0
    for number, block in enumerate(code_blocks(page)):
        if block.file:
            Path(block.file).write_text(block.text)
        elif block.language == "python":
            exec(compile(block.text, f"{name}, block {number}", "exec"), names)
        elif block.language == "sh":
            for line in block.text.splitlines():
                give(line)
        else:
            continue
        followed += 1
    return followed


def give(line: str) -> None:
    if line.startswith("driftbandits "):
        command = [sys.executable, "-m", "driftbandits", *shlex.split(line, comments=True)[1:]]
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, (line, done.stdout, done.stderr)
        assert done.stdout, line
    elif line.startswith("curl "):
        curl(line, Path.cwd())
