"""A correction that the policy cannot learn is refused, and changes nothing."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from driftbandits.agents.decision_book import DecisionBook
from driftbandits.agents.learner import DivergenceError
from driftbandits.agents.requests import Request
from driftbandits.service.engine.commands import Correct, Decide, Reward
from driftbandits.service.engine.engine import Engine
from driftbandits.service.store.store import Store
from tests.browser import eventually
from tests.service.engine.test_corrections import log_of, look
from tests.service.engine.test_engine import CONFIG, all_of, codes, play, taken_over

# With a context of 1e12, d_lin_ts could decide nothing after the reward, whatever it is.
LINEAR = CONFIG | {
    "policy": "d_lin_ts", "context": ["x", "y"], "out_of_range": "accept", "max_open": 1,
}  # fmt: skip


@pytest.fixture
def store(tmp_path: Path):
    store = Store(f"sqlite:///{tmp_path}/bandits.sqlite")
    store.create_bandit("shop", LINEAR)
    yield store
    store.close()


async def decide(engine: Engine, id: str, size: float = 1.0) -> None:
    await engine.submit("shop", Decide([Request([size, size], id=id)]))


async def pairs(engine: Engine, *ids: str) -> None:
    for id in ids:
        await decide(engine, id)
        assert await engine.submit("shop", Reward([(id, 1.0)])) == ["learned"]


async def refusal(engine: Engine, command: Correct) -> Any:
    (answer,) = await all_of(engine.submit("shop", command))
    return answer


def test_it_is_refused_and_nothing_changes(store: Store) -> None:
    async def story(engine: Engine) -> None:
        await pairs(engine, "before")
        await decide(engine, "poison", 1e12)
        await pairs(engine, "after")  # there is no room for two, so the first one expires
        state, events = await look(engine), log_of(store)
        refused = await refusal(engine, Correct("poison", 1.0))
        assert (refused.status, refused.code) == (422, "bad_value")
        rule = "reward must be one that d_lin_ts can learn, or null, got 1.0: with it, "
        assert refused.message == rule + "what the policy knows would no longer be finite numbers"
        assert await look(engine) == state
        assert log_of(store) == events
        await pairs(engine, "more")
        made = await engine.submit("shop", Correct("before", 0.0))
        assert (made.before, made.reward) == (1.0, 0.0), "others can be corrected"

    play(store, story)
    kinds = [event.kind for event in log_of(store)]
    assert kinds.count("correction") == 1


@pytest.mark.parametrize(
    ("method", "problem"),
    [
        ("settle", "with it, the reward of decision '1' could not be learned"),
        ("decide_again", "with it, a decision that was made since could not be made"),
    ],
)
def test_nor_may_it_break_what_came_after(store: Store, monkeypatch, method, problem) -> None:
    def settle(book: DecisionBook, ids: list[str], rewards: list[float]) -> set[str]:
        return {"1"}.intersection(ids)

    def decide_again(*_: Any) -> list[int]:
        raise DivergenceError("d_lin_ts cannot decide here")

    async def story(engine: Engine) -> None:
        await pairs(engine, "0", "1", "2")
        events = log_of(store)
        with monkeypatch.context() as patch:
            patch.setattr(DecisionBook, method, locals_of[method])
            refused = await refusal(engine, Correct("0", 0.5))
        assert refused.code == "bad_value"
        assert refused.message.endswith(problem)
        assert log_of(store) == events
        await pairs(engine, "3")

    locals_of = {"settle": settle, "decide_again": decide_again}
    play(store, story)


def test_an_error_while_it_is_rebuilt_changes_nothing(store: Store, monkeypatch) -> None:
    def fail(*_: Any) -> None:
        raise sa.exc.OperationalError("", {}, Exception("away"))

    async def story(engine: Engine) -> None:
        await pairs(engine, "0", "1")
        state, events = await look(engine), log_of(store)
        for broken, code in [(fail, "no_database"), (lambda *_: 1 / 0, "broken_policy")]:
            with monkeypatch.context() as patch:
                patch.setattr(store, "events", broken)
                assert (await refusal(engine, Correct("0", 0.5))).code == code
        assert (await look(engine), log_of(store)) == (state, events)
        assert (await engine.submit("shop", Correct("0", 0.5))).reward == 0.5

    play(store, story)


def test_one_that_could_not_be_logged_is_not_acknowledged(store: Store) -> None:
    """The bandit is another worker's by now."""

    async def story(engine: Engine) -> None:
        await pairs(engine, "0", "1")
        taken_over(store)
        answers = await all_of(engine.submit("shop", Correct("0", 0.5)))
        assert codes(answers) == ["moving"]
        await asyncio.to_thread(eventually, lambda: "shop" not in engine.live_bandits)

    play(store, story)
    assert "correction" not in [event.kind for event in log_of(store)]
