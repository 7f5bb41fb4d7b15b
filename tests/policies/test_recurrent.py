"""The Recurrent Bandit against PyTorch's numbers (references/make_recurrent.py), and its parts.

An array agrees with PyTorch's when no entry is off by more than 1e-5 of the largest entry of its
weight matrix or bias (or 1e-5 of itself): gradients and their squares are small, so an absolute
1e-5 would let wrong ones through.
"""

from functools import partial
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from scipy.special import softmax
from scipy.stats import kstest

from driftbandits import BanditSpec, Observation, Policy
from driftbandits.numerics.networks import affine, dropout_masks, gru

# the package's attribute of this name is the factory
module = import_module("driftbandits.policies.recurrent")

with np.load(Path(__file__).parent / "references" / "recurrent.npz") as file:
    NUMBERS = dict(file)
CASES = sorted({name.split("/")[0] for name in NUMBERS})
KEYS = jax.random.split(jax.random.key(0), 20)


@pytest.fixture(params=CASES)
def case(request):
    prefix = f"{request.param}/"
    return SimpleNamespace(
        **{n.removeprefix(prefix): x for n, x in NUMBERS.items() if n.startswith(prefix)}
    )


@pytest.fixture
def stored_masks(monkeypatch, case):
    """The masks that PyTorch used: what the policy draws with a step's key is that step's."""
    factors = (case.masks / np.float32(1 - case.dropout)).astype(np.float32)
    step_keys = jax.random.key_data(jax.vmap(jax.random.split)(KEYS)[:, 0])

    def masks_of(key, share, shape):
        found = jnp.all(step_keys == jax.random.key_data(key), axis=1)
        return jnp.tensordot(found.astype(jnp.float32), factors, 1)

    if case.dropout > 0:
        monkeypatch.setattr(module, "dropout_masks", masks_of)
    return factors


def network_of(case, vector):
    sizes = (case.inputs.shape[1], case.hidden.shape[2], 2, int(case.num_arms))
    shapes = jax.eval_shape(lambda key: module.init_network(key, *sizes), KEYS[0])
    leaves, structure = jax.tree.flatten(shapes)
    pieces = np.split(vector, np.cumsum([leaf.size for leaf in leaves])[:-1])
    return structure.unflatten(
        [piece.reshape(leaf.shape) for piece, leaf in zip(pieces, leaves, strict=True)]
    )


def assert_agree(actual, expected):
    for ours, theirs in zip(jax.tree.leaves(actual), jax.tree.leaves(expected), strict=True):
        limit = 1e-5 * np.abs(theirs).max()
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=limit)


def policy_of(case):
    return module.recurrent(
        BanditSpec(int(case.num_arms), int(case.context_dim)),
        hidden=case.hidden.shape[2],
        dropout=float(case.dropout),
        energy=float(case.energy),
        temperature=float(case.temperature),
    )


@jax.jit
@partial(jax.vmap, in_axes=(None, 0, 0, 0))
def by_hand(network, x, h, scales):
    first = gru(network.layers[0], x, h[0])
    second = gru(network.layers[1], first * scales[0], h[1])
    return affine(network.output, second * scales[1]), jnp.stack([first, second])


def test_gru_agrees_with_pytorch(case):
    scales = case.masks / np.float32(1 - case.dropout)
    ours = by_hand(network_of(case, case.initial), case.inputs, case.hidden, scales)
    assert_agree(ours, (case.logits, case.new_hidden))


def test_forward_loss_and_gradient_agree_with_pytorch(case, stored_masks):
    @jax.jit
    @partial(jax.value_and_grad, has_aux=True)
    def first_loss(network):
        logits, hidden = module.forward(network, case.inputs[0], case.hidden[0], stored_masks[0])
        loss = module.reinforce_loss(
            logits / case.temperature,
            jnp.ones(case.num_arms, bool),
            case.arms[0],
            case.rewards[0],
            float(case.energy),
        )
        return loss, (logits, hidden)

    (loss, outputs), gradient = first_loss(network_of(case, case.initial))
    assert_agree(outputs, (case.logits[0], case.new_hidden[0]))
    assert_agree(loss, case.loss[0])
    assert_agree(gradient, network_of(case, case.gradient[0]))


def run(case):
    """The policy's own act and learn, but for the arms, which are given."""
    policy = policy_of(case)

    def step(state, given):
        key, context, arm, reward = given
        available = jnp.ones(case.num_arms, bool)
        decision, state = policy.act(key, state, Observation(context, available))
        state = policy.learn(state, decision.ticket._replace(arm=arm), reward)
        squares = optax.tree.get(state.optimizer, "nu")
        return state, (state.network, squares, state.hidden, state.baseline)

    @jax.jit
    def steps(network, hidden, given):
        start = policy.init(KEYS[0])._replace(network=network, hidden=hidden)
        return jax.lax.scan(step, start, given)[1]

    contexts = case.inputs[:, : case.context_dim]
    given = (KEYS, contexts, case.arms, case.rewards)
    return steps(network_of(case, case.initial), case.hidden[0], given)


@pytest.mark.usefixtures("stored_masks")
def test_twenty_steps_agree_with_pytorch(case):
    networks, squares, hidden, baselines = run(case)
    for i, step in enumerate(case.steps):
        after = jax.tree.map(lambda x, s=step: np.asarray(x)[s - 1], (networks, squares))
        assert_agree(after[0], network_of(case, case.weights[i]))
        assert_agree(after[1], network_of(case, case.squares[i]))
    assert_agree(hidden, case.learned_hidden)
    assert_agree(baselines, np.cumsum(case.rewards) / np.arange(1, 21))


