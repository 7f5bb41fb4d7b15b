"""The tracker against a transcription of its pseudocode, step by step."""

import jax
import numpy as np
import pytest

from driftbandits import BanditSpec, Observation
from driftbandits.policies.tracker import step, tracks
from driftbandits.policies.tracker.assumptions import (
    OWN_PRIOR,
    OWN_SLOPES,
    UNIT_PRIOR,
    WAVE_DRIFTS,
    WAVE_PRIOR,
)
from driftbandits.policies.tracker.policy import HEAD_START
from tests.policies.playing import KEY, STEPS, coins, compiled, gaussian, masks_for, play
from tests.policies.test_parity_linear import jumping_wheel
from tests.policies.transcriptions.tracker import Ours, Tracker
from tests.policies.transcriptions.tracker_tracks import (
    Describing,
    Gated,
    Remembering,
    Sharing,
    Waved,
)

SLOW = (1e-5, 1e-4, 1e-3)
COINS = BanditSpec(5)
WHEEL = BanditSpec(5, 2)
LEARNING = tracks.Learning(share=1e-4, memory=0.999, doubt=2.0, width=1.0, growth=1.0)
OPTIMISM = tracks.constants((0.0,), speeds=[1.0], prior=[1.0], learning=LEARNING)


@jax.jit
@jax.vmap
def observed(state, context, available, arms=None):
    """The features of all arms in all steps."""
    return step.observe(state, Observation(context, available, arms))


@jax.jit
@jax.vmap
def means_and_widths(track, features, changed):
    """Of all steps."""
    bank = tracks.those(track.bank, track.shared)[0]
    variances_alone = bank.covariance.ndim == bank.mean.ndim
    constants = OPTIMISM._replace(diagonal=variances_alone)
    return tracks.mean_and_width(track, constants, features, changed)


def jumping(rng):
    """The arms change places every 300 steps."""
    means = np.linspace(0, 2, 5)
    turns = np.arange(STEPS) // 300
    return gaussian(rng, np.stack([np.roll(means, turn) for turn in turns]))


def far_away(rng):
    return (1000 + 50 * coins(rng)).astype(np.float32)


def with_outliers(rng):
    """Whatever was pulled: the third reward of all, a single one, and two that come in a row."""
    rewards = coins(rng)
    rewards[2], rewards[400], rewards[900:902] = -1e4, -1e6, 3e38
    return rewards


def nothing(rng):
    return np.zeros((STEPS, 0), np.float32)


def clear(twin, available):
    """Whether no rounding of float32 may change the best arm, with the effect or without."""
    for index in (twin.index, twin.affected):
        ordered = np.sort(index[available])
        if ordered.size > 1 and ordered[-1] - ordered[-2] < 2e-3 * twin.width.max():
            return False
    return True


def agree(ours, twins, within, what):
    """In units of `within`; much quicker than NumPy's own assertions."""
    worst = np.max(np.abs(ours - twins) / within, initial=0.0)
    assert worst < 1, f"{what} is {worst:.3g} tolerances away"


def same_track(track, twin, first, unit):
    """What one track knows; rewards are in units of their standard deviation."""
    banks = tracks.those(track.bank, track.shared)
    for bank, filters in zip(banks, twin.banks, strict=True):
        means = filters.m.copy()
        if bank is banks[-1]:  # shared levels are relative, what arms have beside them is not
            means[..., -1] -= first
        agree(bank.mean, means, 5e-3 * unit, "a mean")
        covariance = bank.covariance
        if filters.diagonal:
            covariance = covariance[..., None] * np.eye(filters.d)
        agree(covariance, filters.P, 2e-4 + 2e-3 * np.abs(filters.P), "a covariance")
    agree(track.experts.weights, twin.w, 5e-3, "a weight")
    agree(track.experts.noise, twin.s2, 2e-3 * twin.s2 + 1e-5 * unit**2, "a noise level")
    agree(track.experts.error_count, twin.sn, 1e-2, "the number of rewards")


def same_index(mean, width, twin, first, unit):
    agree(mean, twin.index - twin.width - first, 5e-3 * unit, "a mean")
    agree(width, twin.width, 5e-3 * unit, "a width")


def same_streaks(streaks, twin, unit):
    agree(streaks.evidence, twin.logodds, 5e-2, "evidence for the length of a streak")
    agree(streaks.counts, twin.gn, 0.1, "rewards of the length of a streak")
    agree(streaks.excess, twin.ge, 5e-2 * unit, "what the length of a streak adds")
    assert (streaks.arm, streaks.length) == (twin.last, twin.streak)


def same_gate(gate, twin, first, unit):
    agree(gate.followed, twin.number, 1e-2 + 1e-4 * twin.number, "how often a track was followed")
    agree(gate.mean, twin.mean - first, 1e-3 * unit, "what following a track paid")
    agree(gate.squares / unit**2, twin.squares / unit**2, 1e-3 * STEPS, "squares at the gate")


