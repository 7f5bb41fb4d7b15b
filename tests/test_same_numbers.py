"""What the software computes stays the same to the bit, however its code is arranged.

The digests of simulations are those of 0.8.0, those of probabilities and agents of 0.9.0, which
computes some probabilities in another way. A change that means to change results records them anew
(`python -m tests.test_same_numbers`), and lists figures before and after in the changelog.
"""

import hashlib
import json
import tempfile
from collections.abc import Iterable
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from driftbandits import Agent, build_environment, build_policy, simulate
from driftbandits.simulation import compiling
from tests.conftest import SOAK
from tests.service.serving import ask, create, served

RECORDED = Path(__file__).with_name("same_numbers.json")
STEPS = 150
PAIRS = [
    ("tracker", "sinusoidal(num_arms=4, period=200, sleeping=0.7)"),
    ("tracker", "linear(delayed=20)"),
    ("tracker(waves=4)", "nonlinear(sleeping=0.8)"),
    ("tracker", "articles(num_arms=6)"),
    ("tracker(version=1)", "sinusoidal(num_arms=4, period=200, sleeping=0.7)"),
    ("tracker(version=1)", "linear(delayed=20)"),
    ("tracker(version=1, waves=4)", "nonlinear(sleeping=0.8)"),
    ("recurrent(hidden=16)", "bernoulli(num_arms=4, max_consecutive=5)"),
    ("recurrent_linear(hidden=16)", "rotating_wheel(delayed=3)"),
    ("thompson", "sinusoidal(num_arms=5, delayed=15)"),
    ("sw_ucb(window=50)", "abrupt(sleeping=0.6)"),
    ("glr_ucb", "flipping(num_arms=3)"),
    ("exp3_s", "adversarial"),
    ("eff_fewa", "rotting(num_arms=3)"),
    ("lin_ts", "rotating_linear(sleeping=0.7)"),
    ("d_lin_ucb", "flipping_linear(delayed=10)"),
    ("neural_linear(layers=1, hidden=16, batch=32)", "wheel"),
    ("sw_lin_ucb(window=50)", "shared_linear(num_arms=5, delayed=3)"),
    ("lin_ucb(deviation=0)", "shared_linear(num_arms=4, every=50)"),
    ("d_lin_ts", "articles(num_arms=6)"),
]
AGENTS = ["tracker", "tracker(version=1)", "thompson", "recurrent(hidden=16)"]


def digest(arrays: Iterable[object]) -> str:
    found = hashlib.sha256()
    for array in arrays:
        found.update(np.ascontiguousarray(array).tobytes())
    return found.hexdigest()[:16]


def simulated(policy: str, environment: str) -> str:
    """Arms, regrets and rewards of three runs."""
    trace = simulate(policy, environment, horizon=STEPS, runs=3, seed=5, record_every=1)
    return digest([trace.pulls, trace.regret, trace.realised_regret, trace.reward])


def probabilities(policy: str, environment: str) -> str:
    """The probabilities of every step, where rewards come at once."""
    world = build_environment(environment)
    built = build_policy(policy, world.spec._replace(horizon=STEPS))

    def step(states, key):
        state, policy_state = states
        seen_key, reward_key, policy_key = jax.random.split(key, 3)
        observation = world.observe(seen_key, state)
        rewards = world.rewards(reward_key, state, observation.context)
        decision, policy_state = built.act(policy_key, policy_state, observation)
        policy_state = built.learn(policy_state, decision.ticket, rewards.sampled[decision.arm])
        return (world.advance(state, decision.arm), policy_state), decision[:2]

    @compiling.jit
    def go(key):
        states = world.init(key), built.init(key)
        return jax.lax.scan(step, states, jax.random.split(key, STEPS))[1]

    arms, drawn_from = go(jax.random.key(3))
    return digest([arms, drawn_from.astype(jnp.float32)])


