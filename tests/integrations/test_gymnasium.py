"""Gymnasium: our environments pass its checks and are the worlds of `simulate`; and back again."""

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.utils.env_checker import check_env

from driftbandits import (
    InputError,
    Trace,
    build_environment,
    from_gymnasium,
    simulate,
    simulate_external,
    to_gymnasium,
)

TURNS = "bernoulli(num_arms=4, sleeping=[[0, 1, 1, 1], [1, 0, 1, 1], [1, 1, 0, 1], [1, 1, 1, 0]])"
WORLDS = ["sinusoidal", "rotating_wheel", "rotting", "bernoulli(num_arms=3, max_consecutive=2)"]


def arms_of(trace: Trace, run: int = 0) -> list[int]:
    pulls = np.diff(trace.pulls[run], axis=0, prepend=0)
    return pulls.argmax(axis=1).tolist()


def replayed(
    environment: str, trace: Trace, seed: int, run: int
) -> tuple[list[float], list[float]]:
    """Rewards and regrets of the arms that a simulated policy pulled."""
    env = to_gymnasium(environment)
    env.reset(seed=seed, options={"run": run})
    steps = [env.step(arm) for arm in arms_of(trace, run)]
    return [step[1] for step in steps], [step[4]["regret"] for step in steps]


@pytest.mark.parametrize("environment", WORLDS)
def test_it_passes_gymnasiums_own_check(environment: str) -> None:
    check_env(to_gymnasium(environment))  # warnings are errors


@pytest.mark.parametrize("environment", WORLDS)
def test_the_worlds_are_those_of_simulate(environment: str) -> None:
    trace = simulate("ucb", environment, horizon=60, runs=3, seed=5, record_every=1)
    for run in (0, 2):
        rewards, regrets = replayed(environment, trace, 5, run)
        if trace.reward[run, -1] == int(trace.reward[run, -1]):  # coins
            assert np.array_equal(np.cumsum(rewards), trace.reward[run])
        np.testing.assert_allclose(np.cumsum(rewards), trace.reward[run], rtol=1e-6)
        np.testing.assert_allclose(np.cumsum(regrets), trace.regret[run], rtol=1e-5, atol=1e-5)


def test_a_reset_without_a_seed_is_the_next_run() -> None:
    env = to_gymnasium("bernoulli")
    env.reset(seed=3)
    _, info = env.reset()
    _, same = to_gymnasium("bernoulli").reset(seed=3, options={"run": 1})
    np.testing.assert_array_equal(info["mean"], same["mean"])
    _, other = env.reset(seed=4)
    assert not np.array_equal(info["mean"], other["mean"])


def test_without_any_seed_the_worlds_differ() -> None:
    (_, first), (_, second) = (to_gymnasium("bernoulli").reset() for _ in range(2))
    assert not np.array_equal(first["mean"], second["mean"])


def test_truncated_at_the_horizon_and_never_terminated() -> None:
    env = to_gymnasium("sinusoidal(num_arms=3)", horizon=4)
    env.reset(seed=0)
    ends = [env.step(0)[2:4] for _ in range(4)]
    assert ends == [(False, False)] * 3 + [(False, True)]


def test_what_is_seen_and_told() -> None:
    env = to_gymnasium("wheel")
    observation, info = env.reset(seed=0)
    assert observation in env.observation_space
    assert observation["context"].shape == (2,)
    assert sorted(info) == ["available", "mean"]
    best, mean = int(info["mean"].argmax()), info["mean"]
    observation, reward, _, _, info = env.step(best)
    assert sorted(info) == ["available", "mean", "regret"]
    assert info["regret"] == 0
    assert reward == pytest.approx(mean[best], abs=0.1)
    observation["context"][:] = 7  # what was handed out is the caller's own
    assert env.step(best)[0]["context"].max() <= 1


def test_an_arm_that_is_not_available_is_refused() -> None:
    env = to_gymnasium(TURNS)
    observation, info = env.reset(seed=0)
    np.testing.assert_array_equal(observation["available"], info["available"])
    assert info["available"].tolist() == [0, 1, 1, 1]
    with pytest.raises(InputError, match=r"action must be an available arm, of \[1, 2, 3\].*got 0"):
        env.step(0)
    _, _, _, _, info = env.step(env.action_space.sample(mask=info["available"]))
    assert info["available"].tolist() == [1, 0, 1, 1]


@pytest.mark.parametrize("action", [-1, 10, 1.5, None, True])
def test_an_action_that_is_no_arm_is_refused(action: object) -> None:
    env = to_gymnasium("bernoulli")
    env.reset(seed=0)
    with pytest.raises(InputError, match="action must be an available arm"):
        env.step(action)


