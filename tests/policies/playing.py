"""What the parity tests share: games of policies, comparison with twins, rewards to play on."""

from collections.abc import Callable, Iterator
from functools import cache, partial
from typing import Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp
import numpy as np

from driftbandits import BanditSpec, Observation, build_policy

STEPS = 1500
HORIZON = 2000
NOISE = 0.5
KEY = jax.random.key(7)

Array = np.ndarray
Generator = np.random.Generator
Problem = Callable[[Generator], Array]

NO_CONTEXT = np.zeros(0, np.float32)

key_of = jax.jit(lambda t: jax.random.fold_in(KEY, t))  # of the decision in step t
KEYS = jax.jit(jax.vmap(key_of))(np.arange(STEPS))


class Game(NamedTuple):
    """What happened, step by step: the first axis of all arrays is time."""

    states: Any  # before the decision, with all earlier rewards learned
    decisions: Any
    rewards: Array  # of the arms that were pulled

    @property
    def arms(self) -> Array:
        return self.decisions.arm

    def state(self, t: int) -> Any:
        return jax.tree.map(lambda leaf: leaf[t], self.states)

    def pulls(self) -> Iterator[tuple[int, int, float]]:
        """Every step's number, arm and reward."""
        return zip(range(len(self.arms)), self.arms.tolist(), self.rewards.tolist(), strict=True)


@cache
def compiled(name: str, spec: BanditSpec) -> tuple[Callable, Callable, Callable]:
    policy = build_policy(name, spec)
    return jax.jit(policy.init), jax.jit(policy.act), jax.jit(policy.learn)


@cache
def compiled_game(name: str, spec: BanditSpec, probabilities: bool) -> Callable:
    """All steps in one program: a call from Python for each of them would take most of the time."""
    policy = build_policy(name, spec)

    @jax.jit
    def play_all(rewards: Any, masks: Any, contexts: Any, arms: Any, limit: Any) -> Game:
        def step(carry: Any, now: Any) -> tuple[Any, Game]:
            state, last, streak = carry
            key, payoffs, available, context, *described = now
            decision, after = policy.act(key, state, Observation(context, available, *described))
            streak = jnp.where(decision.arm == last, streak + 1, 1)
            reward = jnp.where(streak > limit, 0, payoffs[decision.arm])
            learned = policy.learn(after, decision.ticket, reward)
            if not probabilities:
                decision = decision._replace(probabilities=())
            return (learned, decision.arm, streak), Game(state, decision, reward)

        start = policy.init(KEY), jnp.int32(-1), jnp.int32(0)
        steps = KEYS[: len(rewards)], rewards, masks, contexts
        return jax.lax.scan(step, start, steps if arms is None else (*steps, arms))[1]

    return play_all


def play(
    name: str,
    spec: BanditSpec,
    rewards: Array,
    masks: Array,
    contexts: Array | None = None,
    *,
    arms: Array | None = None,
    limit: int = STEPS,
    probabilities: bool = True,
) -> Game:
    """A policy where arm k pays rewards[t, k] in step t, but nothing after `limit` pulls in a row.

    `arms` are their features in every step.

    As many steps as there are rewards. Probabilities that are integrals take long; without them,
    `decide_again` has those of single steps.
    """
    steps = len(rewards)
    contexts = np.zeros((STEPS, 0), np.float32) if contexts is None else contexts
    play_all = compiled_game(name, spec, probabilities)
    game = play_all(rewards, masks[:steps], contexts[:steps], arms, np.int32(limit))
    return jax.tree.map(as_numpy, game)


def decide_again(
    name: str, spec: BanditSpec, game: Game, t: int, available: Array, context: Array = NO_CONTEXT
) -> Any:
    """The decision of step t, with its probabilities."""
    _, act, _ = compiled(name, spec)
    decision, _ = act(key_of(t), game.state(t), Observation(context, available))
    assert decision.arm == game.arms[t]
    return decision


def as_numpy(leaf: Any) -> Any:
    return leaf if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key) else np.asarray(leaf)


