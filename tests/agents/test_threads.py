"""Several threads with one agent: nothing is lost, and nothing is decided twice."""

import copy
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from driftbandits import Agent

THREADS, PAIRS = 8, 60


@pytest.fixture
def hasty() -> Iterator[None]:
    """Threads are interrupted after a few instructions."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def test_threads_take_turns(hasty: None) -> None:
    agent = Agent(["red", "green"], policy="ucb")

    def use(_: int) -> list[str]:
        ids = []
        for _ in range(PAIRS):
            ids.append(agent.decide(now=0).id)
            assert agent.open
            assert agent.reward(ids[-1], 1.0, now=0) == "learned"
        return ids

    with ThreadPoolExecutor(THREADS) as pool:
        made = [id for ids in pool.map(use, range(THREADS)) for id in ids]
    assert len(set(made)) == len(made) == THREADS * PAIRS
    assert agent.counts == (len(made), len(made), 0)
    assert agent.open == []


def test_a_copy_does_not_wait_for_the_original() -> None:
    agent = Agent(["red", "green"], policy="ucb")
    with agent._turns, ThreadPoolExecutor(1) as pool:
        copied = copy.deepcopy(agent)
        assert pool.submit(copied.decide, now=0).result(60).arm in agent.arms
