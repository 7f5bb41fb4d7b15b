"""One linear model for all arms, from their features, and how each arm deviates from it.

    reward_k = f_k' beta + x' delta_k + noise,   f_k = (1, arm_k) x (context, 1),   x = (context, 1)
    beta ~ N(0, I / precision),   delta_k ~ N(0, deviation I / precision)

What is learned about one arm is known of arms like it. With deviation = 0 there are no delta_k: the
features alone decide. This is the hybrid model of Li, Chu, Langford & Schapire (2010), stored as
weighted sums, which a discount or a window can forget:

    S = sum w f f',   B_k = sum w x f',   A_k = sum w x x'   over the pulls of arm k

With s = (1 + arm_dim) (1 + context_dim) and d = 1 + context_dim, a decision takes
O(s^3 + num_arms (d s^2 + d^3)) operations, with the variance of weighted sums (`d_lin_ucb`) also
O(num_arms^2 d s), and the sums num_arms d (s + d) + s^2 numbers.

In the ranges of an agent products of contexts and features reach 1e4 and their squares 1e8, beside
a prior of 1. So all of this is computed in float64 (`in_float64`), and sums are stored as two
float32 each. What remains: if nothing is forgotten and all numbers stay within 0.1% of 100, the
sums no longer hold the prior after some 100,000 rewards. Then means are wrong, but finite.
"""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from driftbandits import check
from driftbandits.core import BanditSpec, Observation
from driftbandits.numerics.hybrid_precision import Split
from driftbandits.numerics.linear import LEAST_SPREAD
from driftbandits.numerics.shown import shown

LEAST_HALF = 16  # of a matrix that is taken by halves


class HybridSums(NamedTuple):
    shared: Array  # (s, s), S
    cross: Array  # (num_arms, d, s), B_k
    own: Array  # (num_arms, d, d), A_k
    shared_moment: Array  # (s,), sum w r f
    own_moment: Array  # (num_arms, d), sum w r x


class Ridge(NamedTuple):
    """The precisions of the prior of beta and of the delta_k."""

    shared: float
    own: float | None  # None without deviations


class Solution(NamedTuple):
    """V^-1 z_k for every arm k, where V is the precision and z_k = (f_k, 0, ..., x, ..., 0)."""

    shared: Array  # (num_arms, s), its shared part
    direct: Array  # (num_arms, d), (A_k + ridge)^-1 x
    through: Array  # (num_arms, d, s), (A_k + ridge)^-1 B_k

    @property
    def own(self) -> Array:
        """Its part of every arm: (num_arms, num_arms, d)."""
        rest = jnp.einsum("jds,ks->kjd", self.through, self.shared)
        return jnp.eye(len(self.shared), len(self.direct))[:, :, None] * self.direct - rest


def uses_features(spec: BanditSpec, deviation: float | None) -> bool:
    """Whether a linear policy with this setting learns one model from the features of the arms."""
    if deviation is not None:
        check.not_negative(deviation=deviation)
    return spec.arm_dim > 0 and deviation is not None


def ridge_of(precision: float, deviation: float | None) -> Ridge:
    return Ridge(precision, precision / deviation if deviation else None)


def dimension(spec: BanditSpec, ridge: Ridge) -> int:
    """The number of coefficients."""
    s, d = sizes(spec)
    return s if ridge.own is None else s + spec.num_arms * d


def sizes(spec: BanditSpec) -> tuple[int, int]:
    """s and d."""
    d = spec.context_dim + 1
    return (1 + spec.arm_dim) * d, d


def no_sums(spec: BanditSpec, ridge: Ridge) -> Split:
    s, d = sizes(spec)
    arms = spec.num_arms if ridge.own is not None else 0
    sums = HybridSums(
        jnp.zeros((s, s)),
        jnp.zeros((arms, d, s)),
        jnp.zeros((arms, d, d)),
        jnp.zeros(s),
        jnp.zeros((arms, d)),
    )
    return Split(sums, jax.tree.map(jnp.zeros_like, sums))


def features_of(observation: Observation, spec: BanditSpec) -> Array:
    """f_k of every arm: (num_arms, s). The first d of them are x."""
    given = shown("arms", observation.arms, (spec.num_arms, spec.arm_dim), "arm_dim")
    x = jnp.append(observation.context, 1.0)
    arms = jnp.concatenate([jnp.ones_like(given[:, :1]), given], axis=1)
    return (arms[:, :, None] * x).reshape(len(arms), -1)


def of_arm(rows: Array, arm: Array) -> Array:
    """The row of one arm, picked by a mask, which vectorises over runs."""
    return jnp.sum(rows, axis=0, where=(jnp.arange(len(rows)) == arm)[:, None])


def add(sums: HybridSums, arm: Array, f: Array, reward: Array, weight: Array | float) -> HybridSums:
    """The sums after one reward more, or with weight -1 after one less."""
    own_weight = weight * (jnp.arange(len(sums.own)) == arm)
    x = f[: sums.own.shape[1]]
    return HybridSums(
        sums.shared + weight * jnp.outer(f, f),
        sums.cross + own_weight[:, None, None] * jnp.outer(x, f),
        sums.own + own_weight[:, None, None] * jnp.outer(x, x),
        sums.shared_moment + weight * reward * f,
        sums.own_moment + own_weight[:, None] * (reward * x),
    )


def faded(sums: HybridSums, discount: float) -> HybridSums:
    """All weights times the discount."""
    return jax.tree.map(lambda leaf: discount * leaf, sums)


