"""NeuralTS: draws each score around a network's prediction, as wide as its gradient says.

    x = (context, 1);  f_k = v' relu(W_k x);  g_k = gradient of f_k in all weights
    arm = argmax of draws from N(f_k, sigma_k^2);  sigma_k^2 = lambda * variance * sum g_k^2 / U
    U = lambda at first, then U + g_arm^2 after every pull

Every arm has its own first-layer weights W_k, and all share the last layer v. This is the paper's
input with the context in the arm's block and zeros elsewhere. Without a context x is the constant
1. Where arms have features, all arms share one network of them, from which each arm deviates:

    f_k = v' relu(S z_k + sqrt(deviation) W_k x);  z_k = (1, features_k) x (context, 1)

z_k has all products, as in the linear policies. W_k is then zero at first: a new arm is judged by
its features, and its score is wider for what they may not say.

Cost with features, with s = (1 + arm_dim)(1 + context_dim) and d = 1 + context_dim: a decision
takes in the order of num_arms hidden (s + d) operations and as many numbers of memory, where it is
num_arms hidden d without them. A training takes train_steps batch hidden (s + num_arms d)
operations, and the memory of rewards has memory s numbers.

Paper: Zhang, Zhou, Li & Gu (2021), "Neural Thompson sampling".

Differences from the paper: U is diagonal, as in the authors' code. The network continues from its
current weights, by Adam, every `train_every` rewards, and learns from the last `memory` of them, so
the cost of a step is bounded; the paper trains at every step, from the initial weights and on all
rewards. The loss is the mean squared error with a weight decay of lambda / (rewards in memory),
towards zero and not towards the initial weights. The network has no biases, since its input has a
constant, no factor sqrt(hidden), and PyTorch's initial weights. Rewards are scaled by the reward
range. U counts a pull when it is made, not when its reward arrives.

Use it when the reward is a nonlinear function of the context, and rewards arrive late or in
batches: unlike `neural_ucb` it does not repeat one arm until they do. Not when rewards drift within
`memory` rewards: the network forgets by then, but U never does, so nothing is explored again.
"""

import jax

from driftbandits.core import BanditSpec, Decision, Key, Observation, Policy
from driftbandits.numerics.neural_confidence import ConfidenceState, confidence_learner
from driftbandits.numerics.scores import best_score


def neural_ts(
    spec: BanditSpec,
    *,
    hidden: int = 100,
    precision: float = 0.001,
    variance: float = 1.0,
    memory: int = 2000,
    train_every: int = 20,
    train_steps: int = 20,
    batch: int = 64,
    learning_rate: float = 0.01,
    deviation: float | None = 0.1,
) -> Policy:
    """Thompson sampling with a network's gradient; its exploration ends for good.

    Args:
        hidden: Units of the network's hidden layer.
        precision: lambda, the initial value of U; also the weight decay.
        variance: Scales the squared deviation of a score.
        memory: Number of the last rewards that the network is trained on.
        train_every: Rewards between two trainings.
        train_steps: Minibatch steps of one training.
        batch: Rewards in a minibatch, drawn with replacement.
        learning_rate: Learning rate of Adam.
        deviation: Prior variance of an arm's own weights, in units of that of the weights that all
            arms share, where arms have features. 0 means that arms with the same features are the
            same; None ignores the features.
    """
    learner = confidence_learner(
        spec,
        hidden=hidden,
        precision=precision,
        variance=variance,
        memory=memory,
        train_every=train_every,
        train_steps=train_steps,
        batch=batch,
        learning_rate=learning_rate,
        deviation=deviation,
    )

    def act(
        key: Key, state: ConfidenceState, observation: Observation
    ) -> tuple[Decision, ConfidenceState]:
        score_key, train_key = jax.random.split(key)
        found = learner.predict(state, observation)
        arm, probabilities = best_score(
            score_key, found.mean, found.deviation, observation.available
        )
        ticket, state = learner.pull(state, found, arm, train_key)
        return Decision(arm, probabilities, ticket), state

    return Policy(learner.init, act, learner.learn, forget=learner.forget)
