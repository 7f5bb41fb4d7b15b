"""Arms with features: what reaches the policy, and what is refused without a change."""

import re
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from driftbandits import InputError, build_environment, category, number, simulate
from driftbandits.agents.agent import Agent, agent_of
from driftbandits.agents.file import from_bytes, to_bytes
from driftbandits.agents.learner import DivergenceError, Learner
from driftbandits.core import BanditSpec, Observation
from driftbandits.policies import build_policy
from driftbandits.simulation.engine import block_keys

NEWS: dict[str, Any] = {"a": {"sport": 1, "age": 0.1}, "b": {"sport": 0, "age": 0.2}}
TYPES = {"topic": category(buckets=3), "age": number()}
TYPED: dict[str, Any] = {"a": {"topic": "sport", "age": 1}, "b": {"topic": "arts", "age": 4}}
SEED = 5
HORIZON = 200
GROWING = ["d_lin_ts", "d_lin_ucb", "neural_ucb"]


def news(**settings: Any) -> Agent:
    """One policy and number of arms, so that its programs are compiled once."""
    return Agent(NEWS, **({"policy": "lin_ucb", "context": ["x"], "seed": SEED} | settings))


def typed(policy: str = "d_lin_ts") -> Agent:
    return Agent(TYPED, policy=policy, features=TYPES, seed=SEED)


def copied(agent: Agent) -> Agent:
    return agent_of(from_bytes(to_bytes(agent._book)))


def table(agent: Agent) -> list[list[float]]:
    return agent._book.features.table.tolist()


def play(agent: Agent, steps: int, **request: Any) -> list[Any]:
    """Decisions and rewards that depend on nothing but the arms."""
    made = []
    for step in range(steps):
        decision = agent.decide(**request, now=step)
        agent.reward(decision.id, (len(decision.arm) * 7 + step) % 3 / 2, now=step)
        made.append(decision)
    return made


def same(one: Agent, other: Agent, **request: Any) -> bool:
    """Whether both are in the same state, and go on in the same way."""
    if to_bytes(one._book) != to_bytes(other._book) or table(one) != table(other):
        return False
    return play(one, 5, **request) == play(other, 5, **request)


def test_an_agent_decides_as_its_policy_does_with_the_same_features() -> None:
    agent = news()
    policy = build_policy("lin_ucb", BanditSpec(2, 1, arm_dim=2, noise=0.5))
    keys = block_keys(SEED, 1, 0)
    state, stepping = policy.init(keys.policy_start[0]), keys.steps[0][2]
    features = jnp.array([[1, 0.1], [0, 0.2]], jnp.float32)
    act, learn = jax.jit(policy.act), jax.jit(policy.learn)
    for time in range(8):
        context = np.float32([np.sin(time)])
        seen = Observation(jnp.asarray(context), jnp.ones(2, bool), features)
        moment = jax.random.fold_in(stepping, time)
        arm, ticket, state = chosen(act, moment, state, seen)
        decision = agent.decide(context, now=time)
        assert agent.arms.index(decision.arm) == arm
        reward = float(time % 3 == arm)
        agent.reward(decision.id, reward, now=time)
        state = learn(state, ticket, jnp.float32(reward))


def chosen(act: Any, key: Any, state: Any, seen: Observation) -> tuple[int, Any, Any]:
    made, state = act(key, state, seen)
    return int(made.arm), made.ticket, state


@pytest.mark.parametrize("policy", ["lin_ts", "d_lin_ts"])
@pytest.mark.parametrize("by", ["own arms", "their names"])
def test_an_agent_pulls_what_the_simulation_pulls(policy: str, by: str) -> None:
    world = "shared_linear(num_arms=4, context_dim=2, arm_dim=2)"
    environment = build_environment(world)
    trace = simulate(policy, environment, horizon=HORIZON, seed=SEED, record_every=1)
    steps = np.diff(trace.pulls[0], axis=0, prepend=0).argmax(axis=1)
    assert len(set(steps)) > 1
    np.testing.assert_array_equal(pulled(policy, environment, by), steps)


