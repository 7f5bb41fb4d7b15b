"""What every policy in the table must do. A new policy gets these tests by itself."""

import inspect
import re
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import driftbandits
from driftbandits import POLICIES, BanditSpec, InputError, Observation, build_policy
from driftbandits.choice import settings_of
from tests.conftest import SOAK
from tests.policies.problems import (
    CASES,
    COPIES,
    DRAWS,
    SPECS,
    assert_same_tree,
    compiled,
    compiled_vmapped,
    experienced,
    looks_at_context,
    seen_by,
    vmapped,
)

POLICY_FILES = Path(driftbandits.__file__).parent / "policies"

each_case = pytest.mark.parametrize(("name", "problem"), CASES)
each_policy = pytest.mark.parametrize("name", POLICIES)
# Compiled operation by operation, which takes long: with a context where the policy looks at one.
PLAIN_CASES = CASES if SOAK else list({name: (name, problem) for name, problem in CASES}.values())


def test_every_file_is_in_the_table() -> None:
    modules = {path.stem for path in POLICY_FILES.glob("*.py")} - {"__init__"}
    packages = {path.parent.name for path in POLICY_FILES.glob("*/policy.py")}
    files = modules | packages
    assert files == set(POLICIES), "a policy's file and its name in POLICIES go together"


@each_policy
def test_docstring_tells_every_setting(name: str) -> None:
    factory = POLICIES[name]
    assert (inspect.getdoc(factory) or "").split("\n")[0].endswith("."), (
        "the listing shows the first line"
    )
    for setting in settings_of(factory):
        assert f"\n        {setting}: " in (factory.__doc__ or ""), f"{setting} is not explained"


@each_policy
def test_text_says_when_to_use_it_and_when_not(name: str) -> None:
    text = inspect.getmodule(POLICIES[name]).__doc__ or ""
    assert "\nUse it " in text
    assert re.search(r"\bNot (when|with|as|for)\b", text.replace("\n", " "))


@each_policy
def test_context_is_looked_at_or_the_text_says_that_it_is_not(name: str) -> None:
    case = compiled(name, "contextual")
    if case.policy.sees_means:
        return
    state, _ = experienced(name, "contextual")
    generator = np.random.default_rng(9)
    everything = np.ones(case.spec.num_arms, bool)
    each = [
        case.act(
            jax.random.key(0),
            state,
            Observation(seen_by(case.policy, case.spec, generator), everything),
        )[0].probabilities
        for _ in range(20)
    ]
    ignored = all(np.array_equal(one, each[0]) for one in each)
    assert looks_at_context(name) != ignored


@each_policy
def test_unknown_setting_is_refused(name: str) -> None:
    with pytest.raises(InputError, match=f"a setting of {name} must be .*, got 'colour'"):
        build_policy(f"{name}(colour=1)", SPECS["free"])


@each_case
def test_probabilities_are_over_the_available_arms(name: str, problem: str) -> None:
    case = compiled(name, problem)
    _, decisions = experienced(name, problem)
    for decision in decisions:
        probabilities = np.asarray(decision.probabilities)
        assert probabilities.shape == (case.spec.num_arms,)
        assert probabilities.sum() == pytest.approx(1, abs=1e-5)
        assert (probabilities >= 0).all()
        assert probabilities[decision.arm] > 0, "an arm of probability zero was pulled"
        assert decision.arm.dtype == jnp.int32
        assert decision.arm.shape == ()


@each_case
def test_the_only_arm_left_is_pulled(name: str, problem: str) -> None:
    case = compiled(name, problem)
    state, _ = experienced(name, problem)
    context = seen_by(case.policy, case.spec, np.random.default_rng(2))
    for arm in range(case.spec.num_arms):
        only = np.arange(case.spec.num_arms) == arm
        for start in (state, case.init(jax.random.key(1))):
            decision, _ = case.act(jax.random.key(arm), start, Observation(context, only))
            assert decision.arm == arm
            np.testing.assert_allclose(decision.probabilities, only, atol=1e-6)


@each_case
def test_no_arm_left_is_refused(name: str, problem: str) -> None:
    case = compiled(name, problem)
    state, _ = experienced(name, problem)
    context = seen_by(case.policy, case.spec, np.random.default_rng(2))
    nothing = np.zeros(case.spec.num_arms, bool)  # known while the rest is traced: none compiled
    with pytest.raises(InputError, match="available must be true for at least one arm"):
        jax.eval_shape(
            lambda key, state, context: case.policy.act(key, state, Observation(context, nothing)),
            jax.random.key(0),
            state,
            context,
        )