def agent(policy: str) -> str:
    """Decisions of an agent with late, missing and reordered rewards, and arms that come and go."""
    random = np.random.default_rng(1)
    played = Agent(["a", "b"], ["x", "y"], policy, seed=3, window=40.0, default_reward=0.1)
    results, waiting = [], []
    for t in range(120):
        if t in (30, 60, 75):
            played.add_arm(f"new {t}")
        if t == 80:
            played.retire_arm("a")
        made = played.decide(random.normal(size=2).tolist(), id=f"id {t}", now=float(t))
        results += [made.arm.encode(), made.probability, list(made.probabilities.values())]
        waiting.append(made.id)
        if t % 3 == 0 and len(waiting) > 4:
            late = [waiting.pop(int(random.integers(len(waiting)))) for _ in range(3)]
            known = [(id, float(random.random())) for id in late if t - int(id[3:]) < 40]
            played.reward_many(known, now=float(t))
    return digest(np.frombuffer(x, np.uint8) if isinstance(x, bytes) else x for x in results)


def pages() -> str:
    """Slates of arms with features, for readers with a schema; some arms come with a decision."""
    random = np.random.default_rng(7)
    arms = {f"a{i}": {"topic": "sport" if i % 2 else "arts", "words": 100 * i} for i in range(5)}
    played = Agent(
        arms,
        {"age": "number", "country": "category(buckets=3)", "hour": "cyclic(24)", "new": "flag"},
        "d_lin_ts",
        features={"topic": "category(buckets=3)", "words": "number"},
        seed=3,
    )
    results: list[object] = []
    for t in range(40):
        reader = {"age": float(random.integers(90)), "country": f"c{random.integers(4)}"}
        own = (
            {"a1": {"words": 5.0 * t}, f"own {t // 10}": {"topic": "news"}} if t % 9 == 0 else None
        )
        for made in played.decide(reader | {"hour": t % 24}, arms=own, k=2, id=f"id {t}", now=t):
            results += [np.frombuffer(made.arm.encode(), np.uint8), [*made.probabilities.values()]]
            if random.random() < 0.7:
                played.reward(made.id, float(random.random()), now=t)
    return digest(results)


def service(folder: Path) -> str:
    """Decisions over HTTP, before and after the service was killed and replayed its log."""
    random, results = np.random.default_rng(2), []

    def visits(url: str, first: int) -> None:
        for t in range(first, first + 25):
            body = {"id": f"id {t}", "context": random.normal(size=2).tolist()}
            made = ask(url, "POST", "/v1/bandits/shop/decisions", body)[1]
            results.extend([made["probability"], list(made["probabilities"].values())])
            if t % 4:
                reward = {"id": f"id {t}", "reward": float(random.random())}
                assert ask(url, "POST", "/v1/bandits/shop/rewards", reward)[0] == 200

    with served(folder) as serving:
        create(serving.url, "shop", policy="tracker", seed=4, context=["x", "y"])
        visits(serving.url, 0)
        assert ask(serving.url, "POST", "/v1/bandits/shop/arms", {"name": "blue"})[0] == 201
        visits(serving.url, 25)
        serving.kill()
        serving.start()
        visits(serving.url, 50)
    return digest(results)


def all_digests(folder: Path) -> dict[str, str]:
    found = {}
    for policy, environment in PAIRS:
        found[f"simulate {policy} in {environment}"] = simulated(policy, environment)
        found[f"probabilities {policy} in {environment}"] = probabilities(policy, environment)
    found |= {f"agent {policy}": agent(policy) for policy in AGENTS}
    return found | {"pages": pages(), "service": service(folder)}


@pytest.mark.parametrize(("policy", "environment"), PAIRS if SOAK else PAIRS[::3])
def test_a_simulation(policy: str, environment: str) -> None:
    expected, pair = json.loads(RECORDED.read_text()), f"{policy} in {environment}"
    assert simulated(policy, environment) == expected[f"simulate {pair}"]
    assert probabilities(policy, environment) == expected[f"probabilities {pair}"]


@pytest.mark.parametrize("policy", AGENTS)
def test_an_agent(policy: str) -> None:
    assert agent(policy) == json.loads(RECORDED.read_text())[f"agent {policy}"]


def test_slates_of_arms_with_features() -> None:
    assert pages() == json.loads(RECORDED.read_text())["pages"]


def test_a_service(tmp_path: Path) -> None:
    assert service(tmp_path) == json.loads(RECORDED.read_text())["service"]


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        RECORDED.write_text(json.dumps(all_digests(Path(folder)), indent=1) + "\n")