def pulled(policy: str, environment: Any, by: str) -> list[int]:
    """The arms that an agent chooses in run 0 of a simulation."""
    keys = block_keys(SEED, 1, 0)
    observing, paying, _ = keys.steps[0]
    state = environment.init(keys.world_start[0])
    observe, pay = jax.jit(environment.observe), jax.jit(environment.rewards)
    known = {f"arm {i}": row for i, row in enumerate(np.asarray(state.arms).tolist())}
    given = known if by == "their names" else {arm: [0.0, 0.0] for arm in known}
    settings: Any = {"reward_range": environment.spec.reward_range, "horizon": HORIZON}
    settings |= {"noise": environment.spec.noise, "out_of_range": "accept"}
    agent = Agent(given, ["x0", "x1"], policy, SEED, features=["f0", "f1"], **settings)
    arms = []
    for time in range(HORIZON):
        seen = observe(jax.random.fold_in(observing, time), state)
        rewards = pay(jax.random.fold_in(paying, time), state, seen.context)
        own = known if by == "own arms" else None
        decision = agent.decide(np.asarray(seen.context), arms=own, now=time)
        arms.append(agent.arms.index(decision.arm))
        agent.reward(decision.id, float(rewards.sampled[arms[-1]]), now=time)
        state = environment.advance(state, jnp.int32(arms[-1]))
    return arms


@pytest.mark.parametrize("policy", GROWING)
def test_what_is_learned_of_one_arm_tells_of_another_like_it(policy: str) -> None:
    agent = news(policy=policy, context=())
    for step in range(60):
        decision = agent.decide(available=["ab"[step % 2]], now=step)
        agent.reward(decision.id, float(decision.arm == "a"), now=step)
    agent.add_arm("like a", {"sport": 1, "age": 0.1})
    agent.add_arm("like b", {"sport": 0, "age": 0.2})
    probabilities = agent.decide(available=["like a", "like b"], now=60).probabilities
    assert probabilities["like a"] > 0.8


@pytest.mark.parametrize("policy", GROWING)
def test_new_arms_keep_the_features_and_the_knowledge_of_all(policy: str) -> None:
    agent = typed(policy)
    play(agent, 10)
    before = agent._book.learner.state()
    agent.add_arm("c", {"topic": "arts", "age": 4})
    agent.add_arm("d", {})
    agent.add_arm("e")
    assert agent._book.arms.slots == 8
    rows = agent._book.features.table
    np.testing.assert_array_equal(rows[2], rows[1])
    assert rows[3].tolist() == [0, 0, 0, 1, 0, 1], "both are missing"
    assert not rows[4:].any()
    after = agent._book.learner.state()
    shared = [path for path in before if before[path].shape == after[path].shape]
    assert shared
    assert all(before[path].tobytes() == after[path].tobytes() for path in shared)
    assert list(play(agent, 3)[-1].probabilities) == ["a", "b", "c", "d", "e"]


def test_features_can_be_set() -> None:
    agent, other = news(), Agent({**NEWS, "a": [3, 4]}, ["x"], "lin_ucb", SEED,
                                 features=["sport", "age"])  # fmt: skip
    agent.set_features("a", [3, 4])
    assert table(agent) == [[3, 4], [0, np.float32(0.2)]]
    assert play(agent, 10, context=[1]) == play(other, 10, context=[1])


@pytest.mark.parametrize(
    ("make", "again"),
    [
        (news, {"sport": 1, "age": 0.1}), (news, [1, np.float32(0.1)]),
        (typed, {"age": 1.0, "topic": "sport"}), (typed, {"topic": np.str_("sport"), "age": 1}),
    ],
)  # fmt: skip
def test_features_that_an_arm_has_already_change_nothing(make: Any, again: Any) -> None:
    agent, other = make(), make()
    for each in (agent, copied(agent)):
        for _ in range(3):
            each.set_features("a", again)
        assert to_bytes(each._book) == to_bytes(other._book)
        assert table(each) == table(other)


