"""The alarm of an arm: silent in a still world, quick when the mean moves."""

import math
from collections.abc import Callable

import numpy as np
import pytest

from driftbandits.service.engine.drift_alarm import BLOCK, KEPT, Alarm, DriftAlarm, divergence

Draw = Callable[[np.random.Generator, int], np.ndarray]


def coin(rate: float) -> Draw:
    return lambda random, count: (random.random(count) < rate).astype(float)


def normal(mean: float, deviation: float) -> Draw:
    return lambda random, count: random.normal(mean, deviation, count)


def rare_sales(random: np.random.Generator, count: int) -> np.ndarray:
    """Mostly nothing, now and then a price with a long tail."""
    return coin(0.05)(random, count) * random.lognormal(3, 1, count)


def alarms_of(rewards: np.ndarray) -> list[Alarm]:
    detector = DriftAlarm()
    seen = [detector.see(float(time), reward) for time, reward in enumerate(rewards.tolist())]
    return [alarm for alarm in seen if alarm]


def first_alarm(before: Draw, after: Draw, seed: int, change: int = 1000) -> Alarm:
    """The first one since the change; how many there are without a change has its own test."""
    random = np.random.default_rng(seed)
    rewards = np.concatenate([before(random, change), after(random, 1000)])
    return next(alarm for alarm in alarms_of(rewards) if alarm.raised >= change)


@pytest.mark.parametrize(
    "world",
    [coin(0.02), coin(0.1), coin(0.5), coin(0.98), normal(0, 1), normal(1000, 3), rare_sales],
)
def test_a_still_world_raises_hardly_an_alarm(world: Draw) -> None:
    """One alarm in 20,000 rewards would be 3; many short lives, as most false alarms come early."""
    lives = [alarms_of(world(np.random.default_rng(seed), 1500)) for seed in range(40)]
    assert sum(len(alarms) for alarms in lives) <= 2


@pytest.mark.parametrize(("before", "after"), [(0.3, 0.6), (0.6, 0.3), (0.5, 0.9)])
def test_a_change_is_found_soon_and_dated_well(before: float, after: float) -> None:
    found = [first_alarm(coin(before), coin(after), seed) for seed in range(20)]
    delays = [alarm.raised - 1000 for alarm in found]
    assert np.mean(delays) < 100
    assert max(delays) < 250
    errors = [abs(alarm.time - 1000) for alarm in found]
    assert np.median(errors) <= 2 * BLOCK
    assert max(errors) < 100
    assert np.mean([alarm.before for alarm in found]) == pytest.approx(before, abs=0.03)
    assert np.mean([alarm.after for alarm in found]) == pytest.approx(after, abs=0.08)


def test_a_rare_event_that_becomes_rarer_or_more_frequent_is_found() -> None:
    for seed in range(5):
        up = first_alarm(coin(0.02), coin(0.15), seed)
        down = first_alarm(coin(0.2), coin(0.02), seed)
        assert up.before < 0.04 < 0.08 < up.after
        assert down.after < 0.08 < 0.15 < down.before
        assert 1000 < up.raised < 1400
        assert 1000 < down.raised < 1400


def test_scale_and_origin_of_the_rewards_do_not_matter() -> None:
    random = np.random.default_rng(3)
    plain = np.concatenate([normal(0, 1)(random, 500), normal(1, 1)(random, 500)])
    alarm = alarms_of(plain)[0]
    for scale, origin in [(1e-6, 0.0), (3.0, 1000.0), (-2.0, 5.0), (1e30, 0.0), (1.0, 1e6)]:
        other = alarms_of(scale * plain + origin)[0]
        assert (other.time, other.raised) == (alarm.time, alarm.raised)
        assert other.before == pytest.approx(scale * alarm.before + origin)
        assert other.after == pytest.approx(scale * alarm.after + origin)


def test_it_starts_afresh_after_an_alarm() -> None:
    random = np.random.default_rng(1)
    levels = [0.2, 0.7, 0.2, 0.7]
    found = alarms_of(np.concatenate([coin(level)(random, 1500) for level in levels]))
    assert [round(alarm.time / 1500) for alarm in found] == [1, 2, 3]
    assert [alarm.after > alarm.before for alarm in found] == [True, False, True]


