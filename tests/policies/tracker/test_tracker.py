"""What the tracker does, whatever its pseudocode says."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import chisquare

from driftbandits import BanditSpec, InputError, Observation, build_policy
from tests.policies import playing
from tests.policies.playing import KEY, NO_CONTEXT, compiled, key_of

FREE = BanditSpec(4)


@partial(jax.jit, static_argnums=(0, 1))
def played(name, spec, key, rewards, contexts, masks):
    """The last state, and every step's probabilities, arm and whether it was a first pull."""
    policy = build_policy(name, spec)

    def step(state, at):
        t, reward, context, available = at
        decision, state = policy.act(
            jax.random.fold_in(key, t), state, Observation(context, available)
        )
        state = policy.learn(state, decision.ticket, reward[decision.arm])
        return state, (decision.probabilities, decision.arm, decision.ticket.first_pull)

    steps = jnp.arange(len(rewards)), rewards, contexts, masks
    return jax.lax.scan(step, policy.init(key), steps)


def play(name, spec, rewards, contexts=None, masks=None, key=KEY):
    steps = len(rewards)
    contexts = np.zeros((steps, spec.context_dim)) if contexts is None else contexts
    masks = np.ones((steps, spec.num_arms), bool) if masks is None else masks
    rewards, contexts = (np.asarray(x, np.float32) for x in (rewards, contexts))
    state, decisions = played(name, spec, key, rewards, contexts, masks)
    return state, *(np.asarray(x) for x in decisions)


def noisy(rng, steps=400, num_arms=4):
    return np.linspace(0, 1, num_arms) + 0.5 * rng.standard_normal((steps, num_arms))


def some(rng, steps, num_arms):
    masks = rng.random((steps, num_arms)) < 0.6
    masks[np.arange(steps), rng.integers(num_arms, size=steps)] = True
    return masks


@pytest.mark.parametrize("dim", [0, 3])
@pytest.mark.parametrize("masked", [False, True])
def test_every_available_arm_has_a_chance(dim, masked):
    rng = np.random.default_rng(1)
    spec = FREE._replace(context_dim=dim)
    masks = some(rng, 400, 4) if masked else np.ones((400, 4), bool)
    contexts = rng.standard_normal((400, dim))
    _, probabilities, _, first = play("tracker", spec, noisy(rng), contexts, masks)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1, atol=1e-5)
    assert (probabilities[~masks] == 0).all()
    assert (probabilities[masks & ~first[:, None]] > 0).all()
    assert first.sum() < 100


@pytest.mark.parametrize("dim", [0, 3])
def test_arms_come_as_often_as_their_probabilities_say(dim):
    rng = np.random.default_rng(2)
    spec = FREE._replace(context_dim=dim)
    contexts = rng.standard_normal((400, dim)).astype(np.float32)
    state, *_ = play("tracker", spec, noisy(rng), contexts)
    keys = jax.random.split(KEY, 20_000)
    act = build_policy("tracker(randomness=10)", spec).act
    decide = jax.vmap(lambda key: act(key, state, Observation(contexts[0], np.ones(4, bool)))[0])
    decisions = jax.jit(decide)(keys)
    probabilities = np.asarray(decisions.probabilities, float)[0]
    counts = np.bincount(decisions.arm, minlength=4)
    assert probabilities.min() > 1e-3
    assert chisquare(counts, probabilities / probabilities.sum() * len(keys)).pvalue > 1e-4


def test_without_randomness_one_arm_has_a_chance_or_two():
    """Two where a coin decides about an effect of the streak."""
    rng = np.random.default_rng(3)
    plain = play("tracker(randomness=0, effect=0, history=0)", FREE, noisy(rng))
    probabilities = plain[1][~plain[3]]
    np.testing.assert_array_equal(
        np.sort(probabilities, axis=1), np.tile([0, 0, 0, 1], (len(probabilities), 1))
    )
    coin = play("tracker(randomness=0, effect=0.3, history=0)", FREE, noisy(rng))
    probabilities = coin[1][~coin[3]]
    assert ((probabilities > 0).sum(axis=1) <= 2).all()
    assert ((probabilities > 0).sum(axis=1) == 2).any()


@pytest.mark.parametrize("dim", [0, 3])
def test_neither_scale_nor_origin_of_the_rewards_matters(dim):
    """Small steps of the rewards, which float32 holds exactly, here and there."""
    rng = np.random.default_rng(4)
    spec = FREE._replace(context_dim=dim)
    contexts = rng.standard_normal((400, dim))
    rewards = np.round(noisy(rng) * 64) / 64
    _, probabilities, arms, _ = play("tracker", spec, rewards, contexts)
    _, others, same, _ = play("tracker", spec, 1000 + 1000 * rewards, contexts)
    np.testing.assert_array_equal(arms, same)
    np.testing.assert_allclose(probabilities, others, atol=5e-3)


