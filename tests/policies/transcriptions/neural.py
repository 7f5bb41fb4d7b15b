"""Formulas of the neural policies in plain NumPy and float64, for given weights."""

import numpy as np


def exact(tree):
    """The same NamedTuple in float64."""
    return type(tree)(*(np.asarray(leaf, float) for leaf in tree))


def block(x, arm, num_arms):
    """Zhou, Li & Gu (2020), section 7: the context in the arm's place, zeros elsewhere."""
    long = np.zeros(num_arms * x.size)
    long[arm * x.size : (arm + 1) * x.size] = x
    return long


def dense(first):
    """The blocks of all arms as one first layer: (hidden, num_arms * inputs)."""
    return np.concatenate(list(first), axis=1)


def output_and_gradient(first, last, x):
    """f(x) = v' relu(W x), and its gradient in W and in v, as one vector."""
    before = first @ x
    after = np.maximum(before, 0)
    return last @ after, np.append(np.outer(last * (before > 0), x), after)


class NeuralBandit:
    """Zhou, Li & Gu (2020), algorithm 1, and Zhang et al. (2021), with a diagonal matrix U."""

    def __init__(self, num_arms, size, ridge, nu):
        self.num_arms, self.ridge, self.nu = num_arms, ridge, nu
        self.information = np.full(size, ridge)

    def confidence(self, weights, context):
        x = np.append(context, 1.0)
        first, last = dense(weights.first), weights.last
        found = [
            output_and_gradient(first, last, block(x, arm, self.num_arms))
            for arm in range(self.num_arms)
        ]
        self.gradients = np.stack([g for _, g in found])
        squares = self.ridge * self.nu * np.sum(self.gradients**2 / self.information, axis=1)
        return np.array([f for f, _ in found]), np.sqrt(squares)

    def pull(self, arm):
        self.information += self.gradients[arm] ** 2


def mean_gradient(first, last, inputs, targets, decay):
    """Of the mean squared error, with decay * weights: (hidden, inputs) and (hidden,)."""
    of_first, of_last = decay * first, decay * last
    for x, target in zip(inputs, targets, strict=True):
        f, g = output_and_gradient(first, last, x)
        step = 2 * (f - target) / len(targets) * g
        of_first = of_first + step[: first.size].reshape(first.shape)
        of_last = of_last + step[first.size :]
    return of_first, of_last


def adam(weights, gradient, mean, square, count, rate):
    """Kingma & Ba (2015), step `count` of algorithm 1, with its usual constants."""
    mean = 0.9 * mean + 0.1 * gradient
    square = 0.999 * square + 0.001 * gradient**2
    corrected = mean / (1 - 0.9**count), square / (1 - 0.999**count)
    return weights - rate * corrected[0] / (np.sqrt(corrected[1]) + 1e-8), mean, square


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def gru(leaves, x, h):
    """PyTorch's formulas; leaves are W_i, b_i, W_h, b_h with the gates r, z, n below each other."""
    w_ir, w_iz, w_in = np.split(leaves[0] @ x + leaves[1], 3)
    w_hr, w_hz, w_hn = np.split(leaves[2] @ h + leaves[3], 3)
    r, z = sigmoid(w_ir + w_hr), sigmoid(w_iz + w_hz)
    return (1 - z) * np.tanh(w_in + r * w_hn) + z * h


class RecurrentLinear:
    """Ramesh et al. (2022), one linear model per arm, of weights that drift as an AR(1) process.

    `leaves` are the network's weights in float64: those of the GRU, then output weights and bias.
    """

    def __init__(self, num_arms, context_dim, hidden, window, discount, prior, variance):
        self.window, self.discount, self.prior, self.variance = window, discount, prior, variance
        self.num_arms, self.dim = num_arms, hidden + context_dim + 1
        self.mean = np.zeros((num_arms, self.dim))
        self.cov = np.stack([prior * np.eye(self.dim)] * num_arms)
        self.inputs, self.hidden = [], [np.zeros(hidden)]  # of all steps
        self.last = np.zeros(num_arms + 1)

    def look(self, leaves, context):
        """Mean and deviation of every arm's score."""
        self.context = context
        self.inputs.append(np.append(context if context.size else 1.0, self.last))
        self.hidden.append(gru(leaves, self.inputs[-1], self.hidden[-1]))
        z = self.features(self.hidden[-1])
        return self.mean @ z, np.sqrt([z @ cov @ z for cov in self.cov])

    def features(self, h):
        return np.concatenate([h, self.context, [1.0]])

    def seen_again(self, leaves):
        """The present hidden state, by these weights throughout the window."""
        first = max(0, len(self.inputs) - self.window)
        h = self.hidden[first]
        for x in self.inputs[first:]:
            h = gru(leaves, x, h)
        return h

    def loss(self, leaves, arm, reward):
        output = leaves[4] @ self.seen_again(leaves) + leaves[5]
        return (output[arm] - reward) ** 2

    def update(self, leaves, arm, reward):
        z = self.features(self.seen_again(leaves))
        for k in range(self.num_arms):
            self.mean[k] *= np.sqrt(self.discount)
            fresh = (1 - self.discount) * self.prior * np.eye(self.dim)
            self.cov[k] = self.discount * self.cov[k] + fresh
        before = np.linalg.inv(self.cov[arm])
        self.cov[arm] = np.linalg.inv(before + np.outer(z, z) / self.variance)
        self.mean[arm] = self.cov[arm] @ (before @ self.mean[arm] + reward * z / self.variance)
        self.last = np.append(np.eye(self.num_arms)[arm], reward)


def numerical_gradient(function, leaves, step=1e-5):
    """By central differences, in every number of the leaves."""
    gradient = [np.zeros_like(leaf) for leaf in leaves]
    for leaf, slope in zip(leaves, gradient, strict=True):
        for i in np.ndindex(leaf.shape):
            middle = leaf[i]
            leaf[i] = middle + step
            above = function(leaves)
            leaf[i] = middle - step
            slope[i] = (above - function(leaves)) / (2 * step)
            leaf[i] = middle
    return gradient


def rmsprop(weights, gradient, square, rate):
    """PyTorch's, without momentum."""
    square = 0.99 * square + 0.01 * gradient**2
    return weights - rate * gradient / (np.sqrt(square) + 1e-8), square
