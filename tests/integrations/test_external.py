"""Policies of other libraries: the same worlds, the same kind of trace, the same table."""

import subprocess
import sys
from functools import partial
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest
from mabwiser.mab import MAB, LearningPolicy
from river import bandit, proba

from driftbandits import (
    MEASURES,
    Decision,
    InputError,
    Policy,
    Trace,
    build_environment,
    compare,
    compare_with,
    draw_curves,
    external_policy,
    simulate,
    simulate_external,
)
from driftbandits.extras import needs

COINS = "bernoulli(num_arms=4)"
TURNS = "bernoulli(num_arms=4, sleeping=[[0, 1, 1, 1], [1, 0, 1, 1], [1, 1, 0, 1], [1, 1, 1, 0]])"


class Replay:
    """Pulls given arms, run by run."""

    def __init__(self, arms: list[int]) -> None:
        self.arms = iter(arms)

    def pull(self, offered: list[int]) -> int:  # noqa: ARG002
        return next(self.arms)

    def update(self, arm: int, reward: float) -> None:
        pass


def replay(trace: Trace):
    arms = np.diff(trace.pulls, axis=1, prepend=0).argmax(axis=2).tolist()
    runs = iter(arms)
    return external_policy(lambda: Replay(next(runs)))


@pytest.mark.parametrize(
    ("environment", "every"),
    [
        ("sinusoidal", 10),
        ("rotating_wheel", 1),
        ("rotting", 1),
        ("bernoulli(max_consecutive=2)", 1),
        (TURNS, 1),
    ],
)
def test_replayed_arms_give_the_numbers_of_simulate(environment: str, every: int) -> None:
    size = {"horizon": 55, "runs": 3, "seed": 2}
    fine = simulate("ucb", environment, record_every=1, **size)
    expected = simulate("ucb", environment, record_every=every, **size)
    trace = simulate_external(replay(fine), environment, record_every=every, **size)
    for name, values in expected._asdict().items():
        assert getattr(trace, name).dtype == values.dtype
        np.testing.assert_allclose(getattr(trace, name), values, rtol=1e-6, atol=1e-5)
    np.testing.assert_array_equal(trace.pulls, expected.pulls)
    if trace.reward[0, -1] == int(trace.reward[0, -1]):  # coins
        np.testing.assert_array_equal(trace.reward, expected.reward)


class Leader:
    """The highest (successes + 1) / (pulls + 2), the first of equals."""

    def __init__(self) -> None:
        self.successes, self.pulls = [0.0] * 10, [0.0] * 10

    def pull(self, arms: list[int]) -> int:
        return max(arms, key=lambda arm: (self.successes[arm] + 1) / (self.pulls[arm] + 2))

    def update(self, arm: int, reward: float) -> None:
        self.successes[arm] += reward
        self.pulls[arm] += 1


def leader() -> Policy:
    """The same in JAX."""

    def act(key, state, observation):
        scores = jnp.where(observation.available, (state[0] + 1) / (state[1] + 2), -1)
        arm = jnp.argmax(scores).astype(jnp.int32)
        return Decision(arm, jnp.arange(10) == arm, arm), state

    def learn(state, arm, reward):
        return state.at[:, arm].add(jnp.stack([reward, 1.0]))

    return Policy(lambda _: jnp.zeros((2, 10)), act, learn)


@pytest.mark.parametrize("late", ["", "(delayed='geometric(mean=4, share=0.2)')", "(sleeping=0.5)"])
def test_the_same_policy_twice_pulls_the_same_arms(late: str) -> None:
    size = {"horizon": 80, "runs": 3, "record_every": 1}
    expected = simulate(leader(), f"bernoulli{late}", **size)
    trace = simulate_external(external_policy(Leader), f"bernoulli{late}", **size)
    np.testing.assert_array_equal(trace.pulls, expected.pulls)
    np.testing.assert_array_equal(trace.reward, expected.reward)


def test_mabwiser_waits_for_late_rewards() -> None:
    rule = LearningPolicy.UCB1(alpha=0.5)
    policy = external_policy(partial(MAB, list(range(4)), rule))
    trace = simulate_external(policy, "bernoulli(num_arms=4, delayed=10)", horizon=12)
    assert trace.pulls[0, 9].tolist() == [3, 3, 2, 2]  # in turn, as nothing is known yet


def test_ours_in_ours_is_simulate() -> None:
    size = {"horizon": 30, "runs": 2, "seed": 1}
    ours = simulate_external("ucb", "bernoulli", **size)
    np.testing.assert_array_equal(ours.regret, simulate("ucb", "bernoulli", **size).regret)


