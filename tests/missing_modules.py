"""Code in a process that cannot import some modules, as where an extra is not installed."""

import subprocess
import sys
from collections.abc import Collection
from pathlib import Path

from tests.uncovered import without_coverage

WITHOUT = """
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {modules}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Missing())
"""


def without(
    modules: Collection[str], code: str, *arguments: str, folder: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """Runs code in a folder."""
    return subprocess.run(
        [sys.executable, "-c", WITHOUT.format(modules=set(modules)) + code, *arguments],
        capture_output=True,
        text=True,
        cwd=folder,
        env=without_coverage(),
    )
