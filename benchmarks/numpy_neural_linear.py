"""NeuralLinear on the Wheel in plain NumPy: vectorised over minibatches, one run after the other.

The rule, its constants and the problem are those of driftbandits.policies.neural_linear and
driftbandits.environments.wheel. `plain` follows the paper to the letter; otherwise the posterior of
the pulled arm is updated by one rank and the scores are sampled in place of the coefficients, as
ours does.
"""

from typing import NamedTuple

import numpy as np

NUM_ARMS, INPUTS, DELTA = 5, 2, 0.5
SAFE, ORDINARY, RICH, DEVIATION = 1.2, 1.0, 50.0, 0.01
HIDDEN, INITIAL_PULLS, TRAIN_EVERY, TRAIN_STEPS, BATCH = 100, 3, 20, 20, 512
LEARNING_RATE, RATE_DECAY, CLIP, RMS_DECAY, RMS_EPSILON = 0.1, 0.5, 5.0, 0.9, 1e-10
PRECISION, NOISE_SHAPE, NOISE_SCALE, BOUND = 0.25, 3.0, 3.0, 0.3

Layers = list[np.ndarray]  # weights and bias of every layer, in turn


class Posterior(NamedTuple):
    mean: np.ndarray  # (num_arms, hidden)
    covariance: np.ndarray  # (num_arms, hidden, hidden)
    shape: np.ndarray  # (num_arms,)
    scale: np.ndarray  # (num_arms,)


def observe(rng: np.random.Generator) -> np.ndarray:
    radius, angle = np.sqrt(rng.random()), 2 * np.pi * rng.random()
    return (radius * np.array([np.cos(angle), np.sin(angle)])).astype(np.float32)


def wheel_means(x: np.ndarray) -> np.ndarray:
    means = np.full(NUM_ARMS, ORDINARY)
    means[0] = SAFE
    if np.hypot(*x) > DELTA:
        means[1 + 2 * (x[0] <= 0) + (x[1] <= 0)] = RICH
    return means


def init_layers(rng: np.random.Generator) -> Layers:
    layers: Layers = []
    for width, after in ((INPUTS, HIDDEN), (HIDDEN, HIDDEN), (HIDDEN, NUM_ARMS)):
        layers += [rng.uniform(-BOUND, BOUND, (width, after)), np.zeros(after)]
    return [layer.astype(np.float32) for layer in layers]


def features(layers: Layers, x: np.ndarray) -> np.ndarray:
    w1, b1, w2, b2, *_ = layers
    return np.maximum(np.maximum(x @ w1 + b1, 0) @ w2 + b2, 0)


def gradients(layers: Layers, x: np.ndarray, arms: np.ndarray, rewards: np.ndarray) -> Layers:
    """Of the mean squared error of the pulled arms' outputs."""
    w1, b1, w2, b2, w3, b3 = layers
    first = np.maximum(x @ w1 + b1, 0)
    second = np.maximum(first @ w2 + b2, 0)
    rows = np.arange(len(x))
    d3 = np.zeros((len(x), NUM_ARMS), np.float32)
    d3[rows, arms] = 2 / len(x) * ((second @ w3 + b3)[rows, arms] - rewards)
    d2 = d3 @ w3.T * (second > 0)
    d1 = d2 @ w2.T * (first > 0)
    return [x.T @ d1, d1.sum(0), first.T @ d2, d2.sum(0), second.T @ d3, d3.sum(0)]


def train(
    rng: np.random.Generator,
    layers: Layers,
    squares: Layers,
    x: np.ndarray,
    arms: np.ndarray,
    rewards: np.ndarray,
) -> None:
    """Minibatch steps of RMSprop, in place."""
    for step in range(TRAIN_STEPS):
        rows = rng.integers(len(x), size=BATCH)
        found = gradients(layers, x[rows], arms[rows], rewards[rows])
        norm = np.sqrt(sum(np.vdot(g, g) for g in found))
        shrink = min(1.0, CLIP / max(norm, 1e-30))
        rate = LEARNING_RATE / (1 + RATE_DECAY * step)
        for w, v, g in zip(layers, squares, found, strict=True):
            g *= shrink
            v *= RMS_DECAY
            v += (1 - RMS_DECAY) * g * g
            w -= rate * g / np.sqrt(v + RMS_EPSILON)