def unit_of(rewards):
    """Their standard deviation, if they differ."""
    return np.std(rewards) if rewards and np.ptp(rewards) else 1.0


def compare(name, spec, twin, rewards, contexts, masks, limit=STEPS, described=None):
    """How many steps had probabilities to compare: those where the best index is clear."""
    game = play(name, spec, rewards, masks, contexts, limit=limit, arms=described)
    ticket, compared = game.decisions.ticket, 0
    gated = isinstance(twin, Gated)
    twins = twin.tracks if gated else (twin,)
    main = twins[0]
    states, features = observed(game.states, contexts, masks, described)
    changed = step.changes(states._replace(time=ticket.time[:, None]), main.h or None)
    indices = [
        [np.asarray(x) for x in means_and_widths(track, z, changed)]
        for track, z in zip(states.tracks, features, strict=True)
    ]
    for t, arm, reward in game.pulls():
        available, unit = masks[t], unit_of(main.rewards)
        first = main.rewards[0] if t else 0.0
        if described is not None:
            main.describe(described[t])
        probabilities = twin.act(contexts[t].astype(float), available)
        assert ticket.first_pull[t] == main.forced
        if t:  # before, the index has no scale
            for (mean, width), own in zip(indices, twins, strict=True):
                same_index(mean[t], width[t], own, first, unit)
        if t and t % 25 == 0:
            for track, own in zip(game.state(t).tracks, twins, strict=True):
                same_track(track, own, first, unit)
        agree(ticket.effect.chance[t], main.ps, 1e-2, "the chance of an effect")
        if main.ps:
            agree(ticket.effect.size[t], main.g, 1e-2 * unit, "the size of an effect")
        if gated and t % 25 == 0:
            same_gate(game.state(t).gate, twin, first, unit)
        is_clear = all(clear(own, available) for own in twins)
        if main.forced or is_clear:
            ours = game.decisions.probabilities[t]
            agree(ours, probabilities, 1e-2, f"the probabilities of step {t}")
            assert probabilities[arm] > 0
            compared += 1
        if gated:  # which arm is the best depends on rounding where it is not clear
            follows = ticket.follows[t].tolist()
            assert follows == twin.followed(arm) or not is_clear
            twin.learn(arm, reward, follows)
        else:
            twin.learn(arm, reward)
        if t % 25 == 0 and isinstance(main, Ours):
            same_streaks(game.state(t + 1).streaks, main, unit)
    return compared


CASES = {  # after so many pulls in a row an arm pays nothing
    "coins": (coins, False, STEPS),
    "arms that jump": (jumping, False, STEPS),
    "masks": (jumping, True, STEPS),
    "limit of 5": (coins, False, 5),
    "limit of 5 and masks": (coins, True, 5),
    "1000 + 50 x": (far_away, False, STEPS),
    "outliers": (with_outliers, False, STEPS),
}


@pytest.mark.parametrize("case", CASES)
def test_without_a_context(case):
    problem, masked, limit = CASES[case]
    rng = np.random.default_rng(1)
    rewards, masks = problem(rng), masks_for(rng, 5, masked)
    twin = Ours(5, 0)
    compared = compare("tracker(version=1)", COINS, twin, rewards, nothing(rng), masks, limit)
    assert compared > 0.8 * STEPS
    if case == "outliers":
        assert twin.seen.alert > 0
        assert max(twin.rewards) < 1000
    if limit < STEPS:
        assert twin.chance(5, twin.pslab) > 0.9
        assert twin.ge[5] / twin.gn[5] < -0.2


@pytest.mark.parametrize("masked", [False, True])
def test_arms_that_may_change_unseen(masked):
    rng = np.random.default_rng(9)
    rewards, masks = jumping(rng), masks_for(rng, 5, masked)
    name, twin = "tracker(history=0, hazard=0.01)", Ours(5, 0, a0=100.0, freedom=2.0, h=0.01)
    assert compare(name, COINS, twin, rewards, nothing(rng), masks) > 0.8 * STEPS


def test_experts_with_slow_slopes():
    rng = np.random.default_rng(10)
    contexts, rewards = jumping_wheel(rng)
    masks = masks_for(rng, 5, masked=False)
    name, twin = "tracker(waves=0)", Ours(5, 2, slow=SLOW)
    assert compare(name, WHEEL, twin, rewards, contexts, masks) > 0.8 * STEPS


@pytest.mark.parametrize("case", ["coins", "masks", "1000 + 50 x"])
def test_the_pseudocode_as_it_stands(case):
    problem, masked, limit = CASES[case]
    rng = np.random.default_rng(2)
    rewards, masks = problem(rng), masks_for(rng, 5, masked)
    name, twin = "tracker(version=1, effect=0, randomness=0)", Tracker(5, 0, pslab=0)
    assert compare(name, COINS, twin, rewards, nothing(rng), masks, limit) > 0.8 * STEPS


