"""The state of the tracker, and the ticket of one decision."""

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array

from driftbandits.policies.tracker import tracks
from driftbandits.policies.tracker.fourier import Waves
from driftbandits.policies.tracker.gate import Gate, new_gate
from driftbandits.policies.tracker.history import History
from driftbandits.policies.tracker.seen_contexts import SeenContexts, no_contexts
from driftbandits.policies.tracker.seen_rewards import SeenRewards, no_rewards
from driftbandits.policies.tracker.streaks import Effect, Streaks, no_streaks
from driftbandits.policies.tracker.tracks import Constants, Features, Track


class TrackerState(NamedTuple):
    tracks: tuple[Track, ...]  # of the context and, if there is one, of its Fourier features
    gate: Gate  # between the two
    seen: SeenRewards
    streaks: Streaks
    waves: Waves
    pulls: Array  # (num_arms,) int32
    contexts: SeenContexts
    time: Array  # () int32, decisions
    last_reward_time: Array  # () int32, decisions when the last reward was learned
    restart_time: Array  # () int32, decisions at the last restart
    last_pull_time: Array | None  # (num_arms,) int32, where it matters
    history: History | None = None
    arm_scales: SeenContexts | None = None  # of the features of the arms


class TrackerTicket(NamedTuple):
    features: tuple[Features, ...]  # of the arm, for each track
    arm: Array  # () int32
    effect: Effect  # of the streak
    repeats: Array  # () bool, whether the arm was the last one pulled
    first_pull: Array  # () bool, whether it was one of the first pulls of an arm
    follows: Array  # (tracks,) bool, whether it was the best arm of each track
    time: Array  # () int32


def start_state(
    constants: list[Constants],
    waves: Waves,
    num_arms: int,
    context_dim: int,
    *,
    arm_dim: int = 0,
    history: History | None = None,
    watches: bool = False,
) -> TrackerState:
    return TrackerState(
        tracks=tuple(tracks.start(own, num_arms) for own in constants),
        gate=new_gate(),
        seen=no_rewards(),
        streaks=no_streaks(),
        waves=waves,
        pulls=jnp.zeros(num_arms, jnp.int32),
        contexts=no_contexts(context_dim),
        time=jnp.int32(0),
        last_reward_time=jnp.int32(0),
        restart_time=jnp.int32(0),
        last_pull_time=jnp.zeros(num_arms, jnp.int32) if watches else None,
        history=history,
        arm_scales=no_contexts(arm_dim) if arm_dim else None,
    )


def start_again(state: TrackerState, constants: list[Constants]) -> TrackerState:
    """The state without anything learned from rewards."""
    streak = state.streaks
    return state._replace(
        tracks=tuple(tracks.start(own, state.pulls.size) for own in constants),
        gate=new_gate(),
        streaks=no_streaks()._replace(arm=streak.arm, length=streak.length),
        pulls=jnp.zeros_like(state.pulls),
        restart_time=state.time,
    )
