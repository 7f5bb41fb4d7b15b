"""The environments, by the names that the command line and experiment files use."""

from collections.abc import Callable
from functools import lru_cache

from driftbandits.choice import Choice, construct, parse
from driftbandits.core import Environment
from driftbandits.environments.abrupt import abrupt
from driftbandits.environments.adversarial import adversarial
from driftbandits.environments.bernoulli import bernoulli
from driftbandits.environments.close_arms import close_arms
from driftbandits.environments.delayed import delayed
from driftbandits.environments.fatigue import fatigue
from driftbandits.environments.flipping import flipping
from driftbandits.environments.flipping_linear import flipping_linear
from driftbandits.environments.following import following
from driftbandits.environments.heavy_tailed import heavy_tailed
from driftbandits.environments.linear import linear
from driftbandits.environments.max_consecutive import max_consecutive
from driftbandits.environments.noisy import noisy
from driftbandits.environments.nonlinear import nonlinear
from driftbandits.environments.random_walk import random_walk
from driftbandits.environments.recharging import recharging
from driftbandits.environments.rising import rising
from driftbandits.environments.rotating_linear import rotating_linear
from driftbandits.environments.rotating_wheel import rotating_wheel
from driftbandits.environments.rotting import rotting
from driftbandits.environments.scaled import scaled
from driftbandits.environments.seasonal import seasonal
from driftbandits.environments.shocks import shocks
from driftbandits.environments.sinusoidal import sinusoidal
from driftbandits.environments.sleeping import sleeping
from driftbandits.environments.sparse_linear import sparse_linear
from driftbandits.environments.table import table
from driftbandits.environments.table_file import stamp_of_file
from driftbandits.environments.trending import trending
from driftbandits.environments.wheel import wheel

ENVIRONMENTS: dict[str, Callable[..., Environment]] = {
    "bernoulli": bernoulli,
    "sinusoidal": sinusoidal,
    "wheel": wheel,
    "rotating_wheel": rotating_wheel,
    "rotting": rotting,
    "abrupt": abrupt,
    "random_walk": random_walk,
    "flipping": flipping,
    "rising": rising,
    "linear": linear,
    "rotating_linear": rotating_linear,
    "flipping_linear": flipping_linear,
    "trending": trending,
    "seasonal": seasonal,
    "shocks": shocks,
    "close_arms": close_arms,
    "recharging": recharging,
    "following": following,
    "nonlinear": nonlinear,
    "sparse_linear": sparse_linear,
    "adversarial": adversarial,
    "table": table,
}

# Each is also a setting of every environment: sinusoidal(max_consecutive=10).
TRANSFORMATIONS: dict[str, Callable[..., Environment]] = {
    "max_consecutive": max_consecutive,
    "delayed": delayed,
    "sleeping": sleeping,
    "noisy": noisy,
    "heavy_tailed": heavy_tailed,
    "scaled": scaled,
    "fatigue": fatigue,
}


def build_environment(text: str) -> Environment:
    """The environment that e.g. "sinusoidal(max_consecutive=10)" names.

    Transformations are applied in the order written. The same text gives the same object, until a
    file that it names is written again.
    """
    choice = parse("environment", text)
    file = choice.settings.get("file")
    return built(text, stamp_of_file(file) if isinstance(file, str) else ())


@lru_cache(maxsize=64)
def built(text: str, stamp: tuple[object, ...]) -> Environment:
    """Made once per text and stamp of the file in it."""
    choice = parse("environment", text)
    settings = dict(choice.settings)
    transformations = {
        name: settings.pop(name) for name in choice.settings if name in TRANSFORMATIONS
    }
    own = Choice(choice.name, settings)
    environment: Environment = construct("environment", ENVIRONMENTS, own, also=TRANSFORMATIONS)
    for name, value in transformations.items():
        if value is not None:
            environment = TRANSFORMATIONS[name](environment, value)
    return environment