def test_the_pseudocode_as_it_stands_on_a_wheel():
    rng = np.random.default_rng(3)
    contexts, rewards = jumping_wheel(rng)
    masks = masks_for(rng, 5, masked=True)
    name, twin = "tracker(version=1, effect=0, randomness=0, waves=0)", Tracker(5, 2, pslab=0)
    assert compare(name, WHEEL, twin, rewards, contexts, masks) > 0.8 * STEPS


def test_a_wheel_without_waves():
    rng = np.random.default_rng(4)
    contexts, rewards = jumping_wheel(rng)
    masks = masks_for(rng, 5, masked=False)
    compared = compare("tracker(version=1, waves=0)", WHEEL, Ours(5, 2), rewards, contexts, masks)
    assert compared > 0.8 * STEPS


def test_variances_alone():
    rng = np.random.default_rng(8)
    contexts, rewards = jumping_wheel(rng)
    masks, twin = masks_for(rng, 5, masked=False), Ours(5, 2, diagonal=True)
    name = 'tracker(version=1, waves=0, covariance="diagonal")'
    assert compare(name, WHEEL, twin, rewards, contexts, masks) > 0.8 * STEPS


def test_contexts_with_outliers():
    rng = np.random.default_rng(7)
    contexts, rewards = jumping_wheel(rng)
    contexts[0, 0], contexts[2, 1], contexts[500, 0], contexts[800:803, 1] = 1e6, 1e4, 3e38, -1e3
    masks, twin = masks_for(rng, 5, masked=False), Ours(5, 2)
    assert (
        compare("tracker(version=1, waves=0)", WHEEL, twin, rewards, contexts, masks) > 0.8 * STEPS
    )
    assert max(twin.coordinates[0].counted) < 100


def test_a_wheel_with_waves():
    rng = np.random.default_rng(5)
    contexts, rewards = jumping_wheel(rng)
    rewards[700] = 1e6
    masks = masks_for(rng, 5, masked=True)
    waves = compiled("tracker", WHEEL)[0](KEY).waves
    first = Ours(5, 2, slow=SLOW)
    directions, phases = (np.asarray(x, float) for x in waves)
    twin = Gated(first, Waved(first, directions, phases, WAVE_DRIFTS, WAVE_PRIOR))
    assert compare("tracker", WHEEL, twin, rewards, contexts, masks) > 0.8 * STEPS
    assert len(twin.counted) > 50


def remembering(first, name, spec=COINS):
    history = compiled(name, spec)[0](KEY).history
    inner, by_arm, by_reward = (np.asarray(x, float) for x in history[:3])
    return Remembering(first, inner, by_arm, by_reward, UNIT_PRIOR, OWN_PRIOR)


@pytest.mark.parametrize("case", CASES)
def test_histories(case):
    problem, masked, limit = CASES[case]
    rng = np.random.default_rng(11)
    rewards, masks = problem(rng), masks_for(rng, 5, masked)
    first = Ours(5, 0, a0=100.0, freedom=2.0)
    twin = Gated(first, remembering(first, "tracker"), head_start=HEAD_START)
    assert compare("tracker", COINS, twin, rewards, nothing(rng), masks, limit) > 0.8 * STEPS
    assert len(twin.counted) > 50


def described_by(rng, num_arms, arm_dim):
    """Features that change every 500 steps."""
    turns = 1 + STEPS // 500
    return np.repeat(rng.normal(size=(turns, num_arms, arm_dim)), 500, axis=0)[:STEPS].astype(
        np.float32
    )


@pytest.mark.parametrize(("context_dim", "masked"), [(0, False), (0, True), (2, False)])
def test_features_of_arms(context_dim, masked):
    rng = np.random.default_rng(12)
    arms, masks = described_by(rng, 5, 3), masks_for(rng, 5, masked)
    contexts = rng.normal(size=(STEPS, context_dim)).astype(np.float32)
    taste = rng.normal(size=(context_dim + 1, 3))
    ones = np.ones((STEPS, 1))
    means = np.einsum("tc,ca,tka->tk", np.hstack([contexts, ones]), taste, arms)
    rewards, spec = gaussian(rng, means), BanditSpec(5, context_dim, arm_dim=3)
    slow = SLOW if context_dim else ()
    doubt = 2.0 if context_dim else 100.0
    first = Describing(5, context_dim, 3, own_slopes=OWN_SLOPES, slow=slow, a0=doubt, freedom=2.0)
    drifts = (0, 1e-5, 1e-4, 1e-3, 1e-2)
    twin = Gated(first, Sharing(first, drifts))
    compared = compare("tracker", spec, twin, rewards, contexts, masks, described=arms)
    assert compared > 0.8 * STEPS


def test_a_mistake_would_be_noticed():
    """A world whose slopes drift a little faster."""
    rng = np.random.default_rng(6)
    contexts, rewards = jumping_wheel(rng)
    masks = masks_for(rng, 5, masked=False)
    with pytest.raises(AssertionError, match="tolerances away"):
        compare("tracker(version=1, waves=0)", WHEEL, Ours(5, 2, xq=33), rewards, contexts, masks)
