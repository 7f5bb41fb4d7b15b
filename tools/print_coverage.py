"""Prints how much of the package the tests ran, and fails below the least share of lines.

`make test` calls it after the tests; lines that only other processes ran are counted, too.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

LEAST = 95.0  # per cent of lines
SHOWN = 10  # files with the most lines that were not run


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "coverage.json"
        subprocess.run([sys.executable, "-m", "coverage", "json", "-q", "-o", file], check=True)
        found = json.loads(file.read_text())
    missing = {name: len(each["missing_lines"]) for name, each in found["files"].items()}
    for name, lines in sorted(missing.items(), key=lambda item: -item[1])[:SHOWN]:
        print(f"{lines:6} lines not run in {name}")
    total = found["totals"]
    lines = 100 * total["covered_lines"] / total["num_statements"]
    branches = 100 * total["covered_branches"] / total["num_branches"]
    print(f"coverage: {lines:.1f}% of lines, {branches:.1f}% of branches")
    if lines < LEAST:
        sys.exit(f"error: coverage must be at least {LEAST:g}% of lines, got {lines:.1f}%")


if __name__ == "__main__":
    main()