def final_regret(policy, environment, **size: int) -> float:
    trace = simulate_external(policy, environment, **size)
    return float(trace.regret[:, -1].mean())


def test_river_learns() -> None:
    size = {"horizon": 300, "runs": 5}
    chance = simulate("uniform", COINS, **size).regret[:, -1].mean()
    for make in (
        partial(bandit.UCB, delta=0.5),
        partial(bandit.ThompsonSampling, reward_obj=proba.Beta()),
        lambda: bandit.EpsilonGreedy(epsilon=0.1, decay=0, seed=1),
    ):
        assert final_regret(external_policy(make), COINS, **size) < chance / 2


def test_mabwiser_learns() -> None:
    size = {"horizon": 150, "runs": 3}
    chance = simulate("uniform", COINS, **size).regret[:, -1].mean()
    for rule in (
        LearningPolicy.ThompsonSampling(),
        LearningPolicy.UCB1(alpha=0.5),
    ):
        policy = external_policy(partial(MAB, list(range(4)), rule))
        assert final_regret(policy, COINS, **size) < chance / 2


def test_contextual_ones_see_the_context() -> None:
    size = {"horizon": 300, "runs": 1}
    rule = LearningPolicy.LinUCB(alpha=1.0)
    without_context = simulate("ucb", "wheel", **size).regret[0, -1]
    for policy in (
        external_policy(bandit.LinUCBDisjoint),
        external_policy(partial(MAB, list(range(5)), rule)),
    ):
        assert final_regret(policy, "wheel", **size) < 0.9 * without_context
        final_regret(policy, COINS.replace("4", "5"), horizon=10)  # sees the constant 1


def test_arms_that_sleep_are_not_offered() -> None:
    rule = LearningPolicy.UCB1(alpha=0.5)
    for policy in (
        external_policy(partial(bandit.UCB, delta=0.5)),
        external_policy(partial(MAB, list(range(4)), rule)),
    ):
        trace = simulate_external(policy, TURNS, horizon=100, runs=3)
        asleep = np.arange(100) % 4
        pulled = np.diff(trace.pulls, axis=1, prepend=0).argmax(axis=2)
        assert (pulled != asleep).all()
        chance = simulate("uniform", TURNS, horizon=100, runs=3)
        assert trace.regret[:, -1].mean() < chance.regret[:, -1].mean()


def test_an_arm_that_was_not_offered_is_refused_with_a_remedy() -> None:
    first = external_policy(object, pull=lambda *_: 0, update=lambda *_: None)
    with pytest.raises(InputError, match=r"of \[1, 2, 3\] \(a policy that knows no masks.*got 0"):
        simulate_external(first, TURNS, horizon=5)


@pytest.mark.parametrize("arm", [4, -1, 1.0, "1", None, True])
def test_what_is_no_arm_is_refused(arm: object) -> None:
    policy = external_policy(object, pull=lambda *_: arm, update=lambda *_: None)
    with pytest.raises(InputError, match="arm must be an available one"):
        simulate_external(policy, COINS, horizon=5)


def test_two_functions_play_any_object() -> None:
    """They are handed the offered arms, the context of the pull and its reward."""
    seen = []

    def pull(player, arms, context):
        return player["arms"][len(seen) % 2]

    def update(player, arm, reward, context):
        seen.append((arm, reward, context.copy()))

    policy = external_policy(lambda seed: {"arms": [0, 4], "seed": seed}, pull=pull, update=update)
    trace = simulate_external(policy, "wheel", horizon=6, record_every=1)
    assert [arm for arm, *_ in seen] == [0, 4] * 3
    np.testing.assert_allclose(np.cumsum([reward for _, reward, _ in seen]), trace.reward[0])
    assert len({tuple(context) for *_, context in seen}) == 6
    assert all(np.hypot(*context) <= 1 for *_, context in seen)


def test_every_run_has_a_seed_of_its_own_and_more_runs_keep_the_first() -> None:
    def seeds(runs: int, seed: int) -> list[int]:
        made = []
        policy = external_policy(
            lambda seed: made.append(seed), pull=lambda *_: 0, update=lambda *_: None
        )
        simulate_external(policy, "bernoulli", horizon=1, runs=runs, seed=seed)
        return made

    many = seeds(3, 0)
    assert len(set(many)) == 3
    assert seeds(2, 0) == many[:2]
    assert not set(seeds(3, 1)) & set(many)


