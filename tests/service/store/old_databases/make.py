"""Writes a small SQLite database of a service, for the tests of opening old ones.

Run it once for a version that changes what is stored, before the change
(`python -m tests.service.store.old_databases.make`), and keep what it wrote for ever. That of 0.9.0
has snapshots of changes, too: it was written with a snapshot after every second reward.
"""

import sqlite3
from pathlib import Path

from driftbandits import __version__
from driftbandits.agents.requests import Request
from driftbandits.service.engine.commands import ChangeArm, Decide, MustGrow, Reward
from driftbandits.service.store.store import Store
from tests.service.engine.test_engine import CONFIG, play

PATH = Path(__file__).with_name(f"{__version__}.sqlite")
BANDITS = {"still": ("thompson", []), "drifting": ("tracker", ["x"])}


async def live(engine) -> None:
    """Twelve decisions, nine with a reward, and an arm that comes after the seventh."""
    for bandit, (_, context) in BANDITS.items():
        for number in range(12):
            if number == 7:
                await add_blue(engine, bandit)
            row = [number / 10 - 0.5] * len(context)
            await engine.submit(bandit, Decide([Request(row, id=f"d{number}")]))
            if number % 4:
                pairs = [(f"d{number}", float(number % 3 > 0))]
                await engine.submit(bandit, Reward(pairs))


async def add_blue(engine, bandit: str) -> None:
    command = ChangeArm("arm_added", "blue", lambda _: None)
    try:
        await engine.submit(bandit, command)
    except MustGrow as growth:
        await engine.submit(bandit, command._replace(prepared=len(growth.config["arms"])))


def main() -> None:
    store = Store(f"sqlite:///{PATH}")
    for bandit, (policy, context) in BANDITS.items():
        settings = {"arms": ["red", "green"], "policy": policy, "context": context}
        assert store.create_bandit(bandit, {**CONFIG, **settings})
    play(store, live)
    store.close()
    connection = sqlite3.connect(PATH)
    connection.execute("PRAGMA journal_mode = DELETE")
    connection.close()


if __name__ == "__main__":
    main()
