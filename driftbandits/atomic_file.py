"""Atomic file writes: a process killed at any moment leaves the old file or the new one."""

import os
from collections.abc import Iterable
from pathlib import Path


def write_atomically(path: Path, content: bytes | Iterable[bytes]) -> None:
    """Writes a draft next to the file, then renames it; makes missing folders.

    Content in parts is written as it comes. If it fails to come, nothing is changed.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with draft.open("wb") as file:
            file.writelines([content] if isinstance(content, bytes) else content)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)
