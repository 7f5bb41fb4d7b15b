"""Who reads the service's documents, and gives their commands beside a running service."""

import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.service.serving import Serving, served


class Place(NamedTuple):
    """Where a reader gives the documents' commands, beside a service with the usual folder."""

    folder: Path
    serving: Serving


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Iterator[Place]:
    folder = tmp_path_factory.mktemp("reader")
    with served(folder / "driftbandits-data") as serving:
        yield Place(folder, serving)


def curl(line: str, folder: Path) -> None:
    """Runs a line; a comment after it says which refusal it shows."""
    command, _, expected = line.partition("  # ")
    wanted = ["-sS", "-w", "\n%{http_code}"]
    words = shlex.split(command.replace("$KEY", ""))
    done = subprocess.run([*words, *wanted], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, (line, done.stderr)
    status = int(done.stdout.splitlines()[-1])
    assert status == int(expected) if expected else status in (200, 201, 204), (line, done.stdout)
