"""NeuralUCB and NeuralTS on features of arms, in plain NumPy and float64, with their own training.

One dense network, whose input is long: (1, features) x (context, 1), then (context, 1) in the block
of the arm, scaled by how much arms may deviate.
"""

import numpy as np

from tests.policies.transcriptions.neural import adam, block, mean_gradient, output_and_gradient


class NeuralOnFeatures:
    """Zhou, Li & Gu (2020), algorithm 1, with a diagonal U and the last rewards in memory."""

    def __init__(self, spec, weights, *, ridge, nu, deviation, memory, rate):
        self.spec, self.ridge, self.nu, self.deviation = spec, ridge, nu, deviation
        self.size, self.rate = memory, rate
        blocks = np.zeros((len(weights.last), spec.num_arms * (spec.context_dim + 1)))
        self.layers = [np.append(weights.shared, blocks, axis=1).astype(float),
                       np.asarray(weights.last, float)]  # fmt: skip
        self.means = [np.zeros_like(layer) for layer in self.layers]
        self.squares = [np.zeros_like(layer) for layer in self.layers]
        self.information = [np.full_like(layer, ridge) for layer in self.layers]
        self.steps, self.past = 0, []

    def rows_of(self, context, arms):
        x, num_arms = np.append(context, 1.0), self.spec.num_arms
        shared = [np.outer(np.append(1.0, features), x).ravel() for features in arms]
        own = [block(np.sqrt(self.deviation) * x, arm, num_arms) for arm in range(num_arms)]
        return np.append(shared, own, axis=1)

    def own_columns(self, arm):
        x = self.spec.context_dim + 1
        first = (1 + self.spec.arm_dim) * x + arm * x
        return slice(first, first + x)

    def predict(self, rows):
        """Mean and deviation of every arm."""
        u = np.append(*[layer.ravel() for layer in self.information])
        found = [output_and_gradient(*self.layers, row) for row in rows]
        spread = [self.ridge * self.nu * np.sum(g**2 / u) for _, g in found]
        return np.array([f for f, _ in found]), np.sqrt(np.maximum(spread, 1e-12))

    def pull(self, row):
        _, gradient = output_and_gradient(*self.layers, row)
        first = self.layers[0].size
        self.information[0] += gradient[:first].reshape(self.layers[0].shape) ** 2
        self.information[1] += gradient[first:] ** 2

    def update(self, row, reward):
        low, high = self.spec.reward_range
        self.past.append([row, (reward - low) / (high - low)])

    def train(self, levels):
        """One step of Adam for each row of uniform numbers, which say what is in its minibatch."""
        count = min(len(self.past), self.size)
        ring = [None] * count
        for i in range(len(self.past) - count, len(self.past)):
            ring[i % self.size] = self.past[i]
        for level in levels:
            picked = [ring[i] for i in (level * np.float32(count)).astype(int)]
            inputs, targets = zip(*picked, strict=True)
            slopes = mean_gradient(*self.layers, inputs, targets, self.ridge / count)
            self.steps += 1
            for i, slope in enumerate(slopes):
                self.layers[i], self.means[i], self.squares[i] = adam(
                    self.layers[i], slope, self.means[i], self.squares[i], self.steps, self.rate
                )

    def replace(self, arm):
        """Another arm is in this place: nothing is its own, and what was seen is nobody's."""
        columns = self.own_columns(arm)
        for parts in (self.layers, self.means, self.squares):
            parts[0][:, columns] = 0.0
        self.information[0][:, columns] = self.ridge
        for seen in self.past:
            if seen[0][columns].any():
                seen[0] = seen[0].copy()
                seen[0][columns] = 0.0