def test_features_are_replaced_not_merged() -> None:
    agent = typed()
    agent.set_features("a", {"age": 1})
    assert agent._book.features_json("a") == {"age": 1.0}
    with pytest.raises(InputError, match="sport in features must be given"):
        news().set_features("a", {"age": 1})


def test_what_was_learned_stays_when_features_change() -> None:
    agent = news()
    play(agent, 10, context=[1])
    before = agent._book.learner.state()
    agent.set_features("b", {"age": 5, "sport": 0.5})
    assert all(
        agent._book.learner.state()[path].tobytes() == array.tobytes()
        for path, array in before.items()
    )


def test_own_features_count_for_one_decision() -> None:
    agent, other = news(), news()
    own: Any = {"a": {"sport": 0, "age": 9}, "b": [1, -9]}
    agent.decide([1], arms=own, id="x", now=0)
    other.decide([1], id="x", now=0)
    assert table(agent) == table(other)
    one = agent.decide([1], id="y", now=0)
    assert one.probabilities == other.decide([1], id="y", now=0).probabilities


def test_none_stands_for_what_is_not_known() -> None:
    agent = Agent({"a": TYPED["a"], "b": None}, policy="d_lin_ts", features=TYPES, seed=SEED)
    assert not agent._book.features.table[1].any()
    agent.set_features("a", {"topic": None, "age": None})
    assert agent._book.features_json("a") == {}
    assert agent._book.features.table[0].tolist() == [0, 0, 0, 1, 0, 1], "both are missing"
    one, other = typed(), typed()
    own: Any = {"a": None, "b": {"age": 3}}
    assert one.decide(arms=own, now=0) == other.decide(arms={**own, "a": TYPED["a"]}, now=0)
    with pytest.raises(InputError, match="features must be those of an arm"):
        one.set_features("a", None)  # type: ignore[arg-type]


def test_without_deviations_only_the_features_that_are_brought_count() -> None:
    agent = Agent(["one", "two"], policy="d_lin_ucb(deviation=0)", features=["sport"], seed=SEED)
    rng = np.random.default_rng(0)
    for _ in range(60):
        own = dict(zip(rng.permutation(["one", "two"]).tolist(), ([1.0], [0.0]), strict=True))
        decision = agent.decide(arms=own, now=0)
        agent.reward(decision.id, own[decision.arm][0], now=0)
    for sport, other in (("one", "two"), ("two", "one")):
        made = agent.decide(arms={sport: [1], other: [0]}, now=0)
        assert made.probabilities[sport] == 1


def test_only_own_arms_are_chosen() -> None:
    agent = Agent({**NEWS, "c": [5, 5]}, policy="lin_ucb", features=["sport", "age"])
    made = [agent.decide(arms={"b": [0, 1], "a": [1, 1]}, now=0) for _ in range(5)]
    assert all(decision.probabilities["c"] == 0 for decision in made)


def test_unknown_arms_of_a_decision_are_added() -> None:
    agent = news()
    made = agent.decide([1], arms={"new": {"sport": 1, "age": 1}, "newer": [0, 1]}, now=0)
    assert made.arm in ("new", "newer")
    assert agent.arms == ["a", "b", "new", "newer"]
    assert table(agent)[2:] == [[1, 1], [0, 1]]
    agent.decide([1], arms={"new": [0, 0]}, now=0)
    assert table(agent)[2:] == [[1, 1], [0, 1]]


def bringing() -> list[dict[str, Any]]:
    """Requests that bring new arms, one of them twice, between others."""
    new = {"new": {"topic": "news", "age": 70}, "b": {"age": 3}}
    again = {"new": {"topic": "arts", "age": 1}, "newer": {}, "newest": {"age": 9}}
    return [{}, {"arms": new}, {}, {"arms": again, "k": 2}, {"available": ["new"]}, {"k": 5}, {}]