def test_a_step_before_the_reset_is_refused() -> None:
    with pytest.raises(gymnasium.error.ResetNeeded):
        to_gymnasium("bernoulli").step(0)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"environment": "sinusoidial"}, "did you mean 'sinusoidal'"),
        ({"environment": "bernoulli(delayed=5)"}, "environment must be without a delay"),
        ({"environment": "bernoulli", "horizon": 0}, "horizon must be a whole number"),
    ],
)
def test_bad_settings_are_refused(settings: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        to_gymnasium(**settings)


def test_gymnasium_makes_another_one_and_vectors_of_them() -> None:
    env = to_gymnasium("bernoulli(num_arms=3)", horizon=5)
    again = env.spec.make()
    again.reset(seed=1)
    assert [again.step(0)[3] for _ in range(5)][-1]
    vector = gymnasium.vector.SyncVectorEnv([lambda: to_gymnasium("wheel")] * 2)
    observation, _ = vector.reset(seed=0)
    assert observation["context"].shape == (2, 2)
    vector.step(np.array([0, 1]))


@pytest.mark.parametrize(
    ("policy", "environment"),
    [
        ("ucb", "sinusoidal"),
        ("lin_ts", "rotating_wheel"),
        ("thompson", TURNS),
        ("lin_ucb", "articles(num_arms=4, life=10)"),
    ],
)
def test_there_and_back_again_is_the_same(policy: str, environment: str) -> None:
    """Our policies in the loop in Python, with the same keys in the same worlds."""
    world = build_environment(environment)
    expected = simulate(policy, world, horizon=40, seed=3, record_every=4)
    foreign = from_gymnasium(to_gymnasium(world))
    assert foreign.spec._replace(noise=0) == world.spec._replace(noise=0)
    back = from_gymnasium(to_gymnasium(world), noise=world.spec.noise)
    trace = simulate_external(policy, back, horizon=40, seed=3, record_every=4)
    np.testing.assert_array_equal(trace.pulls, expected.pulls)
    np.testing.assert_allclose(trace.reward, expected.reward, rtol=1e-6)
    np.testing.assert_allclose(trace.regret, expected.regret, rtol=1e-5, atol=1e-5)
    assert np.isnan(trace.realised_regret).all()  # nobody is told what other arms would have paid


def test_which_arm_is_where_is_part_of_an_observation() -> None:
    env = to_gymnasium("articles(num_arms=2, life=2)")
    observation, info = env.reset(seed=0)
    seen = []
    for _ in range(6):
        assert observation in env.observation_space
        seen.append(observation["arm_ids"])
        observation, _, _, _, info = env.step(info["available"].argmax())
    np.testing.assert_array_equal(seen, np.add.outer(range(6), range(2)) // 3)
    assert "arm_ids" not in to_gymnasium("shared_linear").observation_space


class Coins(gymnasium.Env):
    """Actions from 5 on; episodes of one step; a context in a Box."""

    action_space = spaces.Discrete(3, start=5)
    observation_space = spaces.Box(-1, 1, (2, 2))
    reward_range = (-1.0, 1.0)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed, options=options)
        mask = np.array([True, True, False])
        return np.ones((2, 2), np.float32), {"action_mask": mask, "p": (0.1, 0.9, 0.5)}

    def step(self, action):
        assert action in self.action_space
        assert action != 7
        reward = float(self.np_random.random() < (0.1, 0.9, 0.5)[action - 5])
        return np.zeros((2, 2), np.float32), reward, True, False, {}


def test_a_foreign_bandit_is_played() -> None:
    world = from_gymnasium(Coins, means=lambda info: info["p"])
    assert world.spec[:2] == (3, 4)
    assert world.spec.reward_range == (-1.0, 1.0)
    trace = simulate_external("thompson", world, horizon=100, runs=2, seed=1)
    assert trace.pulls[:, -1, 2].tolist() == [0, 0]
    assert (trace.pulls[:, -1].sum(axis=1) == 100).all()
    np.testing.assert_allclose(trace.regret[:, -1], 0.8 * trace.pulls[:, -1, 0], rtol=1e-5)


def test_runs_of_a_foreign_bandit_start_with_seeds_of_their_own() -> None:
    seeds = []

    class Noted(Coins):
        def reset(self, *, seed=None, options=None):
            seeds.append(seed)
            return super().reset(seed=seed, options=options)

    first = simulate_external("uniform", from_gymnasium(Noted()), horizon=9, runs=2, seed=4)
    assert [seed for seed in seeds if seed is not None] == [4, 5]
    again = simulate_external("uniform", from_gymnasium(Noted()), horizon=9, seed=4)
    np.testing.assert_array_equal(again.reward[0], first.reward[0])


def test_without_means_the_regret_is_unknown_and_the_reward_is_not() -> None:
    trace = simulate_external("ucb", from_gymnasium(Coins()), horizon=20)
    assert np.isnan(trace.regret).all()
    assert trace.reward[0, -1] > 0


def test_an_environment_of_another_library_by_its_id() -> None:
    import river.bandit.envs  # noqa: F401 (it registers them)

    world = from_gymnasium(
        "river_bandits/CandyCaneContest-v0", means=lambda info: info["thresholds"]
    )
    assert world.spec.num_arms == 100
    trace = simulate_external("uniform", world, horizon=50)
    assert 0 < trace.regret[0, -1] < 50


def test_what_is_no_bandit_is_refused() -> None:
    class Steered(Coins):
        action_space = spaces.Box(-1, 1, (1,))

    with pytest.raises(InputError, match="one with a Discrete action space, got Box"):
        from_gymnasium(Steered)
    with pytest.raises(InputError, match="does not see the means"):
        simulate_external("oracle", from_gymnasium(Coins), horizon=5)
    with pytest.raises(InputError, match="mean must be of 3 numbers at every step"):
        simulate_external("ucb", from_gymnasium(Coins, means=lambda _: [1.0]), horizon=5)
