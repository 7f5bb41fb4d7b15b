"""What determines a compiled program besides its settings: code, versions, options, CPU."""

import hashlib
import json
import os
import platform
from functools import cache
from importlib.metadata import version
from pathlib import Path

import jax

from driftbandits.simulation.compiling import OPTIONS

PACKAGE = Path(__file__).parents[1]
SHAPING = ["core.py", "numerics", "policies", "environments", "simulation", "agents"]
NOT_SHAPING = ("jax_default_device", "jax_compilation_cache", "jax_persistent_cache", "jax_log")


def surroundings() -> str:
    """A digest; only JAX's options may change within a process."""
    options = {
        name: repr(value)
        for name, value in jax.config.values.items()
        if not name.startswith(NOT_SHAPING)
    }
    return digest([fixed_surroundings(), options, os.environ.get("XLA_FLAGS"), OPTIONS])


@cache
def fixed_surroundings() -> str:
    versions = [version(name) for name in ("jax", "jaxlib", "optax")]
    return digest([code_digest(), versions, processor()])


@cache
def code_digest() -> str:
    """A digest of all files; to find out which of them matter would take longer."""
    files = [file for part in SHAPING for file in sorted_files(PACKAGE / part)]
    return digest([[str(file.relative_to(PACKAGE)), file.read_text()] for file in files])


def sorted_files(path: Path) -> list[Path]:
    return [path] if path.is_file() else sorted(path.rglob("*.py"))


def processor() -> list[str]:
    """The CPU's model and instruction sets, for which XLA compiles."""
    try:
        with Path("/proc/cpuinfo").open() as file:
            first = file.read(8192).split("\n\n")[0].splitlines()
    except OSError:
        first = []
    told = [line for line in first if line.startswith(("model name", "flags", "Features", "CPU "))]
    return [platform.machine(), platform.processor(), *told]


def digest(content: object) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
