"""Large batches may have programs of their own, which compute the same to the bit."""

from copy import deepcopy

import numpy as np
import pytest

from driftbandits.agents.learner import Learner
from driftbandits.agents.programs import FEW, MANY
from driftbandits.core import BanditSpec

SIZES = (150, 3, 70, MANY + 20)
ARMS = 6
LEARNERS = {  # those whose programs for few take so few that others are worth it
    "tracker(version=1)": BanditSpec(ARMS),
    "tracker(waves=4)": BanditSpec(ARMS, 3),
    "lin_ts": BanditSpec(ARMS, 4),
    "d_lin_ucb": BanditSpec(ARMS, 3, arm_dim=2),
}


def play(learner: Learner) -> list[np.ndarray]:
    """What was decided, and the state at the end."""
    rng, found = np.random.default_rng(1), []
    spec = learner.spec
    for size in SIZES:
        contexts = rng.normal(size=(size, spec.context_dim)).astype(np.float32)
        available = np.repeat(rng.random((2, ARMS)) < 0.8, -(-size // 2), axis=0)[:size]
        available[:, 0] = True
        arms = rng.normal(size=(ARMS, spec.arm_dim)).astype(np.float32)
        acts = learner.act(contexts, available, arms=arms)
        assert learner.learn(acts.tickets, (acts.arms % 2).astype(np.float32)) == []
        found += acts
    return [*found, *learner.state().values()]


@pytest.mark.parametrize("text", LEARNERS)
def test_the_same_bits(text: str) -> None:
    learner = Learner(text, LEARNERS[text], seed=2)
    few = learner._programs.few
    assert min(few.rows, few.rewarded.rows) < FEW
    assert not learner.lacks_programs
    plain = play(deepcopy(learner))
    lacking = deepcopy(learner)
    play(lacking)
    assert lacking.lacks_programs
    learner.compile_for_many()
    assert not lacking.lacks_programs
    quick = play(learner)
    assert learner._buffers_for_many is not None, "the other programs were used"
    for one, other in zip(plain, quick, strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_batch_that_fits_a_few_calls_needs_no_others() -> None:
    learner = Learner("thompson", BanditSpec(3), seed=2)
    available = np.ones((200, 3), bool)
    acts = learner.act(np.zeros((200, 0), np.float32), available)
    learner.learn(acts.tickets, np.ones(200, np.float32))
    assert not learner.lacks_programs
