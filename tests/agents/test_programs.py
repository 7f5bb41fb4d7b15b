"""Compiled programs: shared by all who use them, and forgotten with the last one."""

import gc

import numpy as np

from driftbandits import Agent
from driftbandits.agents.programs import KEPT, blank_state, programs_for
from driftbandits.core import BanditSpec
from driftbandits.policies import built
from tests.live_objects import count

COMPILED = "MeshExecutable"  # JAX's, one of every program


def fill_cache(horizon: int) -> None:
    """With programs that no test uses, and none of which is compiled."""
    for n in range(KEPT):
        programs_for("uniform", BanditSpec(2, horizon=horizon + n))


def play(arms: int) -> None:
    agent = Agent([f"arm {n}" for n in range(arms)], policy="ucb")
    before = agent._book.learner.checkpoint()
    agent.reward(agent.decide(now=0).id, 1.0, now=0)
    agent._book.learner.go_back(before)
    agent._book.learner.warm_up()
    agent._book.learner.rehearse()


def test_programs_in_use_are_found_however_many_others_came_since() -> None:
    one = Agent(["a", "b"], policy="uniform", horizon=1001)
    fill_cache(2000)
    other = Agent(["a", "b"], policy="uniform", horizon=1001)
    assert other._book.learner._programs is one._book.learner._programs


def test_programs_that_nobody_uses_are_forgotten() -> None:
    fill_cache(3000)
    gc.collect()
    before = count("Programs")
    fill_cache(4000)
    gc.collect()
    assert count("Programs") == before


def test_what_was_compiled_for_them_is_forgotten_too() -> None:
    play(arms=2)  # it compiles what all share
    fill_cache(5000)
    gc.collect()
    before = count(COMPILED)
    for arms in (3, 5, 7):
        play(arms)
    gc.collect()
    assert count(COMPILED) >= before + 3 * 3
    fill_cache(6000)
    built.cache_clear()  # it keeps policies, of which we have made few
    blank_state.cache_clear()
    gc.collect()
    assert count(COMPILED) <= before  # what other tests left may go, too


def test_a_copy_of_a_state_shares_no_memory_with_it() -> None:
    agent = Agent(["a", "b"], policy="thompson")
    state = agent._book.learner.state()
    agent._book.learner.set_state(state, 0)
    agent._book.learner.warm_up()
    for kept in state.values():
        kept[...] = 7
    assert not any(np.all(leaf == 7) for leaf in agent._book.learner.state().values())
