"""The inbox of the engine's thread."""

import queue
import time
from typing import Any

from driftbandits.service.engine.commands import Call

GROUP = 500  # events in one transaction, about: the next group need not wait for long


class Inbox:
    def __init__(self) -> None:
        self._queue: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self.put, self.empty = self._queue.put, self._queue.empty

    def collect(self, seconds: float) -> list[Any]:
        """Waits for the first item and returns all in order; nothing at the end."""
        items: list[Any] = []
        size = 0
        try:
            item = self._queue.get(block=seconds > 0, timeout=seconds)
            self._let_others_in()
            while True:
                items.append(item)
                size += item.size if isinstance(item, Call) else 1
                if size >= GROUP:
                    break
                item = self._queue.get_nowait()
        except queue.Empty:
            pass
        return items

    def _let_others_in(self) -> None:
        """Lets other threads run while more is coming in: larger groups cost less."""
        before = -1
        while self._queue.qsize() > before:
            before = self._queue.qsize()
            time.sleep(0)
