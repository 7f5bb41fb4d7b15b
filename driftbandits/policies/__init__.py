"""The policies, by the names that the command line and experiment files use."""

from collections.abc import Callable
from functools import lru_cache

from driftbandits.choice import construct, parse
from driftbandits.core import BanditSpec, Policy
from driftbandits.policies.eff_fewa import eff_fewa
from driftbandits.policies.fewa import fewa
from driftbandits.policies.lin_ts import lin_ts
from driftbandits.policies.neural_linear import neural_linear
from driftbandits.policies.neural_ts import neural_ts
from driftbandits.policies.neural_ucb import neural_ucb
from driftbandits.policies.oracle import oracle
from driftbandits.policies.recurrent import recurrent
from driftbandits.policies.recurrent_linear import recurrent_linear
from driftbandits.policies.swa import swa
from driftbandits.policies.thompson import thompson
from driftbandits.policies.ucb import ucb
from driftbandits.policies.uniform import uniform

POLICIES: dict[str, Callable[..., Policy]] = {
    "recurrent": recurrent,
    "thompson": thompson,
    "ucb": ucb,
    "swa": swa,
    "fewa": fewa,
    "eff_fewa": eff_fewa,
    "lin_ts": lin_ts,
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