def small(**settings):
    """A policy for four arms and two inputs, a state with some weights, and a context."""
    init, act, learn, *_ = module.recurrent(BanditSpec(4, 2), layers=1, hidden=8, **settings)
    shapes = jax.eval_shape(init, KEYS[0])  # the state itself would take long to compile
    state = jax.tree.map(lambda leaf: np.zeros(leaf.shape, leaf.dtype), shapes)
    rng = np.random.default_rng(0)
    network = jax.tree.map(lambda w: rng.normal(0, 0.5, w.shape).astype(w.dtype), state.network)
    policy = Policy(init, jax.jit(act), jax.jit(learn))
    return policy, state._replace(network=network), np.array([0.4, -0.7], np.float32)


@pytest.mark.parametrize(
    ("spec", "expected"),
    [(BanditSpec(10), 150_666), (BanditSpec(5, 2), 150_405), (BanditSpec(2), 149_634)],
)
def test_number_of_parameters(spec, expected):
    network = jax.eval_shape(module.recurrent(spec).init, KEYS[0]).network
    assert sum(leaf.size for leaf in jax.tree.leaves(network)) == expected


def test_initial_weights_are_uniform_within_the_bound():
    policy = module.recurrent(BanditSpec(40, 30), hidden=64, layers=1)
    state = jax.jit(policy.init)(KEYS[0])
    assert not np.any(state.hidden)
    for leaf in jax.tree.leaves(state.network):
        share = np.ravel(leaf) * np.sqrt(64)
        assert np.all(np.abs(share) <= 1)
        assert kstest(share, "uniform", args=(-1, 2)).pvalue > 1e-3


LOGITS = np.array([0.3, -1.2, 2.0, 0.7, 5.0], np.float32)
AVAILABLE = np.array([True, True, True, True, False])
PROBABILITIES = np.append(softmax(LOGITS[:4]), 0)


def test_gradient_of_the_reinforce_term():
    gradient = jax.jit(jax.grad(partial(module.reinforce_loss, energy=0.0)))(
        LOGITS, AVAILABLE, 1, 0.7
    )
    np.testing.assert_allclose(gradient, 0.7 * (PROBABILITIES - np.eye(5)[1]), atol=1e-6)


def test_dropout_keeps_its_share_and_scales():
    factors = np.asarray(dropout_masks(KEYS[0], 0.8, (100_000,)))
    kept = factors != 0
    np.testing.assert_allclose(factors[kept], 1 / 0.8, rtol=1e-6)
    assert abs(kept.mean() - 0.8) < 0.005  # four standard errors


def test_act_and_learn_share_the_dropout_masks():
    policy, state, context = small(dropout=0.5, temperature=2.0)
    available = AVAILABLE[1:]
    decision, acted = policy.act(KEYS[1], state, Observation(context, available))
    inputs, hidden, kept, arm, _ = decision.ticket
    assert set(np.unique(kept)) == {0, 2}

    @jax.jit
    @partial(jax.grad, has_aux=True)
    def loss(network, kept):
        logits = module.forward(network, inputs, hidden, kept)[0] / 2
        return module.reinforce_loss(logits, available, arm, 0.8, 0.1), logits

    gradient, logits = loss(state.network, kept)
    probabilities = np.append(softmax(np.asarray(logits)[:3]), 0)
    np.testing.assert_allclose(decision.probabilities, probabilities, rtol=1e-5)
    assert not np.allclose(logits, loss(state.network, 2 - kept)[1])
    squares = optax.tree.get(policy.learn(acted, decision.ticket, 0.8).optimizer, "nu")
    assert_agree(squares, jax.tree.map(lambda g: 0.01 * np.square(np.asarray(g)), gradient))


def test_epsilon_takes_the_most_probable_arm_but_for_a_share():
    policy, state, context = small(dropout=0.0, epsilon=0.2)
    decision, _ = policy.act(KEYS[1], state, Observation(context, np.ones(4, bool)))
    logits, _ = jax.jit(module.forward)(state.network, context, state.hidden, np.ones((1, 8)))
    expected = 0.8 * np.eye(4)[np.argmax(logits)] + 0.2 / 4
    np.testing.assert_allclose(decision.probabilities, expected, rtol=1e-6)


def test_baseline_may_be_an_exponential_mean():
    policy, state, context = small(baseline_rate=0.5)
    ticket = module.RecurrentTicket(context, state.hidden, np.ones((1, 8)), 0, np.ones(4, bool))
    for reward, baseline in [(1.0, 0.5), (3.0, 1.75), (11.0, 6.375)]:
        state = policy.learn(state, ticket, reward)
        np.testing.assert_allclose(state.baseline, baseline, rtol=1e-6)


def test_history_reaches_the_network():
    policy, state, context = small(dropout=0.0, history=True)
    available = np.ones(4, bool)
    first, state = policy.act(KEYS[1], state, Observation(context, available))
    np.testing.assert_array_equal(first.ticket.inputs, np.float32([0.4, -0.7, 0, 0, 0, 0, 0]))
    state = policy.learn(state, first.ticket._replace(arm=2), 0.9)
    second, _ = policy.act(KEYS[1], state, Observation(context, available))
    np.testing.assert_array_equal(second.ticket.inputs, np.float32([0.4, -0.7, 0, 0, 1, 0, 0.9]))
    forgotten, _ = policy.act(
        KEYS[1], state._replace(last=np.zeros(5, np.float32)), Observation(context, available)
    )
    assert not np.allclose(second.probabilities, forgotten.probabilities, rtol=1e-3)
