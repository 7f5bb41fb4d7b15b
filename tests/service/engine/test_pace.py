"""Steps: as much as fits, whatever it costs."""

import numpy as np

from driftbandits.agents.requests import PolicyInput
from driftbandits.service.engine.pace import MOST, STEP, Pace, decision_steps


def sizes(count: int, seconds: float, pace: Pace) -> list[int]:
    """Of the steps, where each item takes so long."""
    found = []
    for step in pace.steps(list(range(count))):
        found.append(len(step))
        pace.learn(len(step), len(step) * seconds)
    return found


def test_steps_double_while_there_is_time() -> None:
    pace = Pace()
    assert sizes(1000, STEP / 1e6, pace) == [1, 2, 4, 8, 16, 32, 64, 128, 256, 256, 233]
    assert pace.size == MOST


def test_a_step_takes_about_its_time() -> None:
    pace = Pace()
    found = sizes(1000, STEP / 20, pace)
    assert found[:5] == [1, 2, 4, 8, 16]
    assert set(found[5:-1]) == {16}


def test_what_alone_takes_longer_than_a_step_is_done_alone() -> None:
    assert sizes(5, 3 * STEP, Pace()) == [1] * 5


def test_steps_become_shorter_when_it_takes_longer() -> None:
    pace = Pace()
    sizes(500, STEP / 1e6, pace)
    assert sizes(300, STEP / 4, pace)[:3] == [256, 4, 4]


def test_a_few_say_nothing_of_many() -> None:
    pace = Pace()
    pace.size = 64
    pace.learn(1, STEP / 10)
    assert pace.size == 64


def masked(*masks: str) -> dict[str, PolicyInput]:
    rows = [np.array([letter == "x" for letter in mask]) for mask in masks]
    return {str(at): PolicyInput(np.zeros(0), row) for at, row in enumerate(rows)}


def test_a_change_of_masks_ends_a_step_where_it_is_another_call() -> None:
    pace = Pace()
    pace.size = 3
    new = masked("xx", "xx", "xx", "xx", "x-", "xx", "xx")
    assert [list(step) for step in decision_steps(new, pace, True)] == [
        ["0", "1", "2"], ["3"], ["4"], ["5", "6"],
    ]  # fmt: skip
    assert [len(step) for step in decision_steps(new, pace, False)] == [3, 3, 1]
    assert list(decision_steps({}, pace, True)) == []
