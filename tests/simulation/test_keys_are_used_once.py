"""No random key serves twice: not in a world's start, and not in the steps of a run.

With threefry `fold_in(key, 1)` is `split(key)[1]`, and both are made of the bits that the second
number drawn from `key` is. So a key may be drawn from, or split, or have different numbers folded
in, and only one of the three; and no key may be derived in two ways.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from itertools import permutations
from typing import NamedTuple

import jax
import jax.extend.random
import jax.numpy as jnp
import numpy as np
import pytest

from driftbandits import ENVIRONMENTS, TRANSFORMATIONS, build_environment, build_policy
from driftbandits.numerics import random_keys
from driftbandits.simulation.delays import nothing_waiting
from driftbandits.simulation.engine import block_keys, take_step
from tests.conftest import SOAK

STEPS = 2
VALUES = {
    "max_consecutive": "2",
    "delayed": '"geometric(mean=3, share=0.5)"',
    "sleeping": "0.5",
    "noisy": "1",
    "heavy_tailed": "1",
    "scaled": "2",
    "fatigue": "0.5",
}
SINGLES = [(name,) for name in TRANSFORMATIONS]
PAIRS = list(permutations(TRANSFORMATIONS, 2))
LATE_PAIRS = [pair for pair in PAIRS if pair[1] == "delayed"]
CHOSEN = [(), tuple(TRANSFORMATIONS), *LATE_PAIRS, *(SINGLES if SOAK else [])]
VARIANTS = [
    "abrupt(times=[1])",
    "close_arms(every=1)",
    'rotting(num_arms=3, law="geometric")',
    'table(file="river:image_segments", order="shuffled")',
    'bernoulli(delayed="geometric(mean=3)")',
    'bernoulli(delayed="never(share=0.5)")',
    "bernoulli(sleeping=[[1, 0, 1, 1, 1, 1, 1, 1, 1, 1]], noisy=1)",
]

Words = tuple[int, ...]


class Use(NamedTuple):
    """What became of a key."""

    how: str  # drawn, split or folded
    words: Words
    derived: list[Words]


LEDGER: list[Use] = []


def note(how: str, pair: np.ndarray, derived: np.ndarray) -> None:
    rows = np.asarray(derived).reshape(-1, 2).tolist()
    LEDGER.append(Use(how, tuple(np.asarray(pair).tolist()), [tuple(row) for row in rows]))


def noted(how: str, derive: Callable[..., jax.Array]) -> Callable[..., jax.Array]:
    """A function of our keys that is entered in the ledger wherever it runs."""

    def run(pair: jax.Array, *arguments: object) -> jax.Array:
        result = derive(pair, *arguments)
        derived = jnp.zeros((0, 2), jnp.uint32) if how == "drawn" else result
        jax.debug.callback(partial(note, how), pair, derived)
        return result

    return run


NOTED = jax.extend.random.define_prng_impl(
    key_shape=(2,),
    seed=random_keys.seed_words,
    split=noted("split", random_keys.split),
    random_bits=noted("drawn", random_keys.random_bits),
    fold_in=noted("folded", random_keys.fold_in),
    name="noted_threefry",
    tag="noted",
)


@pytest.fixture(autouse=True)
def _noted_keys(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    two_words = random_keys.two_words

    def noted_two_words(key: jax.Array, shape: tuple[int, ...]) -> tuple[jax.Array, jax.Array]:
        jax.debug.callback(partial(note, "drawn"), jax.random.key_data(key), jnp.zeros((0, 2)))
        return two_words(key, shape)

    monkeypatch.setattr(random_keys, "THREEFRY", NOTED)
    monkeypatch.setattr(random_keys, "two_words", noted_two_words)
    yield
    LEDGER.clear()


def uses_of(environment_text: str, policy_text: str = "uniform") -> list[Use]:
    """Every use of a key from the start of one run's world on, over some steps."""
    environment = build_environment(environment_text)
    policy = build_policy(policy_text, environment.spec._replace(horizon=100))
    keys = jax.tree.map(lambda leaf: leaf[0], block_keys(0, 1, 0))
    policy_state = policy.init(keys.policy_start)
    waiting = nothing_waiting(policy, environment, keys.policy_start)
    jax.effects_barrier()
    LEDGER.clear()
    states = environment.init(keys.world_start), policy_state, waiting
    for time in range(STEPS):
        states, _ = take_step(policy, environment, states, keys, jnp.int32(time))
    jax.effects_barrier()
    return list(LEDGER)


