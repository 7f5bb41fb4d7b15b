"""The environments, by the names that the command line and experiment files use."""

from collections.abc import Callable
from functools import lru_cache

from driftbandits.choice import Choice, construct, parse
from driftbandits.core import Environment
from driftbandits.environments.bernoulli import bernoulli
from driftbandits.environments.delayed import delayed
from driftbandits.environments.max_consecutive import max_consecutive
from driftbandits.environments.rotating_wheel import rotating_wheel
from driftbandits.environments.rotting import rotting
from driftbandits.environments.sinusoidal import sinusoidal
from driftbandits.environments.wheel import wheel

ENVIRONMENTS: dict[str, Callable[..., Environment]] = {
    "bernoulli": bernoulli,
    "sinusoidal": sinusoidal,
    "wheel": wheel,
    "rotating_wheel": rotating_wheel,
    "rotting": rotting,
}

# Each is also a setting of every environment: sinusoidal(max_consecutive=10).
TRANSFORMATIONS: dict[str, Callable[..., Environment]] = {
    "max_consecutive": max_consecutive,
    "delayed": delayed,
}


@lru_cache(maxsize=64)
def build_environment(text: str) -> Environment:
    """The environment that e.g. "sinusoidal(max_consecutive=10)" names.

    Transformations are applied in the order written.
    """
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
