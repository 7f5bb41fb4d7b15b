"""The policies, by the names that the command line and experiment files use."""

from collections.abc import Callable
from functools import lru_cache

from driftbandits.choice import construct, parse
from driftbandits.core import BanditSpec, Policy
from driftbandits.policies.bandit_over_bandit import bandit_over_bandit
from driftbandits.policies.cusum_ucb import cusum_ucb
from driftbandits.policies.d_lin_ts import d_lin_ts
from driftbandits.policies.d_lin_ucb import d_lin_ucb
from driftbandits.policies.d_ucb import d_ucb
from driftbandits.policies.discounted_thompson import discounted_thompson
from driftbandits.policies.eff_fewa import eff_fewa
from driftbandits.policies.eff_raw_ucb import eff_raw_ucb
from driftbandits.policies.epsilon_greedy import epsilon_greedy
from driftbandits.policies.exp3 import exp3
from driftbandits.policies.exp3_s import exp3_s
from driftbandits.policies.fewa import fewa
from driftbandits.policies.gaussian_thompson import gaussian_thompson
from driftbandits.policies.glr_ucb import glr_ucb
from driftbandits.policies.kl_ucb import kl_ucb
from driftbandits.policies.lin_ts import lin_ts
from driftbandits.policies.lin_ucb import lin_ucb
from driftbandits.policies.m_ucb import m_ucb
from driftbandits.policies.neural_linear import neural_linear
from driftbandits.policies.neural_ts import neural_ts
from driftbandits.policies.neural_ucb import neural_ucb
from driftbandits.policies.oracle import oracle
from driftbandits.policies.raw_ucb import raw_ucb
from driftbandits.policies.recurrent import recurrent
from driftbandits.policies.recurrent_linear import recurrent_linear
from driftbandits.policies.rexp3 import rexp3
from driftbandits.policies.sw_lin_ucb import sw_lin_ucb
from driftbandits.policies.sw_thompson import sw_thompson
from driftbandits.policies.sw_ucb import sw_ucb
from driftbandits.policies.swa import swa
from driftbandits.policies.thompson import thompson
from driftbandits.policies.tracker.policy import tracker
from driftbandits.policies.ucb import ucb
from driftbandits.policies.uniform import uniform

POLICIES: dict[str, Callable[..., Policy]] = {
    "tracker": tracker,
    "recurrent": recurrent,
    "thompson": thompson,
    "discounted_thompson": discounted_thompson,
    "sw_thompson": sw_thompson,
    "gaussian_thompson": gaussian_thompson,
    "ucb": ucb,
    "kl_ucb": kl_ucb,
    "sw_ucb": sw_ucb,
    "d_ucb": d_ucb,
    "epsilon_greedy": epsilon_greedy,
    "cusum_ucb": cusum_ucb,
    "m_ucb": m_ucb,
    "glr_ucb": glr_ucb,
    "bandit_over_bandit": bandit_over_bandit,
    "exp3": exp3,
    "exp3_s": exp3_s,
    "rexp3": rexp3,
    "swa": swa,
    "fewa": fewa,
    "eff_fewa": eff_fewa,
    "raw_ucb": raw_ucb,
    "eff_raw_ucb": eff_raw_ucb,
    "lin_ts": lin_ts,
    "d_lin_ts": d_lin_ts,
    "lin_ucb": lin_ucb,
    "d_lin_ucb": d_lin_ucb,
    "sw_lin_ucb": sw_lin_ucb,
    "neural_linear": neural_linear,
    "neural_ucb": neural_ucb,
    "neural_ts": neural_ts,
    "recurrent_linear": recurrent_linear,
    "uniform": uniform,
    "oracle": oracle,
}


@lru_cache(maxsize=64)
def build_policy(text: str, spec: BanditSpec) -> Policy:
    """The policy that e.g. "recurrent(energy=0)" names, for a problem."""
    policy: Policy = construct("policy", POLICIES, parse("policy", text), spec)
    return policy
