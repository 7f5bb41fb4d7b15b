"""One step of the tracker: a decision, and learning from its reward."""

import jax
import jax.numpy as jnp
from jax import Array

from driftbandits.core import Decision, Key, Observation
from driftbandits.numerics.arms import count_pull, draw, greedy_probabilities
from driftbandits.numerics.shown import shown
from driftbandits.policies.tracker import streaks, tracks
from driftbandits.policies.tracker.advice import advise, mixed
from driftbandits.policies.tracker.fourier import wave_features
from driftbandits.policies.tracker.gate import update_gate
from driftbandits.policies.tracker.history import History, history_features, moved_on
from driftbandits.policies.tracker.history import add_reward as add_reward_to
from driftbandits.policies.tracker.outliers import FAR, within_float32
from driftbandits.policies.tracker.seen_contexts import add_context, root_mean_square
from driftbandits.policies.tracker.seen_rewards import (
    SeenRewards,
    Taken,
    add_reward,
    reward_variance,
)
from driftbandits.policies.tracker.state import TrackerState, TrackerTicket, start_again
from driftbandits.policies.tracker.streaks import Streaks
from driftbandits.policies.tracker.tracks import (
    Changed,
    Constants,
    Features,
    Forecast,
    Track,
)


def observe(
    state: TrackerState, observation: Observation
) -> tuple[TrackerState, tuple[Features, ...]]:
    """Begins a decision; returns the features of each track."""
    state, scaled = see_context(state, observation.context)
    linear = jnp.append(scaled, 1.0)
    if state.arm_scales is not None:
        state, arms = see_arms(state, observation)
        described = jnp.concatenate([arms, jnp.ones_like(arms[:, :1])], axis=1)
        shared = (described[:, :, None] * linear).reshape(len(arms), -1)
        return state, (Features(linear, shared), Features(None, shared))
    if state.history is not None:
        history = moved_on(state.history, state.streaks)
        state = state._replace(history=history)
        own = history_features(history, state.streaks, state.last_pull_time, state.time)
        return state, (Features(linear), Features(own))
    if not state.waves.phases.size:
        return state, (Features(linear),)
    waves = jnp.append(wave_features(state.waves, scaled), linear)
    return state, (Features(linear), Features(waves))


def see_context(state: TrackerState, context: Array) -> tuple[TrackerState, Array]:
    """Returns the context in units of its root mean square so far."""
    contexts, scaled = add_context(state.contexts, context)
    return state._replace(time=state.time + 1, contexts=contexts), scaled


def see_arms(state: TrackerState, observation: Observation) -> tuple[TrackerState, Array]:
    """Returns the features of the arms, each in units of its root mean square so far.

    One step counts as one value: the root mean square over the arms that are available.
    """
    scales, available = state.arm_scales, observation.available
    assert scales is not None
    shape = available.size, scales.number.size
    arms = within_float32(shown("arms", observation.arms, shape, "arm_dim"))
    squares = jnp.sum(arms**2, axis=0, where=available[:, None])
    scales, _ = add_context(scales, jnp.sqrt(squares / jnp.maximum(jnp.sum(available), 1)))
    unit = root_mean_square(scales.squares, scales.number)
    return state._replace(arm_scales=scales), jnp.clip(arms / unit, -FAR, FAR)


def decide(
    key: Key,
    state: TrackerState,
    constants: list[Constants],
    features: tuple[Features, ...],
    available: Array,
    *,
    first_pulls: int,
    effect_prior: float,
    randomness: float | None,
    hazard: float | None = None,
    head_start: float | None = None,
) -> tuple[Decision, TrackerState]:
    """Draws an arm by the features of every track, which `observe` gives."""
    effect = streaks.current_effect(state.streaks, effect_prior)
    effect_by_arm = streaks.effect_by_arm(state.streaks, effect, available.size)
    changed = changes(state, hazard)
    advice = [
        advise(
            *tracks.mean_and_width(track, own, z, changed),
            effect_by_arm=effect_by_arm,
            effect_chance=effect.chance,
            randomness=randomness,
            available=available,
        )
        for track, own, z in zip(state.tracks, constants, features, strict=True)
    ]
    first_pull = jnp.any(available & (state.pulls < first_pulls))
    advised = mixed(advice, state.gate, reward_variance(state.seen), head_start)
    fewest_pulls = greedy_probabilities(-state.pulls, available)
    probabilities = jnp.where(first_pull, fewest_pulls, advised)
    arm = draw(key, probabilities)
    follows = jnp.stack([own.best[arm] > 0 for own in advice])
    repeats = (arm == state.streaks.arm) & (state.streaks.length > 0)
    own = tuple(each.of_arm(arm) for each in features)
    ticket = TrackerTicket(own, arm, effect, repeats, first_pull, follows, state.time)
    state = state._replace(
        streaks=streaks.add_pull(state.streaks, arm),
        pulls=count_pull(state.pulls, arm),
        last_pull_time=pulled_now(state, arm),
    )
    return Decision(arm, probabilities, ticket), state