def findings(uses: list[Use]) -> list[str]:
    """Keys that serve twice."""
    hows: dict[Words, set[str]] = {}
    for use in uses:
        hows.setdefault(use.words, set()).add(use.how)
    once = Counter((use.how, use.words) for use in uses if use.how != "folded")
    derived = Counter(words for use in uses for words in use.derived)
    return [
        *(f"{words} is {' and '.join(sorted(how))}" for words, how in hows.items() if len(how) > 1),
        *(f"{words} is {how} {count} times" for (how, words), count in once.items() if count > 1),
        *(f"{words} is derived {count} times" for words, count in derived.items() if count > 1),
    ]


def names_of(environment: str, chosen: list[tuple[str, ...]]) -> list[str]:
    settings = [", ".join(f"{name}={VALUES[name]}" for name in names) for names in chosen]
    return [f"{environment}({setting})" for setting in settings]


def findings_by_environment(environments: list[str]) -> dict[str, list[str]]:
    found = {environment: findings(uses_of(environment)) for environment in environments}
    return {environment: twice for environment, twice in found.items() if twice}


def test_every_transformation_has_a_value() -> None:
    assert set(VALUES) == set(TRANSFORMATIONS)


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_no_key_of_an_environment_is_used_twice(name: str) -> None:
    assert findings_by_environment(names_of(name, CHOSEN)) == {}


def test_no_key_of_two_transformations_is_used_twice() -> None:
    assert findings_by_environment(names_of("bernoulli", SINGLES + PAIRS)) == {}


def test_no_key_of_other_settings_is_used_twice() -> None:
    assert findings_by_environment(VARIANTS) == {}


@pytest.mark.parametrize("policy", ["lin_ucb", "neural_linear(hidden=4, memory=40)"])
def test_no_key_of_a_new_arm_is_used_twice(policy: str) -> None:
    """At the second step a new article comes, with new weights."""
    assert findings(uses_of("articles(num_arms=2, context_dim=2, life=2)", policy)) == []


def step_as_before(key: jax.Array) -> None:
    """What 0.10.0 did: the delay's key was that of the noise."""
    inner_key, noise_key = jax.random.split(key)
    jax.random.uniform(inner_key, (10,))
    jax.random.normal(noise_key, (10,))
    jax.random.exponential(jax.random.fold_in(key, 1))


@pytest.mark.parametrize(
    ("use", "expected"),
    [
        (step_as_before, ["folded and split", "drawn 2 times", "derived 2 times"]),
        (lambda key: [jax.random.uniform(key), jax.random.split(key)], ["drawn and split"]),
        (lambda key: [jax.random.bits(key), jax.random.fold_in(key, 9)], ["drawn and folded"]),
        (lambda key: [jax.random.split(key), jax.random.split(key, 3)],
         ["split 2 times", "derived 2 times", "derived 2 times"]),
        (lambda key: [jax.random.fold_in(key, n) for n in (5, 5)], ["derived 2 times"]),
        (lambda key: [jax.random.fold_in(key, n) for n in (5, 6)], []),
        (lambda key: [random_keys.two_words(key, (3,)) for _ in range(2)], ["drawn 2 times"]),
        (lambda key: [jax.random.normal(own) for own in jax.random.split(key)], []),
    ],
)  # fmt: skip
def test_a_key_that_serves_twice_is_found(use: Callable, expected: list[str]) -> None:
    LEDGER.clear()
    use(random_keys.key(3))
    jax.effects_barrier()
    found = findings(LEDGER)
    assert [line.partition(" is ")[2] for line in found] == expected


def test_the_ledger_is_complete() -> None:
    """Noise, a toss, a delay with its loss, sleep and uniform play: six draws in each step."""
    text = names_of("bernoulli", [("noisy", "sleeping", "delayed")])[0]
    drawn = [use for use in uses_of(text) if use.how == "drawn"]
    assert len(drawn) == 1 + 6 * STEPS
