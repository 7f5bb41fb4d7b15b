"""Ranges of a bandit that change: for what comes in from then on, and for nothing else."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from driftbandits import rebuild_agent
from driftbandits.agents.requests import Request
from driftbandits.service.engine.commands import ChangeSettings, Correct, Decide, Inspect, Reward
from driftbandits.service.engine.engine import Engine
from driftbandits.service.engine.live_bandit import LiveBandit
from driftbandits.service.engine.reviver import revive
from driftbandits.service.errors import ApiError
from driftbandits.service.store.store import Store
from tests.service.engine.test_engine import CONFIG, play, taken_over
from tests.service.store.test_old_databases import OLD

ACCEPTING = CONFIG | {"policy": "lin_ucb", "context": ["age"], "out_of_range": "accept"}


@pytest.fixture
def store(tmp_path: Path):
    store = Store(f"sqlite:///{tmp_path}/bandits.sqlite")
    store.create_bandit("shop", ACCEPTING)
    yield store
    store.close()


def settings_of(live: LiveBandit) -> tuple[str, dict[str, Any]]:
    settings = live.book.settings
    return settings.out_of_range, dict(settings.context_ranges)


async def change(engine: Engine, **changes: Any) -> tuple[str, dict[str, Any]]:
    return await engine.submit("shop", ChangeSettings(changes, settings_of))


async def pair(engine: Engine, id: str, age: float, reward: float) -> list[str]:
    """What became of the decision and of its reward."""
    try:
        await engine.submit("shop", Decide([Request([age], id=id)]))
    except ApiError as refusal:
        return [refusal.code]
    (status,) = await engine.submit("shop", Reward([(id, reward)]))
    return [status.code if isinstance(status, ApiError) else status]


async def all_kinds(engine: Engine) -> None:
    """Rewards out of their range, under each setting."""
    assert await pair(engine, "accepted", 500.0, 7.0) == ["learned"]
    assert await change(engine, out_of_range="clip") == ("clip", {})
    assert await pair(engine, "clipped", 500.0, 7.0) == ["learned"]
    assert await change(engine, out_of_range="refuse") == ("refuse", {})
    assert await pair(engine, "refused", 1.0, 7.0) == ["bad_value"]
    assert await pair(engine, "too old", 500.0, 0.0) == ["bad_value"]
    assert await change(engine, context_ranges={"age": [0, 600]}) == ("refuse", {"age": (0, 600)})
    assert await pair(engine, "old", 500.0, 1.0) == ["learned"]
    assert await change(engine, out_of_range="accept") == ("accept", {"age": (0, 600)})
    assert await pair(engine, "accepted again", 1.0, 7.0) == ["learned"]


def state_of(live: LiveBandit) -> dict[str, list]:
    return {path: array.tolist() for path, array in live.book.learner.state().items()}


async def look(engine: Engine) -> tuple[Any, Any]:
    return await engine.submit("shop", Inspect(lambda live: (state_of(live), settings_of(live))))


def test_rewards_are_learned_as_they_were_when_they_came(store: Store, tmp_path: Path) -> None:
    async def story(engine: Engine) -> Any:
        await all_kinds(engine)
        return await look(engine)

    learned, settings = play(store, story)
    row = store.bandit("shop")
    assert row
    with store._writing() as connection:  # so that there is nothing but the log
        connection.exec_driver_sql("DELETE FROM snapshots")
    assert play(store, look) == (learned, settings)
    rebuilt = rebuild_agent(f"sqlite:///{tmp_path}/bandits.sqlite", "shop")
    found = rebuilt.agent._book.learner.state()
    assert {path: array.tolist() for path, array in found.items()} == learned
    assert (rebuilt.mismatches, rebuilt.agent.settings.out_of_range) == (0, "accept")
    clipped = [event for event in store.events(row.id, 0) if event.id == "clipped"]
    assert [event.reward for event in clipped] == [None, 7.0], "the log keeps what was sent"


@pytest.mark.parametrize("every", [1, 3])
def test_snapshots_from_before_and_after_are_used(store: Store, monkeypatch, every, caplog) -> None:
    monkeypatch.setattr("driftbandits.service.engine.snapshot_writer.SNAPSHOT_EVERY", every)
    monkeypatch.setattr("driftbandits.service.engine.snapshot_writer.BYTES_PER_EVENT", 10**9)

    async def story(engine: Engine) -> Any:
        for number in range(20):  # that stay open, so that snapshots hold changes
            await engine.submit("shop", Decide([Request([1.0], id=str(number))]))
        await all_kinds(engine)
        return await look(engine)

    assert play(store, story) == play(store, look)
    assert "snapshot" not in caplog.text


def test_another_worker_sees_it(store: Store) -> None:
    async def story(engine: Engine) -> None:
        await change(engine, out_of_range="refuse", context_ranges={"age": [0, 120]})
        assert settings_of(taken_over(store)) == ("refuse", {"age": (0, 120)})

    play(store, story)


@pytest.mark.parametrize("version", ["0.7.0", "0.8.0"])
def test_a_bandit_of_an_older_version_can_be_made_safe(version: str, tmp_path: Path) -> None:
    shutil.copy(OLD / f"{version}.sqlite", tmp_path)
    store = Store(f"sqlite:///{tmp_path}/{version}.sqlite")
    row = store.bandit("still")
    assert row

    def revived() -> LiveBandit:
        lease = store.claim(row.id, "one", "http://one", 60.0)
        assert lease
        return revive(store, row, lease).live

    live = revived()
    assert settings_of(live)[0] == "accept"
    live.change_settings({"out_of_range": "refuse"}, live.book.now)
    assert store.append([live.to_be_written()]) == set()
    assert settings_of(revived())[0] == "refuse"
    (refused,) = revived().reward([("d0", 7.0)], live.book.now, store.find)
    assert isinstance(refused, ApiError)
    store.close()


def test_what_changes_nothing_is_not_logged(store: Store) -> None:
    async def story(engine: Engine) -> int:
        await change(engine, out_of_range="accept", context_ranges={})
        for _ in range(2):
            await change(engine, out_of_range="clip")
        return await engine.submit("shop", Inspect(lambda live: live.seq))

    assert play(store, story) == 1


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"context_ranges": {"size": [0, 1]}}, "a name in context_ranges must be one of age"),
        ({"context_ranges": {"age": [1, 0]}}, "the range of age must be two numbers, the lower"),
        ({"out_of_range": "refuse"}, r"default_reward must be from 0 to 1 \(reward_range\), got 5"),
    ],
)
def test_what_makes_no_sense_is_refused(tmp_path: Path, changes, message: str) -> None:
    store = Store(f"sqlite:///{tmp_path}/bandits.sqlite")
    store.create_bandit("shop", ACCEPTING | {"default_reward": 5.0})

    async def story(engine: Engine) -> Any:
        with pytest.raises(ApiError, match=message):
            await change(engine, **changes)
        return (await look(engine))[1]

    assert play(store, story) == ("accept", {})
    assert store.events(1, 0) == []
    store.close()


def test_a_correction_is_clipped_by_the_setting_of_today(store: Store) -> None:
    async def story(engine: Engine) -> Any:
        await pair(engine, "x", 1.0, 1.0)
        right = await look(engine)
        await pair(engine, "y", 2.0, 1.0)
        await change(engine, out_of_range="clip")
        made = await engine.submit("shop", Correct("x", 1e6))
        again = await engine.submit("shop", Correct("x", 1e9))
        await engine.submit("shop", Correct("y", None))
        return made.reward, again.before, right[0], (await look(engine))[0]

    corrected, before, right, found = play(store, story)
    assert (corrected, before) == (1.0, 1.0)
    assert found == right


def test_an_id_that_is_called_like_a_setting(store: Store) -> None:
    """In the group of callers in which the setting changes."""

    async def story(engine: Engine) -> Any:
        await pair(engine, "out_of_range", 1.0, 1.0)
        commands = [
            ChangeSettings({"out_of_range": "clip"}, settings_of),
            Reward([("out_of_range", 1.0)]),
        ]
        answers = [engine.submit("shop", command) for command in commands]
        return [await answer for answer in answers]

    assert play(store, story) == [("clip", {}), ["duplicate"]]
