"""Whether a database can be written to: its file is still there, its disk has room."""

import shutil
from pathlib import Path

import sqlalchemy as sa

from driftbandits.service.store.schema import versions

LEAST_FREE_BYTES = 1_000_000  # about what a large group of events and its index take
# Writes, and changes nothing; it does not wait for a worker that is doing the same.
UNLOCKED = sa.select(versions.c.version).with_for_update(skip_locked=True)
WRITE = (
    sa.update(versions).where(versions.c.version.in_(UNLOCKED)).values(version=versions.c.version)
)


class Unhealthy(Exception):  # noqa: N818  # a finding, with its remedy
    def __init__(self, problem: str, remedy: str) -> None:
        super().__init__(problem)
        self.problem, self.remedy = problem, remedy


class DatabaseFile:
    """The SQLite file; SQLite itself does not notice when it is deleted."""

    def __init__(self, path: Path) -> None:
        self._path = path.absolute()
        self._opened = identity(self._path)

    @property
    def folder(self) -> Path:
        return self._path.parent

    def check(self) -> None:
        if identity(self._path) != self._opened:
            remedy = "stop the service, restore the database from a backup, start it again"
            raise Unhealthy("file was deleted or replaced", remedy)
        if shutil.disk_usage(self._path.parent).free < LEAST_FREE_BYTES:
            raise Unhealthy("has no room left on its disk", "make room on the disk")


def identity(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def database_file(engine: sa.Engine) -> DatabaseFile | None:
    """The file of the database; None if it is a server."""
    if engine.dialect.name != "sqlite":
        return None
    return DatabaseFile(Path(engine.url.database or ""))