def solve(sums: HybridSums, rows: Array, ridge: Ridge) -> Solution:
    """V^-1 z_k for every arm, by the Schur complement of the shared part of V."""
    roots, x = own_roots(sums, ridge), rows[0, : sums.own.shape[1]]
    half = roots @ sums.cross
    through = jnp.swapaxes(roots, 1, 2) @ half
    shared = sums.shared + ridge.shared * jnp.eye(rows.shape[1])
    root = inverse_root(shared - jnp.einsum("kds,kdt->st", half, half), ridge.shared)
    # Of z_k, its own part takes a share of what the shared part has to explain.
    target = rows - jnp.einsum("kds,d->ks", through, x) if len(sums.own) else rows
    direct = jnp.einsum("ked,ke->kd", roots, roots @ x)
    return Solution((target @ root.T) @ root, direct, through)


def own_roots(sums: HybridSums, ridge: Ridge) -> Array:
    """L_k^-1 of every arm, where L_k L_k' = A_k + ridge."""
    if ridge.own is None:
        return sums.own
    own = sums.own + ridge.own * jnp.eye(sums.own.shape[1])
    return jax.vmap(partial(inverse_root, least=ridge.own))(own)


def inverse_root(matrix: Array, least: float) -> Array:
    """L^-1, where L L' is the matrix, which is at least `least` times the unit matrix.

    By halves, since products of matrices are fast. The inverse itself by halves would lose twice as
    many digits.
    """
    half = len(matrix) // 2
    if half < LEAST_HALF:
        return small_inverse_root(matrix, least)
    first = inverse_root(matrix[:half, :half], least)
    across = first @ matrix[:half, half:]
    second = inverse_root(matrix[half:, half:] - across.T @ across, least)
    corner = -(second @ across.T) @ first
    return jnp.block([[first, jnp.zeros_like(corner.T)], [corner, second]])


def small_inverse_root(matrix: Array, least: float) -> Array:
    """As `inverse_root`, row by row: what makes the matrix L' makes the unit matrix L^-1."""
    size = len(matrix)
    rows = jnp.arange(size)

    def eliminate(k: Array, both: Array) -> Array:
        # A pivot below `least` is rounding, and so is what would follow from it.
        pivot = both[k, k]
        row = both[k] / jnp.sqrt(jnp.maximum(pivot, least))
        below = jnp.where((rows > k) & (pivot > least), row[:size], 0.0)
        return jnp.where((rows == k)[:, None], row, both - jnp.outer(below, row))

    both = jnp.concatenate([matrix, jnp.eye(size)], axis=1)
    return jax.lax.fori_loop(0, size, eliminate, both)[:, size:]


def mean_of(sums: HybridSums, solution: Solution) -> Array:
    """The expected reward of every arm."""
    explained = jnp.einsum("kds,kd->s", solution.through, sums.own_moment)
    found = solution.shared @ (sums.shared_moment - explained)
    if solution.direct.size:
        found += jnp.sum(solution.direct * sums.own_moment, axis=1)
    return found


def share_of_prior(solution: Solution, spec: BanditSpec, ridge: Ridge) -> Array:
    """How much the expected reward of every arm rises if the prior mean of all rewards rises by 1.

    That prior mean is the one of the coefficient of the constant feature.
    """
    _, d = sizes(spec)
    return ridge.shared * solution.shared[:, d - 1]


def spread_of(solution: Solution, rows: Array) -> Array:
    """z_k' V^-1 z_k of every arm."""
    found = jnp.sum(solution.shared * rows, axis=1)
    if solution.direct.size:
        own = solution.direct - jnp.einsum("kds,ks->kd", solution.through, solution.shared)
        found += own @ rows[0, : own.shape[1]]
    return jnp.maximum(found, LEAST_SPREAD)


def weighted_spread(solution: Solution, squared: HybridSums, ridge: Ridge) -> Array:
    """z_k' V^-1 W V^-1 z_k of every arm, where W has the weights of `squared`."""
    shared, own = solution.shared, solution.own
    found = jnp.einsum("ks,st,kt->k", shared, squared.shared, shared)
    found += ridge.shared * jnp.sum(shared**2, axis=1)
    if ridge.own is not None:
        across = jnp.einsum("jds,ks->kjd", squared.cross, shared)
        within = jnp.einsum("jde,kje->kjd", squared.own, own)
        found += jnp.sum(own * (2 * across + within + ridge.own * own), axis=(1, 2))
    return jnp.maximum(found, LEAST_SPREAD)


def elimination(sums: HybridSums, ridge: Ridge, arms: Array) -> Array:
    """(A_k + ridge)^-1 B_k of these arms, 0 of the others: (num_arms, d, s).

    What is known of the shared coefficients when an arm leaves, and its own with it, is what is
    left after integrating its delta_k out.
    """
    roots = own_roots(sums, ridge)
    through = jnp.swapaxes(roots, 1, 2) @ (roots @ sums.cross)
    return jnp.where(arms[:, None, None], through, 0.0)


def eliminated(sums: HybridSums, away: Array) -> tuple[Array, Array]:
    """S and the moment of the shared coefficients without the arms that leave."""
    return (
        sums.shared - jnp.einsum("kds,kdt->st", sums.cross, away),
        sums.shared_moment - jnp.einsum("kds,kd->s", away, sums.own_moment),
    )


def eliminated_squares(squared: HybridSums, away: Array, ridge: Ridge) -> Array:
    """S with squared weights: the variance of what is left."""
    across = jnp.einsum("kds,kdt->st", squared.cross, away)
    own = squared.own + ridge.own * jnp.eye(squared.own.shape[1])  # type: ignore[operator]
    within = jnp.einsum("kds,kde,ket->st", away, own, away)
    return squared.shared - across - across.T + within
