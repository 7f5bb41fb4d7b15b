"""The clock of bandits: the wall clock, unless it jumps."""

import logging

import pytest

from driftbandits.service.engine.clock import BELIEVED, Clock

YEARS = 10 * 365 * 86400.0


class Clocks:
    """A wall clock that can be set, and one that cannot."""

    def __init__(self) -> None:
        self.offset, self.passed = 1e9, 0.0
        self.clock = Clock(lambda: self.offset + self.passed, lambda: self.passed)

    def after(self, seconds: float) -> float:
        self.passed += seconds
        return self.clock.now()


def test_it_is_the_wall_clock() -> None:
    clocks = Clocks()
    assert [clocks.after(seconds) for seconds in (0, 1, 1e6)] == [1e9, 1e9 + 1, 1e9 + 1e6 + 1]


@pytest.mark.parametrize("step", [-BELIEVED, -1.0, 0.001, BELIEVED])
def test_a_clock_that_is_set_right_is_followed(step: float) -> None:
    clocks = Clocks()
    clocks.offset += step
    assert clocks.after(5) == pytest.approx(1e9 + step + 5)


@pytest.mark.parametrize("jump", [YEARS, -YEARS, 2 * BELIEVED])
def test_a_jump_is_not_believed_and_told_once(jump: float, caplog) -> None:
    clocks = Clocks()
    clocks.offset += jump
    with caplog.at_level(logging.WARNING):
        assert [clocks.after(1) for _ in range(3)] == [1e9 + 1, 1e9 + 2, 1e9 + 3]
        clocks.offset -= jump
        assert clocks.after(1) == 1e9 + 4
    (told,) = caplog.messages
    assert f"jumped by {jump:.0f} seconds" in told


def test_a_jump_that_lasts_is_believed_in_the_end() -> None:
    clocks = Clocks()
    clocks.offset += YEARS
    assert clocks.after(0) == 1e9
    assert clocks.after(BELIEVED - 1) == pytest.approx(1e9 + BELIEVED - 1)
    assert clocks.after(1) == pytest.approx(1e9 + BELIEVED + YEARS)


def test_a_clock_that_keeps_jumping_is_not_believed() -> None:
    clocks = Clocks()
    for _ in range(5):
        clocks.offset += YEARS
        clocks.after(BELIEVED - 1)
    assert clocks.clock.now() == pytest.approx(1e9 + 5 * (BELIEVED - 1))
