"""Bandits that are taken over from another host: callers do not wait for compiling."""

import asyncio

from driftbandits.service import errors
from driftbandits.service.engine.commands import Command, Decide, Inspect, Reward
from driftbandits.service.engine.engine import Engine

LOADING_SECONDS = 1.2  # until decisions and rewards are refused


async def wait_until_loaded(engine: Engine, bandit: str, command: Command) -> None:
    """Waits for a bandit; a single worker lets callers wait, as no other could serve sooner."""
    if engine.has_others and isinstance(command, Decide | Reward):
        try:
            async with asyncio.timeout(LOADING_SECONDS):
                await engine.submit(bandit, Inspect(lambda _: None))
        except TimeoutError:
            raise errors.moving() from None
