"""Deletes the logs of deleted bandits in the background, page by page."""

import logging
import threading
import time

from sqlalchemy.exc import SQLAlchemyError

from driftbandits.error_text import first_line
from driftbandits.service.store.store import Store

log = logging.getLogger("driftbandits.service")

PAGE = 500  # events of a transaction, which keeps others from writing while it lasts
REST = 3.0  # between two pages, times as long as a page took: others write meanwhile
LOOK = 600.0  # seconds between two looks at what other workers may have left behind


class LogDeleter:
    """Deletes logs, starting with those left over by an earlier service."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._woken, self._stopped = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, name="driftbandits-deleter")

    def start(self) -> None:
        self._thread.start()

    def wake(self) -> None:
        """Says that there is a log to delete."""
        self._woken.set()

    def stop(self) -> None:
        self._stopped.set()
        self._woken.set()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        while not self._stopped.is_set():
            self._woken.clear()
            try:
                self._delete_all()
            except SQLAlchemyError as error:
                log.warning("logs of deleted bandits are not deleted yet: %s", first_line(error))
            if not self._stopped.is_set():
                self._woken.wait(LOOK)

    def _delete_all(self) -> None:
        while not self._stopped.is_set():
            begin = time.monotonic()
            if not self._store.delete_page(PAGE):
                return
            self._stopped.wait(REST * (time.monotonic() - begin))