def test_an_arm_that_wakes_up_late():
    """It starts from the mean of all rewards, with the prior, and is pulled first."""
    rng = np.random.default_rng(5)
    rewards, masks = (7 + noisy(rng)).astype(np.float32), np.ones((400, 4), bool)
    masks[:300, 1] = False
    game = playing.play("tracker(first_pulls=3)", FREE, rewards, masks)
    state, first = game.state(300), game.decisions.ticket.first_pull
    mean = game.rewards[:300].astype(float).mean() - float(state.seen.first)
    track = state.tracks[0]
    np.testing.assert_allclose(track.bank.mean[:, 1, 0], mean, rtol=1e-4)
    np.testing.assert_allclose(track.bank.covariance[:, 1, 0, 0], 1.5, rtol=1e-3)
    assert game.arms[300:303].tolist() == [1, 1, 1]
    assert first[300:303].all()
    assert not first[303:].any()
    np.testing.assert_array_equal(game.decisions.probabilities[300:303], np.eye(4)[[1, 1, 1]])


def level(state, arm):
    bank = state.tracks[0].bank
    mean, covariance = np.asarray(bank.mean), np.asarray(bank.covariance)
    return float(mean[0, arm, 0]), float(covariance[0, arm, 0, 0])


@pytest.mark.parametrize("others", [False, True])
@pytest.mark.parametrize("age", [1, 7, 40])
def test_a_late_reward_is_learned_as_by_a_smoother(age, others):
    """A level that walks: with P at the pull, P / (P + 1) of the error is learned.

    Until then the other arm is pulled, and its rewards come late too, or at once and let the drift
    in. The prior is so wide that it does not hold the drift back.
    """
    q = 0.02
    init, act, learn = compiled(
        f"tracker(drifts=[{q}], share=0, prior=1e4, effect=0)", BanditSpec(2)
    )
    state, only = init(KEY), np.eye(2, dtype=bool)
    for reward in (3.0, 4.0, 2.5, 3.5):
        for arm in (0, 1):
            decision, state = act(KEY, state, Observation(NO_CONTEXT, only[arm]))
            state = learn(state, decision.ticket, np.float32(reward))
    mean, then = level(state, 0)
    pulled, state = act(KEY, state, Observation(NO_CONTEXT, only[0]))
    for _ in range(age):
        decision, state = act(KEY, state, Observation(NO_CONTEXT, only[1]))
        if others:
            state = learn(state, decision.ticket, np.float32(3.0))
    state = learn(state, pulled.ticket, np.float32(5.0))
    gain = then / (then + 1)
    after, left = level(state, 0)
    assert after == pytest.approx(mean + gain * (5.0 - 3.0 - mean), rel=1e-3)  # above the first
    assert left == pytest.approx(then - gain * then + (age + 1) * q, rel=1e-3)


def least_eigenvalue(bank):
    """Of each covariance, in units of its largest; the least variance of filters without."""
    covariance = np.asarray(bank.covariance, float)
    if covariance.ndim == bank.mean.ndim:
        return covariance.min()
    largest = np.abs(covariance).max(axis=(-2, -1), keepdims=True)
    assert (np.abs(covariance - covariance.swapaxes(-1, -2)) < 1e-5 * largest).all()
    values = np.linalg.eigvalsh(covariance)
    return (values[..., 0] / values[..., -1]).min()


@pytest.mark.parametrize("dim", [0, 3])
def test_tickets_may_be_learned_late_and_in_any_order(dim):
    rng = np.random.default_rng(6)
    spec = FREE._replace(context_dim=dim)
    init, act, learn = compiled("tracker", spec)
    state, tickets = init(KEY), []
    for t in range(300):
        context = rng.standard_normal(dim).astype(np.float32)
        decision, state = act(key_of(t), state, Observation(context, np.ones(4, bool)))
        tickets.append(decision.ticket)
        while len(tickets) > 100 or (tickets and rng.random() < 0.5):
            ticket = tickets.pop(rng.integers(len(tickets)))
            state = learn(state, ticket, np.float32(ticket.arm + rng.standard_normal()))
    for ticket in tickets[::-1]:
        state = learn(state, ticket, np.float32(ticket.arm + rng.standard_normal()))
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(state))
    for track in state.tracks:
        assert least_eigenvalue(track.bank) > -1e-6
        assert float(track.experts.weights.sum()) == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize("scale", [1.0, 100.0])
def test_covariances_stay_what_they_are(scale):
    """In float32, with two collinear coordinates, one that is always 0 and one of scale 1e4."""
    rng = np.random.default_rng(7)
    steps, spec = 20_000, BanditSpec(3, 5)
    x = rng.standard_normal((steps, 5))
    x[:, 1], x[:, 2], x[:, 3] = 2 * x[:, 0], 0, 1e4 * x[:, 3]
    rewards = scale * (x[:, [0, 4, 4]] + noisy(rng, steps, 3))
    state, probabilities, _, _ = play("tracker", spec, rewards, x)
    assert np.isfinite(probabilities).all()
    for track in state.tracks:
        assert np.isfinite(track.bank.mean).all()
        assert least_eigenvalue(track.bank) > -1e-6