def prior() -> Posterior:
    return Posterior(
        np.zeros((NUM_ARMS, HIDDEN)),
        np.tile(np.eye(HIDDEN) / PRECISION, (NUM_ARMS, 1, 1)),
        np.full(NUM_ARMS, NOISE_SHAPE),
        np.full(NUM_ARMS, NOISE_SCALE),
    )


def rebuild(z: np.ndarray, arms: np.ndarray, rewards: np.ndarray) -> Posterior:
    """All posteriors from all data."""
    posterior = prior()
    for arm in range(NUM_ARMS):
        refit(posterior, arm, z[arms == arm], rewards[arms == arm])
    return posterior


def add(posterior: Posterior, arm: int, z: np.ndarray, reward: float) -> None:
    """One more reward of an arm, in place."""
    gain = posterior.covariance[arm] @ z
    width = 1 + z @ gain
    residual = reward - posterior.mean[arm] @ z
    posterior.mean[arm] += gain * residual / width
    posterior.covariance[arm] -= np.outer(gain, gain) / width
    posterior.shape[arm] += 1 / 2
    posterior.scale[arm] += residual**2 / width / 2


def choose(rng: np.random.Generator, posterior: Posterior, z: np.ndarray) -> int:
    """The arm whose sampled score is best."""
    spread = np.maximum(posterior.covariance @ z @ z, 1e-12)
    variance = posterior.scale / rng.gamma(posterior.shape)
    scores = posterior.mean @ z + np.sqrt(variance * spread) * rng.standard_normal(NUM_ARMS)
    return int(np.argmax(scores))


def choose_plainly(rng: np.random.Generator, posterior: Posterior, z: np.ndarray) -> int:
    """The same, by the coefficients of every arm."""
    scores = []
    for mean, covariance, shape, scale in zip(*posterior, strict=True):
        variance = scale / rng.gamma(shape)
        scores.append(z @ rng.multivariate_normal(mean, variance * covariance))
    return int(np.argmax(scores))


def refit(posterior: Posterior, arm: int, z: np.ndarray, rewards: np.ndarray) -> None:
    """The posterior of one arm from all of its data, in place."""
    z = z.astype(float)
    covariance = np.linalg.inv(PRECISION * np.eye(HIDDEN) + z.T @ z)
    mean = covariance @ (rewards @ z)
    residuals = rewards - z @ mean
    posterior.covariance[arm], posterior.mean[arm] = covariance, mean
    posterior.shape[arm] = NOISE_SHAPE + len(rewards) / 2
    posterior.scale[arm] = NOISE_SCALE + (residuals @ residuals + PRECISION * mean @ mean) / 2


def run(horizon: int, seed: int = 0, plain: bool = False) -> float:
    """Pulls in the Wheel; returns the regret."""
    rng = np.random.default_rng(seed)
    layers = init_layers(rng)
    squares = [np.ones_like(layer) for layer in layers]
    posterior = prior()
    contexts = np.empty((horizon, INPUTS), np.float32)
    arms, rewards = np.empty(horizon, np.intp), np.empty(horizon, np.float32)
    regret = 0.0
    for t in range(horizon):
        x = contexts[t] = observe(rng)
        z = features(layers, x)
        starting, choice = t < NUM_ARMS * INITIAL_PULLS, choose_plainly if plain else choose
        arm = t % NUM_ARMS if starting else choice(rng, posterior, z)
        means = wheel_means(x)
        arms[t], rewards[t] = arm, means[arm] + DEVIATION * rng.standard_normal()
        regret += means.max() - means[arm]
        if plain:
            own = arms[: t + 1] == arm
            refit(posterior, arm, features(layers, contexts[: t + 1][own]), rewards[: t + 1][own])
        else:
            add(posterior, arm, z, rewards[t])
        if (t + 1) % TRAIN_EVERY == 0:
            seen = contexts[: t + 1], arms[: t + 1], rewards[: t + 1]
            train(rng, layers, squares, *seen)
            posterior = rebuild(features(layers, seen[0]), *seen[1:])
    return float(regret)