def test_a_slow_drift_is_an_alarm_too() -> None:
    rising = np.linspace(0.2, 0.6, 4000)
    rewards = (np.random.default_rng(2).random(4000) < rising).astype(float)
    found = alarms_of(rewards)
    assert found
    assert all(alarm.after > alarm.before for alarm in found)


def test_one_outlier_is_no_change() -> None:
    rewards = normal(0, 1)(np.random.default_rng(4), 3000)
    rewards[1500] = 1e6
    assert alarms_of(rewards) == []


@pytest.mark.parametrize("size", [1e12, -1e12, 1e300])
@pytest.mark.parametrize("place", [0, 1, 7, 8, 30, 999])
@pytest.mark.parametrize("world", [coin, lambda rate: normal(rate, 0.1)])
def test_one_outlier_hides_no_change(
    world: Callable[[float], Draw], place: int, size: float
) -> None:
    """Neither the first reward nor any other."""
    random = np.random.default_rng(place)
    rewards = np.concatenate([world(0.3)(random, 1000), world(0.7)(random, 500)])
    rewards[place] = size
    (alarm,) = alarms_of(rewards)
    assert alarm.time == pytest.approx(1000, abs=40)
    assert alarm.raised < 1120
    assert alarm.before == pytest.approx(0.3, abs=0.1)


def test_an_outlier_among_equal_rewards_hides_no_change() -> None:
    for place in (0, 3, 8, 100):
        rewards = np.repeat([7.0, 8.0], [504, 200])
        rewards[place] = 1e12
        (alarm,) = alarms_of(rewards)
        assert alarm.time == pytest.approx(504, abs=BLOCK)
        assert alarm.after == pytest.approx(8, abs=0.3)


def test_rewards_that_become_much_larger_are_believed() -> None:
    rewards = normal(0, 1)(np.random.default_rng(1), 1000)
    rewards[500:] *= 1000
    rewards[500:] += 1e5
    alarm, *_ = alarms_of(rewards)
    assert alarm.time == pytest.approx(500, abs=16)
    assert alarm.after > 1e4


def test_constant_rewards_are_silent_until_they_move() -> None:
    assert alarms_of(np.full(500, 7.0)) == []
    change = 63 * BLOCK
    (alarm,) = alarms_of(np.repeat([7.0, 8.0], [change, 100]))
    assert (alarm.before, alarm.after) == (7.0, 8.0)
    assert alarm.time == change


def test_a_handful_of_rewards_is_no_mean_to_change_from() -> None:
    assert alarms_of(np.repeat([0.0, 1.0], [BLOCK, 5 * BLOCK])) == []


def test_the_likeliest_time_is_told_where_several_are_likely() -> None:
    rewards = np.zeros(65 * BLOCK)
    rewards[63 * BLOCK : 63 * BLOCK + 2] = 1  # too few to notice yet
    rewards[64 * BLOCK : 64 * BLOCK + 6] = 1
    (alarm,) = alarms_of(rewards)
    assert (alarm.time, alarm.before, alarm.after) == (63 * BLOCK, 0.0, 0.5)


def test_memory_grows_with_the_logarithm() -> None:
    detector = DriftAlarm()
    for time in range(20_000):
        detector.see(time, float(time % 2))
    blocks = [block for blocks in detector._lengths for block in blocks]
    assert len(blocks) <= (KEPT + 1) * math.log2(20_000 / BLOCK)
    assert sum(block.size for block in blocks) == 20_000


@pytest.mark.parametrize("rate", [0.02, 0.3, 0.9])
@pytest.mark.parametrize("other", [0.01, 0.5, 1.0])
def test_the_divergence_of_coins_is_that_of_bernoulli(rate: float, other: float) -> None:
    bound = 1 - rate if other > rate else rate
    expected = other * math.log(other / rate)
    if other < 1:
        expected += (1 - other) * math.log((1 - other) / (1 - rate))
    found = divergence(abs(other - rate), rate * (1 - rate), bound)
    assert found == pytest.approx(expected)
    assert found <= (other - rate) ** 2 / (rate * (1 - rate)), "what saves the logarithms"
