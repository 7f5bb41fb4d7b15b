"""Gymnasium: its interface to driftbandits' environments, and its bandits for our policies."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from driftbandits import check
from driftbandits.core import BanditSpec, Environment
from driftbandits.environments import build_environment
from driftbandits.extras import needed_for
from driftbandits.integrations.foreign import ForeignObservation
from driftbandits.integrations.stepping import SteppedRuns, StepResult

with needed_for(__name__):
    import gymnasium
    from gymnasium import spaces
    from gymnasium.envs.registration import EnvSpec

ENTRY = "driftbandits.integrations.gymnasium:BanditEnv"
CONTEXT_BOUND = float(np.finfo(np.float32).max)  # Gymnasium wants one; the true one is unknown
ObservationDict = dict[str, np.ndarray]
AnyEnv = gymnasium.Env[Any, Any]


def to_gymnasium(environment: Environment | str, *, horizon: int = 10_000) -> "BanditEnv":
    """Makes a Gymnasium environment whose episodes are runs of a driftbandits environment.

    An action is an arm, an observation has the `context`, the `available` arms and, if arms have
    features, their features as `arms`. Where arms come and go, it has `arm_ids`: a number for each
    place, which changes when another arm takes it. The reward is what the pulled arm pays. `info`
    has the `mean` of each arm and which arms are `available`, both for the next pull, and after a
    pull its `regret`. `reset(seed=s)` starts run 0 of `simulate` with the seed s, and each
    `reset()` after it the next run of that seed; `reset(options={"run": 7})` starts run 7. It needs
    the extra `gymnasium`.

    Args:
        environment: An environment, or its name with settings, such as
            `"sinusoidal(max_consecutive=10)"`.
        horizon: The number of pulls in an episode. It is then truncated, and never terminated.

    Returns:
        A `gymnasium.Env`.

    Raises:
        InputError: If an argument is invalid, or the rewards of the environment are delayed.

    Example:
        ```python
        from driftbandits import to_gymnasium

        env = to_gymnasium("sinusoidal", horizon=20)
        observation, info = env.reset(seed=0)
        observation, reward, terminated, truncated, info = env.step(2)
        print(observation["available"], reward, info["regret"])
        ```
    """
    return BanditEnv(environment, horizon=horizon)


class BanditEnv(gymnasium.Env[Any, Any]):
    """What `to_gymnasium` returns."""

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012 (as Gymnasium has it)
    render_mode = None

    def __init__(self, environment: Environment | str, *, horizon: int = 10_000) -> None:
        check.integer(horizon=horizon)
        settings = {"environment": environment, "horizon": horizon}
        self.spec = EnvSpec("driftbandits/Bandit-v0", entry_point=ENTRY, kwargs=settings)
        if isinstance(environment, str):
            environment = build_environment(environment)
        if environment.delay is not None:
            rule = "without a delay, as a step of Gymnasium ends with its reward"
            check.fail("environment", rule, settings["environment"])
        self._environment, self._horizon = environment, horizon
        known = environment.spec
        self.reward_range = known.reward_range
        self.action_space = spaces.Discrete(known.num_arms)
        self.observation_space = observation_space(known)
        self._shown = list(self.observation_space)
        self._seed: int | None = None
        self._run = 0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[ObservationDict, dict[str, Any]]:
        super().reset(seed=seed)
        if seed is None and self._seed is not None:
            self._run += 1
        else:
            self._seed = int(self.np_random.integers(2**31)) if seed is None else seed
            self._run = 0
        self._run = (options or {}).get("run", self._run)
        check.integer(seed=self._seed, run=self._run, at_least=0)
        self._runs = SteppedRuns(self._environment, self._seed, range(self._run, self._run + 1))
        self._time = 0
        return self._observation(self._runs.latest), info_of(self._runs.latest)

    def step(self, action: int) -> tuple[ObservationDict, float, bool, bool, dict[str, Any]]:
        if self._seed is None:
            raise gymnasium.error.ResetNeeded("call reset before the first step")
        available = self._runs.latest.available[0]
        if (
            not check.is_integer(action)
            or not 0 <= action < available.size
            or not available[action]
        ):
            offer = np.flatnonzero(available).tolist()
            check.fail("action", f"an available arm, of {offer} (info['available'])", action)
        result = self._runs.pull(np.array([action], np.int32))
        self._time += 1
        reward, regret = float(result.reward[0]), float(result.regret[0])
        truncated = self._time >= self._horizon
        return (
            self._observation(result),
            reward,
            False,
            truncated,
            {**info_of(result), "regret": regret},
        )

    def _observation(self, result: StepResult) -> ObservationDict:
        shown = {
            "context": result.context[0],
            "available": result.available[0].astype(np.int8),
            "arms": result.arms[0],
            "arm_ids": result.arm_ids[0],
        }
        return {name: shown[name] for name in self._shown}


def observation_space(spec: BanditSpec) -> spaces.Dict:
    found: dict[str, spaces.Space[Any]] = {
        "context": any_numbers(spec.context_dim),
        "available": spaces.MultiBinary(spec.num_arms),
    }
    if spec.arm_dim:
        found["arms"] = any_numbers(spec.num_arms, spec.arm_dim)
    if spec.arms_change:
        found["arm_ids"] = any_integers(spec.num_arms)
    return spaces.Dict(found)


def any_numbers(*shape: int) -> spaces.Box:
    return spaces.Box(-CONTEXT_BOUND, CONTEXT_BOUND, shape)


def any_integers(*shape: int) -> spaces.Box:
    bounds = np.iinfo(np.int32)
    return spaces.Box(bounds.min, bounds.max, shape, np.int32)


def info_of(result: StepResult) -> dict[str, Any]:
    return {"available": result.available[0].astype(np.int8), "mean": result.mean[0]}


def from_gymnasium(
    environment: AnyEnv | str | Callable[[], AnyEnv],
    *,
    context: Callable[[Any], Any] | None = None,
    available: Callable[[Mapping[str, Any]], Any] | None = None,
    means: Callable[[Mapping[str, Any]], Any] | None = None,
    arms: Callable[[Any], Any] | None = None,
    arm_ids: Callable[[Any], Any] | None = None,
    reward_range: tuple[float, float] | None = None,
    noise: float = 0.5,
) -> "GymnasiumBandit":
    """Wraps a Gymnasium environment for `simulate_external`.

    It is meant for bandits: the actions are arms, and policies treat each step separately. When an
    episode ends, the next one begins in the same run, so one-step episodes are fine. Run r starts
    with `reset(seed=seed + r)`. An environment made by `to_gymnasium` needs no other argument. It
    needs the extra `gymnasium`.

    Args:
        environment: An environment with a Discrete action space, or a function that makes one, or
            its id.
        context: A function from an observation to the context, a vector. None takes a Box as a
            whole, the entry `context` of a dictionary, and no context otherwise.
        available: A function from `info` to the mask of available arms. None takes
            `info["action_mask"]` if it exists, and otherwise all arms.
        means: A function from `info` to the means of all arms, such as
            `lambda info: info["thresholds"]`. With None the means and the regret are unknown.
        arms: A function from an observation to the features of the arms, a row for each arm. None
            takes the entry `arms` of a dictionary, if its first axis has an entry for each arm.
        arm_ids: A function from an observation to an integer for each place, where arms come and
            go: another one than before means another arm, also after the end of an episode. None
            takes the entry `arm_ids` of a dictionary, if it has an integer for each arm, and
            otherwise the arms never change.
        reward_range: The lowest and the highest reward, for policies that need it. None takes what
            the environment states, or (0, 1).
        noise: The sub-Gaussian constant of the rewards, for policies that need it.

    Returns:
        An environment for `simulate_external`.

    Raises:
        InputError: If the action space is not Discrete, or an argument is invalid.

    Example:
        ```python
        from driftbandits import from_gymnasium, simulate_external, to_gymnasium

        environment = from_gymnasium(to_gymnasium("sinusoidal"))
        trace = simulate_external("ucb", environment, horizon=50, runs=2)
        print(trace.regret[:, -1])
        ```
    """
    if isinstance(environment, str):
        environment = gymnasium.make(environment)
    elif not isinstance(environment, gymnasium.Env):
        environment = environment()
    actions = environment.action_space
    if not isinstance(actions, spaces.Discrete):
        check.fail("environment", "one with a Discrete action space", actions)
    check.positive(noise=noise)
    default = default_reader(environment, int(actions.n))
    read = Reader(
        context or default.context,
        available or default.available,
        means or default.means,
        arms or default.arms,
        arm_ids or default.arm_ids,
    )
    example = environment.observation_space.sample()
    spec = BanditSpec(
        int(actions.n),
        vector(read.context(example)).size,
        arm_dim=rows(read.arms(example), int(actions.n)).shape[1],
        arms_change=read.arm_ids is not None,
        reward_range=reward_range or stated_range(environment),
        noise=noise,
    )
    return GymnasiumBandit(spec, environment, read)


class Reader(NamedTuple):
    """How to read the observations and infos of a Gymnasium environment."""

    context: Callable[[Any], Any]  # of an observation
    available: Callable[[Mapping[str, Any]], Any]  # of an info
    means: Callable[[Mapping[str, Any]], Any]
    arms: Callable[[Any], Any]  # of an observation
    arm_ids: Callable[[Any], Any] | None  # of an observation; None if arms never change


def default_reader(environment: AnyEnv, num_arms: int) -> Reader:
    ours = isinstance(environment.unwrapped, BanditEnv)
    mask, mean = ("available", "mean") if ours else ("action_mask", "")
    return Reader(
        context_reader(environment.observation_space),
        lambda info: info.get(mask, np.ones(num_arms)),
        lambda info: info.get(mean, np.full(num_arms, np.nan)),
        arms_reader(environment.observation_space, num_arms),
        ids_reader(environment.observation_space, num_arms),
    )


def vector(values: Any) -> np.ndarray:
    return np.asarray(values, np.float32).ravel()


def context_reader(space: spaces.Space[Any]) -> Callable[[Any], Any]:
    if isinstance(space, spaces.Box):
        return vector
    if isinstance(space, spaces.Dict) and isinstance(space.get("context"), spaces.Box):
        return lambda observation: observation["context"]
    return lambda _: ()


def arms_reader(space: spaces.Space[Any], num_arms: int) -> Callable[[Any], Any]:
    features = space.get("arms") if isinstance(space, spaces.Dict) else None
    if isinstance(features, spaces.Box) and features.shape[:1] == (num_arms,):
        return lambda observation: observation["arms"]
    return lambda _: np.zeros((num_arms, 0))


def ids_reader(space: spaces.Space[Any], num_arms: int) -> Callable[[Any], Any] | None:
    ids = space.get("arm_ids") if isinstance(space, spaces.Dict) else None
    if ids is None or ids.shape != (num_arms,) or not np.issubdtype(ids.dtype, np.integer):
        return None
    return lambda observation: observation["arm_ids"]


def rows(values: Any, num_arms: int) -> np.ndarray:
    """The features of the arms, a row for each arm."""
    found = np.asarray(values, np.float32)
    if found.ndim == 0 or len(found) != num_arms:
        check.fail("arms", f"of {num_arms} rows at every step", found.tolist())
    return found.reshape(num_arms, found.size // num_arms)


def stated_range(environment: AnyEnv) -> tuple[float, float]:
    low, high = getattr(environment.unwrapped, "reward_range", (0.0, 1.0))
    return (float(low), float(high)) if np.isfinite([low, high]).all() else (0.0, 1.0)


class GymnasiumBandit:
    """What `from_gymnasium` returns."""

    def __init__(self, spec: BanditSpec, environment: AnyEnv, read: Reader) -> None:
        self.spec = spec
        self._environment, self._read = environment, read
        self._one_arm_each = np.zeros(spec.num_arms, np.int32)  # where arms never change
        self._first = int(environment.action_space.start)  # type: ignore[attr-defined]

    def start(self, seed: int) -> ForeignObservation:
        return self._observation(*self._environment.reset(seed=seed))

    def pull(self, arm: int) -> tuple[float, ForeignObservation]:
        action = np.int64(self._first + arm)
        seen, reward, terminated, truncated, info = self._environment.step(action)
        if terminated or truncated:
            seen, info = self._environment.reset()
        return float(reward), self._observation(seen, info)

    def _observation(self, observation: Any, info: Mapping[str, Any]) -> ForeignObservation:
        read = self._read
        found = ForeignObservation(
            vector(read.context(observation)),
            vector(read.available(info)) > 0,
            vector(read.means(info)),
            rows(read.arms(observation), self.spec.num_arms),
            np.asarray(read.arm_ids(observation) if read.arm_ids else self._one_arm_each, np.int32),
        )
        spec, arms = self.spec, self.spec.num_arms
        sizes = spec.context_dim, arms, arms, arms * spec.arm_dim, arms
        for name, values, size in zip(ForeignObservation._fields, found, sizes, strict=True):
            if values.size != size:
                check.fail(name, f"of {size} numbers at every step", values.tolist())
        return found
