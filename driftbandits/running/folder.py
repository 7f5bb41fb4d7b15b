"""A folder of results: one process at a time writes to it, and its files are always complete.

A process may be killed at any moment, and the disk may fill up: finished work is never lost.
"""

import json
import os
import socket
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from driftbandits.atomic_file import write_atomically

OWNER = ".holder.json"  # who has the lock


class StoreError(OSError):
    """A file cannot be read or written. The message is one line, with the remedy."""


def write_file(path: Path, content: bytes) -> None:
    try:
        write_atomically(path, content)
    except OSError as error:
        raise StoreError(
            f"{path} could not be written: {error.strerror or error}; finished work is kept: "
            "repeat the command to resume"
        ) from error


def write_json(path: Path, content: Any) -> None:
    write_file(path, (json.dumps(content, indent=2, ensure_ascii=False) + "\n").encode())


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Locks the folder; a second process gets an error that names the first.

    The system releases the lock when the process ends, for whatever reason.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = FileLock(folder / ".lock")
        lock.acquire(timeout=0)
    except Timeout:
        raise StoreError(
            f"{folder} is in use by {lock_owner(folder)}; wait for it or stop it"
        ) from None
    except OSError as error:
        raise StoreError(f"{folder} cannot be used for results: {error.strerror}") from error
    try:
        write_json(folder / OWNER, this_process())
        for draft in folder.glob("pieces/.*.parquet.*"):  # of a process that was killed
            draft.unlink(missing_ok=True)
        yield
    finally:
        (folder / OWNER).unlink(missing_ok=True)
        lock.release()


def this_process() -> dict[str, Any]:
    return {
        "process": os.getpid(),
        "machine": socket.gethostname(),
        "since": time.strftime("%Y-%m-%d %H:%M:%S"),
        "command": " ".join([Path(sys.argv[0]).name, *sys.argv[1:]]),
    }


def lock_owner(folder: Path) -> str:
    try:
        owner = json.loads((folder / OWNER).read_text())
        return (
            f"process {owner['process']} on {owner['machine']} since {owner['since']} "
            f"({owner['command']})"
        )
    except (OSError, ValueError, KeyError):
        return "another process"
