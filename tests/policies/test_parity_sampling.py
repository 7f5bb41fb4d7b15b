"""Thompson's relatives and the Exp3 family against transcriptions of their pseudocode."""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import special

from driftbandits import BanditSpec, InputError, Observation, build_policy
from driftbandits.numerics.bernoulli_thompson import sample_log_odds
from tests.numerics.test_best_arm import truth
from tests.policies.playing import (
    HORIZON,
    KEY,
    NO_CONTEXT,
    NOISE,
    STEPS,
    Array,
    Problem,
    assert_best,
    assert_probabilities,
    close_arms,
    coins,
    compiled,
    decide_again,
    drawn,
    gaussian,
    key_of,
    masks_for,
    normals,
    play,
    probabilities_of,
)
from tests.policies.transcriptions import sampling as paper

UNIT = 0.0, 1.0
ALL = np.ones(5, bool)
LOOKED_AT = range(50, STEPS, 290)  # steps at which probabilities are compared: their truth is slow


def turning_coins(rng: np.random.Generator) -> Array:
    """The best arm becomes the worst one in the middle."""
    means = np.linspace(0.1, 0.9, 5) * np.ones((STEPS, 1))
    means[STEPS // 2 :] = means[0, ::-1]
    return (rng.random((STEPS, 5)) < means).astype(np.float32)


def sampled_odds(key: Any, wins: Any, losses: Any) -> Any:
    return sample_log_odds(jax.random.split(key)[0], 1.0 + wins, 1.0 + losses)


class Beta(NamedTuple):
    """By SciPy's functions: its own frozen distributions take twice as long."""

    a: float
    b: float

    def ppf(self, levels: Array) -> Array:
        return special.betaincinv(self.a, self.b, levels)

    def cdf(self, x: Array) -> Array:
        return special.betainc(self.a, self.b, x)


class Normal(NamedTuple):
    mean: float
    deviation: float

    def ppf(self, levels: Array) -> Array:
        return self.mean + self.deviation * special.ndtri(levels)

    def cdf(self, x: Array) -> Array:
        return special.ndtr((x - self.mean) / self.deviation)


def best_of_these(posteriors: list[Beta] | list[Normal], available: Array) -> Array:
    """The probability of each that it is the best of those available."""
    probabilities = np.zeros(5)
    probabilities[available] = truth([posteriors[k] for k in np.flatnonzero(available)])
    return probabilities


COINS = {
    "discounted_thompson": paper.DiscountedThompson,
    "discounted_thompson(discount=0.95)": partial(paper.DiscountedThompson, discount=0.95),
    "sw_thompson": partial(paper.SwThompson, window=494),  # 4 sqrt(2000 ln 2000) = 493.2
    "sw_thompson(window=30)": partial(paper.SwThompson, window=30),
}
BEYOND = -1.0, 1.2  # some rewards are
COIN_CASES = [(turning_coins, UNIT, True), (close_arms, BEYOND, False)]


@pytest.mark.parametrize(("problem", "reward_range", "masked"), COIN_CASES)
@pytest.mark.parametrize("name", COINS)
def test_coins(
    name: str, problem: Problem, reward_range: tuple[float, float], masked: bool
) -> None:
    rng = np.random.default_rng(2)
    rewards = problem(rng)
    masks = masks_for(rng, 5, masked)
    spec = BanditSpec(5, 0, HORIZON, reward_range)
    game = play(name, spec, rewards, masks, probabilities=False)
    twin, counts = COINS[name](5, reward_range), []
    for t, arm, reward in game.pulls():
        counts.append(twin.counts())
        twin.update(arm, reward, float(game.decisions.ticket.toss.level[t]))
    wins, losses = np.array(counts).swapaxes(0, 1)
    np.testing.assert_allclose(game.states.wins, wins, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(game.states.losses, losses, rtol=1e-4, atol=1e-6)
    assert_best(game, drawn(sampled_odds, wins, losses), masks, within=1e-3)
    for t in LOOKED_AT:
        posteriors = [Beta(1 + a, 1 + b) for a, b in zip(wins[t], losses[t], strict=True)]
        expected = best_of_these(posteriors, masks[t])
        decision = decide_again(name, spec, game, t, masks[t])
        np.testing.assert_allclose(decision.probabilities, expected, atol=1e-4)


@pytest.mark.parametrize(
    "name", ["discounted_thompson(discount=1)", f"sw_thompson(window={HORIZON})"]
)
def test_what_never_forgets_is_thompson(name: str) -> None:
    rng = np.random.default_rng(3)
    rewards, masks = coins(rng), masks_for(rng, 5, masked=True)
    spec = BanditSpec(5, 0, HORIZON)
    mine, theirs = (
        play(n, spec, rewards[:500], masks, probabilities=False) for n in (name, "thompson")
    )
    assert mine.arms.tolist() == theirs.arms.tolist()


def large_rewards(rng: np.random.Generator) -> Array:
    return 40 + 20 * gaussian(rng, np.linspace(0.0, 0.3, 5))


GAUSSIAN_CASES = [
    ("gaussian_thompson", close_arms, UNIT, (0.5, 1.0, NOISE), True),
    ("gaussian_thompson(discount=0.98)", close_arms, UNIT, (0.5, 1.0, NOISE, 0.98), False),
    ("gaussian_thompson(noise=10)", large_rewards, (0.0, 100.0), (50.0, 100.0, 10.0), False),
    (
        "gaussian_thompson(noise=10, prior_mean=45, prior_deviation=2, discount=0.99)",
        large_rewards,
        (0.0, 100.0),
        (45.0, 2.0, 10.0, 0.99),
        True,
    ),
]


@pytest.mark.parametrize(("name", "problem", "reward_range", "settings", "masked"), GAUSSIAN_CASES)
def test_gaussian_thompson(
    name: str,
    problem: Problem,
    reward_range: tuple[float, float],
    settings: tuple[float, ...],
    masked: bool,
) -> None:
    rng = np.random.default_rng(4)
    rewards = problem(rng)
    masks = masks_for(rng, 5, masked)
    spec = BanditSpec(5, 0, HORIZON, reward_range, NOISE)
    game = play(name, spec, rewards, masks, probabilities=False)
    twin, posteriors = paper.GaussianThompson(5, *settings), []
    for _, arm, reward in game.pulls():
        posteriors.append(twin.posterior())
        twin.update(arm, reward)
    means, deviations = np.array(posteriors).swapaxes(0, 1)
    close = 1e-4 * (reward_range[1] - reward_range[0])
    assert_best(game, means + deviations * normals(5).astype(float), masks, within=close)
    for t in LOOKED_AT:
        arms = [Normal(*pair) for pair in zip(means[t], deviations[t], strict=True)]
        expected = best_of_these(arms, masks[t])
        decision = decide_again(name, spec, game, t, masks[t])
        np.testing.assert_allclose(decision.probabilities, expected, atol=5e-4)


def test_gaussian_posterior_widens_back_to_the_prior() -> None:
    """An arm that sleeps is forgotten; one pull later the others are still known."""
    rewards = np.full((STEPS, 5), 0.9, np.float32)
    masks = np.ones((STEPS, 5), bool)
    masks[300:, 0] = False
    name, spec = "gaussian_thompson(discount=0.97)", BanditSpec(5, 0, HORIZON, noise=0.1)
    last = play(name, spec, rewards, masks, probabilities=False).state(-1)
    assert last.weights[0] < 1e-10 < 1 < last.weights[1:].max()
    _, act, _ = compiled(name, spec)
    decision, _ = act(KEY, last, Observation(NO_CONTEXT, ALL))
    assert 0.2 < decision.probabilities[0] < 0.5  # P(N(0.5, 1) > 0.9) = 0.34


EXP3 = {
    "exp3": paper.Exp3,
    "exp3(gamma=0.3)": partial(paper.Exp3, gamma=0.3),
    "exp3_s": paper.Exp3S,
    "exp3_s(segments=3)": partial(paper.Exp3S, segments=3),
    "exp3_s(gamma=0.3, alpha=0.002)": partial(paper.Exp3S, gamma=0.3, alpha=0.002),
    "rexp3": paper.Rexp3,
    "rexp3(variation=10)": partial(paper.Rexp3, variation=10.0),
    "rexp3(batch=400)": partial(paper.Rexp3, batch=400),
}


@pytest.mark.parametrize(("problem", "reward_range", "masked"), COIN_CASES)
@pytest.mark.parametrize("name", EXP3)
def test_exp3(name: str, problem: Problem, reward_range: tuple[float, float], masked: bool) -> None:
    rng = np.random.default_rng(5)
    rewards = problem(rng)
    masks = masks_for(rng, 5, masked)
    game = play(name, BanditSpec(5, 0, HORIZON, reward_range), rewards, masks)
    twin = EXP3[name](5, reward_range, HORIZON)
    assert_probabilities(game, probabilities_of(twin, game, masks), within=1e-4)


def test_exp3_s_changes_its_mind_and_exp3_hardly_does() -> None:
    """So the comparisons above have seen weights fall and rise."""
    rng = np.random.default_rng(5)
    rewards, masks = turning_coins(rng), np.ones((STEPS, 5), bool)
    probabilities = {}
    for name in ("exp3(gamma=0.3)", "exp3_s(gamma=0.3, alpha=0.002)"):
        game = play(name, BanditSpec(5, 0, HORIZON), rewards, masks)
        probabilities[name] = game.decisions.probabilities[[STEPS // 2 - 1, -1]]
        assert probabilities[name][0].argmax() == 4
    assert probabilities["exp3_s(gamma=0.3, alpha=0.002)"][1].argmax() == 0
    assert (
        probabilities["exp3(gamma=0.3)"][1][0]
        < probabilities["exp3_s(gamma=0.3, alpha=0.002)"][1][0]
    )


@pytest.mark.parametrize("name", ["exp3(gamma=0.3)", "exp3_s(gamma=0.3)"])
def test_weights_never_overflow(name: str) -> None:
    """The weights themselves would reach exp(20,000)."""
    policy = build_policy(name, BanditSpec(5, 0, 300_000))

    def pull(t: Any, state: Any) -> Any:
        decision, state = policy.act(
            jax.random.fold_in(KEY, t), state, Observation(NO_CONTEXT, ALL)
        )
        return policy.learn(state, decision.ticket, jnp.where(decision.arm == 2, 1.0, 0.0))

    @jax.jit
    def last_probabilities() -> Any:
        state = jax.lax.fori_loop(0, 300_000, pull, policy.init(KEY))
        return policy.act(KEY, state, Observation(NO_CONTEXT, ALL))[0].probabilities

    np.testing.assert_allclose(last_probabilities(), [0.06, 0.06, 0.76, 0.06, 0.06], atol=1e-3)


def decided(name: str, steps: int) -> tuple[Any, list[Any], Any]:
    """Decisions whose rewards have not come yet."""
    init, act, learn = compiled(name, BanditSpec(5, 0, HORIZON))
    state, tickets = init(KEY), []
    for t in range(steps):
        decision, state = act(key_of(t), state, Observation(NO_CONTEXT, ALL))
        tickets.append(decision.ticket)
    return state, tickets, learn


def pulled_once(ticket: Any, weight: float) -> Array:
    return weight * (np.arange(5) == int(ticket.arm))


def test_late_rewards_weigh_what_is_left_of_them() -> None:
    state, tickets, learn = decided("discounted_thompson(discount=0.9)", 30)
    order = np.random.default_rng(0).permutation(30)
    for t in order[:20]:  # the others get lost
        state = learn(state, tickets[t], np.float32(1))
    expected = sum(pulled_once(tickets[t].toss, 0.9 ** (29 - t)) for t in order[:20])
    np.testing.assert_allclose(state.wins, expected, rtol=1e-4)
    assert not state.losses.any()


def test_late_gaussian_rewards_weigh_what_is_left_of_them() -> None:
    state, tickets, learn = decided("gaussian_thompson(discount=0.9)", 30)
    order = np.random.default_rng(0).permutation(30)
    weights, sums = np.zeros(5), np.zeros(5)
    for t in order[:20]:
        state = learn(state, tickets[t], np.float32(t))
        weights += pulled_once(tickets[t], 0.9 ** (29 - t))
        sums += pulled_once(tickets[t], 0.9 ** (29 - t) * t)
    np.testing.assert_allclose(state.weights, weights, rtol=1e-4)
    np.testing.assert_allclose(state.weights * state.means, sums, rtol=1e-4)


def test_rewards_that_come_after_the_window_do_not_count() -> None:
    state, tickets, learn = decided("sw_thompson(window=20)", 30)
    for t in [29, 9, 10, 3, 25]:
        state = learn(state, tickets[t], np.float32(1))
    expected = sum(pulled_once(tickets[t].toss, 1) for t in (29, 10, 25))
    np.testing.assert_array_equal(state.wins, expected)
    _, act, _ = compiled("sw_thompson(window=20)", BanditSpec(5, 0, HORIZON))
    for _ in range(40):
        _, state = act(KEY, state, Observation(NO_CONTEXT, ALL))
    assert not np.any([state.wins, state.losses]), "none is left, and none was taken off twice"


def test_rewards_that_come_after_the_batch_do_not_count() -> None:
    state, tickets, learn = decided("rexp3(batch=20)", 30)
    old = learn(state, tickets[19], np.float32(1))
    np.testing.assert_array_equal(old.log_weights, 0)
    new = learn(state, tickets[20], np.float32(1))
    assert np.asarray(new.log_weights).argmax() == tickets[20].pull.arm
    assert np.ptp(new.log_weights) > 0


def test_late_rewards_are_divided_by_the_probability_at_the_time() -> None:
    """Three rewards of pulls that were drawn uniformly, whatever the weights are by now."""
    state, tickets, learn = decided("exp3(gamma=0.5)", 3)
    for ticket in tickets:
        state = learn(state, ticket, np.float32(1))
    gains = sum(pulled_once(ticket, 0.5 / 5 / 0.2) for ticket in tickets)
    np.testing.assert_allclose(state.log_weights, gains - gains.max(), atol=1e-6)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("discounted_thompson(discount=0)", r"discount must be a number in \(0, 1\], got 0"),
        ("discounted_thompson(discount=1.1)", r"discount must be a number in \(0, 1\], got 1.1"),
        ("sw_thompson(window=0)", "window must be a whole number of at least 1, got 0"),
        ("sw_thompson(window=9.5)", "window must be a whole number of at least 1, got 9.5"),
        ("gaussian_thompson(discount='x')", r"discount must be a number in \(0, 1\], got 'x'"),
        ("gaussian_thompson(prior_mean='x')", "prior_mean must be a number, got 'x'"),
        ("gaussian_thompson(prior_deviation=0)", "prior_deviation must be a positive number"),
        ("gaussian_thompson(noise=-1)", "noise must be a number of at least 0, got -1"),
        ("exp3(gamma=0)", r"gamma must be a number in \(0, 1\], got 0"),
        ("exp3_s(gamma=2)", r"gamma must be a number in \(0, 1\], got 2"),
        ("exp3_s(alpha=-1)", "alpha must be a number of at least 0, got -1"),
        ("exp3_s(segments=0)", "segments must be a whole number of at least 1, got 0"),
        ("rexp3(variation=0)", "variation must be a positive number, got 0"),
        ("rexp3(batch=0)", "batch must be a whole number of at least 1, got 0"),
        ("rexp3(gamma=-1)", r"gamma must be a number in \(0, 1\], got -1"),
    ],
)
def test_bad_settings_are_refused(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        build_policy(text, BanditSpec(3, horizon=100))


@pytest.mark.parametrize(
    "spec",
    [
        BanditSpec(1, horizon=1),
        BanditSpec(3),
        BanditSpec(2, horizon=2, reward_range=(-5.0, 50.0), noise=0.0),
    ],
)
@pytest.mark.parametrize(
    "name",
    ["discounted_thompson", "sw_thompson", "gaussian_thompson", "exp3", "exp3_s", "rexp3"],
)
def test_defaults_fit_any_problem(name: str, spec: BanditSpec) -> None:
    everything = np.ones((3, spec.num_arms), np.float32)
    game = play(name, spec, np.float32([[50], [-5], [60]]) * everything, everything > 0)
    np.testing.assert_allclose(game.decisions.probabilities.sum(axis=1), 1, rtol=1e-6)