@each_case
def test_one_arm_is_a_problem_too(name: str, problem: str) -> None:
    spec = SPECS[problem]._replace(num_arms=1)
    policy = POLICIES[name](spec)
    context = seen_by(policy, spec, np.random.default_rng(0))

    @jax.jit
    def pull(key: jax.Array) -> object:
        decision, state = policy.act(key, policy.init(key), Observation(context, jnp.ones(1, bool)))
        return decision, policy.learn(state, decision.ticket, jnp.float32(1))

    decision, _ = pull(jax.random.key(1))
    assert decision.arm == 0
    assert decision.probabilities[0] == pytest.approx(1)


@each_case
def test_state_keeps_shape_and_dtype(name: str, problem: str) -> None:
    case = compiled(name, problem)
    fresh = jax.tree.map(lambda leaf: (leaf.shape, leaf.dtype), case.init(jax.random.key(0)))
    state, _ = experienced(name, problem)
    assert jax.tree.map(lambda leaf: (leaf.shape, leaf.dtype), state) == fresh


@each_case
def test_same_key_same_result(name: str, problem: str) -> None:
    case = compiled(name, problem)
    state, _ = experienced(name, problem)
    context = seen_by(case.policy, case.spec, np.random.default_rng(3))
    everything = np.ones(case.spec.num_arms, bool)
    first = case.act(jax.random.key(5), state, Observation(context, everything))
    second = case.act(jax.random.key(5), state, Observation(context, everything))
    assert_same_tree(first, second)
    learned = [case.learn(first[1], first[0].ticket, np.float32(1)) for _ in range(2)]
    assert_same_tree(*learned)


@pytest.mark.parametrize(("name", "problem"), PLAIN_CASES)
def test_jit_equals_plain(name: str, problem: str) -> None:
    case = compiled(name, problem)
    state, _ = experienced(name, problem)
    context = seen_by(case.policy, case.spec, np.random.default_rng(4))
    args = jax.random.key(6), state, Observation(context, np.ones(case.spec.num_arms, bool))
    fast, plain = case.act(*args), case.policy.act(*args)
    assert_same_tree(fast, plain, exactly=False)
    reward = np.float32(1)
    learned = [f(fast[1], fast[0].ticket, reward) for f in (case.learn, case.policy.learn)]
    assert_same_tree(*learned, exactly=False)


@each_case
def test_vmap_equals_loop(name: str, problem: str) -> None:
    case = compiled(name, problem)
    state, _ = experienced(name, problem)
    act, learn = compiled_vmapped(name, problem)
    keys = jax.random.split(jax.random.key(7), DRAWS)
    context = seen_by(case.policy, case.spec, np.random.default_rng(5))
    everything, reward = np.ones(case.spec.num_arms, bool), np.float32(0)
    decisions, states = act(keys, state, Observation(context, everything))[2]
    together = decisions, learn(states, decisions.ticket, reward)
    for index in range(COPIES):
        decision, after = case.act(keys[index], state, Observation(context, everything))
        alone = decision, case.learn(after, decision.ticket, reward)
        assert_same_tree(jax.tree.map(lambda x, i=index: x[i], together), alone, exactly=False)


@each_case
def test_no_second_compilation(name: str, problem: str) -> None:
    experienced(name, problem)
    case = compiled(name, problem)
    assert case.act._cache_size() == 1
    assert case.learn._cache_size() == 1


@each_case
def test_frequencies_match_probabilities(name: str, problem: str) -> None:
    case = compiled(name, problem)
    state, _ = experienced(name, problem)
    context = seen_by(case.policy, case.spec, np.random.default_rng(6))
    mask = np.arange(case.spec.num_arms) != 1
    keys = jax.random.split(jax.random.key(8), DRAWS)
    arms, drawn_from, _ = compiled_vmapped(name, problem)[0](
        keys, state, Observation(context, mask)
    )
    # They may depend on the key (dropout masks do), so their mean over the draws is what counts.
    probabilities = np.asarray(drawn_from, float).mean(axis=0)
    frequencies = np.bincount(np.asarray(arms), minlength=case.spec.num_arms) / DRAWS
    sigma = np.sqrt(probabilities * (1 - probabilities) / DRAWS)
    assert (np.abs(frequencies - probabilities) <= 4 * sigma + 1e-4).all()


