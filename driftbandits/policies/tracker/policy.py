"""Tracker: finds out by itself how fast rewards drift, from not at all to fast.

    per arm a bank of Kalman filters, reward = z'm + noise, m drifting by q_j: experts j
    weights_j  *= Student's density of expert j's error; then experts mix their states
    mean_k      = sum_j weights_j z'm_jk
    variance_k  = sum_j weights_j (noise_j z'P_jk z + (z'm_jk - mean_k)^2)
    N_k         = sum_j weights_j noise_j / variance_k
    index_k     = mean_k + sqrt(variance_k (width + growth ln(sum_l N_l / N_k)))
    index_last += effect of the streak, with the probability that there is one
    p           = inverse gap weights of the index: every arm has a chance, known exactly

z = (context / its root mean square so far, 1). A streak is a row of pulls of the same arm. Each arm
is pulled `first_pulls` times at the start. A second bank has other features: random Fourier
features of the context beside z or, without a context, what was pulled and paid before, as a small
random network sees it, and when the arm was pulled last. A gate follows the index of one bank or
the other with the probability that it pays more, judged by what following each has paid.

With features of arms, all arms share coefficients of (features of the arm, 1) x (context, 1). The
first bank adds z'm_k to them, what arm k has beside the others; the second has nothing else.

It knows the number of arms and the dimension of the context, but not the horizon, the scale or
noise of the rewards, or how they drift. A late reward reduces only the uncertainty that existed at
the pull, not the drift since. An arm that becomes available late starts from the mean of all
rewards. A reward counts as at most 30 deviations from the mean (a single bad outlier is not learned
from), and a context number as at most 30 times its root mean square.

Time and memory grow with num_arms times the square of the context's dimension plus 17. With more
than 32 context numbers the filters store variances without covariances. Then time and memory grow
with the dimension itself, for more regret. Features of arms add num_arms times the square of (their
number plus 1) times (the context's plus 1); beyond 64 of these products, their number itself.

Paper: none, this is our own research. Its parts are known: the interacting-multiple-models filter
(Blom & Bar-Shalom, 1988), fixed share (Herbster & Warmuth, 1998), spike and slab (Mitchell &
Beauchamp, 1988), inverse gap weighting (Abe & Long, 1999), random Fourier features (Rahimi & Recht,
2007), echo states (Jaeger, 2001).

Use it when you do not know whether, how or how fast rewards drift: it is the default. Not when
rewards depend on patience (a pull now pays off later). It has no proof: on Bernoulli arms that do
not drift, about one run in a hundred stays with the second-best arm for a long time.
"""

from functools import partial
from typing import NamedTuple

from jax import Array

from driftbandits import check
from driftbandits.core import BanditSpec, Decision, Key, Observation, Policy
from driftbandits.policies.tracker import step, tracks
from driftbandits.policies.tracker.assumptions import Assumptions, tracks_of
from driftbandits.policies.tracker.fourier import random_waves
from driftbandits.policies.tracker.history import new_history
from driftbandits.policies.tracker.state import TrackerState, TrackerTicket, start_state
from driftbandits.policies.tracker.streaks import without_streak
from driftbandits.policies.tracker.tracks import Learning

WIDEST_FULL = 32  # context numbers with full covariances, by default
FIRST_PULLS, FIRST_PULLS_WITH_CONTEXT = 2, 8
WAVE_LENGTH = 1.5  # in root mean squares of the context
STREAK_DOUBT = 2.0
HEAD_START = 2.0  # of the first track before the one of the history, in deviations


class Defaults(NamedTuple):
    """Settings whose defaults depend on the version and on the problem."""

    doubt: float
    slow_slopes: tuple[float, ...]
    history: int


FIRST_VERSION = Defaults(doubt=2.0, slow_slopes=(), history=0)
WITHOUT_CONTEXT = Defaults(doubt=100.0, slow_slopes=(), history=16)
WITH_CONTEXT = Defaults(doubt=2.0, slow_slopes=(1e-5, 1e-4, 1e-3), history=0)