@pytest.mark.parametrize("policy", ["d_lin_ts", "exp3"])
def test_a_batch_that_brings_arms_decides_as_one_at_a_time(policy: str) -> None:
    many, single = typed(policy), typed(policy)
    made = many.decide_many(bringing(), now=0)
    assert made == [single.decide(**each, now=0) for each in bringing()]
    assert [len(each.probabilities) for each in made[:3]] == [2, 3, 3]
    assert many.arms == ["a", "b", "new", "newer", "newest"]
    assert same(many, single)


@pytest.mark.parametrize("first", [{"available": ["new"]}, {"k": 3}, {"k": 4}])
def test_nobody_knows_the_arms_of_a_later_request(first: dict[str, Any]) -> None:
    agent, other = news(), news()
    with pytest.raises(InputError, match=r"one of a, b, got 'new'|k must be at most 2"):
        agent.decide_many([{"context": [1], **first}, {"context": [1], "arms": {"new": [1, 1]}}])
    assert same(agent, other, context=[1])


@pytest.mark.parametrize("policy", ["lin_ucb", "d_lin_ts", "exp3"])
@pytest.mark.parametrize("count", [1, 4])
def test_arms_of_a_decision_that_cannot_be_made_are_not_added(
    policy: str, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent, other = typed(policy), typed(policy)
    for each in (agent, other):
        play(each, 5)
        each.decide(id="open", now=5)
    other._book.widen(4 if count == 1 else 8)  # the slots stay
    other.expire(now=6)
    act_once = Learner.act_once

    def refusing(self: Learner, context: Any, available: np.ndarray, *arguments: Any) -> Any:
        if available[1 + count :].any():
            raise DivergenceError("it cannot decide here")
        return act_once(self, context, available, *arguments)

    monkeypatch.setattr(Learner, "act_once", refusing)
    before = agent._book.features.vectors.state()
    new = [{"arms": {f"new {i}": {"topic": f"t{i}", "age": 1000.0}}} for i in range(count)]
    with pytest.raises(InputError, match="it cannot decide here"):
        agent.decide_many([{}, *new], now=6)
    monkeypatch.undo()
    assert (agent.arms, agent.open) == (["a", "b"], ["open"])
    assert agent._book.features.vectors.state() == before
    assert same(agent, other)
    agent.add_arm("new 0", {"age": 3})
    other.add_arm("new 0", {"age": 3})
    assert same(agent, other)


def test_arms_without_features_may_be_brought_too() -> None:
    agent = Agent(["a", "b"], policy="thompson")
    assert agent.decide(arms={"c": {}}, now=0).arm == "c"
    assert agent.arms == ["a", "b", "c"]


def requests() -> list[dict[str, Any]]:
    own = {"a": {"topic": "news", "age": 70}, "b": {"age": 3}}
    return [{}, {}, {"arms": own}, {}, {"available": ["b"]}, {"arms": {"b": {}}}, {"arms": own}]


def test_a_batch_decides_as_one_at_a_time() -> None:
    many, single = typed(), typed()
    made = many.decide_many(requests(), now=0)
    assert made == [single.decide(**each, now=0) for each in requests()]
    assert same(many, single)


def test_a_file_goes_on_bit_for_bit(tmp_path: Path) -> None:
    agent = typed()
    agent.add_arm("c", {"age": 1000})
    agent.decide_many(requests(), now=0)
    agent.set_features("a", {"topic": "film"})
    agent.save(tmp_path / "news.agent")
    again = Agent.load(tmp_path / "news.agent")
    assert again.settings == agent.settings
    assert same(agent, again)


@pytest.mark.parametrize("ages", range(1, 8))
def test_scales_that_own_arms_changed_are_those_of_the_file(ages: int) -> None:
    agent = typed()
    for age in range(ages):
        agent.decide(arms={"a": {"age": 100.0 * age}}, now=0)
    assert table(agent) == table(copied(agent))


WRONG_FEATURES: list[tuple[Any, str]] = [
    ({"sport": 1}, "age in features must be given, got {'sport': 1}"),
    ([1, True], "features must be a list of numbers, got [1, True]"),
    ([True, False], "features must be a list of numbers, got [True, False]"),
    ([1, np.False_], "features must be a list of numbers, got [1, np.False_]"),
    (np.array([True, False]), "features must be a list of numbers, got array([ True, False])"),
    ({"sport": True, "age": 1}, "sport in features must be a number (features={'sport'"),
    ({"sport": np.True_, "age": 1}, "sport in features must be a number (features={'sport'"),
    ({"sport": 1, "age": None}, "age in features must be a number (features={'age'"),
    ([1, None], "features must be a list of numbers, got [1, None]"),
    ({"sport": 1, "age": 2, "size": 3}, "a name in features must be one of sport, age, got 'size'"),
    ([1], "features must be 2 numbers (sport, age), got [1]"),
    ([1, np.nan], "features must be a list of finite numbers"),
    ([1, "2"], "features must be a list of numbers, got [1, '2']"),
    ("ab", "features must be a list of numbers, got 'ab'"),
    ([1, 101], "feature age must be from -100 to 100"),
    ([1, 10**400], "features must be a list of"),
]
WRONG_VALUES: list[tuple[Any, str]] = [
    ({"size": 1}, "a name in features must be one of topic, age, got 'size'"),
    ({"age": np.nan}, "age in features must be"),
    ({"age": True}, "age in features must be a finite number"),
    ({"topic": 5}, "topic in features must be a text"),
    ({"topic": ""}, "topic in features must be a text"),
    ([1, 2], "features must be a mapping of names to values, got [1, 2]"),
]


@pytest.mark.parametrize("change", ["add_arm", "set_features", "decide", "decide with a new arm"])
@pytest.mark.parametrize(
    ("make", "wrong", "message"),
    [(news, *each) for each in WRONG_FEATURES] + [(typed, *each) for each in WRONG_VALUES],
)
def test_wrong_features_change_nothing(change: str, make: Any, wrong: Any, message: str) -> None:
    agent, other = make(), make()
    context: Any = {"context": [1]} if make is news else {}
    with pytest.raises(InputError, match=re.escape(message)):
        ask_for(agent, change, wrong, context)
    assert same(agent, other, **context)


def ask_for(agent: Agent, change: str, features: Any, context: dict[str, Any]) -> None:
    if change == "add_arm":
        agent.add_arm("new", features)
    elif change == "set_features":
        agent.set_features("a", features)
    else:
        right = agent._book.features_json("a")
        own = {"a": features} if change == "decide" else {"new": right, "b": features}
        agent.decide_many([context, {**context, "arms": own}], now=0)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"arms": {}}, "arms must be the features of at least one arm by name, got {}"),
        ({"arms": ["a"]}, "arms must be the features of at least one arm by name, got ['a']"),
        ({"arms": {"a": [1, 1]}, "available": ["a"]}, "available must be left out where"),
        ({"arms": {"": [1, 1]}}, "arm must be a text of 1 to 200 characters"),
        ({"arms": {5: [1, 1]}}, "arm must be a text of 1 to 200 characters"),
        ({"arms": {"new": [1, 1]}, "k": 2}, "k must be at most 1, the number of arms"),
        ({"arms": {"new": [1, 1]}, "k": 0}, "k must be a whole number of at least 1"),
        ({"arms": {"new": [1, 1]}, "k": 1, "id": "x" * 199}, "id must be a text of 1 to 200"),
        ({"arms": {"new": [1, 1]}, "context": [1, 2]}, "context must be 1 numbers (x)"),
        ({"arms": {"new": [1, 1]}, "id": ""}, "id must be a text"),
        (
            {"arms": {"a": [1, 1]}},
            "available must be a list with at least one arm that is not retired",
        ),
    ],
)
def test_wrong_requests_change_nothing(wrong: dict[str, Any], message: str) -> None:
    agent, other = news(), news()
    for each in (agent, other):
        each.retire_arm("a")
    good = {"context": [1], "arms": {"good": [0, 0]}}
    with pytest.raises(InputError, match=re.escape(message)):
        agent.decide_many([good, {"context": [1], **wrong}], now=0)
    assert same(agent, other, context=[1])


