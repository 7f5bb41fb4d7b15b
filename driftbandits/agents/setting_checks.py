"""Checks of an agent's settings."""

from collections.abc import Mapping

from driftbandits import check
from driftbandits.agents import checks
from driftbandits.agents.ranges import OUT_OF_RANGE, between
from driftbandits.agents.settings import MOST_OPEN, AgentSettings, Columns
from driftbandits.agents.vectors import checked_columns


def checked_settings(given: AgentSettings) -> AgentSettings:
    """Checks settings and returns them with tuples instead of lists."""
    if not isinstance(given.policy, str):
        check.fail("policy", "a name with settings, as in 'tracker(width=2)'", given.policy)
    context = checked_columns("context", given.context)
    features = checked_columns("features", given.features)
    check.positive(noise=given.noise)
    if given.horizon is not None:
        check.integer(horizon=given.horizon)
    if given.window is not None:
        check.positive(window=given.window)
    if given.default_reward is not None:
        checks.reward(given.default_reward, "default_reward")
    check.integer(seed=given.seed, remember=given.remember, at_least=0)
    check.integer(max_open=given.max_open, at_most=MOST_OPEN)
    check.known("out_of_range", given.out_of_range, OUT_OF_RANGE)
    low, high = reward_range = two_numbers("reward_range", given.reward_range)
    default = given.default_reward
    if default is not None and given.out_of_range == "refuse" and not low <= default <= high:
        check.fail("default_reward", f"{between(low, high)} (reward_range)", default)
    return given._replace(
        context=context,
        features=features,
        reward_range=reward_range,
        context_ranges=ranges_by_name(given.context_ranges, context),
    )


def ranges_by_name(
    given: Mapping[str, tuple[float, float]], context: Columns
) -> dict[str, tuple[float, float]]:
    if not isinstance(given, Mapping):
        check.fail("context_ranges", "two numbers for each name, as in {'age': (0, 120)}", given)
    if given and isinstance(context, Mapping):
        rule = "left out, as the context's schema has ranges: number(low=0, high=120)"
        check.fail("context_ranges", rule, dict(given))
    for name in given:
        check.known("a name in context_ranges", name, context)
    return {name: two_numbers(f"the range of {name}", ends) for name, ends in given.items()}


def two_numbers(kind: str, given: object) -> tuple[float, float]:
    ends = list(given) if isinstance(given, list | tuple) else []
    if len(ends) != 2 or not all(map(check.is_number, ends)) or not ends[0] < ends[1]:
        check.fail(kind, "two numbers, the lower first", given)
    return ends[0], ends[1]
