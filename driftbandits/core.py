"""The types that everything else is made of: problem, policy, decision and environment.

A policy and an environment are pure functions over explicit state, so that one step of a policy in
an environment can be compiled, vectorised over runs and repeated over time by JAX.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from jax import Array

PyTree = Any
Key = Array  # a typed key of jax.random
State = PyTree


class BanditSpec(NamedTuple):
    """What is known about a problem before the first pull.

    An environment has one, and the factory of a policy receives it.

    Attributes:
        num_arms: The number of arms.
        context_dim: The number of values in a context. 0 means that there is no context.
        horizon: The number of pulls, if it is known beforehand. It is known in a simulation, and
            rarely in production.
        reward_range: The lowest and the highest reward.
        noise: The sub-Gaussian constant of the rewards: 0.5 suits any reward between 0 and 1.
        arm_dim: The number of features of each arm. 0 means that arms have no features.
        arms_change: Whether an arm may leave and another take its place.

    Example:
        ```python
        from driftbandits import BanditSpec, build_policy

        spec = BanditSpec(num_arms=3, reward_range=(0.0, 10.0), noise=1.0)
        policy = build_policy("ucb", spec)
        ```
    """

    num_arms: int
    context_dim: int = 0
    horizon: int | None = None  # known in simulations, rarely in service
    reward_range: tuple[float, float] = (0.0, 1.0)
    noise: float = 0.5  # sub-Gaussian constant of the rewards
    arm_dim: int = 0
    arms_change: bool = False


class Observation(NamedTuple):
    """What a policy is shown before each pull; an environment's `observe` returns it.

    Attributes:
        context: The context, as float32 of shape `(context_dim,)`.
        available: Which arms can be pulled, as bool of shape `(num_arms,)`.
        arms: The features of each arm, as float32 of shape `(num_arms, arm_dim)`. None if the arms
            have no features.
        arm_ids: Which arm is in each place, as int32 of shape `(num_arms,)`. Another number than
            before means another arm. None if arms never change.

    Example:
        ```python
        import jax

        from driftbandits import Observation, build_environment

        environment = build_environment("linear")
        key = jax.random.key(0)
        seen = environment.observe(key, environment.init(key))
        assert isinstance(seen, Observation)
        print(seen.context, seen.available)
        ```
    """

    context: Array  # (context_dim,) float32
    available: Array  # (num_arms,) bool
    arms: Array | None = None  # (num_arms, arm_dim) float32; None if arm_dim is 0
    arm_ids: Array | None = None  # (num_arms,) int32; None unless arms_change


def blank_observation(spec: BanditSpec, context_dim: int | None = None) -> Observation:
    """An observation of zeros, for its shapes: NumPy's, which compile nothing."""
    size = spec.context_dim if context_dim is None else context_dim
    arms = np.zeros((spec.num_arms, spec.arm_dim), np.float32) if spec.arm_dim else None
    ids = np.zeros(spec.num_arms, np.int32) if spec.arms_change else None
    return Observation(
        context=np.zeros(size, np.float32),  # type: ignore[arg-type]
        available=np.ones(spec.num_arms, bool),  # type: ignore[arg-type]
        arms=arms,  # type: ignore[arg-type]
        arm_ids=ids,  # type: ignore[arg-type]
    )


class Decision(NamedTuple):
    """What a policy's `act` returns: an arm, its probabilities and a ticket.

    Attributes:
        arm: The index of the chosen arm, an int32 scalar.
        probabilities: The probability of each arm, as float32 of shape `(num_arms,)`. The arm was
            drawn from them, so the probability of the chosen arm is its propensity.
        ticket: Whatever `learn` needs together with the reward, which may come much later. Any
            pytree of arrays will do.

    Example:
        ```python
        import jax
        import jax.numpy as jnp

        from driftbandits import BanditSpec, Decision, Observation, build_policy

        policy = build_policy("uniform", BanditSpec(num_arms=2))
        key = jax.random.key(0)
        state = policy.init(key)
        observation = Observation(context=jnp.zeros(0), available=jnp.ones(2, bool))
        decision, state = policy.act(key, state, observation)
        assert isinstance(decision, Decision)
        state = policy.learn(state, decision.ticket, jnp.float32(1.0))
        print(decision.arm, decision.probabilities)
        ```
    """

    arm: Array  # () int32
    probabilities: Array  # (num_arms,) float32
    ticket: PyTree  # goes back to `learn` with the reward, at once or much later


