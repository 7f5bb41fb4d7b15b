"""The time of the bandits: the wall clock, as long as it is plausible.

Windows end by it, and a bandit's time never goes back. So a wall clock that is years ahead for a
second would end all windows at once, and the next ones only in years.
"""

import logging
import time
from collections.abc import Callable

log = logging.getLogger("driftbandits.service")

BELIEVED = 3600.0  # seconds: a larger jump is believed when it has lasted as long


def steady_seconds() -> float:
    """Seconds since the machine was started, including sleep where the system can tell."""
    if hasattr(time, "CLOCK_BOOTTIME"):
        return time.clock_gettime(time.CLOCK_BOOTTIME)
    return time.monotonic()


class Clock:
    """The wall clock, checked against one that cannot be set."""

    def __init__(
        self, wall: Callable[[], float] = time.time, steady: Callable[[], float] = steady_seconds
    ) -> None:
        self._wall, self._steady = wall, steady
        self._ahead = wall() - steady()  # of the steady clock
        self._jumped: tuple[float, float] | None = None  # how far ahead, and since when

    def now(self) -> float:
        """Unix seconds."""
        steady = self._steady()
        ahead = self._wall() - steady
        if abs(ahead - self._ahead) <= BELIEVED or self._has_lasted(ahead, steady):
            self._ahead, self._jumped = ahead, None
        return steady + self._ahead

    def _has_lasted(self, ahead: float, steady: float) -> bool:
        """Whether a jump has lasted for long; a new one is logged once."""
        if self._jumped is None or abs(ahead - self._jumped[0]) > BELIEVED:
            self._jumped = ahead, steady
            log.warning(
                "the system's clock jumped by %.0f seconds, which is ignored unless it lasts "
                "for %.0f seconds; set the clock right, or restart the service",
                ahead - self._ahead,
                BELIEVED,
            )
        return steady - self._jumped[1] >= BELIEVED
