"""Publishes finished runs of the tracker's experiments in docs/evidence/tracker and the README.

driftbandits run tracker     # continues where it stopped
make tracker                 # both
"""

import shutil
from pathlib import Path
from typing import NamedTuple

import numpy as np
from matplotlib.figure import Figure

from driftbandits.choice import parse
from driftbandits.experiments.effects import FAILS, HOLDS, UNDECIDED
from driftbandits.experiments.metrics import Summary, estimate, summarise
from driftbandits.experiments.results import Results
from driftbandits.report.page import write_csv
from driftbandits.report.style import duration, number
from driftbandits.report.tables import final_table
from driftbandits.report.wording import deciding, verdict_text
from driftbandits.running.store import finished, read_results
from tools.publish.finals import wrapped
from tools.publish.marks import with_table

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "results" / "tracker"
TARGET = ROOT / "docs" / "evidence" / "tracker"
README = ROOT / "README.md"
OURS, UNIFORM = "tracker", "uniform"
ORDER = [
    "paper", "paper_rotting", "paper_wheels", "field", "field_contexts", "judging",
    "judging_contexts", "stress", "very_many_arms", "long",
]  # fmt: skip
SLOW = ["paper_rotting_slow", "judging_slow", "judging_contexts_slow", "long_slow"]
ABLATIONS = ["ablation", "ablation_contexts"]
HEAD = [
    "| problem | mean (95% interval) | worst run "
    "| best other, by default | best other, in hindsight | verdict |",
    "| --- | --- | --- | --- | --- | --- |",
]
ENVIRONMENTS = "../../reference/environments"
INTRO = """\
# Results of the tracker

`driftbandits run tracker` computes these results and `make tracker` publishes them.
[The tracker](../../explanation/tracker.md) explains the policy.

Each section compares `tracker`, with its default settings, with every other policy: by default, and
with the best settings in hindsight, chosen for each problem on the runs that are shown. The claim
is that the tracker has less regret than all of them. A single policy whose regret is lower by the
95% interval of the paired difference refutes it. There is no correction for the number of
comparisons.

Slow policies (`recurrent`, `fewa`, `raw_ucb`, `glr_ucb`, the neural ones) were run
[on fewer runs](#slow-policies) of the same problems, and in [the field](../field/README.md). The
figure and the count in the README leave them out.

![Mean regret of tracker and of the best other policy on every problem](headline.png)
"""
ABLATED = """\
## Ablations

In each row one setting differs from the default. A cell has the mean policy regret, and the worst
run in brackets. **+** marks more regret than with the default settings on the same runs, **-**
less, where the 95% interval of the paired difference excludes zero. There is no correction for the
number of comparisons.
"""


class Rival(NamedTuple):
    name: str
    spread: Summary


class Row(NamedTuple):
    """One problem."""

    problem: str
    environment: str
    ours: Summary
    default: Rival  # the best other policy as written
    hindsight: Rival  # the best other with its best settings
    uniform: float  # mean regret of uniform play
    verdict: str


def rows(results: Results) -> list[Row]:
    experiment = results.experiment
    verdicts = {claim["text"]: claim["verdict"] for claim in results.claims}
    found = []
    for problem, environment in experiment.environments:
        lines = {x.policy_name: x.label for x in results.lines if x.environment_name == problem}
        finals = {name: results.values[label][:, -1] for name, label in lines.items()}
        spreads = {name: summarise(values, experiment.measure) for name, values in finals.items()}
        others = {name for name in finals if name != OURS}
        written = {name for name, _ in experiment.policies}
        best = min(sorted(others), key=lambda name: float(spreads[name].mean))
        default = min(sorted(others & written), key=lambda name: float(spreads[name].mean))
        verdict = next((v for text, v in verdicts.items() if text.endswith(f"on {problem}.")), None)
        found.append(
            Row(
                problem,
                environment,
                spreads[OURS],
                Rival(default, spreads[default]),
                Rival(best, spreads[best]),
                float(spreads[UNIFORM].mean),
                verdict or (results.claims[0]["verdict"] if results.claims else ""),
            )
        )
    return found


