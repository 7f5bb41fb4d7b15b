"""Names of cached programs, made from everything that determines them.

Only what this package's own code makes has a name, because a name includes a digest of that code
alone.
"""

from inspect import getmodule
from types import CodeType, ModuleType

import jax

from driftbandits.choice import parse
from driftbandits.core import BanditSpec
from driftbandits.environments import ENVIRONMENTS, TRANSFORMATIONS
from driftbandits.environments.table_file import fingerprint_of_file
from driftbandits.policies import POLICIES
from driftbandits.simulation.arguments import Same, Template

Name = tuple[object, ...]


def block_name(policy: object, environment: object, *settings: int | None) -> Name | None:
    """The name of a policy in an environment, both as text; `settings` are the engine's."""
    if not isinstance(policy, str) or not isinstance(environment, str):
        return None
    world = parse("environment", environment)
    factories = [ENVIRONMENTS[world.name], POLICIES[parse("policy", policy).name]]
    factories += [TRANSFORMATIONS[name] for name in world.settings if name in TRANSFORMATIONS]
    file = world.settings.get("file")
    content = fingerprint_of_file(file) if isinstance(file, str) else None
    return ours(("block", policy, environment, content, *settings), *factories)


def shared_name(template: Template, *settings: int | None) -> Name | None:
    """The name that blocks differing only in numbers share; None if it cannot be written."""
    try:
        return "steps", written(template.outline), *settings
    except LookupError:
        return None


def written(part: object) -> str:
    """A part of an outline, the same in every process with the same code."""
    if isinstance(part, tuple):
        return f"({','.join(map(written, part))})"
    if isinstance(part, CodeType):
        return f"{part.co_filename}:{part.co_firstlineno}:{part.co_qualname}"
    if isinstance(part, Same):
        return place_of(part.value)
    return place_of(part) if isinstance(part, type) else str(part)


def place_of(value: object) -> str:
    """The place of an object that every process has; LookupError if there is none."""
    if value is None:
        return "None"
    if isinstance(value, ModuleType):
        return value.__name__
    module, name = getmodule(value), getattr(value, "__qualname__", None)
    if module is None or name is None or getattr(module, name, None) is not value:
        raise LookupError("only in this process")
    return f"{module.__name__}.{name}"


def agent_name(policy: str, spec: BanditSpec) -> Name | None:
    """The name of a policy that decides for users."""
    return ours(("agent", policy, *spec), POLICIES[parse("policy", policy).name])


def ours(name: Name, *factories: object) -> Name | None:
    """Whether programs can be cached: only on CPUs, as other devices have not been tested."""
    shipped = all(factory.__module__.startswith("driftbandits.") for factory in factories)
    return name if shipped and jax.default_backend() == "cpu" else None