def test_only_arms_with_features_can_have_others() -> None:
    agent = Agent(["a", "b"], policy="thompson")
    for wrong in ({"x": 1}, [1], np.array([1.0, 2.0])):
        with pytest.raises(InputError, match="features must be left out"):
            agent.add_arm("c", wrong)
    for features in ({}, {"x": 1}):
        with pytest.raises(InputError, match="whose arms have features"):
            agent.set_features("a", features)
    with pytest.raises(InputError, match="arm must be one of a, b, got 'c'"):
        news().set_features("c", [1, 1])
    assert agent.arms == ["a", "b"]


@pytest.mark.parametrize(
    ("arms", "features", "message"),
    [
        ({}, None, "arms must be a list of at least one name"),
        ({"a": {"x": 1}, "b": {"y": 1}}, None, "a name in features must be one of x, got 'y'"),
        (
            {"a": {"x": "sport"}},
            None,
            "x in features must be a number (features={'x': category()} takes",
        ),
        ({"a": {"x": 1}}, ["y"], "a name in features must be one of y, got 'x'"),
        ({"a": {"x": 1}}, {"x": "colour"}, "x in features must be"),
        ({"a": {"x": 1}}, "x", "features must be a list of names, got 'x'"),
    ],
)
def test_features_that_do_not_fit_are_refused_at_the_start(
    arms: Any, features: Any, message: str
) -> None:
    with pytest.raises(InputError, match=re.escape(message)):
        Agent(arms, policy="lin_ucb", features=features)