def cell(rival: Rival) -> str:
    return f"`{rival.name}` {number(rival.spread.mean)}"


def linked(problem: str, environment: str) -> str:
    """The problem, with a link to the page of its environment."""
    return f"[{problem}]({ENVIRONMENTS}/{parse('environment', environment).name}.md)"


def table(found: list[Row]) -> str:
    lines = list(HEAD)
    for row in found:
        ours = row.ours
        mean = f"**{number(ours.mean)}** ({number(ours.low)} to {number(ours.high)})"
        cells = [linked(row.problem, row.environment), mean, number(ours.worst)]
        cells += [cell(row.default), cell(row.hindsight), row.verdict]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def headline(groups: dict[str, list[Row]]) -> Figure:
    """Every problem: regret of the tracker and of the best other, in per cent of uniform play's."""
    labels = [(group, row) for group, found in groups.items() for row in found]
    figure = Figure(figsize=(8.2, 1.2 + 0.235 * len(labels)), layout="constrained")
    axes = figure.subplots()
    axes.set_xscale("function", functions=(lambda x: np.sqrt(np.clip(x, 0, None)), np.square))
    for place, (_, row) in enumerate(labels):
        zero = min(
            0.0, *(float(x.mean) for x in (row.ours, row.default.spread, row.hindsight.spread))
        )
        unit = 100 / (row.uniform - zero)
        ours, best, usual = (
            (float(x.mean) - zero) * unit
            for x in (row.ours, row.hindsight.spread, row.default.spread)
        )
        axes.plot([ours, best], [place, place], color="#b9c2c9", lw=2, zorder=1)
        axes.plot(usual, place, "|", color="#8a949c", ms=8, mew=1.6, zorder=2)
        axes.plot(best, place, "o", color="white", mec="#D55E00", mew=1.6, ms=6, zorder=3)
        axes.plot(ours, place, "o", color="#0072B2", ms=6.5, zorder=4)
    axes.set_yticks(range(len(labels)), [row.problem for _, row in labels], fontsize=8)
    axes.invert_yaxis()
    begin = 0
    for group, found in groups.items():
        axes.axhspan(begin - 0.5, begin + len(found) - 0.5, color="#f3f5f6", lw=0, zorder=0)
        axes.axhline(begin - 0.5, color="white", lw=2, zorder=0)
        axes.text(
            0.995, begin - 0.38, group, transform=axes.get_yaxis_transform(), ha="right", va="top",
            fontsize=7.5, color="#666666",
        )  # fmt: skip
        begin += len(found)
    axes.set_ylim(len(labels) - 0.4, -0.6)
    axes.set_xlim(0, None)
    axes.set_xticks([0, 1, 5, 10, 20, 40, 60, 100])
    axes.set_xlabel("mean regret in % of uniform play's (square-root scale)", fontsize=9)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.tick_params(axis="y", length=0)
    for marker, colour, edge, text in (
        ("o", "#0072B2", "#0072B2", "tracker, default settings"),
        ("o", "white", "#D55E00", "best other policy, tuned in hindsight"),
        ("|", "#8a949c", "#8a949c", "best other policy, default settings"),
    ):
        axes.plot([], [], marker, color=colour, mec=edge, mew=1.6, ms=6.5, label=text)
    figure.legend(loc="outside upper left", ncols=3, fontsize=8, frameon=False)
    return figure


def verdict_line(results: Results) -> list[str]:
    return [
        wrapped(f"- {claim['text']} **{verdict_text(claim)}**: {deciding(claim)}")
        for claim in results.claims
    ]


