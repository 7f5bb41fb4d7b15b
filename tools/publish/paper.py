"""Publishes a finished reproduction: results/paper to docs/evidence/paper and the README.

make reproduce     # about an hour on two cores; continues where it stopped
make paper         # this
"""

import json
import shutil
from pathlib import Path
from typing import Any

from driftbandits.experiments.results import Results
from driftbandits.experiments.verdicts import Curves, judge
from driftbandits.report.style import MEANINGS, duration
from driftbandits.report.tables import final_table
from driftbandits.report.wording import deciding, verdict_text
from driftbandits.running.store import finished, read_results
from tools.publish.finals import finals, wrapped
from tools.publish.marks import with_table
from tools.publish.paper_stamp import write_stamp

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "results" / "paper"
TARGET = ROOT / "docs" / "evidence" / "paper"
README = ROOT / "README.md"
EXPLAINED = ROOT / "docs" / "explanation" / "recurrent_bandit.md"
FILES = ["figure.png", "table.csv", "curves.csv", "experiment.json", "provenance.json"]
VERDICTS = ["holds", "does not hold", "undecided"]
FEWER_RUNS = {"figure_4": 10}  # as many as the paper has, where ours has more


def name_of(claim: dict[str, Any]) -> str:
    return str(claim["experiment"].removeprefix("figure_").replace("_", " "))


def count_table(claims: list[dict[str, Any]]) -> str:
    """How many claims of each figure hold, as Markdown."""
    rows = [f"| figure | {' | '.join(VERDICTS)} |", "| --- | --- | --- | --- |"]
    for name in dict.fromkeys(map(name_of, claims)):
        found = [claim["verdict"] for claim in claims if name_of(claim) == name]
        cells = [str(found.count(verdict) or "") for verdict in VERDICTS]
        rows.append(f"| {name} | {' | '.join(cells)} |")
    totals = [sum(claim["verdict"] == verdict for claim in claims) for verdict in VERDICTS]
    rows.append(f"| **all** | {' | '.join(f'**{total}**' for total in totals)} |")
    return "\n".join(rows) + "\n"


def verdict_table(claims: list[dict[str, Any]]) -> str:
    """The claims as Markdown, each with the number that decided it."""
    rows = ["| | claim of the paper | verdict | by |", "| --- | --- | --- | --- |"]
    for claim in claims:
        verdict = f"**{verdict_text(claim)}**"
        rows.append(f"| {name_of(claim)} | {claim['text']} | {verdict} | {deciding(claim)} |")
    return "\n".join(rows) + "\n"


def with_fewer_runs(results: Results, runs: int) -> str:
    """The verdicts of the first runs alone, beside those of all."""
    values = {label: line[:runs] for label, line in results.values.items()}
    curves = Curves(results.times, values, results.experiment.sweeps())
    claims = [judge(claim, curves).as_json() for claim in results.experiment.parsed_claims()]
    rows = [
        f"With the first {runs} runs, as many as the paper has, the verdicts would be:\n",
        f"| claim | {runs} runs | {results.experiment.runs} runs |",
        "| --- | --- | --- |",
    ]
    for few, all_runs in zip(claims, results.claims, strict=True):
        rows.append(f"| {few['text']} | {verdict_text(few)} | {verdict_text(all_runs)} |")
    return "\n".join(rows) + "\n"


def found(claims: list[dict[str, Any]]) -> str:
    """The claims by verdict, as Markdown."""
    parts = []
    for verdict in VERDICTS:
        chosen = [claim for claim in claims if claim["verdict"] == verdict]
        heading = f"**{verdict.capitalize()}** ({len(chosen)} of {len(claims)} claims):\n"
        lines = [f"- {name_of(claim)}: {claim['text']}" for claim in chosen]
        parts.append("\n".join([heading, *lines]) + "\n")
    return "\n".join(parts)


def section(place: Path) -> list[str]:
    """A figure of the paper."""
    results = read_results(place)
    experiment, about = results.experiment, results.provenance
    size = f"{experiment.runs} runs of {experiment.horizon:,} pulls" if results.values else ""
    seconds = sum(piece["seconds"] for piece in about["pieces"].values())
    made = f"{size}, {duration(seconds)} of one core" if size else "no runs"
    parts = [
        f"## {experiment.title}\n",
        wrapped(f"{experiment.question} ({made}; revision {about['revision']})") + "\n",
        f"![{experiment.title}]({place.name}/figure.png)\n",
    ]
    if results.values:
        measure = MEANINGS[experiment.measure]
        parts += [f"At the horizon, {measure}:\n", finals(final_table(results))]
    if runs := FEWER_RUNS.get(place.name):
        parts.append(with_fewer_runs(results, runs))
    return parts


def page(claims: list[dict[str, Any]]) -> str:
    """docs/evidence/paper/README.md."""
    parts = [
        "# The paper, reproduced\n",
        "Every figure and claim of Rotman & Wolf (2023), run at full size by `make reproduce` and",
        "published by `make paper`. [The Recurrent Bandit](../../explanation/recurrent_bandit.md)",
        "says what the policy is, how we read the paper and what holds.",
        "[Experiment files](../../reference/experiment_files.md#claims) explains the verdicts.",
        "[report.html](report.html) is the full report; [claims.json](claims.json) has every",
        "verdict with its numbers.\n",
        count_table(claims),
        verdict_table(claims),
    ]
    for place in finished(SOURCE):
        parts += section(place)
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
    write_stamp(TARGET, [read_results(place) for place in finished(SOURCE)])
    README.write_text(with_table(README.read_text(), "verdicts", count_table(claims)))
    EXPLAINED.write_text(with_table(EXPLAINED.read_text(), "found", found(claims)))
    print(f"written: {TARGET.relative_to(ROOT)}, {README.name} and {EXPLAINED.name}")


if __name__ == "__main__":
    main()
