"""Publishes a finished reproduction: results/paper to docs/evidence/paper and the README.

make reproduce     # an hour or two on two cores; goes on where it was
make paper         # this
"""

import json
import shutil
from pathlib import Path
from typing import Any

from driftbandits.report.style import MEANINGS, duration
from driftbandits.report.tables import final_table
from driftbandits.report.wording import deciding, verdict_text
from driftbandits.running.store import finished, read_results
from tools.publish.finals import finals
from tools.publish.marks import with_table

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "results" / "paper"
TARGET = ROOT / "docs" / "evidence" / "paper"
README = ROOT / "README.md"
FILES = ["figure.png", "table.csv", "curves.csv", "experiment.json", "provenance.json"]


def verdict_table(claims: list[dict[str, Any]]) -> str:
    """The claims as Markdown, each with the number that decided it."""
    rows = ["| | claim of the paper | verdict | by |", "| --- | --- | --- | --- |"]
    for claim in claims:
        name = claim["experiment"].removeprefix("figure_").replace("_", " ")
        rows.append(f"| {name} | {claim['text']} | **{verdict_text(claim)}** | {deciding(claim)} |")
    return "\n".join(rows) + "\n"


def page(claims: list[dict[str, Any]]) -> str:
    """docs/evidence/paper/README.md."""
    parts = [
        "# The paper, reproduced",
        "",
        "Every figure and claim of Rotman & Wolf (2023), run at full size by `make reproduce`",
        "and published by `make paper`. [report.html](report.html) is the report (download it",
        "and open it in a browser); [claims.json](claims.json) has every verdict with its numbers.",
        "[The Recurrent Bandit](../../explanation/recurrent_bandit.md) says how we read the paper,",
        "[Experiment files](../../reference/experiment_files.md) says how verdicts are made.",
        "",
        verdict_table(claims),
    ]
    for place in finished(SOURCE):
        results = read_results(place)
        experiment, about = results.experiment, results.provenance
        size = f"{experiment.runs} runs of {experiment.horizon:,} pulls" if results.values else ""
        seconds = sum(piece["seconds"] for piece in about["pieces"].values())
        made = f"{size}, {duration(seconds)} of one core" if size else "no runs"
        parts += [
            f"## {experiment.title}",
            "",
            f"{experiment.question} ({made}; revision {about['revision']})",
            "",
            f"![{experiment.title}]({place.name}/figure.png)",
            "",
        ]
        if results.values:
            measure = MEANINGS[experiment.measure]
            parts += [f"At the horizon, {measure}:", "", finals(final_table(results))]
    return "\n".join(parts)


def main() -> None:
    claims = json.loads((SOURCE / "claims.json").read_text())
    shutil.rmtree(TARGET, ignore_errors=True)
    for place in finished(SOURCE):
        (TARGET / place.name).mkdir(parents=True)
        for name in FILES:
            if (place / name).exists():
                shutil.copy(place / name, TARGET / place.name / name)
    for name in ("claims.json", "report.html"):
        shutil.copy(SOURCE / name, TARGET / name)
    (TARGET / "README.md").write_text(page(claims))
    README.write_text(with_table(README.read_text(), "verdicts", verdict_table(claims)))
    print(f"written: {TARGET.relative_to(ROOT)} and the table in {README.name}")


if __name__ == "__main__":
    main()
