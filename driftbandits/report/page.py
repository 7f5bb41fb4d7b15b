"""The report of a folder of results: one HTML page that opens offline, figures and tables."""

import base64
from collections.abc import Iterable, Mapping
from dataclasses import replace
from importlib import resources
from pathlib import Path
from typing import Any

import jinja2
import polars as pl
from matplotlib.figure import Figure

from driftbandits import check
from driftbandits.experiments.effects import FAILS, HOLDS, UNDECIDED
from driftbandits.experiments.experiment import Experiment
from driftbandits.experiments.ranking import is_field
from driftbandits.experiments.results import Results
from driftbandits.experiments.tuning import how_tuned
from driftbandits.report.curves import curves_figure, save, styled
from driftbandits.report.drawings import best_arms_figure, ratio_bound_figure
from driftbandits.report.field import heat_map_figure, ranking_table
from driftbandits.report.findings import best_of_finals, best_of_ranking, opening
from driftbandits.report.style import MEANINGS, Look, duration, looks_of, number
from driftbandits.report.sweeps import sweep_figure
from driftbandits.report.tables import curve_table, final_table
from driftbandits.report.wording import beside_text, effect_text, hanging_text, sentence
from driftbandits.running.folder import locked, write_file, write_json
from driftbandits.running.store import finished, read_results, stored_experiment, table_on_disk

PAGE = "report.html"
SIGNS = {HOLDS: "✓", FAILS: "✗", UNDECIDED: "?"}


def write_report(
    folder: str | Path, title: str | None = None, *, results: Iterable[Results] = ()
) -> Path:
    """Writes the report of a folder of results: one HTML page, figures, tables and verdicts.

    The page opens offline. It needs the extra `report`.

    Args:
        folder: A folder with the results of at least one experiment, as `run_experiment` and
            `compare(out=...)` write it.
        title: The title of the page. None makes one from the experiments.
        results: Results of this folder that are in memory already. The others are read from disk.

    Returns:
        The path of the page, `report.html` in the folder.

    Raises:
        InputError: If the folder has no finished experiment.

    Example:
        ```python
        from driftbandits import compare, write_report

        compare(["ucb", "uniform"], horizon=200, runs=4, out="results/mine")
        page = write_report("results/mine", title="UCB against chance")
        print(page)
        ```
    """
    folder = Path(folder)
    places = finished(folder)
    if not places:
        check.fail("DIR", "a folder with at least one finished experiment", str(folder))
    in_hand = {given.experiment.name: given for given in results}
    with locked(folder):
        looks = looks_of(name for place in places for name in legend(place, in_hand))
        sections, found = [], []
        for place in places:  # one after the other: a table may fill the memory
            given = in_hand.get(place.name)
            current = replace(given) if given else read_results(place)
            sections.append(section(current, folder, looks))
            found.append(table_on_disk(current, place))
        claims = [claim for current in found for claim in current.named_claims()]
        write_json(folder / "claims.json", claims)
        page = render(title or default_title(found), sections, claims, found)
        write_file(folder / PAGE, page.encode())
    return folder / PAGE


def legend(place: Path, in_hand: Mapping[str, Results]) -> list[str]:
    given = in_hand.get(place.name)
    return (given.experiment if given else stored_experiment(place)).legend()


def render(
    title: str,
    sections: list[dict[str, Any]],
    claims: list[dict[str, Any]],
    found: list[Results],
) -> str:
    loader = jinja2.FunctionLoader(
        lambda name: (resources.files("driftbandits.report") / name).read_text(encoding="utf-8")
    )
    templates = jinja2.Environment(loader=loader, autoescape=True, undefined=jinja2.StrictUndefined)
    templates.filters.update(
        number=number,
        duration=duration,
        sign=SIGNS.__getitem__,
        effect=effect_text,
        beside=beside_text,
        hanging=hanging_text,
        sentence=sentence,
    )
    pieces = {
        name: size for results in found for name, size in results.provenance["pieces"].items()
    }
    return templates.get_template("page.html").render(
        title=title,
        sections=sections,
        num_claims=len(claims),
        **opening(sections),
        seconds=sum(size["seconds"] for size in pieces.values()),
        pulls=sum(size["pulls"] for size in pieces.values()),
        quick=any(part["quick"] for part in sections),
    )


