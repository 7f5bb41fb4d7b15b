"""NeuralLinear: Thompson sampling with Bayesian linear regression on a network's last layer.

    z = last hidden layer;  s_k ~ InverseGamma(a_k, b_k);  beta_k ~ N(mu_k, s_k P_k^-1)
    arm = argmax z' beta_k
    P_k = precision * I + sum z z',  mu_k = P_k^-1 sum r z,  a_k = noise_shape + n_k / 2,
    b_k = noise_scale + (sum r^2 - mu_k' P_k mu_k) / 2       over the pulls of arm k

Every `train_every` rewards the network takes `train_steps` minibatch steps on the squared error of
the pulled arm's output, and the posteriors are built anew from all data in memory.

Riquelme, Tucker & Snoek (2018), "Deep Bayesian bandits showdown". The defaults are the settings of
its table 2; those of the public example are layers=1, hidden=50, initial_pulls=2, train_every=50,
train_steps=100, noise_shape=6, noise_scale=6. The score z' beta_k is sampled in place of beta_k: it
is a Student's t with 2 a_k degrees of freedom. b_k grows by residuals, which is the same number.
Between two trainings only the pulled arm's posterior is updated, by one rank.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import optax
from jax import Array

from driftbandits import check
from driftbandits.core import BanditSpec, Decision, Key, Policy
from driftbandits.parts.arms import context_or_one, greedy_law, require_some
from driftbandits.parts.best_arm import best_score_probabilities
from driftbandits.parts.linear import LinearPosterior, fit, predict, prior, update
from driftbandits.parts.networks import Affine, affine, init_affine
from driftbandits.parts.occasionally import occasionally

MEMORY = 10_000
ROWS = 512  # of the memory looked at together
BOUND = 0.3  # of the initial weights
CLIP = 5.0  # of the gradient's norm
DECAY = 0.5  # of the learning rate per step


Network = tuple[Affine, ...]
Fitting = tuple[Network, optax.OptState]


class Memory(NamedTuple):
    """All that was seen, in a ring buffer."""

    inputs: Array  # (size, inputs) float32
    arms: Array  # (size,) int32
    rewards: Array  # (size,) float32
    seen: Array  # () int32


class Noise(NamedTuple):
    shape: Array  # (num_arms,) float32, a_k
    scale: Array  # (num_arms,) float32, b_k


class NeuralLinearState(NamedTuple):
    network: Network
    optimizer: optax.OptState
    steps: Array  # () int32, of training
    memory: Memory
    posterior: LinearPosterior
    noise: Noise
    pulls: Array  # (num_arms,) int32, made or promised


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
        layers: hidden layers of the network.
        hidden: units of each, and dimension of the regression.
        initial_pulls: of every arm in turn, before anything else.
        train_every: rewards between two trainings.
        train_steps: minibatch steps of one training.
        batch: rewards in a minibatch, drawn with replacement.
        learning_rate: of the first step; it falls as 1 / (1 + step / 2).
        restart_rate: let it fall anew in each training.
        precision: of the prior on each coefficient.
        noise_shape: a of the inverse-gamma prior on the noise.
        noise_scale: b of the same.
        memory: how many rewards are kept; none is the horizon, or 10000 where it is unknown.
    """
    check.whole(layers=layers, hidden=hidden, train_every=train_every, batch=batch)
    check.whole(at_least=0, initial_pulls=initial_pulls, train_steps=train_steps)
    check.positive(learning_rate=learning_rate, precision=precision)
    check.positive(noise_shape=noise_shape, noise_scale=noise_scale)
    check.flag(restart_rate=restart_rate)
    size = (spec.horizon or MEMORY) if memory is None else memory
    check.whole(memory=size)
    num_arms, inputs = spec.num_arms, max(spec.context_dim, 1)
    optimizer = optax.chain(
        optax.clip_by_global_norm(CLIP), optax.scale_by_rms(decay=0.9, eps=1e-10, initial_scale=1.0)
    )

    def init(key: Key) -> NeuralLinearState:
        widths = [inputs, *[hidden] * layers, num_arms]
        keys = jax.random.split(key, layers + 1)
        network = tuple(
            init_affine(k, width, after, BOUND)._replace(bias=jnp.zeros(after))
            for k, width, after in zip(keys, widths[:-1], widths[1:], strict=True)
        )
        return NeuralLinearState(
            network,
            optimizer.init(network),
            jnp.int32(0),
            Memory(
                jnp.zeros((size, inputs)),
                jnp.zeros(size, jnp.int32),
                jnp.zeros(size),
                jnp.int32(0),
            ),
            prior(num_arms, hidden, precision),
            Noise(jnp.full(num_arms, noise_shape, float), jnp.full(num_arms, noise_scale, float)),
            jnp.zeros(num_arms, jnp.int32),
        )

    def act(
        key: Key, state: NeuralLinearState, context: Array, available: Array
    ) -> tuple[Decision, NeuralLinearState]:
        require_some(available)
        score_key, noise_key, train_key = jax.random.split(key, 3)
        seen = context_or_one(context)
        z = features(state.network, seen)
        mean, spread = predict(state.posterior, z)
        a, b = state.noise
        variance = b / jax.random.gamma(noise_key, a)
        scores = mean + jnp.sqrt(variance * spread) * jax.random.normal(score_key, (num_arms,))
        law = best_score_probabilities(mean, jnp.sqrt(b / a * spread), available, freedom=2 * a)

        starting = (available & (state.pulls < initial_pulls)).any()
        turn = -(state.pulls * num_arms + jnp.arange(num_arms)).astype(jnp.float32)
        scores = jnp.where(available, jnp.where(starting, turn, scores), -jnp.inf)
        law = jnp.where(starting, greedy_law(turn, available), law)
        arm = jnp.argmax(scores).astype(jnp.int32)
        ticket = NeuralLinearTicket(seen, arm, train_key)
        return Decision(arm, law, ticket), state._replace(pulls=state.pulls.at[arm].add(1))

    def learn(
        state: NeuralLinearState, ticket: NeuralLinearTicket, reward: Array
    ) -> NeuralLinearState:
        z = features(state.network, ticket.inputs)
        posterior, square = update(state.posterior, ticket.arm, z, reward)
        pulled = (jnp.arange(num_arms) == ticket.arm) / 2
        state = state._replace(
            memory=store(state.memory, ticket, reward),
            posterior=posterior,
            noise=Noise(state.noise.shape + pulled, state.noise.scale + pulled * square),
        )
        due = state.memory.seen % train_every == 0
        return occasionally(due, lambda s: rebuild(train(s, ticket.key)), state)

    def train(state: NeuralLinearState, key: Key) -> NeuralLinearState:
        memory = state.memory
        kept = jnp.minimum(memory.seen, size)

        def loss(network: Network, rows: Array) -> Array:
            outputs = jax.vmap(lambda x: forward(network, x))(memory.inputs[rows])
            chosen = jnp.take_along_axis(outputs, memory.arms[rows, None], axis=1)[:, 0]
            return jnp.mean((chosen - memory.rewards[rows]) ** 2)

        def descend(i: Array, fitting: Fitting) -> Fitting:
            network, optimizer_state = fitting
            rows = jax.random.randint(jax.random.fold_in(key, i), (batch,), 0, kept)
            gradient = jax.grad(loss)(network, rows)
            direction, optimizer_state = optimizer.update(gradient, optimizer_state)
            step = i if restart_rate else state.steps + i
            rate = learning_rate / (1 + DECAY * step)
            network = jax.tree.map(lambda w, d: w - rate * d, network, direction)
            return network, optimizer_state

        network, optimizer_state = jax.lax.fori_loop(
            0, train_steps, descend, (state.network, state.optimizer)
        )
        return state._replace(
            network=network, optimizer=optimizer_state, steps=state.steps + train_steps
        )

    def rebuild(state: NeuralLinearState) -> NeuralLinearState:
        memory = state.memory
        kept = jnp.arange(size) < memory.seen
        by_arm = jnp.argsort(jnp.where(kept, memory.arms, num_arms))
        counts = jnp.bincount(memory.arms, kept.astype(jnp.int32), length=num_arms)
        firsts = jnp.cumsum(counts) - counts

        def fit_arm(arm: Array) -> tuple[Array, Array, Array]:
            def rows(i: Array) -> tuple[Array, Array]:
                place = i * ROWS + jnp.arange(ROWS)
                index = by_arm[(firsts[arm] + place) % size]
                own = place < counts[arm]
                z = jax.vmap(lambda x: features(state.network, x))(memory.inputs[index])
                return z * own[:, None], memory.rewards[index] * own

            return fit(rows, -(-counts[arm] // ROWS), hidden, precision)

        mean, covariance, squares = jax.lax.map(fit_arm, jnp.arange(num_arms))
        return state._replace(
            posterior=LinearPosterior(mean, covariance),
            noise=Noise(noise_shape + counts / 2, noise_scale + squares / 2),
        )

    return Policy(init, act, learn)


def features(network: Network, inputs: Array) -> Array:
    """The last hidden layer."""
    signal = inputs
    for layer in network[:-1]:
        signal = jax.nn.relu(affine(layer, signal))
    return signal


def forward(network: Network, inputs: Array) -> Array:
    """What the network expects every arm to pay."""
    return affine(network[-1], features(network, inputs))


def store(memory: Memory, ticket: NeuralLinearTicket, reward: Array) -> Memory:
    slot = memory.seen % memory.arms.size
    return Memory(
        memory.inputs.at[slot].set(ticket.inputs),
        memory.arms.at[slot].set(ticket.arm),
        memory.rewards.at[slot].set(reward),
        memory.seen + 1,
    )
