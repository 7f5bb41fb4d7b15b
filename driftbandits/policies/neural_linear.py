"""NeuralLinear: Thompson sampling with Bayesian linear regression on a network's last layer.

    z = last hidden layer;  s_k ~ InverseGamma(a_k, b_k);  beta_k ~ N(mu_k, s_k P_k^-1)
    arm = argmax z' beta_k
    P_k = precision * I + sum z z',  mu_k = P_k^-1 sum r z,  a_k = noise_shape + n_k / 2,
    b_k = noise_scale + (sum r^2 - mu_k' P_k mu_k) / 2       over the pulls of arm k

Every `train_every` rewards the network takes `train_steps` minibatch steps on the squared error of
the pulled arm's output, and the posteriors are rebuilt from all data in memory. Between two
trainings only the pulled arm's posterior is updated, by one rank. We sample the score z' beta_k
instead of beta_k: it is a Student's t with 2 a_k degrees of freedom. b_k is updated by residuals,
which gives the same number.

Paper: Riquelme, Tucker & Snoek (2018), "Deep Bayesian bandits showdown". The defaults are the
settings of its table 2. Those of the public example are layers=1, hidden=50, initial_pulls=2,
train_every=50, train_steps=100, noise_shape=6, noise_scale=6, restart_rate=false.

Use it when the reward is nonlinear in the context, data are plentiful and the relation does not
change. Not when it drifts (the memory holds everything; see `recurrent_linear`), nor when a step
must be cheap.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from driftbandits import check
from driftbandits.core import BanditSpec, Decision, Key, Observation, Policy
from driftbandits.numerics.arms import (
    context_or_one,
    count_pull,
    greedy_probabilities,
    require_some,
)
from driftbandits.numerics.best_arm import best_score_probabilities
from driftbandits.numerics.linear import LinearPosterior, fit_arm, predict, prior, update
from driftbandits.numerics.made_again import arm_or_known
from driftbandits.numerics.occasionally import occasionally
from driftbandits.numerics.regression import (
    Fit,
    Memory,
    Network,
    empty_memory,
    features,
    init_fit,
    store,
    train,
    without_new_arms,
)

MEMORY = 10_000
ROWS = 128  # of the memory processed together
DECAY = 0.5  # of the learning rate per step


class Noise(NamedTuple):
    shape: Array  # (num_arms,) float32, a_k
    scale: Array  # (num_arms,) float32, b_k


class NeuralLinearState(NamedTuple):
    fit: Fit
    memory: Memory
    posterior: LinearPosterior
    noise: Noise
    pulls: Array  # (num_arms,) int32, decided so far


class NeuralLinearTicket(NamedTuple):
    inputs: Array  # (inputs,) float32
    arm: Array  # () int32
    key: Key  # of the minibatches


def neural_linear(
    spec: BanditSpec,
    *,
    layers: int = 2,
    hidden: int = 100,
    initial_pulls: int = 3,
    train_every: int = 20,
    train_steps: int = 20,
    batch: int = 512,
    learning_rate: float = 0.1,
    restart_rate: bool = True,
    precision: float = 0.25,
    noise_shape: float = 3.0,
    noise_scale: float = 3.0,
    memory: int | None = None,
) -> Policy:
    """Bayesian linear regression on features that a network learns.

    Args:
        layers: Hidden layers of the network.
        hidden: Units of each layer, and dimension of the regression.
        initial_pulls: Pulls of every arm at the start, in turn.
        train_every: Rewards between two trainings.
        train_steps: Minibatch steps of one training.
        batch: Rewards in a minibatch, drawn with replacement.
        learning_rate: Learning rate of the first step; it falls as 1 / (1 + step / 2).
        restart_rate: Whether the learning rate starts again with each training.
        precision: Precision of the prior on each coefficient.
        noise_shape: a of the inverse-gamma prior on the noise.
        noise_scale: b of the same prior.
        memory: Number of rewards stored; by default the horizon, or 10,000 if it is unknown.
    """
    size = (spec.horizon or MEMORY) if memory is None else memory
    check.integer(layers=layers, hidden=hidden, train_every=train_every, batch=batch, memory=size)
    check.integer(at_least=0, initial_pulls=initial_pulls, train_steps=train_steps)
    check.positive(learning_rate=learning_rate, precision=precision)
    check.positive(noise_shape=noise_shape, noise_scale=noise_scale)
    check.flag(restart_rate=restart_rate)
    num_arms, inputs = spec.num_arms, max(spec.context_dim, 1)

    def init(key: Key) -> NeuralLinearState:
        return NeuralLinearState(
            fit=init_fit(key, [inputs, *[hidden] * layers, num_arms]),
            memory=empty_memory(size, inputs),
            posterior=prior(num_arms, hidden, precision),
            noise=Noise(
                jnp.full(num_arms, noise_shape, float), jnp.full(num_arms, noise_scale, float)
            ),
            pulls=jnp.zeros(num_arms, jnp.int32),
        )

    def act(
        key: Key, state: NeuralLinearState, observation: Observation
    ) -> tuple[Decision, NeuralLinearState]:
        require_some(observation.available)
        score_key, train_key = jax.random.split(key)
        seen = context_or_one(observation.context)
        z = features(state.fit.network, seen)
        scores, probabilities = score_arms(score_key, state, z, observation.available)

        starting = (observation.available & (state.pulls < initial_pulls)).any()
        turn = -(state.pulls * num_arms + jnp.arange(num_arms)).astype(jnp.float32)
        scores = jnp.where(observation.available, jnp.where(starting, turn, scores), -jnp.inf)
        probabilities = jnp.where(
            starting, greedy_probabilities(turn, observation.available), probabilities
        )
        arm = arm_or_known(jnp.argmax(scores).astype(jnp.int32))
        ticket = NeuralLinearTicket(seen, arm, train_key)
        state = state._replace(pulls=count_pull(state.pulls, arm))
        return Decision(arm, probabilities, ticket), state

    def learn(
        state: NeuralLinearState, ticket: NeuralLinearTicket, reward: Array
    ) -> NeuralLinearState:
        z = features(state.fit.network, ticket.inputs)
        posterior, square = update(state.posterior, ticket.arm, z, reward)
        half = (jnp.arange(num_arms) == ticket.arm) / 2
        state = state._replace(
            memory=store(state.memory, ticket.inputs, ticket.arm, reward),
            posterior=posterior,
            noise=Noise(state.noise.shape + half, state.noise.scale + half * square),
        )
        due = state.memory.seen % train_every == 0
        return occasionally(due, lambda state: retrained(state, ticket.key), state)

    def retrained(state: NeuralLinearState, key: Key) -> NeuralLinearState:
        fit, posterior, noise = retrain(state.fit, state.memory, key)
        return state._replace(fit=fit, posterior=posterior, noise=noise)

    # One run after another, so that the layers stay in cache.
    @jax.custom_batching.sequential_vmap  # type: ignore[untyped-decorator]
    def retrain(fit: Fit, memory: Memory, key: Key) -> tuple[Fit, LinearPosterior, Noise]:
        before = fit.steps if restart_rate else 0

        def rate(steps: Array) -> Array:
            return learning_rate / (1 + DECAY * (steps - before))

        fit = train(fit, memory, key, steps=train_steps, batch=batch, rate=rate)
        posterior, counts, squares = rebuild(fit.network, memory, num_arms, precision)
        return fit, posterior, Noise(noise_shape + counts / 2, noise_scale + squares / 2)

    def forget(old: NeuralLinearState, new: NeuralLinearState, is_new: Array) -> NeuralLinearState:
        return new._replace(memory=without_new_arms(new.memory, is_new))

    return Policy(init, act, learn, forget=forget)


def score_arms(
    key: Key, state: NeuralLinearState, z: Array, available: Array
) -> tuple[Array, Array]:
    """A sampled score of every arm, and each arm's probability of being the best."""
    noise_key, normal_key = jax.random.split(key)
    mean, spread = predict(state.posterior, z)
    a, b = state.noise
    variance = b / jax.random.gamma(noise_key, a)
    scores = mean + jnp.sqrt(variance * spread) * jax.random.normal(normal_key, mean.shape)
    return scores, best_score_probabilities(mean, jnp.sqrt(b / a * spread), available, 2 * a)


def rebuild(
    network: Network, memory: Memory, num_arms: int, precision: float
) -> tuple[LinearPosterior, Array, Array]:
    """All posteriors from the memory, its rewards per arm, and their squares of residuals."""
    size = memory.arms.size
    kept = jnp.arange(size) < memory.seen
    by_arm = jnp.argsort(jnp.where(kept, memory.arms, num_arms))
    counts = jnp.bincount(memory.arms, kept.astype(jnp.int32), length=num_arms)
    firsts = jnp.cumsum(counts) - counts

    def refit(arm: Array) -> tuple[Array, Array, Array]:
        def rows(i: Array) -> tuple[Array, Array]:
            place = i * ROWS + jnp.arange(ROWS)
            index = by_arm[(firsts[arm] + place) % size]
            own = place < counts[arm]
            z = features(network, memory.inputs[index].T).T
            return z * own[:, None], memory.rewards[index] * own

        dim = network[-1].weights.shape[1]
        return fit_arm(rows, -(-counts[arm] // ROWS), dim, precision)

    mean, covariance, squares = jax.lax.map(refit, jnp.arange(num_arms))
    return LinearPosterior(mean, covariance), counts, squares
