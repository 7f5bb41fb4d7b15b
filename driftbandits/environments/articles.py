"""Articles: items with features that are read, fade and leave; new ones take their places.

    p_k = sigmoid(interest * x_t' Theta(t) a_k + quality_k * exp(-age_k / fading) - 1)
    reward_k = 1 with probability p_k, else 0

x_t describes the reader, a_k the item, both uniform on unit spheres; quality_k is the item's own,
normal with the standard deviation `quality`. Theta is that of `shared_linear` and turns once in
`period` steps: what readers like changes. An item is in its place for `life` steps; then the place
is empty for a tenth of that, and a new item with other features takes it. Places change one after
the other. `arm_ids` says which item a place has.

Example: news, offers or songs, with new ones every day.

Paper: none; the shape is that of the news recommendation of Li, Chu, Langford & Schapire (2010),
whose articles live for some hours.

Use it to see how much a policy with features of arms gains where arms are new all the time. Not to
study drift alone: see `shared_linear`.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from driftbandits import check
from driftbandits.core import BanditSpec, Environment, Key, Observation, Rewards
from driftbandits.environments.bernoulli import toss
from driftbandits.environments.linear import on_sphere
from driftbandits.environments.shared_linear import orthonormal, turned
from driftbandits.numerics.random_keys import key_at

EMPTY = 10  # a place is empty for one step in so many
FIRST = -1.0  # in the sigmoid: most articles are not clicked


class ArticlesState(NamedTuple):
    theta: Array  # (context_dim, arm_dim) float32
    words: Array  # (2,) uint32, of the key that new items come from
    arms: Array  # (num_arms, arm_dim) float32
    quality: Array  # (num_arms,) float32
    time: Array  # () int32


def articles(
    *,
    num_arms: int = 20,
    context_dim: int = 4,
    arm_dim: int = 4,
    life: int = 2000,
    interest: float = 3.0,
    quality: float = 0.5,
    fading: float = 1000.0,
    period: int = 8000,
) -> Environment:
    """Items that come and go, clicked by what readers like in their features and by their quality.

    Args:
        num_arms: Places for items.
        context_dim: Numbers that describe a reader.
        arm_dim: Features of an item.
        life: Steps that an item stays.
        interest: How much the features matter.
        quality: Standard deviation of the items' own quality.
        fading: Steps in which a quality falls to a third.
        period: Steps in which what readers like turns once.
    """
    check.integer(arm_dim=arm_dim, period=period)
    check.integer(num_arms=num_arms, context_dim=context_dim, at_least=2)
    check.integer(life=life, at_least=num_arms)
    check.not_negative(interest=interest, quality=quality)
    check.positive(fading=fading)
    empty = max(life // EMPTY, 1)
    cycle = life + empty
    ahead = np.arange(num_arms, dtype=np.int32) * cycle // num_arms  # places change in turn

    def age(state: ArticlesState) -> Array:
        return (state.time + ahead) % cycle

    def items(words: Array, time: Array) -> tuple[Array, Array]:
        features_key, quality_key = jax.random.split(key_at(words, time))
        drawn = jax.random.normal(quality_key, (num_arms,))
        return on_sphere(features_key, (num_arms, arm_dim)), quality * drawn

    def init(key: Key) -> ArticlesState:
        theta_key, later = jax.random.split(key)
        words = jax.random.key_data(later)
        theta = orthonormal(theta_key, context_dim, arm_dim)
        return ArticlesState(theta, words, *items(words, jnp.int32(0)), jnp.int32(0))

    def observe(key: Key, state: ArticlesState) -> Observation:
        return Observation(
            on_sphere(key, (context_dim,)),
            age(state) < life,
            state.arms,
            (state.time + ahead) // cycle,
        )

    def rewards(key: Key, state: ArticlesState, context: Array) -> Rewards:
        liked = state.arms @ (turned(context, state.time, period) @ state.theta)
        own = state.quality * jnp.exp(-age(state) / fading)
        return toss(key, jax.nn.sigmoid(FIRST + interest * liked + own))

    def advance(state: ArticlesState, arm: Array) -> ArticlesState:
        state = state._replace(time=state.time + 1)
        is_new = age(state) == 0
        arms, qualities = items(state.words, state.time)
        return state._replace(
            arms=jnp.where(is_new[:, None], arms, state.arms),
            quality=jnp.where(is_new, qualities, state.quality),
        )

    spec = BanditSpec(num_arms, context_dim, arm_dim=arm_dim, arms_change=True)
    return Environment(spec, init, observe, rewards, advance)
