"""One page for a folder of results, which opens without a network, and its figures beside it."""

import base64
import json
from collections import Counter
from importlib import resources
from pathlib import Path
from typing import Any

import jinja2
import polars as pl
from matplotlib.figure import Figure

from driftbandits import check
from driftbandits.experiment import Experiment
from driftbandits.report.curves import curves_figure, save, styled
from driftbandits.report.drawings import best_arms_figure, ratio_bound_figure
from driftbandits.report.style import MEANINGS, duration, number
from driftbandits.report.sweeps import sweep_figure
from driftbandits.report.tables import curve_table, final_table
from driftbandits.results import Results, StoreError, finished, read_results, write_file, write_json
from driftbandits.verdicts import FAILS, HOLDS, UNDECIDED

PAGE = "report.html"
SIGNS = {HOLDS: "✓", FAILS: "✗", UNDECIDED: "?"}


def write_report(folder: str | Path, title: str | None = None) -> Path:
    """Draws and writes everything that a folder of results has to show; returns the page."""
    folder = Path(folder)
    places = finished(folder)
    if not places:
        check.fail("DIR", "a folder with at least one finished experiment", str(folder))
    sections = [section(place) for place in places]
    claims = [
        {"experiment": part["name"], **verdict} for part in sections for verdict in part["verdicts"]
    ]
    write_json(folder / "claims.json", claims)
    loader = jinja2.FunctionLoader(
        lambda name: (resources.files("driftbandits.report") / name).read_text(encoding="utf-8")
    )
    templates = jinja2.Environment(loader=loader, autoescape=True, undefined=jinja2.StrictUndefined)
    templates.filters.update(number=number, duration=duration, sign=SIGNS.__getitem__)
    counts = Counter(claim["verdict"] for claim in claims)
    page = templates.get_template("page.html").render(
        title=title or default_title(sections),
        sections=sections,
        claims=claims,
        counts={verdict: counts[verdict] for verdict in SIGNS},
        seconds=sum(part["provenance"].get("seconds", 0) for part in sections),
        pulls=sum(part["pulls"] for part in sections),
        quick=any(part["quick"] for part in sections),
    )
    write_file(folder / PAGE, page.encode())
    return folder / PAGE


def default_title(sections: list[dict[str, Any]]) -> str:
    return sections[0]["title"] if len(sections) == 1 else f"{len(sections)} experiments"


def section(place: Path) -> dict[str, Any]:
    """What the page says of one experiment; writes its figures and tables on the way."""
    results = read_results(place)
    experiment = results.experiment
    finals = None
    if not experiment.drawing:
        finals = final_table(results)
        write_csv(place / "table.csv", finals)
        write_csv(place / "curves.csv", curve_table(results))
    elif experiment.drawing == "ratio_bound":
        write_csv(place / "table.csv", results.table)
    lines = experiment.lines()
    return {
        "name": experiment.name,
        "title": experiment.title,
        "question": experiment.question,
        "reference": experiment.reference,
        "readings": experiment.readings,
        "figure": draw(results, place),
        "verdicts": read_verdicts(place),
        "finals": finals.to_dicts() if finals is not None else None,
        "several": len(experiment.environments) > 1,
        "measure": MEANINGS[experiment.measure],
        "settings": settings(experiment),
        "policies": [(line.label, line.policy) for line in lines],
        "provenance": results.provenance,
        "pulls": experiment.horizon * experiment.runs * len(lines),
        "quick": is_quick(experiment),
    }


def is_quick(experiment: Experiment) -> bool:
    size = {"runs": experiment.runs, "horizon": experiment.horizon}
    return bool(experiment.quick) and all(size[k] == v for k, v in (experiment.quick or {}).items())


def read_verdicts(place: Path) -> list[dict[str, Any]]:
    try:
        verdicts: list[dict[str, Any]] = json.loads((place / "claims.json").read_text())
    except (OSError, ValueError) as error:
        raise StoreError(f"{place / 'claims.json'} cannot be read ({error})") from error
    return verdicts


def settings(experiment: Experiment) -> dict[str, str]:
    if experiment.drawing:
        return {"environments": ", ".join(text for _, text in experiment.environments) or "none"}
    sizes = {"horizon": f"{experiment.horizon:,} pulls", "runs": f"{experiment.runs:,}"}
    names = ", ".join(text for _, text in experiment.environments)
    return {"environment": names, **sizes, "seed": str(experiment.seed)}


def figure_of(results: Results) -> Figure:
    if results.experiment.drawing == "best_arms":
        return best_arms_figure(results)
    if results.experiment.drawing == "ratio_bound":
        return ratio_bound_figure(results)
    return sweep_figure(results) if results.experiment.sweep else curves_figure(results)


def draw(results: Results, place: Path) -> str:
    """Writes the figure as PNG and SVG; returns the SVG as a data address for the page."""
    with styled():
        figure = figure_of(results)
        for ending in (".png", ".svg"):
            draft = place / f".figure{ending}"
            save(figure, draft)
            draft.replace(place / f"figure{ending}")
    content = (place / "figure.svg").read_bytes()
    return "data:image/svg+xml;base64," + base64.b64encode(content).decode()


def write_csv(path: Path, table: pl.DataFrame) -> None:
    write_file(path, table.write_csv(float_precision=6).encode())