def default_title(found: list[Results]) -> str:
    """The only experiment's title, or the paper that all of them are from."""
    if len(found) == 1:
        return found[0].experiment.title
    if all(is_field(results) for results in found):
        return "The field: which policy for which drift"
    sources = {results.experiment.reference.split(",")[0] for results in found}
    if len(sources) == 1 and sources != {""}:
        return f"{sources.pop()}, reproduced"
    return f"{len(found)} experiments"


def section(results: Results, folder: Path, looks: Mapping[str, Look]) -> dict[str, Any]:
    """The page's section on one experiment; also writes its figures and tables."""
    experiment, about = results.experiment, results.provenance
    place = folder / experiment.name
    finals = ranking = None
    best = ""
    if not experiment.drawing:
        finals = final_table(results)
        best = best_of_finals(finals.to_dicts(), experiment.measure)
        write_csv(place / "table.csv", finals)
        write_csv(place / "curves.csv", curve_table(results))
    elif experiment.drawing == "ratio_bound":
        write_csv(place / "table.csv", results.table)
    if is_field(results):
        ranking = ranking_table(results)
        best = best_of_ranking(ranking.to_dicts())
        write_csv(place / "ranking.csv", ranking)
    seconds = sum(size["seconds"] for size in about["pieces"].values())
    return {
        "name": experiment.name,
        "title": experiment.title,
        "question": experiment.question,
        "reference": experiment.reference,
        "tuning": how_tuned(experiment),
        "readings": experiment.readings,
        "figures": draw(results, place, looks),
        "ranking": ranking.to_dicts() if ranking is not None else None,
        "best": best,
        "verdicts": results.claims,
        "finals": finals.to_dicts() if finals is not None else None,
        "measure": MEANINGS[experiment.measure],
        "settings": settings(experiment),
        "policies": [(line.label, line.policy) for line in results.lines],
        "provenance": {
            **{name: text for name, text in about.items() if name not in ("packages", "pieces")},
            "packages": ", ".join(f"{name} {text}" for name, text in about["packages"].items()),
            "pieces": f"{len(about['pieces'])}, {duration(seconds)} of one core",
        },
        "quick": is_quick(experiment),
    }


def is_quick(experiment: Experiment) -> bool:
    quick = experiment.quick or {}
    names = [name for name in ("runs", "horizon") if name in quick]
    return bool(names) and all(getattr(experiment, name) == quick[name] for name in names)


def settings(experiment: Experiment) -> dict[str, str]:
    if experiment.drawing:
        return {"environments": ", ".join(text for _, text in experiment.environments) or "none"}
    sizes = {"horizon": f"{experiment.horizon:,} pulls", "runs": f"{experiment.runs:,}"}
    names = ", ".join(text for _, text in experiment.environments)
    return {"environment": names, **sizes, "seed": str(experiment.seed)}


def figures_of(results: Results, looks: Mapping[str, Look]) -> dict[str, Figure]:
    """The figures of an experiment, by the names of their files."""
    if results.experiment.drawing == "best_arms":
        return {"figure": best_arms_figure(results)}
    if results.experiment.drawing == "ratio_bound":
        return {"figure": ratio_bound_figure(results)}
    if results.experiment.sweep:
        return {"figure": sweep_figure(results)}
    curves = curves_figure(results, looks)
    if is_field(results):
        return {"figure": heat_map_figure(results), "curves": curves}
    return {"figure": curves}


def draw(results: Results, place: Path, looks: Mapping[str, Look]) -> list[str]:
    """Writes the figures as PNG and SVG; returns the SVGs as data addresses for the page."""
    addresses = []
    with styled():
        for name, figure in figures_of(results, looks).items():
            for ending in (".png", ".svg"):
                save(figure, place / f"{name}{ending}")
            content = (place / f"{name}.svg").read_bytes()
            addresses.append("data:image/svg+xml;base64," + base64.b64encode(content).decode())
    return addresses


def write_csv(path: Path, table: pl.DataFrame) -> None:
    write_file(path, table.write_csv(float_precision=6).encode())
