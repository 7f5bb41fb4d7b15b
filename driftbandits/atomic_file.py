"""Atomic file writes: a process killed at any moment leaves the old file or the new one."""

import os
from pathlib import Path


def write_atomically(path: Path, content: bytes) -> None:
    """Writes a draft beside the file, then puts it in its place; makes missing folders."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with draft.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)