class Policy(NamedTuple):
    """A way of choosing arms: three pure functions over a state of your own.

    The state can be any pytree of arrays.

    Attributes:
        init: `init(key)` returns the state before the first pull.
        act: `act(key, state, observation)` returns a `Decision` and the new state. It chooses one
            of the arms whose entry in `observation.available` is true. The new state holds what
            changes with time, such as a step count.
        learn: `learn(state, ticket, reward)` returns the state after the reward of one earlier
            decision, which is given by its ticket.
        sees_means: True for an oracle: the simulator then passes the true means of the arms in
            place of the context.
        forget: What else there is to do when another arm takes a place. Where arms change,
            `build_policy` puts the entries of a fresh state into every array that has one for each
            arm: those with an axis of `num_arms`, or of `context_dim + num_arms + 1` with the arms
            before the last entry. Then `forget(old, new, is_new)` can mend the rest of the new
            state, such as a window of past pulls. None if there is nothing to mend.

    Example:
        ```python
        from typing import NamedTuple

        import jax
        import jax.numpy as jnp

        from driftbandits import Decision, Policy, simulate


        class Sums(NamedTuple):
            reward: jax.Array
            pulls: jax.Array


        def init(key):
            return Sums(jnp.ones(10), jnp.ones(10))


        def act(key, state, observation):
            scores = jnp.where(observation.available, state.reward / state.pulls, -jnp.inf)
            arm = scores.argmax()
            return Decision(arm, jax.nn.one_hot(arm, 10), arm), state


        def learn(state, arm, reward):
            return Sums(state.reward.at[arm].add(reward), state.pulls.at[arm].add(1))


        greedy = Policy(init, act, learn)
        trace = simulate(greedy, "bernoulli(num_arms=10)", horizon=200, runs=4)
        print(trace.regret[:, -1])
        ```
    """

    init: Callable[[Key], State]
    act: Callable[[Key, State, Observation], tuple[Decision, State]]
    learn: Callable[[State, PyTree, Array], State]
    sees_means: bool = False
    forget: Callable[[State, State, Array], State] | None = None


class Rewards(NamedTuple):
    """What every arm pays at one step, returned by an environment's `rewards`.

    A policy learns only the sampled reward of the arm that it pulled. The simulator uses the rest
    to compute the regret.

    Attributes:
        sampled: The reward that each arm would pay now, as float32 of shape `(num_arms,)`.
        mean: The expected reward of each arm, as float32 of shape `(num_arms,)`.

    Example:
        ```python
        import jax

        from driftbandits import Rewards, build_environment

        environment = build_environment("bernoulli")
        key = jax.random.key(0)
        state = environment.init(key)
        seen = environment.observe(key, state)
        rewards = environment.rewards(key, state, seen.context)
        assert isinstance(rewards, Rewards)
        print(rewards.sampled, rewards.mean)
        ```
    """

    sampled: Array  # (num_arms,) float32
    mean: Array  # (num_arms,) float32


class Delay(NamedTuple):
    """How late rewards are: the steps between a pull and the moment the policy learns from it.

    Attributes:
        longest: The longest delay, in steps. A reward that would take longer never arrives.
        draw: `draw(key)` returns one delay in steps, an int32 scalar. 0 means at once.
    """

    longest: int  # what takes longer never arrives
    draw: Callable[[Key], Array]  # () int32, 0 is at once


class Environment(NamedTuple):
    """A bandit problem to simulate: pure functions over a state of your own.

    Attributes:
        spec: What a policy may know beforehand.
        init: `init(key)` draws one instance of the problem and returns its state.
        observe: `observe(key, state)` returns an `Observation`: the context, the available arms
            and their features.
        rewards: `rewards(key, state, context)` returns the `Rewards` of all arms at this step.
        advance: `advance(state, arm)` returns the state one step later. The pulled arm may
            influence it.
        era: `era(state)` returns an integer that changes whenever the problem changes abruptly,
            which `recovery_time` needs. None if the drift is gradual.
        delay: The delay of the rewards. None means that they come at once.

    Example:
        ```python
        import jax
        import jax.numpy as jnp

        from driftbandits import BanditSpec, Environment, Observation, Rewards, simulate


        def init(key):
            return jnp.int32(0)  # the number of pulls so far


        def observe(key, time):
            return Observation(jnp.zeros(0), jnp.ones(2, bool))


        def rewards(key, time, context):
            mean = jnp.where(time < 100, jnp.array([0.8, 0.2]), jnp.array([0.2, 0.8]))
            return Rewards(jax.random.bernoulli(key, mean).astype(jnp.float32), mean)


        def advance(time, arm):
            return time + 1


        swap = Environment(BanditSpec(num_arms=2), init, observe, rewards, advance)
        trace = simulate("ucb", swap, horizon=200, runs=4)
        print(trace.regret[:, -1])
        ```
    """

    spec: BanditSpec
    init: Callable[[Key], State]
    observe: Callable[[Key, State], Observation]
    rewards: Callable[[Key, State, Array], Rewards]
    advance: Callable[[State, Array], State]
    era: Callable[[State], Array] | None = None
    delay: Delay | None = None
