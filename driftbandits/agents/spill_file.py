"""A temporary file for what is seldom needed; it has no name and ends with its process.

It is read and written by calls rather than mapped into memory: a full disk is then an OSError that
can be dealt with, not a signal that ends the process, and its pages do not count as the process's.
"""

import os
import shutil
import tempfile
import threading
from pathlib import Path
from typing import Any, NamedTuple

LEAST_PLACE = 4096  # bytes


class Place(NamedTuple):
    """A part of the file."""

    first: int
    size: int  # a power of two


class SpillFile:
    """A file whose free places are used again; threads may share it."""

    def __init__(self, folder: Path | None = None) -> None:
        """Opens the file in a folder, or in the system's folder for temporary files."""
        self._folder = folder
        self._file = tempfile.TemporaryFile(dir=folder, buffering=0)  # noqa: SIM115  # open as long as it is
        self._end, self._free = 0, dict[int, list[int]]()  # where places of a size begin
        self._turns = threading.Lock()

    @property
    def bytes_on_disk(self) -> int:
        """The bytes on disk as the file system counts them, or the file's length."""
        found = os.fstat(self._file.fileno())
        return 512 * found.st_blocks if hasattr(found, "st_blocks") else found.st_size

    def write(self, content: bytes) -> Place:
        """Writes bytes and returns their place; OSError if the disk is full."""
        with self._turns:
            place = self._place_for(len(content))
            try:
                self._file.seek(place.first)
                if self._file.write(content) != len(content):
                    raise OSError("the disk is full")
            except OSError:
                self._free[place.size].append(place.first)
                raise
            return place

    def _place_for(self, length: int) -> Place:
        size = max(1 << (length - 1).bit_length(), LEAST_PLACE)
        free = self._free.setdefault(size, [])
        if free:
            return Place(free.pop(), size)
        self._end += size
        return Place(self._end - size, size)

    def read(self, place: Place, first: int, length: int) -> bytes:
        with self._turns:
            self._file.seek(place.first + first)
            content = self._file.read(length)
        if len(content) != length:
            raise OSError(f"a temporary file has {len(content)} of {length} bytes")
        return content

    def free(self, place: Place) -> None:
        self._free[place.size].append(place.first)  # not in turn, as it may come at any moment

    def __del__(self) -> None:
        if hasattr(self, "_file"):  # it could be opened
            self._file.close()

    def __deepcopy__(self, memo: dict[int, Any]) -> "SpillFile":
        copy = SpillFile(self._folder)
        with self._turns:
            copy._end = self._end
            copy._free = {size: list(places) for size, places in self._free.items()}
            self._file.seek(0)
            shutil.copyfileobj(self._file, copy._file)
        return copy
