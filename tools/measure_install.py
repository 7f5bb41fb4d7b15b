"""How large an install is: the wheel in empty environments, as base and with all extras.

python -m tools.measure_install prints the table of docs/reference/dependencies.md.
"""

import shutil
import subprocess
import sys
import tempfile
import venv
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
SOURCES = ["driftbandits", "pyproject.toml", "README.md", "LICENSE"]
INSTALLS = {"base": "", "`service,report`": "[service,report]", "`all`": "[all]"}


class Size(NamedTuple):
    megabytes: int
    packages: int


def build_wheel(folder: Path) -> Path:
    """The wheel of this tree, made from a copy: what an older build left behind stays out."""
    source = folder / "source"
    source.mkdir(parents=True)
    for name in SOURCES:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, source / name, ignore=lambda *_: ["__pycache__"])
        else:
            shutil.copy(ROOT / name, source)
    pip("wheel", str(source), "--no-deps", "--wheel-dir", str(folder))
    (wheel,) = folder.glob("*.whl")
    return wheel


def install(requirement: str, folder: Path) -> Path:
    """A new environment with nothing else in it, not even pip; gives its Python."""
    venv.create(folder, symlinks=True)
    python = folder / "bin" / "python"
    pip("--python", str(python), "install", requirement, "-c", str(ROOT / "constraints.txt"))
    return python


def pip(*arguments: str) -> None:
    quiet = ["--quiet", "--disable-pip-version-check"]
    done = subprocess.run(
        [sys.executable, "-m", "pip", *quiet, *arguments], capture_output=True, text=True
    )
    if done.returncode:
        raise RuntimeError(f"pip {' '.join(arguments)}:\n{done.stderr}")


def size_of(environment: Path) -> Size:
    (packages,) = environment.glob("lib/python*/site-packages")
    files = sum(path.lstat().st_size for path in packages.rglob("*"))
    return Size(round(files / 1e6), len(list(packages.glob("*.dist-info"))))


def main() -> None:
    print("| install | size | packages |\n| --- | --- | --- |")
    with tempfile.TemporaryDirectory() as folder:
        wheel = build_wheel(Path(folder) / "wheel")
        for number, (name, extras) in enumerate(INSTALLS.items()):
            place = Path(folder) / str(number)
            install(f"{wheel}{extras}", place)
            size = size_of(place)
            print(f"| {name} | {size.megabytes:,} MB | {size.packages} |", flush=True)
            shutil.rmtree(place)


if __name__ == "__main__":
    main()
