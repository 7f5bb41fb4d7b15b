"""The environments, by the names that the command line and experiment files use."""

from functools import lru_cache

from driftbandits.choice import Choice, construct, parse
from driftbandits.core import Environment
from driftbandits.environments.table_file import stamp_of_file
from driftbandits.factories import Factories

ENVIRONMENTS: Factories[Environment] = Factories(
    __name__,
    [
        "bernoulli",
        "sinusoidal",
        "wheel",
        "rotating_wheel",
        "rotting",
        "abrupt",
        "random_walk",
        "flipping",
        "rising",
        "linear",
        "rotating_linear",
        "flipping_linear",
        "trending",
        "seasonal",
        "shocks",
        "close_arms",
        "recharging",
        "following",
        "nonlinear",
        "sparse_linear",
        "adversarial",
        "table",
    ],
)

# Each is also a setting of every environment: sinusoidal(max_consecutive=10).
TRANSFORMATIONS: Factories[Environment] = Factories(
    __name__,
    [
        "max_consecutive",
        "delayed",
        "sleeping",
        "noisy",
        "heavy_tailed",
        "scaled",
        "fatigue",
    ],
)


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
