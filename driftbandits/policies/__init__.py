"""The policies, by the names that the command line and experiment files use."""

from functools import lru_cache

from driftbandits.choice import construct, parse
from driftbandits.core import BanditSpec, Policy
from driftbandits.factories import Factories

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


@lru_cache(maxsize=64)
def build_policy(text: str, spec: BanditSpec) -> Policy:
    """The policy that e.g. "recurrent(energy=0)" names, for a problem."""
    policy: Policy = construct("policy", POLICIES, parse("policy", text), spec)
    return policy
