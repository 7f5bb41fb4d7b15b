"""Problems in the shape of real use, on which the second version of the tracker was developed.

`judging_problems` has others, which decide whether it is any better.
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from driftbandits.core import BanditSpec, Environment, Key, Observation, Rewards
from driftbandits.environments.articles import articles
from driftbandits.environments.bernoulli import no_context, toss
from driftbandits.environments.rotting import gaussian_arms
from driftbandits.environments.shared_linear import shared_linear


class Timed(NamedTuple):
    """A world that moves by itself: everything follows from its own key and the time."""

    key: Key
    values: Array  # what drifts
    time: Array  # () int32


def moving(
    spec: BanditSpec,
    start: Callable[[Key], Array],
    step: Callable[[Key, Array, Array], Array],
    rewards: Callable[[Key, Array, Array], Rewards],
    context: Callable[[Key], Array] | None = None,
) -> Environment:
    """An environment whose values take a random step at every pull, whatever the arm."""

    def init(key: Key) -> Timed:
        own, values_key = jax.random.split(key)
        return Timed(own, start(values_key), jnp.int32(0))

    def observe(key: Key, state: Timed) -> Observation:
        if context is None:
            return no_context(spec.num_arms)
        return Observation(context(key), jnp.ones(spec.num_arms, bool))

    def sample(key: Key, state: Timed, seen: Array) -> Rewards:
        return rewards(key, state.values, seen)

    def advance(state: Timed, arm: Array) -> Timed:
        moment = jax.random.fold_in(state.key, state.time)
        return Timed(state.key, step(moment, state.values, state.time), state.time + 1)

    return Environment(spec, init, observe, sample, advance)


def gaussian(key: Key, mean: Array, deviation: Array | float) -> Rewards:
    return Rewards(mean + deviation * jax.random.normal(key, mean.shape), mean)


def levels(deviation: float) -> Callable[[Key, Array, Array], Rewards]:
    """Rewards of a world whose values are the means."""
    return lambda key, values, _: gaussian(key, values, deviation)


def now_and_then(key: Key, every: float, new: Array, old: Array) -> Array:
    return jnp.where(jax.random.bernoulli(key, 1 / every), new, old)


def prices(num_arms: int = 10, every: float = 2500) -> Environment:
    """A price is paid by who values the thing at least as much; the typical value jumps."""
    price = jnp.linspace(0.1, 1.0, num_arms)

    def value(key: Key) -> Array:
        return jax.random.uniform(key, minval=0.25, maxval=0.95)

    def step(key: Key, typical: Array, time: Array) -> Array:
        jump, new = jax.random.split(key)
        return now_and_then(jump, every, value(new), typical)

    def rewards(key: Key, typical: Array, seen: Array) -> Rewards:
        buys = jax.nn.sigmoid((typical - price) / 0.06)
        tossed = toss(key, buys)
        return Rewards(price * tossed.sampled, price * buys)

    return moving(BanditSpec(num_arms), value, step, rewards)


def fading(num_arms: int = 12, life: float = 1500) -> Environment:
    """Items that fade, and are replaced by fresh ones without notice."""

    def start(key: Key) -> Array:
        quality, age = jax.random.uniform(key, (2, num_arms))
        return jnp.stack([quality, age * life])

    def step(key: Key, values: Array, time: Array) -> Array:
        fresh_key, quality_key = jax.random.split(key)
        fresh = jax.random.bernoulli(fresh_key, 1 / life, (num_arms,))
        quality = jax.random.uniform(quality_key, (num_arms,))
        return jnp.where(fresh, jnp.stack([quality, jnp.zeros(num_arms)]), values + STEP)

    def rewards(key: Key, values: Array, seen: Array) -> Rewards:
        return toss(key, 0.6 * values[0] * jnp.exp(-values[1] / life))

    return moving(BanditSpec(num_arms), start, step, rewards)


STEP = jnp.array([[0.0], [1.0]])  # an item is one step older


def clicks(num_arms: int = 20, period: int = 1000) -> Environment:
    """Click rates of a few percent, with a daily cycle that all arms share, and slow drift."""

    def start(key: Key) -> Array:
        return jnp.append(jnp.log(0.02) + 0.5 * jax.random.normal(key, (num_arms,)), 0.0)

    def step(key: Key, values: Array, time: Array) -> Array:
        moved = values[:-1] + 0.01 * jax.random.normal(key, (num_arms,))
        day = 0.5 * jnp.sin(2 * jnp.pi * (time % period) / period)
        return jnp.append(jnp.clip(moved, jnp.log(0.003), jnp.log(0.1)), day)

    def rewards(key: Key, values: Array, seen: Array) -> Rewards:
        return toss(key, jnp.exp(values[:-1] + values[-1]))

    return moving(BanditSpec(num_arms), start, step, rewards)


def logistic(num_arms: int = 6, dim: int = 5, period: int = 2000) -> Environment:
    """Clicks whose log odds are linear in a context; the coefficients have a daily cycle."""

    def start(key: Key) -> Array:
        return jnp.concatenate(
            [jax.random.normal(key, (2, num_arms, dim)), jnp.zeros((1, num_arms, dim))]
        )

    def step(key: Key, values: Array, time: Array) -> Array:
        turn = 2 * jnp.pi * (time % period) / period
        now = values[0] + 0.5 * values[1] * jnp.sin(turn)
        return values.at[2].set(now)

    def rewards(key: Key, values: Array, seen: Array) -> Rewards:
        return toss(key, jax.nn.sigmoid(values[2] @ seen - 1.0))

    spec = BanditSpec(num_arms, dim)
    return moving(spec, start, step, rewards, lambda key: jax.random.normal(key, (dim,)))


def smooth(num_arms: int = 5, dim: int = 2, hills: int = 6) -> Environment:
    """Means that are smooth functions of two numbers, a few hills each, which wander slowly."""

    def start(key: Key) -> Array:
        return jax.random.uniform(key, (num_arms, hills, dim + 1), minval=-1.0)

    def step(key: Key, values: Array, time: Array) -> Array:
        return jnp.clip(values + 0.002 * jax.random.normal(key, values.shape), -1.0, 1.0)

    def rewards(key: Key, values: Array, seen: Array) -> Rewards:
        far = jnp.sum((values[:, :, :dim] - seen) ** 2, axis=2)
        return gaussian(key, jnp.sum(values[:, :, dim] * jnp.exp(-3 * far), axis=1), 0.2)

    def context(key: Key) -> Array:
        return jax.random.uniform(key, (dim,), minval=-1.0)

    spec = BanditSpec(num_arms, dim, reward_range=(-2.0, 2.0), noise=0.2)
    return moving(spec, start, step, rewards, context)


class Resting(NamedTuple):
    rest: Array  # (num_arms,) float32, steps since the last pull
    worth: Array  # (num_arms,) float32
    length: Array  # (num_arms,) float32


def cool_down(num_arms: int = 6, longest: float = 6.0) -> Environment:
    """Arms that pay next to nothing for some steps after a pull."""

    def init(key: Key) -> Resting:
        worth, length = jax.random.uniform(key, (2, num_arms))
        return Resting(jnp.full(num_arms, 100.0), 0.3 + 0.7 * worth, 1 + longest * length)

    def means(state: Resting) -> Array:
        return jnp.where(state.rest > state.length, state.worth, 0.1 * state.worth)

    def advance(state: Resting, arm: Array) -> Resting:
        rest = jnp.where(jnp.arange(num_arms) == arm, 1.0, state.rest + 1)
        return state._replace(rest=rest)

    return gaussian_arms(num_arms, 0.2, init, means, advance)


class Queues(NamedTuple):
    length: Array  # (num_arms,) float32
    speed: Array  # (num_arms,) float32, what is served per step


def queues(num_arms: int = 5) -> Environment:
    """Servers: who is sent a request has a longer queue afterwards, and answers later."""

    def init(key: Key) -> Queues:
        speed = jax.random.uniform(key, (num_arms,), minval=0.05, maxval=0.5)
        return Queues(jnp.zeros(num_arms), speed)

    def means(state: Queues) -> Array:
        return jnp.exp(-(state.length + 1) / (10 * state.speed))

    def advance(state: Queues, arm: Array) -> Queues:
        sent = (jnp.arange(num_arms) == arm).astype(jnp.float32)
        return state._replace(length=jnp.maximum(state.length + sent - state.speed, 0.0))

    return gaussian_arms(num_arms, 0.1, init, means, advance)


class Chain(NamedTuple):
    table: Array  # (num_arms, num_arms) float32, by the last arm
    last: Array  # () int32


def chain(num_arms: int = 5) -> Environment:
    """What an arm pays depends on the arm before it."""

    def init(key: Key) -> Chain:
        return Chain(jax.random.uniform(key, (num_arms, num_arms)), jnp.int32(0))

    def means(state: Chain) -> Array:
        return state.table[state.last]

    def advance(state: Chain, arm: Array) -> Chain:
        return state._replace(last=arm)

    return gaussian_arms(num_arms, 0.25, init, means, advance)


def echo(num_arms: int = 5, high: float = 0.8, low: float = 0.4) -> Environment:
    """Coins; the best one is the neighbour of the arm pulled two steps ago."""

    def init(key: Key) -> Array:
        return jax.random.randint(key, (2,), 0, num_arms)  # the last arm but one, and the last

    def observe(key: Key, arms: Array) -> Observation:
        return no_context(num_arms)

    def rewards(key: Key, arms: Array, context: Array) -> Rewards:
        best = (arms[0] + 1) % num_arms
        return toss(key, jnp.where(jnp.arange(num_arms) == best, high, low))

    def advance(arms: Array, arm: Array) -> Array:
        return jnp.stack([arms[1], arm])

    return Environment(BanditSpec(num_arms), init, observe, rewards, advance)


def groups(num_groups: int = 8, each: int = 10) -> Environment:
    """Arms in groups; the groups drift, their members differ a little."""
    num_arms = num_groups * each

    def start(key: Key) -> Array:
        group, member = jax.random.split(key)
        levels = jnp.repeat(jax.random.normal(group, (num_groups,)), each)
        return levels + 0.3 * jax.random.normal(member, (num_arms,))

    def step(key: Key, values: Array, time: Array) -> Array:
        return values + 0.02 * jnp.repeat(jax.random.normal(key, (num_groups,)), each)

    spec = BanditSpec(num_arms, reward_range=(-3.0, 3.0), noise=0.5)
    return moving(spec, start, step, levels(0.5))


def common_shocks(num_arms: int = 10, every: float = 700) -> Environment:
    """All arms rise and fall together; only their differences say which is the best."""

    def start(key: Key) -> Array:
        return jax.random.normal(key, (num_arms,))

    def step(key: Key, values: Array, time: Array) -> Array:
        jump, size = jax.random.split(key)
        return values + now_and_then(jump, every, 2 * jax.random.normal(size), jnp.zeros(()))

    spec = BanditSpec(num_arms, reward_range=(-5.0, 5.0), noise=0.5)
    return moving(spec, start, step, levels(0.5))


def one_changes(num_arms: int = 8, every: float = 800) -> Environment:
    """Now and then one arm changes, unseen if it is not the one that is pulled."""

    def start(key: Key) -> Array:
        return jax.random.uniform(key, (num_arms,))

    def step(key: Key, values: Array, time: Array) -> Array:
        jump, arm, new = jax.random.split(key, 3)
        here = jnp.arange(num_arms) == jax.random.randint(arm, (), 0, num_arms)
        changed = jnp.where(here, jax.random.uniform(new), values)
        return now_and_then(jump, every, changed, values)

    spec = BanditSpec(num_arms, noise=0.2)
    return moving(spec, start, step, levels(0.2))


def noises(num_arms: int = 8) -> Environment:
    """Arms with noises from a twentieth to two, which walk slowly."""
    deviation = jnp.geomspace(0.05, 2.0, num_arms)

    def start(key: Key) -> Array:
        return jax.random.normal(key, (num_arms,))

    def step(key: Key, values: Array, time: Array) -> Array:
        return values + 0.01 * jax.random.normal(key, (num_arms,))

    def rewards(key: Key, values: Array, seen: Array) -> Rewards:
        order = jnp.argsort(jnp.sin(1e3 * deviation))  # the loud ones are not side by side
        return gaussian(key, values, deviation[order])

    spec = BanditSpec(num_arms, reward_range=(-4.0, 4.0), noise=1.0)
    return moving(spec, start, step, rewards)


def paces(num_arms: int = 8) -> Environment:
    """Arms that walk at speeds from nearly none to fast."""
    speed = jnp.geomspace(1e-4, 0.05, num_arms)

    def start(key: Key) -> Array:
        return jax.random.uniform(key, (num_arms,))

    def step(key: Key, values: Array, time: Array) -> Array:
        moved = values + speed * jax.random.normal(key, (num_arms,))
        return 1 - jnp.abs(1 - jnp.abs(moved))  # reflected at 0 and 1

    spec = BanditSpec(num_arms, noise=0.3)
    return moving(spec, start, step, levels(0.3))


class Described(NamedTuple):
    """Arms with features, and a taste for them that moves."""

    world: Timed  # whose values are the taste
    arms: Array  # (num_arms, arm_dim) float32
    own: Array  # (num_arms,) float32, what the features do not say


def described(
    num_arms: int = 40, arm_dim: int = 5, context_dim: int = 0, own: float = 0.3
) -> Environment:
    """Arms that pay by their features, and a little by themselves; the taste walks slowly."""
    shape = (1 + context_dim, arm_dim)

    def init(key: Key) -> Described:
        own_key, values_key, arms_key, quality_key = jax.random.split(key, 4)
        taste = jax.random.normal(values_key, shape) / shape[0] ** 0.5
        arms = jax.random.normal(arms_key, (num_arms, arm_dim))
        quality = own * jax.random.normal(quality_key, (num_arms,))
        return Described(Timed(own_key, taste, jnp.int32(0)), arms, quality)

    def observe(key: Key, state: Described) -> Observation:
        context = jax.random.normal(key, (context_dim,))
        return Observation(context, jnp.ones(num_arms, bool), state.arms)

    def rewards(key: Key, state: Described, seen: Array) -> Rewards:
        taste = jnp.append(seen, 1.0) @ state.world.values
        return gaussian(key, state.arms @ taste + state.own, 1.0)

    def advance(state: Described, arm: Array) -> Described:
        own_key, values, time = state.world
        moved = jax.random.normal(jax.random.fold_in(own_key, time), shape)
        return state._replace(world=Timed(own_key, values + 0.01 * moved, time + 1))

    spec = BanditSpec(num_arms, context_dim, None, (-5.0, 5.0), 1.0, arm_dim)
    return Environment(spec, init, observe, rewards, advance)


DEVELOPMENT: dict[str, Callable[[], Environment]] = {
    "prices": prices,
    "fading": fading,
    "clicks": clicks,
    "logistic": logistic,
    "smooth": smooth,
    "cool_down": cool_down,
    "queues": queues,
    "chain": chain,
    "echo": echo,
    "groups": groups,
    "common_shocks": common_shocks,
    "one_changes": one_changes,
    "noises": noises,
    "paces": paces,
    "described": described,
    "described_to_readers": partial(described, num_arms=15, arm_dim=3, context_dim=3),
    "still_features": shared_linear,
    "turning_features": partial(shared_linear, own=0.3, period=5000),
    "flipping_features": partial(shared_linear, own=0.1, every=2500),
    "articles": articles,
}
