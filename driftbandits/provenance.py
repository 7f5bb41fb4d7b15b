"""Where numbers come from: versions, revision, machine, and a fingerprint of the code."""

import ast
import hashlib
import platform
import subprocess
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

from driftbandits import __version__
from driftbandits.work import available_cores

PACKAGE = Path(__file__).parent
PACKAGES = ["jax", "jaxlib", "optax", "numpy", "scipy", "polars"]
SHAPE_NUMBERS = [
    "backend.py",
    "core.py",
    "keys.py",
    "simulation.py",
    "parts",
    "policies",
    "environments",
]


@cache
def code_fingerprint() -> str:
    """Changes with every statement of the code that makes the numbers, and with JAX's version.

    Comments, docstrings and layout do not count.
    """
    versions = [version(name) for name in ("jax", "jaxlib", "optax")]
    digest = hashlib.sha256(" ".join(versions).encode())
    for name in SHAPE_NUMBERS:
        path = PACKAGE / name
        for file in sorted(path.rglob("*.py")) if path.is_dir() else [path]:
            digest.update(file.relative_to(PACKAGE).as_posix().encode())
            digest.update(ast.dump(without_docstrings(ast.parse(file.read_text()))).encode())
    return digest.hexdigest()[:16]


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
        "packages": {name: version(name) for name in PACKAGES},
    }


def revision() -> str:
    """The revision of the checkout that this package runs from, if it does."""
    try:
        git("ls-files", "--error-unmatch", Path(__file__).name)
        return git("describe", "--always", "--dirty", "--abbrev=10")
    except (OSError, subprocess.SubprocessError):
        return "not from a checkout"


def git(*arguments: str) -> str:
    command = ["git", "-C", str(PACKAGE), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=10)
    return done.stdout.strip()
