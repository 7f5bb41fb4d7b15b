"""LinUCB: a linear model of the reward for each arm, plus a bonus for what it does not know.

    z = (context, 1);  index_k = z' theta_k + alpha * width * sqrt(z' P_k^-1 z)
    P_k = precision * I + sum z z',  theta_k = P_k^-1 sum (r - low) z  over the pulls of arm k

Li, Chu, Langford & Schapire (2010), "A contextual-bandit approach to personalized news article
recommendation", with disjoint models. (low, low + width) is `spec.reward_range`: rewards count from
its lower end and the bonus scales with it. So by default an arm that was not pulled yet looks at
least as good as the best one can be, and no shift or scale of the rewards changes a choice. With
`delta` width is the radius of the confidence ellipsoid in its place, see Abbasi-Yadkori, Pal &
Szepesvari (2011), "Improved algorithms for linear stochastic bandits", for each arm on its own:

    width * sqrt(precision) + noise * sqrt(2 ln(1 / delta) + d ln(1 + t / (precision * d)))

where d = dim(z), t counts the rewards of all arms and noise is `spec.noise`. Without a context z is
the constant 1.

Differences from the paper: its features have no constant, and its rewards are clicks.

Use it when rewards depend on a context about linearly, arm by arm, and do not drift: it wastes few
pulls, and ties apart the same state and context always give the same arm. Not when the arms drift:
old rewards count for ever, and each new one counts for less (see d_lin_ucb and sw_lin_ucb).
"""

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array

from driftbandits.core import BanditSpec, Decision, Key, Policy
from driftbandits.parts.arms import draw, greedy_law
from driftbandits.parts.ellipsoid import check_width, radius
from driftbandits.parts.linear import LinearPosterior, predict, prior, update


class LinUcbState(NamedTuple):
    posterior: LinearPosterior
    seen: Array  # () int32, rewards


class LinUcbTicket(NamedTuple):
    features: Array  # (context_dim + 1,) float32
    arm: Array  # () int32


def lin_ucb(
    spec: BanditSpec, *, alpha: float = 1.0, precision: float = 1.0, delta: float | None = None
) -> Policy:
    """Linear upper confidence bounds; it believes that nothing drifts.

    Args:
        alpha: scales the bonus.
        precision: of the prior on each coefficient (the ridge).
        delta: chance that an arm's bound fails; none is a bonus as wide as the reward range.
    """
    check_width(alpha=alpha, delta=delta, precision=precision)
    low = spec.reward_range[0]

    def init(key: Key) -> LinUcbState:
        return LinUcbState(prior(spec.num_arms, spec.context_dim + 1, precision), jnp.int32(0))

    def act(
        key: Key, state: LinUcbState, context: Array, available: Array
    ) -> tuple[Decision, LinUcbState]:
        features = jnp.append(context, 1.0)
        mean, spread = predict(state.posterior, features)
        width = alpha * radius(spec, delta, precision, state.seen)
        law = greedy_law(mean + width * jnp.sqrt(spread), available)
        arm = draw(key, law)
        return Decision(arm, law, LinUcbTicket(features, arm)), state

    def learn(state: LinUcbState, ticket: LinUcbTicket, reward: Array) -> LinUcbState:
        posterior, _ = update(state.posterior, ticket.arm, ticket.features, reward - low)
        return LinUcbState(posterior, state.seen + 1)

    return Policy(init, act, learn)
