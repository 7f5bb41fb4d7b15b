"""Where numbers come from: versions, revision, machine, and a fingerprint of the code."""

import ast
import hashlib
import inspect
import platform
import subprocess
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, NamedTuple

from driftbandits import __version__, check
from driftbandits.choice import parse
from driftbandits.environments import ENVIRONMENTS, TRANSFORMATIONS
from driftbandits.environments.table_file import fingerprint_of_file
from driftbandits.policies import POLICIES
from driftbandits.simulation.threads import available_cores

PACKAGE = Path(__file__).parents[1]
PACKAGES = ["jax", "jaxlib", "optax", "numpy", "scipy", "polars"]
ENGINE = "simulation.engine"
TABLES = {"policies", "environments"}  # name everything that there is, and shape no number
NO_NUMBERS = TABLES | {
    "check",
    "choice",
    "extras",
    "factories",
    "catalogue",
    "simulation.threads",
    "simulation.devices",
}


def code_fingerprint(policy: str, environment: str) -> str:
    """Identifies the code that makes the numbers of a policy in an environment.

    It changes with every statement of the engine, the policy, the environment and what they
    import, with the version of JAX, and with the content of a file that the environment reads.
    """
    chosen, world = parse("policy", policy), parse("environment", environment)
    check.known("policy", chosen.name, POLICIES)
    check.known("environment", world.name, ENVIRONMENTS)
    changed = [name for name in world.settings if name in TRANSFORMATIONS]
    factories = [
        POLICIES[chosen.name],
        ENVIRONMENTS[world.name],
        *(TRANSFORMATIONS[name] for name in changed),
    ]
    ours = [factory for factory in factories if factory.__module__.startswith("driftbandits.")]
    homes = [factory.__module__.removeprefix("driftbandits.") for factory in ours]
    parts = [fingerprint_of(ENGINE, *homes)]
    parts += [fingerprint_of_users(factory) for factory in factories if factory not in ours]
    if isinstance(file := world.settings.get("file"), str):
        parts.append(fingerprint_of_file(file))
    return "-".join(parts)


def fingerprint_of_users(factory: Callable[..., Any]) -> str:
    """Of a policy or an environment that a user added to a table: all of its file, or its cell."""
    module = inspect.getmodule(factory)
    for source_of_what in (module, factory):
        with suppress(OSError, TypeError):
            text = inspect.getsource(source_of_what)  # type: ignore[arg-type]
            return hashlib.sha256(text.encode()).hexdigest()[:16]
    check.fail(
        factory.__name__,
        "defined in a file or a notebook's cell, as results on disk are named by its code",
        f"a function of {factory.__module__!r}, whose source cannot be read",
    )


@cache
def fingerprint_of(*modules: str) -> str:
    """A fingerprint of modules and of everything that they import from this package.

    Comments, docstrings and layout do not count.
    """
    versions = [version(name) for name in ("jax", "jaxlib", "optax")]
    digest = hashlib.sha256(" ".join(versions).encode())
    for module in sorted(imported_by(modules)):
        digest.update(module.encode())
        digest.update(source_of(module).statements.encode())
    return digest.hexdigest()[:16]


def imported_by(modules: Iterable[str]) -> set[str]:
    """The modules with everything that they import, except what cannot change a number."""
    found: set[str] = set()
    to_see = [module for module in modules if module not in NO_NUMBERS]
    while to_see:
        module = to_see.pop()
        if module not in found:
            found.add(module)
            to_see += [name for name in imports_of(module) if name not in NO_NUMBERS]
    return found


def imports_of(module: str) -> Iterator[str]:
    for home, names in source_of(module).imports:
        if home == "driftbandits":
            yield from (name for name in names if path_of(name).exists())
        elif home.startswith("driftbandits."):
            name = home.removeprefix("driftbandits.")
            inside = [f"{name}.{imported}" for imported in names]
            yield from [part for part in inside if path_of(part).exists()] or [name]


def path_of(module: str) -> Path:
    path = PACKAGE / module.replace(".", "/")
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


class Source(NamedTuple):
    """What a fingerprint needs of a module."""

    imports: list[tuple[str, list[str]]]  # `from a import b, c`
    statements: str


def source_of(module: str) -> Source:
    return parsed(path_of(module).read_text())


@cache
def parsed(text: str) -> Source:
    """Cached, because most modules are part of every policy's fingerprint."""
    tree = ast.parse(text)
    imports = [
        (node.module, [alias.name for alias in node.names])
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module
    ]
    return Source(imports, ast.dump(without_docstrings(tree)))


def without_docstrings(tree: ast.Module) -> ast.Module:
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Module | ast.FunctionDef | ast.ClassDef)
            and node.body
            and isinstance(node.body[0], ast.Expr)
            and isinstance(node.body[0].value, ast.Constant)
        ):
            node.body = node.body[1:]
    return tree


@cache
def provenance() -> dict[str, Any]:
    return {
        "driftbandits": __version__,
        "revision": revision(),
        "python": platform.python_version(),
        "machine": f"{platform.system()} {platform.machine()}, {available_cores()} cores",
        "packages": installed_packages(),
    }


def installed_packages() -> dict[str, str]:
    """The versions of packages that affect the numbers; Polars may not be installed."""
    found = {}
    for name in PACKAGES:
        with suppress(PackageNotFoundError):
            found[name] = version(name)
    return found


def revision() -> str:
    """The git revision of the checkout that this package runs from, if there is one."""
    try:
        git("ls-files", "--error-unmatch", "__init__.py")
        return git("describe", "--always", "--dirty", "--abbrev=10")
    except (OSError, subprocess.SubprocessError):
        return "not from a checkout"


def git(*arguments: str) -> str:
    command = ["git", "-C", str(PACKAGE), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=10)
    return done.stdout.strip()