@cache
def for_all_steps(draw: Callable) -> Callable:
    return jax.jit(jax.vmap(draw))


def drawn(draw: Callable, *given: Array) -> Array:
    """What draw(key, ...) gives in every step, with its key and its row of each given array."""
    return np.asarray(for_all_steps(draw)(KEYS, *given))


@cache
def normals(num_arms: int) -> Array:
    """Standard normals, drawn with the key of each step."""
    return drawn(partial(jax.random.normal, shape=(num_arms,)))


class Twin(Protocol):
    """A transcription of a policy: the probabilities of the arms, and what it makes of a reward."""

    def choose(self, available: Array) -> Array: ...

    def update(self, arm: int, reward: float) -> None: ...


def probabilities_of(twin: Twin, game: Game, masks: Array) -> Array:
    """The twin's in every step, while it learns what the policy learned."""
    probabilities = []
    for t, arm, reward in game.pulls():
        probabilities.append(twin.choose(masks[t]))
        twin.update(arm, reward)
    return np.array(probabilities)


def assert_probabilities(game: Game, twins: Any, within: float = 1e-6, steps: Any = None) -> None:
    """In these steps, or all, they are the twin's, who never pulls an arm that has none."""
    steps = np.arange(len(game.arms)) if steps is None else np.array(steps)
    ours, twins = game.decisions.probabilities[steps], np.array(twins)
    assert ours.shape == twins.shape
    wrong = np.flatnonzero(~(np.abs(ours - twins).max(axis=1) < within))
    assert not wrong.size, f"step {steps[wrong[0]]}: {ours[wrong[0]]}, not {twins[wrong[0]]}"
    pulled = twins[np.arange(len(steps)), game.arms[steps]]
    assert (pulled > 0).all(), f"step {steps[np.argmin(pulled)]}"


def assert_best(game: Game, scores: Array, masks: Array, within: float) -> None:
    """The pulled arms have the highest scores of those available, up to rounding."""
    scores = np.where(masks[: len(scores)], scores, -np.inf)
    pulled = scores[np.arange(len(scores)), game.arms]
    wrong = np.flatnonzero(~(pulled >= scores.max(axis=1) - within))
    assert not wrong.size, f"step {wrong[0]}: arm {game.arms[wrong[0]]}, but {scores[wrong[0]]}"


def gaussian(rng: Generator, means: Array) -> Array:
    return (means + NOISE * rng.standard_normal((STEPS, means.shape[-1]))).astype(np.float32)


def close_arms(rng: Generator) -> Array:
    """So close that the filters tell them apart only by long windows, if at all."""
    return gaussian(rng, np.linspace(0.5, 0.55, 5))


def rotting_arms(rng: Generator) -> Array:
    """The second arm is the better one until it falls."""
    means = np.tile([0.5, 1.0], (STEPS, 1))
    means[STEPS // 4 :, 1] = 0.4
    return gaussian(rng, means)


def coins(rng: Generator) -> Array:
    return (rng.random((STEPS, 5)) < np.linspace(0.3, 0.7, 5)).astype(np.float32)


def wheel(rng: Generator, num_arms: int) -> tuple[Array, Array]:
    """Contexts on the unit disc, and rewards: 50 far out, for the arm of that direction."""
    angle, radius = rng.uniform(0, 2 * np.pi, STEPS), np.sqrt(rng.random(STEPS))
    contexts = radius[:, None] * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    means = np.tile([1.2] + [1.0] * (num_arms - 1), (STEPS, 1))
    directed = 1 + (angle / (np.pi / 2)).astype(int) % (num_arms - 1)
    means[np.arange(STEPS), directed] = np.where(radius > 0.5, 50.0, 1.0)
    rewards = means + 0.01 * rng.standard_normal(means.shape)
    return contexts.astype(np.float32), rewards.astype(np.float32)


def masks_for(rng: Generator, num_arms: int, masked: bool) -> Array:
    masks = rng.random((STEPS, num_arms)) < (0.6 if masked else 1.0)
    masks[np.arange(STEPS), rng.integers(num_arms, size=STEPS)] = True
    return masks