def test_without_an_effect_nothing_moves():
    """An arm pays nothing after three pulls in a row, and nobody looks."""
    rewards, masks = np.ones((200, 2), np.float32), np.ones((200, 2), bool)
    game = playing.play("tracker(effect=0)", BanditSpec(2), rewards, masks, limit=3)
    assert (game.rewards == 0).any()
    assert (game.decisions.ticket.effect.chance == 0).all()


def test_a_limit_on_streaks_is_found():
    """Four pulls in a row pay nothing: three, and then another arm."""
    init, act, learn = compiled("tracker", BanditSpec(2))
    rng = np.random.default_rng(8)
    state, streak, last, lengths = init(KEY), 0, None, []
    for t in range(400):
        decision, state = act(key_of(t), state, Observation(NO_CONTEXT, np.ones(2, bool)))
        arm = int(decision.arm)
        streak, last = (streak + 1 if arm == last else 1), arm
        reward = (0 if streak > 3 else 1 - 0.3 * (arm == 0)) + 0.1 * rng.standard_normal()
        state = learn(state, decision.ticket, np.float32(reward))
        lengths.append(streak)
    assert np.mean(np.array(lengths[200:]) <= 3) > 0.97


def test_coins_have_no_effect_of_streaks():
    rng = np.random.default_rng(9)
    rewards = (rng.random((150, 200, 2)) < [0.7, 0.3]).astype(np.float32)
    keys = jax.random.split(KEY, 150)
    play_all = jax.vmap(partial(played, "tracker", BanditSpec(2)), (0, 0, None, None))
    nothing, everything = np.zeros((200, 0), np.float32), np.ones((200, 2), bool)
    state, _ = play_all(keys, rewards, nothing, everything)
    evidence = np.asarray(state.streaks.evidence, float)[:, 1]
    chance = 1 / (1 + np.exp(-evidence) * 0.99 / 0.01)
    assert np.mean(chance < 0.5) >= 0.99


def test_variances_of_the_history_stay_positive():
    """Of units that are nearly the same, as one arm is pulled nearly always."""
    rng = np.random.default_rng(10)
    rewards = rng.random((20_000, 4)) < np.linspace(0.2, 0.8, 4)
    state, probabilities, *_ = play("tracker", FREE, rewards)
    variances = np.asarray(state.tracks[1].bank.covariance)
    assert variances.min() > 0
    assert variances.max() <= 1.5
    np.testing.assert_allclose(probabilities.sum(axis=1), 1, atol=1e-5)


def test_an_arm_that_changes_unseen_is_looked_at_again():
    """An arm that pays the same always, beside one that becomes better while nobody pulls it."""
    rewards = np.full((3000, 2), 0.5)
    rewards[:500, 1], rewards[500:, 1] = 0.0, 1.0
    pulled = {}
    for name in ("tracker", "tracker(hazard=0.01)"):
        arms = play(name, BanditSpec(2), rewards)[2]
        pulled[name] = np.mean(arms[-1000:] == 1)
    assert pulled["tracker"] < 0.1 < 0.9 < pulled["tracker(hazard=0.01)"]


@pytest.mark.parametrize(("dim", "full"), [(32, True), (33, False)])
def test_wide_contexts_have_variances_alone(dim, full):
    spec = FREE._replace(context_dim=dim)
    state = jax.eval_shape(build_policy("tracker", spec).init, KEY)
    for track in state.tracks:
        assert (track.bank.covariance.ndim == 4) == full


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ("drifts=[]", r"drifts must be a list of at least one number, got \[\]"),
        ("drifts=0.1", "drifts must be a list of at least one number, got 0.1"),
        ("drifts=[0, -0.1]", "drifts must be a number of at least 0, got -0.1"),
        ("randomness=-1", "randomness must be a number of at least 0, got -1"),
        ("first_pulls=0", "first_pulls must be a whole number of at least 1, got 0"),
        ("first_pulls=1.5", "first_pulls must be a whole number of at least 1, got 1.5"),
        ("share=1.5", r"share must be a probability in \[0, 1\], got 1.5"),
        ("effect=-0.1", r"effect must be a probability in \[0, 1\], got -0.1"),
        ("prior=0", "prior must be a positive number, got 0"),
        (
            "covariance='full '",
            "covariance must be one of full, diagonal, got 'full '; did you mean",
        ),
        ("hazard=2", r"hazard must be a probability in \[0, 1\], got 2"),
        ("slow_slopes=0.1", "slow_slopes must be a list of at least one number, got 0.1"),
        ("slow_slopes=[-1]", "slow_slopes must be a number of at least 0, got -1"),
        ("waves=-1", "waves must be a whole number of at least 0, got -1"),
    ],
)
def test_bad_settings_are_refused(settings, message):
    with pytest.raises(InputError, match=message):
        build_policy(f"tracker({settings})", FREE)