def tracker(
    spec: BanditSpec,
    *,
    version: int = 2,
    drifts: tuple[float, ...] = (0.0, 1e-5, 1e-4, 1e-3, 1e-2),
    share: float = 1e-4,
    prior: float = 1.5,
    slope_prior: float = 3.0,
    slope_speed: float = 30.0,
    width: float = 1.0,
    growth: float = 1.0,
    first_pulls: int | None = None,
    memory: float = 0.999,
    doubt: float | None = None,
    effect: float = 0.01,
    randomness: float = 0.1,
    waves: int = 16,
    history: int | None = None,
    covariance: str | None = None,
    slow_slopes: tuple[float, ...] | None = None,
    hazard: float = 0.0,
) -> Policy:
    """Kalman filters from static to fast, weighted by their predictions, and one optimistic index.

    Args:
        version: 1 is the tracker of driftbandits 0.15 and before: it knows no history and no
            features of arms, and has other defaults.
        drifts: q_j, the variance per step that each expert assumes, in units of the noise. The
            belief in each is half of that in the one before.
        share: Probability per reward that another expert becomes the right one.
        prior: Variance of an arm's level, in units of the noise.
        slope_prior: Variance of the slopes of the context, and of the coefficients of features.
        slope_speed: How much faster slopes drift than levels.
        width: Squared width of the optimism before it grows; 1 is one standard deviation.
        growth: How much the squared width grows with the logarithm of how little is known of an arm
            beside the others.
        first_pulls: Pulls of each arm at the start; by default 2, or 8 with a context.
        memory: Share of the squared errors that stays at each reward; they estimate the noise.
        doubt: Number of rewards that the variance of all rewards counts for in the noise; by
            default 100, or 2 with a context.
        effect: Prior probability that the length of a streak has an effect; 0 means never.
        randomness: Scale of the gaps, in widths; 0 always pulls the arm with the highest index.
        waves: Fourier features of the context in the second bank; 0 leaves it out.
        history: Without a context, units of a random network that sees what was pulled and paid
            before, in the second bank; by default 16, and 0 leaves it out.
        covariance: `full`, or `diagonal` to store only the variances of an arm's coefficients; by
            default full up to 32 context numbers.
        slow_slopes: With a context, drifts of further experts, whose slopes drift no faster than
            their levels; by default 1e-5, 1e-4 and 1e-3.
        hazard: Probability per step that an arm which nobody pulls changes to one like the others;
            with 0, arms drift but do not change.
    """
    describes = spec.arm_dim > 0 and version > 1
    usual = usual_settings(spec, version)
    doubt = usual.doubt if doubt is None else doubt
    history = usual.history if history is None else history
    slow_slopes = usual.slow_slopes if slow_slopes is None else slow_slopes
    check.not_negative(randomness=randomness, width=width, growth=growth)
    check.positive(prior=prior, slope_prior=slope_prior, slope_speed=slope_speed, doubt=doubt)
    check.probability(share=share, memory=memory, effect=effect, hazard=hazard)
    check.integer(waves=waves, at_least=0)
    check.integer(history=history, at_least=0)
    if first_pulls is None:
        first_pulls = FIRST_PULLS_WITH_CONTEXT if spec.context_dim else FIRST_PULLS
    check.integer(first_pulls=first_pulls)
    check_drifts(drifts=drifts)
    if slow_slopes not in ((), []):
        check_drifts(slow_slopes=slow_slopes)
    if covariance is None:
        covariance = "full" if spec.context_dim <= WIDEST_FULL else "diagonal"
    check.known("covariance", covariance, ("full", "diagonal"))
    scale_of_gaps, change = randomness or None, hazard or None
    waves = waves if spec.context_dim and not describes else 0
    units = 0 if spec.context_dim or describes else history
    assumed = Assumptions(
        drifts=drifts,
        slow_slopes=tuple(slow_slopes) if spec.context_dim else (),
        prior=prior,
        slope_prior=slope_prior,
        slope_speed=slope_speed,
        diagonal=covariance == "diagonal",
        learning=Learning(
            share=share,
            memory=memory,
            doubt=doubt,
            width=width,
            growth=growth,
            streak_doubt=doubt if version == 1 else STREAK_DOUBT,
        ),
    )
    constants = tracks_of(assumed, spec, waves=waves, units=units, describes=describes)

    def init(key: Key) -> TrackerState:
        return start_state(
            constants,
            random_waves(key, waves, spec.context_dim, WAVE_LENGTH),
            spec.num_arms,
            spec.context_dim,
            arm_dim=spec.arm_dim if describes else 0,
            history=new_history(key, units, spec.num_arms) if units else None,
            watches=change is not None or units > 0,
        )

    def act(
        key: Key, state: TrackerState, observation: Observation
    ) -> tuple[Decision, TrackerState]:
        state, features = step.observe(state, observation)
        return step.decide(
            key,
            state,
            constants,
            features,
            observation.available,
            first_pulls=first_pulls,
            effect_prior=effect,
            randomness=scale_of_gaps,
            hazard=change,
            head_start=HEAD_START if units else None,
        )

    def learn(state: TrackerState, ticket: TrackerTicket, reward: Array) -> TrackerState:
        return step.learn(state, constants, ticket, reward)

    def forget(old: TrackerState, new: TrackerState, is_new: Array) -> TrackerState:
        level = partial(tracks.set_level, arms=is_new, level=new.seen.mean)
        return new._replace(
            tracks=tuple(map(level, new.tracks)), streaks=without_streak(new.streaks, is_new)
        )

    return Policy(init, act, learn, forget=forget)


def usual_settings(spec: BanditSpec, version: int) -> Defaults:
    check.integer(version=version, at_least=1, at_most=2)
    if version == 1:
        return FIRST_VERSION
    return WITH_CONTEXT if spec.context_dim else WITHOUT_CONTEXT


def check_drifts(**drifts: tuple[float, ...]) -> None:
    for name, values in drifts.items():
        if not isinstance(values, list | tuple) or not values:
            check.fail(name, "a list of at least one number", values)
        for value in values:
            check.not_negative(**{name: value})
