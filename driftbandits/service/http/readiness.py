"""Whether the database can be written to, answered in time although the database may hang."""

import asyncio
import logging
import threading
from contextlib import suppress

from driftbandits.error_text import first_line
from driftbandits.service import errors
from driftbandits.service.errors import ApiError
from driftbandits.service.store.health import Unhealthy
from driftbandits.service.store.store import Store

log = logging.getLogger("driftbandits.service")

Finding = ApiError | None
FRESH_SECONDS = 1.0  # that a finding is good for
PATIENCE_SECONDS = 2.0  # with a database that does not answer


class Readiness:
    """Asks at most once a second, on a thread of its own: if the database hangs, only it does."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._asked = 0.0  # by the loop's clock
        self._finding: asyncio.Future[Finding] | None = None

    async def check(self) -> None:
        """Raises an error if the database is unhealthy."""
        loop = asyncio.get_running_loop()
        if self._finding is None or (
            self._finding.done() and loop.time() - self._asked > FRESH_SECONDS
        ):
            self._asked, self._finding = loop.time(), loop.create_future()
            arguments = loop, self._finding
            threading.Thread(target=self._ask, args=arguments, daemon=True).start()
        left = self._asked + PATIENCE_SECONDS - loop.time()
        await asyncio.wait([self._finding], timeout=max(left, 0.0))
        if not self._finding.done():
            raise errors.unhealthy_database(
                "does not answer", "see whether the database is stopped, locked or overloaded"
            )
        if problem := self._finding.result():
            raise problem

    def _ask(self, loop: asyncio.AbstractEventLoop, finding: asyncio.Future[Finding]) -> None:
        problem = problem_of(self._store)
        with suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(finding.set_result, problem)


def problem_of(store: Store) -> Finding:
    try:
        store.check_health()
    except Unhealthy as found:
        return errors.unhealthy_database(found.problem, found.remedy)
    except Exception as error:
        log.warning("the database cannot be written to: %s", first_line(error))
        return errors.no_database()
    return None
