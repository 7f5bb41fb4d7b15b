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
is pulled `first_pulls` times at the start. With a context, a second bank adds random Fourier
features of the context to z. A gate follows the index of one bank or the other with the probability
that it pays more, judged by what following each has paid.

It knows the number of arms and the dimension of the context, but not the horizon, the scale or
noise of the rewards, or how they drift. A late reward reduces only the uncertainty that existed at
the pull, not the drift since. An arm that becomes available late starts from the mean of all
rewards. A reward counts as at most 30 deviations from the mean (a single bad outlier is not learned
from), and a context number as at most 30 times its root mean square.

Time and memory grow with num_arms times the square of the context's dimension plus 17. With more
than 32 context numbers the filters store variances without covariances. Then time and memory grow
with the dimension itself, for more regret.

Paper: none, this is our own research. Its parts are known: the interacting-multiple-models filter
(Blom & Bar-Shalom, 1988), fixed share (Herbster & Warmuth, 1998), spike and slab (Mitchell &
Beauchamp, 1988), inverse gap weighting (Abe & Long, 1999), random Fourier features (Rahimi & Recht,
2007).

Use it when you do not know whether, how or how fast rewards drift: it is the default. Not when
rewards depend on patience (a pull now pays off later). It has no proof: on Bernoulli arms that do
not drift, about one run in a hundred stays with the second-best arm for a long time.
"""

from functools import partial

from jax import Array

from driftbandits import check
from driftbandits.core import BanditSpec, Decision, Key, Observation, Policy
from driftbandits.policies.tracker import step, tracks
from driftbandits.policies.tracker.fourier import random_waves
from driftbandits.policies.tracker.state import TrackerState, TrackerTicket, start_state
from driftbandits.policies.tracker.streaks import without_streak
from driftbandits.policies.tracker.tracks import Constants, Learning

WIDEST_FULL = 32  # context numbers with full covariances, by default
FIRST_PULLS, FIRST_PULLS_WITH_CONTEXT = 2, 8
WAVE_DRIFTS = (0.0, 1e-3)
WAVE_PRIOR = 1.0
WAVE_LENGTH = 1.5  # in root mean squares of the context


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
    covariance: str | None = None,
    slow_slopes: tuple[float, ...] = (),
    hazard: float = 0.0,
) -> Policy:
    """Kalman filters from static to fast, weighted by their predictions, and one optimistic index.

    Args:
        drifts: q_j, the variance per step that each expert assumes, in units of the noise. The
            belief in each is half of that in the one before.
        share: Probability per reward that another expert becomes the right one.
        prior: Variance of an arm's level, in units of the noise.
        slope_prior: Variance of the slopes of the context.
        slope_speed: How much faster slopes drift than levels.
        width: Squared width of the optimism before it grows; 1 is one standard deviation.
        growth: How much the squared width grows with the logarithm of how little is known of an arm
            beside the others.
        first_pulls: Pulls of each arm at the start; by default 2, or 8 with a context.
        memory: Share of the squared errors that stays at each reward; they estimate the noise.
        doubt: Number of rewards that the variance of all rewards counts for in the noise.
        effect: Prior probability that the length of a streak has an effect; 0 means never.
        randomness: Scale of the gaps, in widths; 0 always pulls the arm with the highest index.
        waves: Fourier features of the context in the second bank; 0 leaves it out.
        covariance: `full`, or `diagonal` to store only the variances of an arm's coefficients; by
            default full up to 32 context numbers.
        slow_slopes: With a context, drifts of further experts, whose slopes drift no faster than
            their levels.
        hazard: Probability per step that an arm which nobody pulls changes to one like the others;
            with 0, arms drift but do not change.
    """
    check.not_negative(randomness=randomness, width=width, growth=growth)
    check.positive(prior=prior, slope_prior=slope_prior, slope_speed=slope_speed, doubt=doubt)
    check.probability(share=share, memory=memory, effect=effect, hazard=hazard)
    check.integer(waves=waves, at_least=0)
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
    waves = waves if spec.context_dim else 0
    constants = constants_of_tracks(
        (drifts, WAVE_DRIFTS),
        context_dim=spec.context_dim,
        more_features=waves,
        prior=prior,
        slope_prior=slope_prior,
        slope_speed=slope_speed,
        steady=tuple(slow_slopes) if spec.context_dim else (),
        learning=Learning(share=share, memory=memory, doubt=doubt, width=width, growth=growth),
        diagonal=covariance == "diagonal",
    )

    def init(key: Key) -> TrackerState:
        features = random_waves(key, waves, spec.context_dim, WAVE_LENGTH)
        return start_state(
            constants, features, spec.num_arms, spec.context_dim, watches=change is not None
        )

    def act(
        key: Key, state: TrackerState, observation: Observation
    ) -> tuple[Decision, TrackerState]:
        state, scaled = step.see_context(state, observation.context)
        return step.decide(
            key,
            state,
            constants,
            step.features_of(state, scaled),
            observation.available,
            first_pulls=first_pulls,
            effect_prior=effect,
            randomness=scale_of_gaps,
            hazard=change,
        )

    def learn(state: TrackerState, ticket: TrackerTicket, reward: Array) -> TrackerState:
        return step.learn(state, constants, ticket, reward)

    def forget(old: TrackerState, new: TrackerState, is_new: Array) -> TrackerState:
        level = partial(tracks.set_level, arms=is_new, level=new.seen.mean)
        return new._replace(
            tracks=tuple(map(level, new.tracks)), streaks=without_streak(new.streaks, is_new)
        )

    return Policy(init, act, learn, forget=forget)


def check_drifts(**drifts: tuple[float, ...]) -> None:
    for name, values in drifts.items():
        if not isinstance(values, list | tuple) or not values:
            check.fail(name, "a list of at least one number", values)
        for value in values:
            check.not_negative(**{name: value})


def constants_of_tracks(
    drifts: tuple[tuple[float, ...], tuple[float, ...]],
    *,
    context_dim: int,
    more_features: int,
    prior: float,
    slope_prior: float,
    slope_speed: float,
    learning: Learning,
    steady: tuple[float, ...] = (),
    diagonal: bool = False,
) -> list[Constants]:
    """The constants of the track of the context and, with more features, of the second track.

    Args:
        drifts: Drifts of the experts of each track.
        context_dim: Number of slopes, which come before the level.
        more_features: Features before the context in the second track.
        prior: Variance of a level.
        slope_prior: Variance of a slope.
        slope_speed: How much faster slopes drift than levels.
        learning: How both tracks learn.
        steady: Drifts of further experts of the first track, with slopes as slow as levels.
        diagonal: Whether both store only variances.
    """
    first, second = drifts
    speeds, priors = [slope_speed] * context_dim + [1.0], [slope_prior] * context_dim + [prior]
    build = partial(tracks.constants, learning=learning, diagonal=diagonal)
    found = [build(first, speeds=speeds, prior=priors, steady=steady)]
    if more_features:
        speeds, priors = [1.0] * more_features + speeds, [WAVE_PRIOR] * more_features + priors
        found.append(build(second, speeds=speeds, prior=priors))
    return found