@each_case
def test_state_survives_saving(name: str, problem: str, tmp_path: Path) -> None:
    case = compiled(name, problem)
    state, _ = experienced(name, problem)
    leaves, tree = jax.tree.flatten(state)
    np.savez(tmp_path / "state.npz", *leaves)
    with np.load(tmp_path / "state.npz") as file:
        loaded = jax.tree.unflatten(tree, [jnp.asarray(file[key]) for key in file.files])
    context = seen_by(case.policy, case.spec, np.random.default_rng(7))
    observation = Observation(context, np.ones(case.spec.num_arms, bool))
    before = case.act(jax.random.key(9), state, observation)
    assert_same_tree(before, case.act(jax.random.key(9), loaded, observation))


@each_case
def test_late_lost_and_reordered_rewards_do_no_harm(name: str, problem: str) -> None:
    case = compiled(name, problem)
    state, _ = experienced(name, problem)
    generator = np.random.default_rng(8)
    everything = np.ones(case.spec.num_arms, bool)
    tickets = []
    for step in range(6):
        context = seen_by(case.policy, case.spec, generator)
        decision, state = case.act(jax.random.key(step), state, Observation(context, everything))
        tickets.append(decision.ticket)
    for ticket in (tickets[5], tickets[1], tickets[3]):
        state = case.learn(state, ticket, np.float32(1))
    decision, _ = case.act(jax.random.key(99), state, Observation(context, everything))
    assert np.isfinite(decision.probabilities).all()
    assert 0 <= decision.arm < case.spec.num_arms


@each_case
def test_no_call_of_lapack(name: str, problem: str) -> None:
    """Two blocks of runs at a time that call it can wait for each other for ever."""
    assert not any("lapack" in program.as_text() for program in vmapped(name, problem))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("recurrent(hidden=0)", "hidden must be a whole number of at least 1, got 0"),
        ("recurrent(layers=-1)", "layers must be a whole number of at least 1, got -1"),
        ("recurrent(hidden=1.5)", "hidden must be a whole number of at least 1, got 1.5"),
        ("recurrent(dropout=1)", r"dropout must be a share in \[0, 1\), got 1"),
        ("recurrent(energy=-1)", "energy must be a number of at least 0, got -1"),
        ("recurrent(epsilon=2)", r"epsilon must be a probability in \[0, 1\], got 2"),
        ("recurrent(temperature=0)", "temperature must be a positive number, got 0"),
        ("recurrent(learning_rate='x')", "learning_rate must be a positive number, got 'x'"),
        ("recurrent(baseline_rate=-0.1)", r"baseline_rate must be a probability in \[0, 1\]"),
        ("recurrent(history=1)", "history must be true or false, got 1"),
        ("swa(alpha=0)", "alpha must be a positive number, got 0"),
        ("swa(alpha=1" + "0" * 400 + ")", "alpha must be a positive number, got 1"),
        ("swa(doubling=2)", "doubling must be true or false, got 2"),
        ("fewa(longest=0)", "longest must be a whole number of at least 1, got 0"),
        ("eff_fewa(ratio=1)", r"ratio must be a number in \(1, 2\], got 1"),
        ("lin_ts(precision=-1)", "precision must be a positive number, got -1"),
        ("neural_linear(memory=0)", "memory must be a whole number of at least 1, got 0"),
        ("neural_linear(train_every=0)", "train_every must be a whole number of at least 1"),
        ("recurent", "policy must be one of .*, got 'recurent'; did you mean 'recurrent'"),
        ("recurrent(enrgy=1)", "a setting of recurrent must be .*; did you mean 'energy'"),
        ("recurrent(", r"policy must be written as name or name\(setting=value, ...\)"),
        ("recurrent(1)", "policy must be written as name"),
        ("recurrent(energy=f(1))", r"the setting energy must be a number, .*, got 'f\(1\)'"),
        ("ucb(scale=wide)", r"the setting scale must be a number, .* or a \[list\], got 'wide'"),
        ("tracker, ucb", "policy must be one at a time .*-p tracker -p ucb"),
        ("recurrent(energy=1, energy=2)", "policy must be written as name"),
    ],
)
def test_bad_choices_are_refused(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        build_policy(text, BanditSpec(3, horizon=100))


def test_swa_needs_a_horizon_or_doubling() -> None:
    with pytest.raises(InputError, match=r"horizon must be known to swa.*doubling=true"):
        build_policy("swa", BanditSpec(3))
    build_policy("swa(doubling=true)", BanditSpec(3)).init(jax.random.key(0))