def test_features_of_one_decision_change_no_scale_and_no_category() -> None:
    schema = {"words": number(), "topic": category(buckets=4)}
    arms = {f"a{i}": {"words": 100 * i, "topic": "sport"} for i in range(4)}
    agent = Agent(arms, features=schema, policy="d_lin_ucb", seed=1)
    table, state = agent._book.features.table, agent._book.features.vectors.state()
    own = {f"a{i}": {"words": 1e12, "topic": f"junk{i}"} for i in range(4)}
    for _ in range(100):
        agent.decide(arms=own, now=0)
    assert agent._book.features.vectors.state() == state
    assert np.array_equal(agent._book.features.table, table)


def test_arms_of_a_refused_decision_are_not_added() -> None:
    agent = news(max_open=2)
    known = agent.decide([1], id="known", arms={"a": [0, 0]}, now=0)
    new: dict[str, Any] = {"context": [1], "arms": {"new": [1, 1], "newer": [1, 0], "x": [0, 0]}}
    before = to_bytes(agent._book)
    with pytest.raises(InputError, match="now must be"):
        agent.decide(**new, now=float("nan"))
    with pytest.raises(InputError, match="requests must be at most 2"):
        agent.decide(**new, k=3, now=0)
    assert agent.decide(**new, id="known", now=0) == known
    assert to_bytes(agent._book) == before


def test_arms_that_are_added_one_by_one_have_the_table_of_all_at_once() -> None:
    schema = {"words": number(), "topic": category(buckets=4)}
    rng = np.random.default_rng(0)
    values = {
        f"a{i}": {"words": float(rng.normal()), "topic": f"t{rng.integers(6)}"} for i in range(40)
    }
    together = Agent(values, features=schema, policy="d_lin_ucb", seed=1)
    single = Agent({"a0": values["a0"]}, features=schema, policy="d_lin_ucb", seed=1)
    for name in list(values)[1:]:
        single.add_arm(name, values[name])
    tables = [each._book.features.table[: len(values)] for each in (together, single)]
    assert np.array_equal(*tables)