def changes(state: TrackerState, hazard: float | None) -> Changed | None:
    """Which arms may have changed since their last pull."""
    if hazard is None or state.last_pull_time is None:
        return None
    unseen = state.time - state.last_pull_time - 1
    return Changed(-jnp.expm1(-hazard * unseen), state.pulls > 0)


def pulled_now(state: TrackerState, arm: Array) -> Array | None:
    if state.last_pull_time is None:
        return None
    return jnp.where(jnp.arange(state.pulls.size) == arm, state.time, state.last_pull_time)


def learn(
    state: TrackerState, constants: list[Constants], ticket: TrackerTicket, reward: Array
) -> TrackerState:
    """Learns the reward of one decision, on time or late."""
    seen, taken = add_reward(state.seen, reward)
    state = chosen(taken.restarts, start_again(state, constants), state)
    state, ticket = of_this_start(state, ticket)
    after = learn_taken(state, constants, ticket, taken, seen)
    return chosen(taken.believed, after, state)._replace(seen=seen)


def of_this_start(state: TrackerState, ticket: TrackerTicket) -> tuple[TrackerState, TrackerTicket]:
    """Counts a decision from before the last restart as a pull after it, without a streak."""
    earlier = ticket.time <= state.restart_time
    pulls = jnp.where(earlier, count_pull(state.pulls, ticket.arm), state.pulls)
    return state._replace(pulls=pulls), ticket._replace(repeats=ticket.repeats & ~earlier)


def chosen(condition: Array, yes: TrackerState, no: TrackerState) -> TrackerState:
    return jax.tree.map(lambda a, b: jnp.where(condition, a, b), yes, no)


def learn_taken(
    state: TrackerState,
    constants: list[Constants],
    ticket: TrackerTicket,
    taken: Taken,
    seen: SeenRewards,
) -> TrackerState:
    """Learns the clipped reward; `seen` already includes it."""
    relative = taken.relative
    judges, steps = ~ticket.first_pull, state.time - state.last_reward_time
    forecasts = forecast_all(state, constants, ticket)
    learned = [
        tracks.learn(
            track,
            own,
            forecast,
            arm=ticket.arm,
            reward=relative - expected_effect(ticket),
            reward_variance=reward_variance(seen),
            judges=judges,
            steps=steps,
        )
        for track, own, forecast in zip(state.tracks, constants, forecasts, strict=True)
    ]
    never_pulled = state.pulls == 0
    doubt = constants[0].learning.streak_doubt
    return state._replace(
        tracks=tuple(tracks.set_level(track, never_pulled, seen.mean) for track in learned),
        gate=update_gate(state.gate, ticket.follows, relative, judges & taken.usual),
        streaks=learn_streak(
            state.streaks, ticket, state.tracks[0], forecasts[0], taken=taken, doubt=doubt
        ),
        last_reward_time=state.time,
        history=heard(state.history, relative, seen),
    )


def heard(history: History | None, relative: Array, seen: SeenRewards) -> History | None:
    if history is None:
        return None
    return add_reward_to(history, relative, seen.mean, reward_variance(seen))


def forecast_all(
    state: TrackerState, constants: list[Constants], ticket: TrackerTicket
) -> list[Forecast]:
    """The forecast of the ticket's reward by every track, without the drift since the pull."""
    drift_steps = jnp.maximum(state.last_reward_time - ticket.time + 1, 0)
    return [
        tracks.forecast_reward(track, own, z, ticket.arm, drift_steps)
        for track, own, z in zip(state.tracks, constants, ticket.features, strict=True)
    ]


def expected_effect(ticket: TrackerTicket) -> Array:
    """What the streak is expected to add to the reward."""
    return jnp.where(ticket.repeats, ticket.effect.chance * ticket.effect.size, 0.0)


def learn_streak(
    known: Streaks,
    ticket: TrackerTicket,
    track: Track,
    forecast: Forecast,
    *,
    taken: Taken,
    doubt: float,
) -> Streaks:
    """Evidence for an effect of the streak, from a repeated pull; outliers do not count."""
    experts = track.experts
    error = taken.relative - experts.weights @ forecast.mean
    noise = experts.noise[0]  # of the static expert
    weighed = streaks.add_evidence(
        known,
        ticket.effect,
        error=error,
        variance=noise + experts.weights @ (experts.noise * forecast.variance),
        noise=noise,
        freedom=experts.error_count + doubt,
    )
    counts = ticket.repeats & ~ticket.first_pull & taken.usual
    return jax.tree.map(lambda new, old: jnp.where(counts, new, old), weighed, known)
