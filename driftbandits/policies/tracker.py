"""The tracker: finds out by itself how fast the world moves, from standing still to fast.

    per arm a bank of Kalman filters, reward = z'm + noise, m drifting by q_j: experts j
    weights_j  *= Student's density of expert j's error; then experts mix their states
    mean_k      = sum_j weights_j z'm_jk
    variance_k  = sum_j weights_j (noise_j z'P_jk z + (z'm_jk - mean_k)^2)
    N_k         = sum_j weights_j noise_j / variance_k
    index_k     = mean_k + sqrt(variance_k (width + growth ln(sum_l N_l / N_k)))
    index_last += effect of the run length, with the probability that there is one
    law         = inverse gap weights of the index: full support, and exact

z = (context / its root mean square so far, 1). Each arm is pulled `first_pulls` times first. With a
context a second bank has random Fourier features of it beside z; a gate follows the index of the
one or the other with the probability that it pays more, by what following each has paid.

Research of our own; docs/tracker.md has the pseudocode, the reason for every constant and the
evidence. Its parts: the interacting-multiple-models filter (Blom & Bar-Shalom, 1988), fixed share
(Herbster & Warmuth, 1998), spike and slab (Mitchell & Beauchamp, 1988), inverse gap weighting (Abe
& Long, 1999), random Fourier features (Rahimi & Recht, 2007). It is told the number of arms and the
dimension of the context: not the horizon, the scale or noise of the rewards, nor how they drift.

A late reward is learnt as what it is: of what is in doubt now, only the part that was in doubt at
the pull. An arm that wakes up late starts from the mean of all rewards. Time and memory grow with
num_arms times the square of the context's dimension plus 17.

Use it when you do not know whether, how or how fast rewards drift: it is the default. Not when
rewards depend on patience (a pull now pays off later), and it has no proof: on coins that stand
still about one run in a hundred stays long on the second-best arm.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from driftbandits import check
from driftbandits.core import BanditSpec, Decision, Key, Policy
from driftbandits.parts import run_lengths, tracks
from driftbandits.parts.arms import count_pull, draw, greedy_law
from driftbandits.parts.fourier import Waves, random_waves, wave_features
from driftbandits.parts.gate import Gate, chance_of_second, closer, open_gate
from driftbandits.parts.inverse_gaps import inverse_gap_law
from driftbandits.parts.run_lengths import Effect, Runs
from driftbandits.parts.seen_rewards import SeenRewards, none_seen, see, spread
from driftbandits.parts.tracks import Track

FIRST_PULLS, FIRST_PULLS_WITH_CONTEXT = 2, 8
WAVE_DRIFTS = (0.0, 1e-3)
WAVE_PRIOR = 1.0
WAVE_LENGTH = 1.5  # in root mean squares of the context


class TrackerState(NamedTuple):
    tracks: tuple[Track, ...]  # of the context and, where there is one, of waves over it
    gate: Gate  # between the two
    seen: SeenRewards
    runs: Runs
    waves: Waves
    pulls: Array  # (num_arms,) int32
    squares: Array  # (context_dim,) float32, sum over the contexts
    time: Array  # () int32, decisions
    learnt: Array  # () int32, those before the last reward


class TrackerTicket(NamedTuple):
    features: tuple[Array, ...]  # of each track
    arm: Array  # () int32
    effect: Effect  # of the run length
    again: Array  # () bool, whether the arm was the last one pulled
    first: Array  # () bool, whether it was one of the first pulls of an arm
    follows: Array  # (tracks,) bool, whose best arm it was
    time: Array  # () int32


class Advice(NamedTuple):
    """Of one track."""

    best: Array  # (num_arms,) float32, law of the highest index
    law: Array  # (num_arms,) float32


def tracker(
    spec: BanditSpec,
    *,
    drifts: tuple[float, ...] = (0.0, 1e-5, 1e-4, 1e-3, 1e-2),
    share: float = 1e-4,
    prior: float = 1.5,
    slope_prior: float = 3.0,
    slope_speed: float = 30.0,
    width: float = 1.0,
    growth: float = 1.0,
    first_pulls: int | None = None,
    memory: float = 0.999,
    doubt: float = 2.0,
    effect: float = 0.01,
    randomness: float = 0.1,
    waves: int = 16,
) -> Policy:
    """Kalman filters from static to fast, weighed by their predictions, and one optimistic index.

    Args:
        drifts: q_j, variance per step that each expert takes the world to move by, in units of the
            noise; the belief in each is half of that in the one before.
        share: chance per reward that another expert becomes the right one.
        prior: variance of an arm's level, in units of the noise.
        slope_prior: variance of the slopes of the context.
        slope_speed: how much faster than levels slopes drift.
        width: of the optimism: 1 is one standard deviation, before it grows.
        growth: of the squared width with the logarithm of an arm's share in what is known.
        first_pulls: of each arm before anything else; none is 2 without and 8 with a context.
        memory: how much of the squared errors that tell the noise is kept at each reward.
        doubt: rewards that the spread of all rewards counts for in the noise.
        effect: chance that a run length has an effect, before evidence; 0 looks for none.
        randomness: scale of the gaps in the law, in widths; 0 always pulls the highest index.
        waves: Fourier features of the context in the second bank; 0 leaves it out.
    """
    check.not_negative(randomness=randomness, width=width, growth=growth)
    check.positive(prior=prior, slope_prior=slope_prior, slope_speed=slope_speed, doubt=doubt)
    check.probability(share=share, memory=memory, effect=effect)
    check.whole(waves=waves, at_least=0)
    dim = spec.context_dim
    usual = FIRST_PULLS_WITH_CONTEXT if dim else FIRST_PULLS
    least = usual if first_pulls is None else first_pulls
    check.whole(first_pulls=least)
    waves = waves if dim else 0
    learning = share, memory, doubt, width, growth
    speeds, priors = [slope_speed] * dim + [1.0], [slope_prior] * dim + [prior]
    about = [tracks.constants(checked(drifts), speeds, priors, *learning)]
    if waves:
        speeds, priors = [1.0] * waves + speeds, [WAVE_PRIOR] * waves + priors
        about.append(tracks.constants(WAVE_DRIFTS, speeds, priors, *learning))

    def init(key: Key) -> TrackerState:
        return TrackerState(
            tuple(tracks.start(constants, spec.num_arms) for constants in about),
            open_gate(),
            none_seen(),
            run_lengths.no_runs(),
            random_waves(key, waves, dim, WAVE_LENGTH),
            jnp.zeros(spec.num_arms, jnp.int32),
            jnp.zeros(dim),
            jnp.int32(0),
            jnp.int32(0),
        )

    def act(
        key: Key, state: TrackerState, context: Array, available: Array
    ) -> tuple[Decision, TrackerState]:
        time, squares = state.time + 1, state.squares + context**2
        features = features_of(state.waves, context, squares / time)
        run_effect = run_lengths.effect_now(state.runs, effect)
        push = run_lengths.push(state.runs, run_effect, spec.num_arms)
        advice = [
            advise(*tracks.index(*of), push, run_effect.chance, randomness, available)
            for of in zip(state.tracks, about, features, strict=True)
        ]
        first = jnp.any(available & (state.pulls < least))
        law = follow([a.law for a in advice], state.gate, spread(state.seen))
        law = jnp.where(first, greedy_law(-state.pulls, available), law)
        arm = draw(key, law)
        follows = jnp.stack([a.best[arm] > 0 for a in advice])
        again = (arm == state.runs.last) & (state.runs.length > 0)
        ticket = TrackerTicket(features, arm, run_effect, again, first, follows, time)
        return Decision(arm, law, ticket), state._replace(
            runs=run_lengths.pull(state.runs, arm),
            pulls=count_pull(state.pulls, arm),
            squares=squares,
            time=time,
        )

    def learn(state: TrackerState, ticket: TrackerTicket, reward: Array) -> TrackerState:
        seen, above = see(state.seen, reward)
        judges, arm, steps = ~ticket.first, ticket.arm, state.time - state.learnt
        since = jnp.maximum(state.learnt - ticket.time + 1, 0)  # how far drift was let in
        known = list(zip(state.tracks, about, strict=True))
        made = [
            tracks.forecast(*of, z, arm, since)
            for of, z in zip(known, ticket.features, strict=True)
        ]
        learnt = [
            tracks.learn(*of, arm, forecast, above - expected(ticket), spread(seen), judges, steps)
            for of, forecast in zip(known, made, strict=True)
        ]
        never = state.pulls == 0
        return state._replace(
            tracks=tuple(tracks.set_level(track, never, seen.mean) for track in learnt),
            gate=closer(state.gate, ticket.follows, above, judges),
            seen=seen,
            runs=weigh_run(state.runs, ticket, state.tracks[0], made[0], above, doubt),
            learnt=state.time,
        )

    return Policy(init, act, learn)


def checked(drifts: tuple[float, ...]) -> tuple[float, ...]:
    if not isinstance(drifts, list | tuple) or not drifts:
        check.fail("drifts", "a list of at least one number", drifts)
    for drift in drifts:
        check.not_negative(drifts=drift)
    return tuple(drifts)


def features_of(waves: Waves, context: Array, mean_square: Array) -> tuple[Array, ...]:
    """Of each track; a coordinate that was always 0 stays 0."""
    scaled = context / jnp.sqrt(jnp.where(mean_square > 0, mean_square, 1.0))
    linear = jnp.append(scaled, 1.0)
    if not waves.phases.size:
        return (linear,)
    return linear, jnp.append(wave_features(waves, scaled), linear)


def advise(
    mean: Array, wide: Array, push: Array, chance: Array, randomness: float, available: Array
) -> Advice:
    """The law of the index, where a coin decides whether the run length has its effect."""

    def law(index: Array) -> Array:
        best = greedy_law(index, available)
        if not randomness:
            return best
        return inverse_gap_law(index, randomness * jnp.sum(best * wide), available)

    index = mean + wide
    pushed = law(index + push)
    return Advice(greedy_law(index, available), (1 - chance) * law(index) + chance * pushed)


def follow(laws: list[Array], gate: Gate, unit: Array) -> Array:
    if len(laws) == 1:
        return laws[0]
    second = chance_of_second(gate, unit)
    return (1 - second) * laws[0] + second * laws[1]


def expected(ticket: TrackerTicket) -> Array:
    """What the run length is expected to add to the reward."""
    return jnp.where(ticket.again, ticket.effect.chance * ticket.effect.size, 0.0)


def weigh_run(
    runs: Runs,
    ticket: TrackerTicket,
    track: Track,
    made: tracks.Forecast,
    above: Array,
    doubt: float,
) -> Runs:
    """Evidence for an effect of the run length, from a pull in a row."""
    judged = track.experts
    error = above - judged.weights @ made.mean
    noise = judged.noise[0]  # of the expert that stands still
    variance = noise + judged.weights @ (judged.noise * made.variance)
    weighed = run_lengths.weigh(runs, ticket.effect, error, variance, noise, judged.heard + doubt)
    counts = ticket.again & ~ticket.first
    return jax.tree.map(lambda new, old: jnp.where(counts, new, old), weighed, runs)
