"""The energy term of the Recurrent Bandit, and what it does and does not bound.

    L_EC = (sum_i p_i z_i)^2,  p = softmax(z);  since z_i = log p_i + logsumexp(z) this equals
    L_EC = (logsumexp(z) - H(p))^2,  H the entropy

Rotman & Wolf (2023), eq. 1 and Theorem 1. The theorem says that L_EC = 0 bounds p_max / p_min.
It does not: every p with full support has the logits z_i = log p_i + H(p), for which L_EC = 0.
True are: z_max <= W((n - 1) / e), and a bound on the ratio if the logits are also bounded below.
"""

import math

import jax.numpy as jnp
from jax import Array
from scipy.special import lambertw

from driftbandits.numerics.arms import softmax_probabilities


def mean_energy(logits: Array, available: Array) -> Array:
    """sum_i p_i z_i over the available arms (minus the mean energy); z is finite."""
    probabilities = softmax_probabilities(logits, available)
    return jnp.sum(probabilities * logits)


def energy_term(logits: Array, available: Array) -> Array:
    """L_EC, which the Recurrent Bandit adds to its loss."""
    return mean_energy(logits, available) ** 2


def zero_energy_logits(probabilities: Array) -> Array:
    """The only logits with this softmax and with L_EC = 0: the counterexample to Theorem 1."""
    return jnp.log(probabilities) - jnp.sum(probabilities * jnp.log(probabilities))


def largest_logit_bound(num_arms: int, energy: float = 0.0) -> float:
    """True: z_max <= |mean energy| + W((n - 1) / e)."""
    return abs(energy) + float(lambertw((num_arms - 1) / math.e).real)


def claimed_ratio_bound(num_arms: int) -> float:
    """Theorem 1's bound on p_max / p_min where L_EC = 0. False for every n >= 2."""
    return conditional_ratio_bound(num_arms, lowest_logit=-1.0)


def conditional_ratio_bound(num_arms: int, lowest_logit: float) -> float:
    """True: p_max / p_min <= exp(W((n - 1) / e) - z_min) where L_EC = 0 and z >= lowest_logit."""
    return math.exp(largest_logit_bound(num_arms) - lowest_logit)
