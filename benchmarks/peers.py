"""UCB1 and Thompson sampling in other libraries: ten Bernoulli arms, one core for everyone.

Each library runs in its fastest public way: pymab by its own simulator in Rust, the others, which
have none or a slower one, in a tight loop around the calls that choose and learn. A library that
does not run is named with the reason.
"""

import contextlib
import io
import os
import statistics
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version

import numpy as np

from benchmarks.measuring import Contestant, Goal, Part, Series, ratios, take_turns

NUM_ARMS = 10
WORST = 0.3  # regret per step of a policy that has learned nothing is about 0.4
POLICIES = ("ucb", "thompson")
LOWEST = {"ucb": 30, "thompson": 7}  # the goals: times faster than the fastest peer

Loop = Callable[[int, np.random.Generator], float]  # steps of one run; returns the regret


def learn_in_turn(
    choose: Callable[[], int],
    reward: Callable[[int, int], object],
    steps: int,
    rng: np.random.Generator,
) -> float:
    """The loop around a library's own calls; rewards are drawn ahead."""
    theta, coins = rng.random(NUM_ARMS).tolist(), rng.random(steps).tolist()
    gaps, regret = [max(theta) - mean for mean in theta], 0.0
    for coin in coins:
        arm = choose()
        reward(arm, int(coin < theta[arm]))
        regret += gaps[arm]
    return regret


def river(policy: str) -> Loop:
    from river import bandit, proba

    def run(steps: int, rng: np.random.Generator) -> float:
        seed = int(rng.integers(2**31))
        if policy == "ucb":
            learner = bandit.UCB(delta=1, seed=seed)
        else:
            learner = bandit.ThompsonSampling(reward_obj=proba.Beta(), seed=seed)
        arms = list(range(NUM_ARMS))
        return learn_in_turn(lambda: learner.pull(arms), learner.update, steps, rng)

    return run


def smpybandits(policy: str) -> Loop:
    # The library asks SciPy for a name that recent versions have dropped for another.
    import scipy.special

    if not hasattr(scipy.special, "btdtri"):
        scipy.special.btdtri = scipy.special.betaincinv
    with contextlib.redirect_stdout(io.StringIO()):
        from SMPyBandits.Policies.Thompson import Thompson
        from SMPyBandits.Policies.UCB import UCB

    def run(steps: int, rng: np.random.Generator) -> float:
        learner = (UCB if policy == "ucb" else Thompson)(NUM_ARMS)
        learner.startGame()
        return learn_in_turn(learner.choice, learner.getReward, steps, rng)

    return run


def mabwiser(policy: str) -> Loop:
    from mabwiser.mab import MAB, LearningPolicy

    rule = LearningPolicy.UCB1(alpha=1) if policy == "ucb" else LearningPolicy.ThompsonSampling()

    def run(steps: int, rng: np.random.Generator) -> float:
        learner = MAB(list(range(NUM_ARMS)), rule, seed=int(rng.integers(2**31)))
        learner.fit(list(range(NUM_ARMS)), [0] * NUM_ARMS)  # it will not choose before a fit

        def learn(arm: int, reward: int) -> None:
            learner.partial_fit([arm], [reward])

        return learn_in_turn(learner.predict, learn, steps, rng)

    return run


def pymab(policy: str) -> Loop:
    from pymab import BanditEnvironment, BernoulliReward, Experiment, ExperimentConfig
    from pymab.policies.thompson_sampling import BernoulliThompsonSamplingPolicy
    from pymab.policies.ucb import UCBPolicy

    kind = UCBPolicy if policy == "ucb" else BernoulliThompsonSamplingPolicy

    def run(steps: int, rng: np.random.Generator) -> float:
        theta = rng.random(NUM_ARMS)
        experiment = Experiment(
            environment=BanditEnvironment(means=theta, reward_model=BernoulliReward()),
            policies={policy: kind(n_arms=NUM_ARMS)},
            config=ExperimentConfig(steps, 1, int(rng.integers(2**31)), backend="rust"),
        )
        return float((theta.max() - experiment.run().expected_rewards).sum())

    return run


PEERS = {"pymab": pymab, "river": river, "SMPyBandits": smpybandits, "mabwiser": mabwiser}
STEPS = {"pymab": 50_000, "river": 20_000, "SMPyBandits": 20_000, "mabwiser": 2000}


def runnable(peer: str, policy: str) -> tuple[Loop | None, str]:
    """The library's loop, or the reason why there is none; and a note."""
    try:
        loop = PEERS[peer](policy)
        steps = 2000
        regret = statistics.mean(loop(steps, np.random.default_rng(i)) for i in range(3)) / steps
    except (Exception, SystemExit) as error:
        return None, f"{peer}, {policy}: does not run here ({type(error).__name__}: {error})"
    if not 0 <= regret < WORST:
        return None, f"{peer}, {policy}: left out, as its regret per step is {regret:.3f}"
    return loop, f"{peer} {version_of(peer)}, {policy}: regret per step {regret:.3f}"


def version_of(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "of unknown version"


def ours(policy: str, horizon: int) -> Contestant:
    from driftbandits import simulate

    def take() -> object:
        return simulate(policy, "bernoulli", horizon=horizon, runs=100, cores=1)

    return Contestant(take, 100 * horizon)


def contest(policy: str, short: bool) -> Part:
    """One policy in every library."""
    contestants, notes, rng = {}, [], np.random.default_rng(0)
    for peer in PEERS:
        loop, note = runnable(peer, policy)
        notes.append(note)
        if loop is not None:
            steps = STEPS[peer] // (20 if short else 1)
            contestants[f"{peer}, {policy}"] = Contestant(
                lambda loop=loop, steps=steps: loop(steps, rng), steps
            )
    mine = f"driftbandits, {policy}"
    times = take_turns({mine: ours(policy, 1000 if short else 20_000)} | contestants)
    goals = []
    if contestants:
        fastest = min(contestants, key=lambda name: statistics.median(times[name]))
        goals = [
            Goal(
                f"{mine}: times faster than {name}"
                + (", the fastest peer" if name == fastest else ""),
                ratios(times[name], times[mine]),
                low=LOWEST[policy] if name == fastest else None,
            )
            for name in contestants
        ]
    return Part("", [Series(name, values) for name, values in times.items()], goals, notes)


def peers(short: bool) -> Part:
    """All policies, on one core."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    whole = Part("Beside other libraries: ten Bernoulli arms, 1 core")
    for policy in POLICIES:
        part = contest(policy, short)
        whole.series += part.series
        whole.goals += part.goals
        whole.notes += part.notes
    return whole