def section(results: Results, level: str = "##") -> list[str]:
    experiment, about = results.experiment, results.provenance
    seconds = sum(piece["seconds"] for piece in about["pieces"].values())
    place = experiment.name.split("/")[-1]
    size = f"{experiment.runs} runs of {experiment.horizon:,} pulls, seed {experiment.seed}"
    return [
        f"{level} {experiment.title}\n",
        wrapped(
            f"{size}; {len(experiment.policies) - 1} other policies; {duration(seconds)} of one "
            f"core; revision {about['revision']}, driftbandits {about['driftbandits']}, "
            f"{about['machine']}."
        )
        + "\n",
        table(rows(results)),
        *verdict_line(results),
        "",
        *(wrapped(f"- {reading}") for reading in experiment.readings),
        "",
        f"[table.csv]({place}/table.csv) has every policy, with median and 95th percentile.\n",
    ]


def ablation_table(results: Results) -> str:
    """Settings down, problems across: mean regret, and whether it differs from the default's."""
    problems = [name for name, _ in results.experiment.environments]
    lines = [f"| | {' | '.join(problems)} |", f"| --- |{' --- |' * len(problems)}"]
    label = results.experiment.label
    for policy, _ in results.experiment.policies:
        cells = []
        for problem in problems:
            values = results.values[label(policy, problem)][:, -1]
            usual = results.values[label(OURS, problem)][:, -1]
            _, low, high = (float(x) for x in estimate(values - usual))
            sign = " **+**" if low > 0 else " **-**" if high < 0 else ""
            cells.append(f"{number(values.mean())}{sign} ({number(values.max())})")
        lines.append(f"| `{policy}` | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def ablations(texts: list[str]) -> list[str]:
    return [ABLATED, *texts]


def ablation(results: Results) -> str:
    experiment = results.experiment
    return f"{experiment.runs} runs, seed {experiment.seed}:\n\n{ablation_table(results)}"


def page(sections: list[str], slow: list[str], tried: list[str]) -> str:
    return "\n".join([INTRO, *sections, "## Slow policies\n", *slow, *ablations(tried)])


def counted(groups: list[Row]) -> str:
    """One sentence for the README: how often the claim holds."""
    lower = sum(float(r.ours.mean) < float(r.hindsight.spread.mean) for r in groups)
    holds, undecided, fails = (
        sum(row.verdict == kind for row in groups) for kind in (HOLDS, UNDECIDED, FAILS)
    )
    return (
        wrapped(
            f"Of {len(groups)} problems, its mean regret is the lowest on {lower}, with the "
            "settings of all others chosen in hindsight ([slow policies]"
            "(docs/evidence/tracker/README.md#slow-policies) left out). Counting only differences "
            f"that a 95% interval confirms, it is lower on {holds}, another policy is lower on "
            f"{fails}, and {undecided} are undecided."
        )
        + "\n"
    )


def published(place: Path) -> Results:
    """The results of a folder, with their table and settings beside the page."""
    results, target = read_results(place), TARGET / place.name
    target.mkdir(parents=True, exist_ok=True)
    write_csv(target / "table.csv", final_table(results))
    shutil.copy(place / "experiment.json", target / "experiment.json")
    return results


def main() -> None:
    places = {place.name: place for place in finished(SOURCE)}
    if not places:
        raise SystemExit("error: give `driftbandits run tracker` first, or `make tracker`")
    groups: dict[str, list[Row]] = {}
    sections: list[str] = []
    slow: list[str] = []
    for name in ORDER:
        if name in places:  # one after the other: a table may fill the memory
            results = published(places[name])
            groups[results.experiment.title] = rows(results)
            sections += section(results)
    for name in SLOW:
        if name in places:
            slow += section(published(places[name]), level="###")
    tried = [ablation(read_results(places[name])) for name in ABLATIONS if name in places]
    headline(groups).savefig(TARGET / "headline.png", dpi=120)
    (TARGET / "README.md").write_text(page(sections, slow, tried))
    everything = [row for group in groups.values() for row in group]
    text = README.read_text()
    README.write_text(with_table(text, "tracker", counted(everything)))
    print(f"written: {TARGET.relative_to(ROOT)} and the headline in {README.name}")


if __name__ == "__main__":
    main()