def test_many_runs_go_in_blocks(monkeypatch) -> None:
    monkeypatch.setattr("driftbandits.integrations.external_simulation.WIDEST", 2)
    size = {"horizon": 12, "runs": 5, "record_every": 1}
    expected = simulate("ucb", "bernoulli", **size)
    calls: list[tuple[int, int]] = []
    trace = simulate_external(
        replay(expected), "bernoulli", progress=lambda *call: calls.append(call), **size
    )
    np.testing.assert_array_equal(trace.reward, expected.reward)
    assert calls == [(0, 36), (12, 36), (24, 36), (36, 36)]


@pytest.mark.parametrize(
    ("make", "settings", "message"),
    [
        (3, {}, "make must be a function that makes a policy"),
        (dict, {"pull": max}, "pull and update must be given both, or neither"),
    ],
)
def test_bad_external_policies_are_refused(make, settings, message: str) -> None:
    with pytest.raises(InputError, match=message):
        external_policy(make, **settings)


def test_an_object_of_no_known_shape_is_refused() -> None:
    with pytest.raises(InputError, match=r"the methods of river .* got 'dict'"):
        simulate_external(external_policy(dict), "bernoulli", horizon=5)


def test_arms_of_other_names_are_refused() -> None:
    rule = LearningPolicy.UCB1()
    policy = external_policy(partial(MAB, ["a", "b"], rule))
    with pytest.raises(InputError, match=r"arms of the policy must be the numbers of range\(10\)"):
        simulate_external(policy, "bernoulli", horizon=5)


@pytest.mark.parametrize("measure", MEASURES)
def test_external_policies_stand_in_the_table(measure: str, tmp_path: Path) -> None:
    size = {"horizon": 30, "runs": 2, "seed": 1}
    ours = compare(["ucb", "uniform"], "rotting", measure=measure, **size)
    copy = simulate("ucb", "rotting", record_every=1, **size)
    both = compare_with(ours, {"copy": replay(copy)})
    np.testing.assert_allclose(both.values["copy"], both.values["ucb"], rtol=1e-5, atol=1e-4)
    assert set(both.final()) == {"ucb", "uniform", "copy"}
    assert both.table.columns == ours.table.columns
    assert len(both.table) == 1.5 * len(ours.table)
    assert set(ours.values) == {"ucb", "uniform"}
    assert [line.policy_name for line in both.lines] == ["ucb", "uniform", "copy"]
    assert ">copy " in draw_curves(both, tmp_path / "both.svg").read_text().replace("<!-- ", ">")
    with pytest.raises(InputError, match="names that the results do not have yet, got 'ucb'"):
        compare_with(ours, {"ucb": replay(copy)})


def test_nothing_foreign_is_imported_before_it_is_used_and_a_lack_is_told() -> None:
    code = (
        "import sys, driftbandits\n"
        "driftbandits.external_policy, driftbandits.simulate_external, driftbandits.compare_with\n"
        "print({'gymnasium', 'river', 'mabwiser', 'pandas'} & set(sys.modules))\n"
        "sys.modules['gymnasium'] = None\n"
        "try: driftbandits.to_gymnasium\n"
        "except ImportError as error: print(error)"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    message = needs("driftbandits.to_gymnasium", "gymnasium")
    assert out.stdout.splitlines() == ["set()", message]


def test_features_of_arms_are_given_to_those_who_ask() -> None:
    seen: list[object] = []

    def pull(player, arms, context, features):
        seen.append(features.shape)
        return arms[0]

    def update(player, arm, reward, features):  # which is the context's name here
        seen.append(features.shape)

    policy = external_policy(lambda: None, pull=pull, update=update)
    simulate_external(policy, "shared_linear(num_arms=3, context_dim=2, arm_dim=5)", horizon=2)
    assert seen == [(3, 5), (2,)] * 2


def test_which_arm_is_where_is_told_to_those_who_ask() -> None:
    """Also with its reward, which may come late; large numbers stay as they are."""
    pulled, rewarded = [], []

    def pull(player, arms, context, arm_ids):
        pulled.append(arm_ids.tolist())
        return arms[0]

    def update(player, arm, reward, context, arm_ids):
        rewarded.append(arm_ids.tolist())

    many = 2**31 - 4
    articles = build_environment("articles(num_arms=2, life=2, delayed=1)")

    def observe(key, state):
        seen = articles.observe(key, state)
        return seen._replace(arm_ids=seen.arm_ids + many)

    policy = external_policy(lambda: None, pull=pull, update=update)
    simulate_external(policy, articles._replace(observe=observe), horizon=6)
    np.testing.assert_array_equal(pulled, many + np.add.outer(range(6), range(2)) // 3)
    assert rewarded == pulled[: len(rewarded)]
    assert len(rewarded) > 3
    pulled.clear()
    simulate_external(policy, "bernoulli(num_arms=3)", horizon=1)
    assert pulled == [[0, 0, 0]]
