"""Whether the engine's thread moves on: it says so in every round, which is short.

What takes long is done on other threads or in slices, and an idle engine looks up every half
second. So one that says nothing for more than a second hangs, or waits for its database.
"""

import time

HALT = 1.5  # seconds without a sign of life after which nobody should wait for it
STUCK = 60.0  # seconds after which its bandits are given up


class Heartbeat:
    def __init__(self) -> None:
        self.last = time.monotonic()

    def beat(self) -> None:
        self.last = time.monotonic()

    def is_halted(self) -> bool:
        return time.monotonic() - self.last > HALT

    def is_stuck(self) -> bool:
        return time.monotonic() - self.last > STUCK
