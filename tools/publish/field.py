"""Publishes a finished run of the field: results/field to docs/evidence/field.

driftbandits run field      # goes on where it was
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
from tools.publish.finals import finals
from tools.publish.marks import with_table

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "results" / "field"
TARGET = ROOT / "docs" / "evidence" / "field"
README = ROOT / "README.md"
FILES = ["figure.png", "curves.png", "ranking.csv", "table.csv", "experiment.json"]
SHOWN = 5  # of a ranking, in the README


def ranking(results: Results, rows: int | None = None) -> str:
    """As Markdown, tuned and by default, best tuned rank first."""
    lines = [
        "| policy | mean rank, tuned | wins - losses | mean rank, default | wins - losses |",
        "| --- | --- | --- | --- | --- |",
    ]
    for row in ranking_table(results).head(rows or 1000).to_dicts():
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
        f"{experiment.question} ({size}, {duration(seconds)} of one core; revision "
        f"{about['revision']}, driftbandits {about['driftbandits']}, {about['machine']})\n",
        f"![{experiment.title}]({place.name}/figure.png)\n",
        ranking(results),
        f"{how_tuned(experiment)}\n",
        *(f"- {reading}" for reading in experiment.readings),
        "",
        "The best mean of each problem:\n",
        finals(final_table(results).filter(pl.col("rank") == 1)),
        f"[ranking.csv]({place.name}/ranking.csv), and [table.csv]({place.name}/table.csv) with",
        "every final value, its interval, median, 95th percentile and worst run, the late regret,",
        f"the share of best pulls and the steps to recover; [curves.png]({place.name}/curves.png)",
        "has the best twelve of each problem over time.\n",
        "<details><summary>What tuning chose</summary>\n",
        choices(results),
        "</details>\n",
    ]


def page(places: list[Path]) -> str:
    """docs/evidence/field/README.md."""
    parts = [
        "# The field\n",
        "All policies on every kind of problem, run by `driftbandits run field` and published by",
        "`make field`. No correction is made for the number of comparisons.",
        "[Choosing a policy](../../how_to/choose_a_policy.md) draws conclusions,",
        "[experiment files](../../reference/experiment_files.md) says",
        "how ranks, wins and the heat map are made. Ranks: mean over the problems of the rank by",
        "mean regret, with a 95% interval over runs and problems. Wins and losses: opponents over",
        "all problems, by a paired test at 95%.\n",
    ]
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
    text = README.read_text()
    for place in places:
        text = with_table(text, place.name, ranking(read_results(place), SHOWN))
    README.write_text(text)
    print(f"written: {TARGET.relative_to(ROOT)} and the rankings in {README.name}")


if __name__ == "__main__":
    main()
