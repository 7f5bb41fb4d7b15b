"""What measurements depend on: the machine, versions, and the code that is measured."""

import datetime
import hashlib
import os
import platform
import shutil
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from benchmarks.measuring import CORES
from driftbandits import __version__
from driftbandits.policies import POLICIES
from driftbandits.running.provenance import fingerprint_of

PACKAGES = ["jax", "jaxlib", "optax", "numpy", "scipy"]
PEERS = ["torch", "pymab", "river", "SMPyBandits", "mabwiser"]
MEASURE_NOTHING = {"__init__", "__main__", "kept", "surroundings", "many_pieces"}


def machine() -> str:
    """Model, cores and caches, as far as the system tells."""
    found = {}
    if shutil.which("lscpu"):
        lines = subprocess.run(["lscpu"], capture_output=True, text=True, check=False).stdout
        found = dict(line.split(":", 1) for line in lines.splitlines() if ":" in line)
    model = found.get("Model name", platform.processor() or platform.machine()).strip()
    caches = [
        f"{name.removesuffix(' cache')} {found[name].strip()}"
        for name in ("L1d cache", "L2 cache", "L3 cache")
        if name in found
    ]
    return ", ".join([model, f"{CORES} cores", *caches])


def versions() -> str:
    found = [f"Python {platform.python_version()}", f"driftbandits {__version__}"]
    for package in PACKAGES + PEERS:
        try:
            found.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            found.append(f"{package} missing")
    return ", ".join([*found, compiler()])


def compiler() -> str:
    if not shutil.which("cc"):
        return "no C compiler"
    lines = subprocess.run(["cc", "--version"], capture_output=True, text=True, check=False).stdout
    return lines.splitlines()[0] if lines else "cc"


def code() -> str:
    """Changes with the code that is measured and the code that measures."""
    policies = [POLICIES[name].__module__.removeprefix("driftbandits.") for name in POLICIES]
    digest = hashlib.sha256(
        fingerprint_of("simulation.engine", "service.server", *policies).encode()
    )
    folder = Path(__file__).parent
    for file in sorted([*folder.glob("*.py"), *folder.glob("*.c")]):
        if file.stem not in MEASURE_NOTHING:
            digest.update(file.read_bytes())
    return digest.hexdigest()[:16]


def surroundings() -> dict[str, str]:
    """What a part's numbers depend on besides the code."""
    return {
        "machine": machine(),
        "versions": versions(),
        "code": code(),
        "date": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "load": f"{os.getloadavg()[0]:.1f}",
    }
