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
        "shared_linear",
        "articles",
        "adversarial",
        "table",
    ],
)
"""The environments by name: a mapping from a name to the function that builds the environment.

Assign to it to use an environment of your own by name, for example in `compare`.

Example:
    ```python
    from driftbandits import ENVIRONMENTS

    print(list(ENVIRONMENTS)[:3])
    environment = ENVIRONMENTS["bernoulli"](num_arms=3)
    ```
"""

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
"""The transformations by name; each is also a setting of every environment.

A transformation takes an environment and one value, and gives another environment.

Example:
    ```python
    from driftbandits import TRANSFORMATIONS, build_environment

    tiring = TRANSFORMATIONS["fatigue"](build_environment("bernoulli"), 0.9)
    same = build_environment("bernoulli(fatigue=0.9)")
    ```
"""


def build_environment(text: str) -> Environment:
    """Builds the environment that a text names.

    Args:
        text: A name, or a name with settings and transformations: `sinusoidal`,
            `sinusoidal(period=2000, max_consecutive=10)`. Transformations are applied in the order
            written.

    Returns:
        The environment. The same text gives the same object, until a file that it names is
        rewritten.

    Raises:
        InputError: The name or a setting is unknown, or a value is out of range.

    Example:
        ```python
        from driftbandits import build_environment

        environment = build_environment("sinusoidal(num_arms=3, max_consecutive=10)")
        print(environment.spec)
        ```
    """
    choice = parse("environment", text)
    file = choice.settings.get("file")
    versions = [ENVIRONMENTS.version(choice.name), *map(TRANSFORMATIONS.version, choice.settings)]
    return built(text, stamp_of_file(file) if isinstance(file, str) else (), tuple(versions))


@lru_cache(maxsize=64)
def built(text: str, stamp: tuple[object, ...], versions: tuple[int, ...]) -> Environment:
    """Built once per text, stamp of the file in it and versions of the tables' entries."""
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
