"""Publishes a finished run of the field: results/field to docs/evidence/field.

driftbandits run field      # continues where it stopped
make field                  # both
"""

import shutil
from pathlib import Path

import polars as pl

from driftbandits.experiments.experiment import tuned_name
from driftbandits.experiments.results import Results
from driftbandits.experiments.tuning import how_tuned
from driftbandits.report.field import ranking_table
from driftbandits.report.style import duration
from driftbandits.report.tables import final_table
from driftbandits.running.store import finished, read_results
from tools.publish.finals import finals, wrapped

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "results" / "field"
TARGET = ROOT / "docs" / "evidence" / "field"
FILES = ["figure.png", "curves.png", "ranking.csv", "table.csv", "experiment.json"]

INTRO = """\
# The field

All policies on every kind of problem. `driftbandits run field` computes these results and
`make field` publishes them. [Choose a policy](../../how_to/choose_a_policy.md) draws conclusions.
[Experiment files](../../reference/experiment_files.md) says how ranks, wins and the heat map are
made.

A rank is by mean regret, averaged over the problems, with a 95% interval from paired tests.
Wins and losses count opponents over all problems, by a paired test at 95%. There is no correction
for the number of comparisons.
"""
FILES_TEXT = """\
[ranking.csv]({place}/ranking.csv) has the ranks. [table.csv]({place}/table.csv) has every final
value with its interval, median, 95th percentile and worst run, the late regret, the share of best
pulls and the steps to recover. [curves.png]({place}/curves.png) has the best twelve policies of
each problem over time.
"""


def ranking(results: Results) -> str:
    """As Markdown, tuned and by default, best tuned rank first."""
    lines = [
        "| policy | mean rank, tuned | wins - losses | mean rank, default | wins - losses |",
        "| --- | --- | --- | --- | --- |",
    ]
    for row in ranking_table(results).to_dicts():
        cells = [f"`{row['policy']}`"]
        for kind in ("tuned", "default"):
            low, high = row[f"{kind}_low"], row[f"{kind}_high"]
            cells.append(f"{row[f'{kind}_rank']:.1f} ({low:.1f} to {high:.1f})")
            cells.append(f"{row[f'{kind}_wins']} - {row[f'{kind}_losses']}")
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def choices(results: Results) -> str:
    """The settings that tuning chose, as Markdown: problems down, policies across would be wide."""
    names = {tuned_name(name) for name in results.experiment.tuning}
    tuned = [line for line in results.lines if line.policy_name in names]
    table = pl.DataFrame(
        {
            "problem": [line.environment_name for line in tuned],
            "chosen": [f"`{line.policy}`" for line in tuned],
        }
    )
    rows = table.group_by("problem", maintain_order=True).agg(pl.col("chosen").str.join(", "))
    lines = ["| problem | chosen by tuning |", "| --- | --- |"]
    return "\n".join([*lines, *(f"| {name} | {text} |" for name, text in rows.iter_rows())]) + "\n"


def section(results: Results, place: Path) -> list[str]:
    experiment, about = results.experiment, results.provenance
    seconds = sum(piece["seconds"] for piece in about["pieces"].values())
    size = f"{experiment.runs} runs of {experiment.horizon:,} pulls"
    return [
        f"## {experiment.title}\n",
        f"{experiment.question}\n",
        wrapped(
            f"{size}; {duration(seconds)} of one core; revision {about['revision']}, "
            f"driftbandits {about['driftbandits']}, {about['machine']}."
        )
        + "\n",
        f"![{experiment.title}]({place.name}/figure.png)\n",
        ranking(results),
        wrapped(how_tuned(experiment)) + "\n",
        *(wrapped(f"- {reading}") for reading in experiment.readings),
        "",
        "The best mean of each problem:\n",
        finals(final_table(results).filter(pl.col("rank") == 1)),
        FILES_TEXT.format(place=place.name),
        "<details><summary>What tuning chose</summary>\n",
        choices(results),
        "</details>\n",
    ]


def page(places: list[Path]) -> str:
    """docs/evidence/field/README.md."""
    parts = [INTRO]
    for place in places:
        parts += section(read_results(place), place)
    return "\n".join(parts)


def main() -> None:
    places = finished(SOURCE)
    if not places:
        raise SystemExit("error: give `driftbandits run field` first, or `make field`")
    shutil.rmtree(TARGET, ignore_errors=True)
    for place in places:
        (TARGET / place.name).mkdir(parents=True)
        for name in FILES:
            shutil.copy(place / name, TARGET / place.name / name)
    (TARGET / "README.md").write_text(page(places))
    print(f"written: {TARGET.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
