"""The policies, by the names that the command line and experiment files use."""

import inspect
from functools import lru_cache

from driftbandits import check
from driftbandits.choice import construct, parse
from driftbandits.core import BanditSpec, Policy
from driftbandits.factories import Factories
from driftbandits.numerics.new_arms import forgetting_old_arms

REST = inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD

POLICIES: Factories[Policy] = Factories(
    __name__,
    [
        "tracker.policy",
        "recurrent",
        "thompson",
        "discounted_thompson",
        "sw_thompson",
        "gaussian_thompson",
        "ucb",
        "kl_ucb",
        "sw_ucb",
        "d_ucb",
        "epsilon_greedy",
        "cusum_ucb",
        "m_ucb",
        "glr_ucb",
        "bandit_over_bandit",
        "exp3",
        "exp3_s",
        "rexp3",
        "swa",
        "fewa",
        "eff_fewa",
        "raw_ucb",
        "eff_raw_ucb",
        "lin_ts",
        "d_lin_ts",
        "lin_ucb",
        "d_lin_ucb",
        "sw_lin_ucb",
        "neural_linear",
        "neural_ucb",
        "neural_ts",
        "recurrent_linear",
        "uniform",
        "oracle",
    ],
)
"""The policies by name: a mapping from a name to the function that builds the policy.

Assign to it to use a policy of your own by name, for example in `compare`.

Example:
    ```python
    from driftbandits import POLICIES, BanditSpec

    print(list(POLICIES)[:3])
    policy = POLICIES["ucb"](BanditSpec(num_arms=3), scale=0.3)
    ```
"""


def build_policy(text: str, spec: BanditSpec) -> Policy:
    """Builds the policy that a text names, for a problem.

    Args:
        text: A name, or a name with settings: `tracker`, `recurrent(energy=0)`.
        spec: The problem: number of arms, dimension of the context, range and noise of the rewards,
            and the horizon if it is known. An environment has it as `environment.spec`.

    Returns:
        The policy. The same text and spec give the same object.

    Raises:
        InputError: The name or a setting is unknown, or a value is out of range.

    Example:
        ```python
        from driftbandits import BanditSpec, build_policy

        policy = build_policy("sw_ucb(window=500)", BanditSpec(num_arms=3))
        ```
    """
    return built(text, spec, POLICIES.version(parse("policy", text).name))


@lru_cache(maxsize=64)
def built(text: str, spec: BanditSpec, version: int) -> Policy:
    """Built once per text, problem and version of the table's entry."""
    policy: Policy = checked(construct("policy", POLICIES, parse("policy", text), spec))
    if not spec.arms_change:
        return policy
    one_more = spec._replace(num_arms=spec.num_arms + 1)
    wider: Policy = construct("policy", POLICIES, parse("policy", text), one_more)
    return forgetting_old_arms(policy, wider, spec)


def checked(policy: Policy) -> Policy:
    """A policy whose `act` takes what it is handed; until 0.13 it took context and mask apart."""
    given = list(inspect.signature(policy.act).parameters.values())
    needed = [each.name for each in given if each.default is each.empty and each.kind not in REST]
    if len(needed) > 3:
        rule = "a function of key, state and observation, which has `context` and `available`"
        check.fail("act", rule, f"act({', '.join(needed)})")
    return policy
