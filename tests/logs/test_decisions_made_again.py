"""What a log teaches whose decisions the learner would make differently now."""

from typing import Any

import numpy as np
import pytest

from driftbandits.agents.learner import Learner
from driftbandits.agents.requests import Request
from driftbandits.core import BanditSpec
from driftbandits.logs.events import probabilities_of
from driftbandits.logs.replay import new_book, replay
from driftbandits.numerics.made_again import Made
from driftbandits.service.engine.live_bandit import LiveBandit
from driftbandits.service.store.records import Event, Lease
from tests.service.engine.test_engine import CONFIG

ARMS = ["a", "b", "c"]
GAMMA = 0.3
DECISIONS = 120
WRONG = [str(number) for number in range(0, 40, 2)]  # rewards that are corrected later


def log_of(policy: str) -> tuple[LiveBandit, list[Event]]:
    """Decisions, some at a time and some among two arms, and rewards for most of them."""
    config = {**CONFIG, "policy": policy, "arms": ARMS}
    live = LiveBandit(None, Lease(1, 1), new_book(config, remember=0), 0)  # type: ignore[arg-type]
    rng = np.random.default_rng(0)
    live.row = type("Row", (), {"id": 1, "name": "shop"})  # type: ignore[assignment]
    for first in range(0, DECISIONS, 4):
        asked = [
            Request(id=str(at), available=ARMS if at % 3 else ["a", "c"])
            for at in range(first, first + 4)
        ]
        live.decide([asked], float(first), lambda *_: {})
        pairs = [(str(at), float(rng.random() < 0.7)) for at in range(first, first + 3)]
        live.reward(pairs, float(first), lambda *_: {})
    return live, live.events


def replayed(live: LiveBandit, events: list[Event], corrections: Any) -> tuple[int, dict[str, Any]]:
    """How many decisions came out differently, and what was learned."""
    config = {**CONFIG, "policy": live.book.settings.policy, "arms": ARMS}
    book = new_book(config, remember=0)
    return replay(book, events, corrections), book.learner.state()


@pytest.mark.parametrize("policy", [f"exp3(gamma={GAMMA})", f"rexp3(gamma={GAMMA})", "exp3_s"])
def test_a_log_without_corrections_is_learned_bit_for_bit(policy: str) -> None:
    live, events = log_of(policy)
    mismatches, state = replayed(live, events, {})
    assert mismatches == 0
    for path, array in live.book.learner.state().items():
        np.testing.assert_array_equal(state[path], array)


def test_exp3_divides_by_the_probability_that_an_arm_was_drawn_with() -> None:
    live, events = log_of(f"exp3(gamma={GAMMA})")
    rewards = {event.id: event.reward for event in events if event.kind == "reward"}
    decisions = {event.id: event for event in events if event.kind == "decision"}
    right = rewards | {id: 1.0 - (rewards[id] or 0.0) for id in WRONG if id in rewards}
    corrections = {
        id: Event(len(events) + 1, "correction", 1e9, id, reward=right[id])
        for id in WRONG
        if id in rewards
    }
    _, state = replayed(live, events, corrections)
    weights = np.zeros(len(ARMS))
    for id in rewards:
        made = decisions[id]
        weights[made.arm] += GAMMA / len(ARMS) * right[id] / probabilities_of(made)[made.arm]
    (found,) = state.values()
    np.testing.assert_allclose(found, weights - weights.max(), atol=1e-4)


def test_where_it_would_choose_another_arm_it_still_learns_what_the_arm_paid() -> None:
    """As if there had been others, which REINFORCE needs."""
    learner = Learner("recurrent(dropout=0.0, hidden=4, energy=0.0)", BanditSpec(3), seed=0)
    context, everyone = np.zeros((1, 0), np.float32), np.ones((1, 3), bool)
    before, learned = learner.checkpoint(), learner.checkpoint()
    (own,) = learner.act(context, everyone).arms
    learner.go_back(before)
    known = Made(np.array([(own + 1) % 3], np.int32), np.float32([0.2]))
    acts, different = learner.act_again(context, everyone, known)
    assert different == [0]
    learner.learn(acts.tickets, np.float32([1.0]))
    path = ".network.output.bias"
    changed = learner.state()[path]
    learner.go_back(learned)
    up = changed - learner.state()[path] > 0
    assert up.tolist() == [arm == known.arm[0] for arm in range(3)]
