"""Problems in the shape of real use, for judging policies that were developed elsewhere.

They differ in family and in size from the environments of the package. All of them can be learned
within 10,000 pulls, and change every few hundred to few thousand pulls. What changes at random
follows from a key in the state and the time. Pulls change the world only in `servers`,
`cooldowns` and `chains`.
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from driftbandits.core import BanditSpec, Environment, Key, Observation, Rewards, State
from driftbandits.environments.bernoulli import no_context, toss
from driftbandits.environments.heavy_tailed import student
from driftbandits.environments.random_walk import reflect
from driftbandits.numerics.random_keys import key_at


class Clock(NamedTuple):
    """The time, and the words of the key that all later randomness of a world comes from."""

    words: Array  # (2,) uint32
    time: Array  # () int32


def start_clock(key: Key) -> Clock:
    return Clock(jax.random.key_data(key), jnp.int32(0))


def tick(clock: Clock) -> tuple[Clock, Key]:
    """The clock one step later, and the key of that step."""
    later = Clock(clock.words, clock.time + 1)
    return later, key_at(later.words, later.time)


def plain(
    spec: BanditSpec,
    init: Callable[[Key], State],
    rewards: Callable[[Key, State], Rewards],
    advance: Callable[[State, Array], State],
    era: Callable[[State], Array] | None = None,
) -> Environment:
    """An environment without contexts, whose arms are always available."""

    def observe(key: Key, state: State) -> Observation:
        return no_context(spec.num_arms)

    def rewards_now(key: Key, state: State, context: Array) -> Rewards:
        return rewards(key, state)

    return Environment(spec, init, observe, rewards_now, advance, era)


def gaussian(key: Key, mean: Array, deviation: float) -> Rewards:
    """A normal reward for every arm."""
    return Rewards(mean + deviation * jax.random.normal(key, mean.shape), mean)


def wander(key: Key, value: Array, memory: Array | float) -> Array:
    """One step of a stationary standard normal process that forgets in `memory` steps."""
    kick = jnp.sqrt(-jnp.expm1(-2 / memory))
    return jnp.exp(-1 / memory) * value + kick * jax.random.normal(key, value.shape)


def log_uniform(key: Key, low: float, high: float, shape: tuple[int, ...] = ()) -> Array:
    return low * (high / low) ** jax.random.uniform(key, shape)


def wave(time: Array, period: int, phase: Array) -> Array:
    """A sine of the time; the phase is in turns."""
    return jnp.sin(2 * jnp.pi * (time % period / period + phase))


def choose(condition: Array, new: State, old: State) -> State:
    """The new state where the condition holds, else the old one."""
    return jax.tree.map(partial(jnp.where, condition), new, old)


# Prices


class Demand(NamedTuple):
    worth: Array  # () float32, the price that half of those who are interested would pay
    spread: Array  # () float32, how much they differ
    share: Array  # () float32, of visitors who are interested


class PricingState(NamedTuple):
    demand: Demand
    clock: Clock
    regimes: Array  # () int32, so far


def pricing(
    *, num_arms: int = 12, lowest: float = 5.0, highest: float = 50.0, hazard: float = 1 / 1500
) -> Environment:
    """Prices for one good: the price if it is sold, else 0; demand is redrawn now and then.

    Args:
        num_arms: Number of prices, evenly spaced in their logarithm.
        lowest: The lowest price.
        highest: The highest price.
        hazard: Probability of another demand curve before each step.
    """
    prices = jnp.geomspace(lowest, highest, num_arms)

    def draw_demand(key: Key) -> Demand:
        worth_key, spread_key, share_key = jax.random.split(key, 3)
        worth = log_uniform(worth_key, 2 * lowest, 0.9 * highest)
        spread = worth * jax.random.uniform(spread_key, minval=0.06, maxval=0.25)
        return Demand(worth, spread, jax.random.uniform(share_key, minval=0.4, maxval=0.95))

    def init(key: Key) -> PricingState:
        own, later = jax.random.split(key)
        return PricingState(draw_demand(own), start_clock(later), jnp.int32(0))

    def rewards(key: Key, state: PricingState) -> Rewards:
        worth, spread, share = state.demand
        sold = toss(key, share * jax.nn.sigmoid((worth - prices) / spread))
        return Rewards(prices * sold.sampled, prices * sold.mean)

    def advance(state: PricingState, arm: Array) -> PricingState:
        clock, key = tick(state.clock)
        when, what = jax.random.split(key)
        anew = jax.random.bernoulli(when, hazard)
        demand = choose(anew, draw_demand(what), state.demand)
        return PricingState(demand, clock, state.regimes + anew)

    spec = BanditSpec(num_arms, reward_range=(0.0, highest), noise=highest / 2)
    return plain(spec, init, rewards, advance, lambda state: state.regimes)


# News


class NewsState(NamedTuple):
    quality: Array  # (num_arms,) float32, click rate of the item when it was new
    fading: Array  # (num_arms,) float32, steps in which it falls to a third
    age: Array  # (num_arms,) float32
    clock: Clock


def news(
    *,
    num_arms: int = 20,
    life: float = 4000.0,
    shortest: float = 500.0,
    longest: float = 4000.0,
    highest: float = 0.6,
) -> Environment:
    """Slots of a page: each holds an item that fades, until another one replaces it.

    Args:
        num_arms: Number of slots.
        life: Steps that an item stays, on average.
        shortest: Steps in which the click rate of the shortest story falls to a third.
        longest: The same of the longest one.
        highest: Click rate of the best item when it is new.
    """

    def items(key: Key) -> tuple[Array, Array]:
        quality_key, fading_key = jax.random.split(key)
        quality = highest * jax.random.uniform(quality_key, (num_arms,)) ** 2
        return quality, log_uniform(fading_key, shortest, longest, (num_arms,))

    def init(key: Key) -> NewsState:
        own, age_key, later = jax.random.split(key, 3)
        age = jnp.floor(life * jax.random.exponential(age_key, (num_arms,)))
        return NewsState(*items(own), age, start_clock(later))

    def rewards(key: Key, state: NewsState) -> Rewards:
        return toss(key, state.quality * jnp.exp(-state.age / state.fading))

    def advance(state: NewsState, arm: Array) -> NewsState:
        clock, key = tick(state.clock)
        when, what = jax.random.split(key)
        is_new = jax.random.bernoulli(when, 1 / life, (num_arms,))
        quality, fading = choose(is_new, items(what), (state.quality, state.fading))
        return NewsState(quality, fading, jnp.where(is_new, 0.0, state.age + 1), clock)

    return plain(BanditSpec(num_arms), init, rewards, advance)


# Clicks


class ClicksState(NamedTuple):
    ordinary: Array  # (num_arms,) float32, click rates of arms that are not the best
    best: Array  # () int32
    phase: Array  # () float32, in turns
    clock: Clock
    changes: Array  # () int32, so far


def clicks(
    *,
    num_arms: int = 30,
    low: float = 0.003,
    high: float = 0.012,
    best_rate: float = 0.05,
    day: int = 1000,
    swing: float = 0.5,
    hazard: float = 1 / 2500,
) -> Environment:
    """Rare clicks: one arm is better than the others, and now and then it is another one.

    Args:
        num_arms: Number of arms.
        low: The lowest rate of an ordinary arm.
        high: The highest one.
        best_rate: The rate of the best arm.
        day: Steps of the cycle that all rates follow.
        swing: By what share of itself a rate rises and falls in a day.
        hazard: Probability of another best arm before each step.
    """

    def init(key: Key) -> ClicksState:
        own, best_key, phase_key, later = jax.random.split(key, 4)
        return ClicksState(
            ordinary=log_uniform(own, low, high, (num_arms,)),
            best=jax.random.randint(best_key, (), 0, num_arms),
            phase=jax.random.uniform(phase_key),
            clock=start_clock(later),
            changes=jnp.int32(0),
        )

    def rewards(key: Key, state: ClicksState) -> Rewards:
        rates = jnp.where(jnp.arange(num_arms) == state.best, best_rate, state.ordinary)
        return toss(key, rates * (1 + swing * wave(state.clock.time, day, state.phase)))

    def advance(state: ClicksState, arm: Array) -> ClicksState:
        clock, key = tick(state.clock)
        when, which = jax.random.split(key)
        anew = jax.random.bernoulli(when, hazard)
        other = (state.best + jax.random.randint(which, (), 1, num_arms)) % num_arms
        best = jnp.where(anew, other, state.best)
        return state._replace(best=best, clock=clock, changes=state.changes + anew)

    return plain(BanditSpec(num_arms), init, rewards, advance, lambda state: state.changes)


class VisitorsState(NamedTuple):
    offset: Array  # (num_arms,) float32
    base: Array  # (num_arms, context_dim) float32
    swing: Array  # (num_arms, context_dim) float32
    phase: Array  # (num_arms, 1) float32, in turns
    away: Array  # (num_arms, context_dim) float32, the slow drift
    clock: Clock


def visitors(
    *,
    num_arms: int = 8,
    context_dim: int = 6,
    day: int = 2000,
    memory: float = 5000.0,
    flags: int = 2,
) -> Environment:
    """Clicks of visitors, probit in their context; coefficients have a daily cycle and drift.

    Args:
        num_arms: Number of arms.
        context_dim: Numbers in a context.
        day: Steps of the cycle, which has another phase for each arm.
        memory: Steps in which the drift forgets where it was.
        flags: How many numbers of a context are 0 or 1; the others are normal, up to 2.5.
    """
    shape = num_arms, context_dim

    def init(key: Key) -> VisitorsState:
        keys = jax.random.split(key, 6)
        return VisitorsState(
            offset=-0.8 + 0.3 * jax.random.normal(keys[0], (num_arms,)),
            base=0.4 * jax.random.normal(keys[1], shape),
            swing=0.25 * jax.random.normal(keys[2], shape),
            phase=jax.random.uniform(keys[3], (num_arms, 1)),
            away=jax.random.normal(keys[4], shape),
            clock=start_clock(keys[5]),
        )

    def observe(key: Key, state: VisitorsState) -> Observation:
        numbers_key, flags_key = jax.random.split(key)
        numbers = jnp.clip(jax.random.normal(numbers_key, (context_dim - flags,)), -2.5, 2.5)
        raised = jax.random.bernoulli(flags_key, 0.4, (flags,))
        context = jnp.concatenate([numbers, raised.astype(jnp.float32)])
        return Observation(context, jnp.ones(num_arms, bool))

    def rewards(key: Key, state: VisitorsState, context: Array) -> Rewards:
        daily = state.swing * wave(state.clock.time, day, state.phase)
        theta = state.base + daily + 0.25 * state.away
        return toss(key, jax.scipy.special.ndtr(state.offset + jnp.sum(theta * context, axis=1)))

    def advance(state: VisitorsState, arm: Array) -> VisitorsState:
        clock, key = tick(state.clock)
        return state._replace(away=wander(key, state.away, memory), clock=clock)

    return Environment(BanditSpec(num_arms, context_dim), init, observe, rewards, advance)


# A smooth function of the context


class HillsState(NamedTuple):
    level: Array  # (num_arms,) float32
    height: Array  # (num_arms, hills) float32, below 0 for a valley
    width: Array  # (num_arms, hills) float32
    top: Array  # (num_arms, hills, context_dim) float32, where it is
    clock: Clock


def landscapes(
    *,
    num_arms: int = 6,
    context_dim: int = 3,
    hills: int = 6,
    step: float = 0.002,
    deviation: float = 0.2,
) -> Environment:
    """Each arm's mean is a landscape of hills and valleys over the context, which move slowly.

    Args:
        num_arms: Number of arms.
        context_dim: Numbers in a context, uniform in [0, 1].
        hills: Hills and valleys of each arm.
        step: Standard deviation of a hill's move in each direction, per step.
        deviation: Standard deviation of the rewards.
    """
    shape = num_arms, hills

    def init(key: Key) -> HillsState:
        keys = jax.random.split(key, 5)
        return HillsState(
            level=0.1 * jax.random.normal(keys[0], (num_arms,)),
            height=0.7 * jax.random.normal(keys[1], shape),
            width=jax.random.uniform(keys[2], shape, minval=0.15, maxval=0.35),
            top=jax.random.uniform(keys[3], (*shape, context_dim)),
            clock=start_clock(keys[4]),
        )

    def observe(key: Key, state: HillsState) -> Observation:
        return Observation(jax.random.uniform(key, (context_dim,)), jnp.ones(num_arms, bool))

    def rewards(key: Key, state: HillsState, context: Array) -> Rewards:
        distance = jnp.sum((context - state.top) ** 2, axis=-1) / state.width**2
        mean = state.level + jnp.sum(state.height * jnp.exp(-distance / 2), axis=1)
        return gaussian(key, mean, deviation)

    def advance(state: HillsState, arm: Array) -> HillsState:
        clock, key = tick(state.clock)
        moves = step * jax.random.normal(key, state.top.shape)
        return state._replace(top=reflect(state.top + moves), clock=clock)

    spec = BanditSpec(num_arms, context_dim, reward_range=(-1.5, 1.5), noise=deviation)
    return Environment(spec, init, observe, rewards, advance)


# Servers


class ServersState(NamedTuple):
    queue: Array  # (num_arms,) float32, jobs
    speed: Array  # (num_arms,) float32, jobs per step
    clock: Clock
    changes: Array  # () int32, so far


def servers(
    *,
    num_arms: int = 7,
    capacity: float = 1.3,
    hazard: float = 1 / 1200,
    timeout: float = 60.0,
    unit: float = 10.0,
    deviation: float = 0.3,
) -> Environment:
    """Servers with queues: a pull sends a job to one, and the reward is minus its waiting time.

    Args:
        num_arms: Number of servers.
        capacity: Jobs per step that all of them do together.
        hazard: Probability of other speeds before each step.
        timeout: The longest waiting time in steps; a queue takes no more jobs than that.
        unit: Steps of waiting that cost 1.
        deviation: Standard deviation of the rewards.
    """

    def draw_speed(key: Key) -> Array:
        return capacity * jax.nn.softmax(0.8 * jax.random.normal(key, (num_arms,)))

    def init(key: Key) -> ServersState:
        own, later = jax.random.split(key)
        return ServersState(jnp.zeros(num_arms), draw_speed(own), start_clock(later), jnp.int32(0))

    def rewards(key: Key, state: ServersState) -> Rewards:
        waiting = jnp.minimum((state.queue + 1) / state.speed, timeout)
        return gaussian(key, -waiting / unit, deviation)

    def advance(state: ServersState, arm: Array) -> ServersState:
        clock, key = tick(state.clock)
        when, what = jax.random.split(key)
        anew = jax.random.bernoulli(when, hazard)
        speed = jnp.where(anew, draw_speed(what), state.speed)
        queue = state.queue + (jnp.arange(num_arms) == arm)
        queue = jnp.clip(jnp.minimum(queue, timeout * state.speed) - state.speed, 0)
        return ServersState(queue, speed, clock, state.changes + anew)

    spec = BanditSpec(num_arms, reward_range=(-timeout / unit, 0.0), noise=deviation)
    return plain(spec, init, rewards, advance, lambda state: state.changes)


# Arms that remember


class CooldownsState(NamedTuple):
    level: Array  # (num_arms,) float32
    length: Array  # (num_arms,) int32, steps of a cool-down
    left: Array  # (num_arms,) int32, steps of the present one
    clock: Clock


def cooldowns(
    *,
    num_arms: int = 10,
    shortest: int = 2,
    longest: int = 40,
    factor: float = 0.25,
    hazard: float = 1 / 700,
    deviation: float = 0.1,
) -> Environment:
    """Gaussian arms that pay less for some steps after each pull, each for a time of its own.

    Args:
        num_arms: Number of arms.
        shortest: Steps of the shortest cool-down that an arm may have.
        longest: Steps of the longest one.
        factor: What is left of a mean in these steps; another pull begins them again.
        hazard: Probability before each step that one arm gets another level.
        deviation: Standard deviation of the rewards.
    """

    def draw_levels(key: Key) -> Array:
        return jax.random.uniform(key, (num_arms,), minval=0.2)

    def init(key: Key) -> CooldownsState:
        own, length_key, later = jax.random.split(key, 3)
        length = jnp.round(log_uniform(length_key, shortest, longest, (num_arms,)))
        idle = jnp.zeros(num_arms, jnp.int32)
        return CooldownsState(draw_levels(own), length.astype(jnp.int32), idle, start_clock(later))

    def rewards(key: Key, state: CooldownsState) -> Rewards:
        return gaussian(key, state.level * jnp.where(state.left > 0, factor, 1.0), deviation)

    def advance(state: CooldownsState, arm: Array) -> CooldownsState:
        clock, key = tick(state.clock)
        when, which, what = jax.random.split(key, 3)
        changed = jnp.arange(num_arms) == jax.random.randint(which, (), 0, num_arms)
        changed &= jax.random.bernoulli(when, hazard)
        pulled = jnp.arange(num_arms) == arm
        return state._replace(
            level=jnp.where(changed, draw_levels(what), state.level),
            left=jnp.where(pulled, state.length, jnp.maximum(state.left - 1, 0)),
            clock=clock,
        )

    return plain(BanditSpec(num_arms, noise=deviation), init, rewards, advance)


class ChainsState(NamedTuple):
    table: Array  # (num_arms, num_arms, num_arms) float32, by the last arm but one, the last, this
    last: Array  # (2,) int32, the last arm but one, and the last
    clock: Clock


def chains(
    *, num_arms: int = 5, memory: float = float("inf"), contrast: float = 1.5
) -> Environment:
    """Coins whose chances depend on the last two arms pulled, by a hidden table.

    Args:
        num_arms: Number of arms.
        memory: Steps in which the table forgets what it was; by default it stays.
        contrast: Standard deviation of the chances, in log-odds.
    """

    def init(key: Key) -> ChainsState:
        own, last_key, later = jax.random.split(key, 3)
        table = jax.random.normal(own, (num_arms,) * 3)
        last = jax.random.randint(last_key, (2,), 0, num_arms)
        return ChainsState(table, last, start_clock(later))

    def rewards(key: Key, state: ChainsState) -> Rewards:
        row = state.table[state.last[0], state.last[1]]
        return toss(key, jax.nn.sigmoid(contrast * row))

    def advance(state: ChainsState, arm: Array) -> ChainsState:
        clock, key = tick(state.clock)
        table = wander(key, state.table, memory)
        return ChainsState(table, jnp.stack([state.last[1], arm]), clock)

    return plain(BanditSpec(num_arms), init, rewards, advance)


# Arms that move together, or alone


class GroupsState(NamedTuple):
    group: Array  # (num_arms,) int32, of each arm
    own: Array  # (num_arms,) float32, what an arm has beside its group
    common: Array  # (groups,) float32
    clock: Clock


def groups(
    *,
    num_groups: int = 4,
    size: int = 40,
    memory: float = 2500.0,
    spread: float = 0.12,
    deviation: float = 0.3,
) -> Environment:
    """Gaussian arms in groups that drift together; nobody says which arm is in which group.

    Args:
        num_groups: Number of groups.
        size: Arms in each group.
        memory: Steps in which a group forgets where it was.
        spread: Standard deviation of the arms within a group.
        deviation: Standard deviation of the rewards.
    """
    num_arms = num_groups * size

    def init(key: Key) -> GroupsState:
        order, own, common, later = jax.random.split(key, 4)
        return GroupsState(
            group=jax.random.permutation(order, num_arms) % num_groups,
            own=spread * jax.random.normal(own, (num_arms,)),
            common=jax.random.normal(common, (num_groups,)),
            clock=start_clock(later),
        )

    def rewards(key: Key, state: GroupsState) -> Rewards:
        return gaussian(key, 0.5 + 0.25 * state.common[state.group] + state.own, deviation)

    def advance(state: GroupsState, arm: Array) -> GroupsState:
        clock, key = tick(state.clock)
        return state._replace(common=wander(key, state.common, memory), clock=clock)

    spec = BanditSpec(num_arms, reward_range=(-0.5, 1.5), noise=deviation)
    return plain(spec, init, rewards, advance)


class WeatherState(NamedTuple):
    level: Array  # (num_arms,) float32
    own: Array  # (num_arms,) float32, a slight drift of the differences
    noise: Array  # () float32, common
    jumps: Array  # () float32, common: what is left of them
    clock: Clock


def weather(
    *,
    num_arms: int = 10,
    memory: float = 40.0,
    amplitude: float = 0.5,
    hazard: float = 1 / 400,
    jump: float = 1.5,
    deviation: float = 0.2,
) -> Environment:
    """Gaussian arms under a common influence; their differences stay nearly the same.

    Args:
        num_arms: Number of arms.
        memory: Steps in which the common autoregressive noise forgets where it was.
        amplitude: Standard deviation of that noise.
        hazard: Probability of a common jump before each step.
        jump: Standard deviation of a jump; a third of it is left after a thousand steps.
        deviation: Standard deviation of the rewards.
    """

    def init(key: Key) -> WeatherState:
        level, own, noise, later = jax.random.split(key, 4)
        return WeatherState(
            level=jax.random.uniform(level, (num_arms,)),
            own=jax.random.normal(own, (num_arms,)),
            noise=jax.random.normal(noise),
            jumps=jnp.float32(0),
            clock=start_clock(later),
        )

    def rewards(key: Key, state: WeatherState) -> Rewards:
        common = amplitude * state.noise + state.jumps
        return gaussian(key, state.level + 0.03 * state.own + common, deviation)

    def advance(state: WeatherState, arm: Array) -> WeatherState:
        clock, key = tick(state.clock)
        own, noise, when, what = jax.random.split(key, 4)
        new = jnp.where(jax.random.bernoulli(when, hazard), jump * jax.random.normal(what), 0.0)
        return WeatherState(
            level=state.level,
            own=wander(own, state.own, 5000.0),
            noise=wander(noise, state.noise, memory),
            jumps=0.999 * state.jumps + new,
            clock=clock,
        )

    spec = BanditSpec(num_arms, reward_range=(-4.0, 5.0), noise=deviation)
    return plain(spec, init, rewards, advance)


class OneChangesState(NamedTuple):
    theta: Array  # (num_arms,) float32
    clock: Clock
    changes: Array  # () int32, so far


def one_changes(
    *, num_arms: int = 8, hazard: float = 1 / 500, least: float = 0.2, most: float = 0.5
) -> Environment:
    """Coins, of which a single one becomes better or worse now and then.

    Args:
        num_arms: Number of arms.
        hazard: Probability of a change of one arm before each step.
        least: The smallest change of a chance.
        most: The largest one; changes are reflected at 0 and 1.
    """

    def init(key: Key) -> OneChangesState:
        own, later = jax.random.split(key)
        theta = jax.random.uniform(own, (num_arms,), minval=0.1, maxval=0.9)
        return OneChangesState(theta, start_clock(later), jnp.int32(0))

    def rewards(key: Key, state: OneChangesState) -> Rewards:
        return toss(key, state.theta)

    def advance(state: OneChangesState, arm: Array) -> OneChangesState:
        clock, key = tick(state.clock)
        when, which, sign, what = jax.random.split(key, 4)
        anew = jax.random.bernoulli(when, hazard)
        changed = anew & (jnp.arange(num_arms) == jax.random.randint(which, (), 0, num_arms))
        change = jax.random.rademacher(sign, (), jnp.float32)
        change *= jax.random.uniform(what, minval=least, maxval=most)
        theta = jnp.where(changed, reflect(state.theta + change), state.theta)
        return OneChangesState(theta, clock, state.changes + anew)

    return plain(BanditSpec(num_arms), init, rewards, advance, lambda state: state.changes)


# Arms that are unlike each other


class NoisesState(NamedTuple):
    away: Array  # (num_arms,) float32
    deviation: Array  # (num_arms,) float32
    heavy: Array  # (num_arms,) bool, whether the tails are
    clock: Clock


def noises(
    *,
    num_arms: int = 10,
    quietest: float = 0.05,
    loudest: float = 1.0,
    degrees: float = 4.0,
    memory: float = 4000.0,
) -> Environment:
    """Arms with noises from quiet to loud, half of them Student's t, whose means drift slowly.

    Args:
        num_arms: Number of arms.
        quietest: Standard deviation of the quietest arm.
        loudest: Standard deviation of the loudest one; the others lie evenly between in logarithm.
        degrees: Degrees of freedom of the heavy tails, above 2.
        memory: Steps in which a mean forgets where it was.
    """
    deviations = jnp.geomspace(quietest, loudest, num_arms)
    scale = ((degrees - 2) / degrees) ** 0.5  # gives Student's t the standard deviation 1

    def init(key: Key) -> NoisesState:
        own, loud, heavy, later = jax.random.split(key, 4)
        return NoisesState(
            away=jax.random.normal(own, (num_arms,)),
            deviation=jax.random.permutation(loud, deviations),
            heavy=jax.random.permutation(heavy, num_arms) < num_arms // 2,
            clock=start_clock(later),
        )

    def rewards(key: Key, state: NoisesState) -> Rewards:
        light_key, heavy_key = jax.random.split(key)
        light = jax.random.normal(light_key, (num_arms,))
        noise = jnp.where(state.heavy, scale * student(heavy_key, degrees, (num_arms,)), light)
        mean = 0.5 + 0.3 * state.away
        return Rewards(mean + state.deviation * noise, mean)

    def advance(state: NoisesState, arm: Array) -> NoisesState:
        clock, key = tick(state.clock)
        return state._replace(away=wander(key, state.away, memory), clock=clock)

    spec = BanditSpec(num_arms, reward_range=(-2.0, 3.0), noise=loudest)
    return plain(spec, init, rewards, advance)


class SpeedsState(NamedTuple):
    away: Array  # (num_arms,) float32
    memory: Array  # (num_arms,) float32, steps in which each arm forgets where it was
    clock: Clock


def speeds(
    *,
    num_arms: int = 9,
    shortest: float = 100.0,
    longest: float = 100_000.0,
    level: float = 20.0,
    spread: float = 4.0,
    deviation: float = 3.0,
) -> Environment:
    """Gaussian arms that all wander equally far, the fastest a thousand times as fast as others.

    Args:
        num_arms: Number of arms.
        shortest: Steps in which the fastest arm forgets where it was.
        longest: The same of the slowest one; the others lie evenly between in logarithm.
        level: The long-term mean of every arm.
        spread: Standard deviation of the means around it.
        deviation: Standard deviation of the rewards.
    """
    memories = jnp.geomspace(shortest, longest, num_arms)

    def init(key: Key) -> SpeedsState:
        own, order, later = jax.random.split(key, 3)
        away = jax.random.normal(own, (num_arms,))
        return SpeedsState(away, jax.random.permutation(order, memories), start_clock(later))

    def rewards(key: Key, state: SpeedsState) -> Rewards:
        return gaussian(key, level + spread * state.away, deviation)

    def advance(state: SpeedsState, arm: Array) -> SpeedsState:
        clock, key = tick(state.clock)
        return SpeedsState(wander(key, state.away, state.memory), state.memory, clock)

    wide = 3 * spread
    spec = BanditSpec(num_arms, reward_range=(level - wide, level + wide), noise=deviation)
    return plain(spec, init, rewards, advance)


# Arms with features


class ModelsState(NamedTuple):
    size: Array  # (num_arms,) float32, of each model, in [0, 1]
    skill: Array  # (num_arms, tasks) float32, what the size does not explain
    price: Array  # () float32, of a unit of size
    clock: Clock


def models(
    *, num_arms: int = 25, tasks: int = 4, hazard: float = 1 / 2000, deviation: float = 0.3
) -> Environment:
    """Language models: larger ones answer better, and cost more; the price jumps now and then.

    Features are the size and its square, and what each task was found to gain, with an error. The
    context says which task it is, and how hard.
    """

    def init(key: Key) -> ModelsState:
        keys = jax.random.split(key, 4)
        return ModelsState(
            size=jax.random.uniform(keys[0], (num_arms,)),
            skill=0.25 * jax.random.normal(keys[1], (num_arms, tasks)),
            price=jax.random.uniform(keys[2], minval=0.2, maxval=1.2),
            clock=start_clock(keys[3]),
        )

    def observe(key: Key, state: ModelsState) -> Observation:
        task_key, hard_key = jax.random.split(key)
        task = jax.nn.one_hot(jax.random.randint(task_key, (), 0, tasks), tasks)
        context = jnp.append(task, jax.random.uniform(hard_key))
        found = state.skill + 0.1 * jax.random.normal(known_error(state), state.skill.shape)
        arms = jnp.column_stack([state.size, state.size**2, found])
        return Observation(context, jnp.ones(num_arms, bool), arms)

    def known_error(state: ModelsState) -> Key:
        return key_at(state.clock.words, jnp.int32(-1))  # the same always

    def rewards(key: Key, state: ModelsState, context: Array) -> Rewards:
        gain = (0.3 + context[-1]) * jnp.sqrt(state.size) + state.skill @ context[:tasks]
        return gaussian(key, gain - state.price * state.size, deviation)

    def advance(state: ModelsState, arm: Array) -> ModelsState:
        clock, key = tick(state.clock)
        jump, new = jax.random.split(key)
        price = jax.random.uniform(new, minval=0.2, maxval=1.2)
        return state._replace(
            price=jnp.where(jax.random.bernoulli(jump, hazard), price, state.price), clock=clock
        )

    spec = BanditSpec(num_arms, tasks + 1, None, (-2.0, 2.5), deviation, tasks + 2)
    return Environment(spec, init, observe, rewards, advance)


class ShopState(NamedTuple):
    goods: Array  # (num_arms, arm_dim) float32
    charm: Array  # (num_arms,) float32, what the features do not say
    ids: Array  # (num_arms,) int32
    fashion: Array  # (arm_dim,) float32
    clock: Clock


def shop(
    *, num_arms: int = 60, arm_dim: int = 8, memory: float = 4000.0, turnover: float = 1 / 50
) -> Environment:
    """Goods that sell by their features; fashion changes, and goods are replaced one by one."""

    def item(key: Key) -> tuple[Array, Array]:
        goods_key, charm_key = jax.random.split(key)
        flags = jax.random.bernoulli(goods_key, 0.35, (num_arms, arm_dim))
        return flags.astype(jnp.float32), 0.4 * jax.random.normal(charm_key, (num_arms,))

    def init(key: Key) -> ShopState:
        goods_key, fashion_key, clock_key = jax.random.split(key, 3)
        fashion = jax.random.normal(fashion_key, (arm_dim,))
        ids = jnp.zeros(num_arms, jnp.int32)
        return ShopState(*item(goods_key), ids, fashion, start_clock(clock_key))

    def observe(key: Key, state: ShopState) -> Observation:
        return Observation(jnp.zeros(0), jnp.ones(num_arms, bool), state.goods, state.ids)

    def rewards(key: Key, state: ShopState, context: Array) -> Rewards:
        return toss(key, jax.nn.sigmoid(0.8 * state.goods @ state.fashion + state.charm - 2.5))

    def advance(state: ShopState, arm: Array) -> ShopState:
        clock, key = tick(state.clock)
        keys = jax.random.split(key, 4)
        place = jax.random.randint(keys[0], (), 0, num_arms)
        new = (jnp.arange(num_arms) == place) & jax.random.bernoulli(keys[1], turnover)
        goods, charm = item(keys[2])
        return ShopState(
            jnp.where(new[:, None], goods, state.goods),
            jnp.where(new, charm, state.charm),
            state.ids + new,
            wander(keys[3], state.fashion, memory),
            clock,
        )

    spec = BanditSpec(num_arms, arm_dim=arm_dim, arms_change=True)
    return Environment(spec, init, observe, rewards, advance)


JUDGING: dict[str, Callable[[], Environment]] = {
    "pricing": pricing,
    "news": news,
    "clicks": clicks,
    "visitors": visitors,
    "landscapes": landscapes,
    "servers": servers,
    "cooldowns": cooldowns,
    "chains": chains,
    "drifting_chains": partial(chains, num_arms=4, memory=5000.0),
    "groups": groups,
    "small_groups": partial(groups, size=10),
    "weather": weather,
    "one_changes": one_changes,
    "noises": noises,
    "speeds": speeds,
    "models": models,
    "shop": shop,
}
