"""Reads experiment files and checks them before anything runs.

`docs/reference/experiment_files.md` describes every key. An error names the file, the key, the
rule and the value.
"""

import tomllib
from collections.abc import Mapping
from dataclasses import replace
from importlib import resources
from pathlib import Path
from typing import Any

from driftbandits import check
from driftbandits.check import InputError
from driftbandits.core import Environment
from driftbandits.experiments.building import line_environment, line_policy
from driftbandits.experiments.claims import EVERY_OTHER, Claim, goes_forward
from driftbandits.experiments.experiment import Experiment, Sweep, check_sizes, tuned_name
from driftbandits.experiments.metrics import MEASURES

SHIPPED = resources.files("driftbandits.experiments") / "shipped"
DRAWINGS = ["best_arms", "ratio_bound"]
SCALES = ["linear", "log"]
KEYS = {
    "title", "question", "reference", "environment", "environments", "policies", "horizon", "runs",
    "seed", "measure", "scale", "sweep", "tuning", "hindsight", "points", "claims", "readings",
    "quick", "drawing", "times",
}  # fmt: skip


def shipped() -> dict[str, Path]:
    """The experiment files that come with the package, by name, e.g. "paper/figure_1b"."""
    root = Path(str(SHIPPED))
    files = sorted(root.rglob("*.toml"))
    return {file.relative_to(root).with_suffix("").as_posix(): file for file in files}


def read_experiments(source: str | Path) -> list[Experiment]:
    """Reads a file or a folder of files, your own or shipped with the package, e.g. "field"."""
    inside = [name for name in shipped() if name.startswith(f"{str(source).rstrip('/')}/")]
    folder = Path(source)
    if not inside and folder.is_dir():
        inside = [str(file) for file in sorted(folder.glob("*.toml"))]
        if not inside:
            check.fail("experiment", "a folder with at least one TOML file", str(source))
    return [read_experiment(name) for name in inside or [str(source)]]


def read_experiment(source: str | Path) -> Experiment:
    """Reads an experiment file and checks it.

    Args:
        source: A TOML file, or the name of an experiment that comes with the package, such as
            `"paper/figure_1b"`. The command `driftbandits list experiments` lists these.

    Returns:
        The experiment, ready to be run.

    Raises:
        InputError: If there is no such file, or it has a mistake. The message names the file, the
            key, the rule and the value.

    Example:
        ```python
        from driftbandits import read_experiment

        experiment = read_experiment("paper/figure_1b")
        print(experiment.title, experiment.runs, experiment.horizon)
        smaller = experiment.with_size(runs=4, horizon=200)
        ```
    """
    path = shipped().get(str(source)) or Path(source)
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        check.known("experiment", str(source), shipped(), instead="a TOML file that exists")
        raise
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: must be a text file that can be read, got {error}") from error
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{path}: must be TOML, got {error}") from error
    try:
        return experiment_from(path.stem, table)
    except InputError as error:
        raise InputError(f"{path}: {error}") from error


def experiment_from(name: str, table: Mapping[str, Any]) -> Experiment:
    """Makes an experiment from a file's table, and checks that it can be run."""
    for key in table:
        check.known("key", key, sorted(KEYS))
    for key, default in (("title", None), ("question", ""), ("reference", "")):
        _check_type(key, table.get(key, default), str, "text")
    fields = {k: v for k, v in table.items() if k not in {"environment", "environments"}}
    fields["environments"] = _environments(table)
    fields["policies"] = tuple(_table("policies", table.get("policies", {}), str).items())
    fields["sweep"] = _sweep(table["sweep"]) if "sweep" in table else None
    fields["tuning"] = _tuning(table.get("tuning", {}))
    fields["claims"] = tuple(_list_of("claims", table.get("claims", []), dict))
    fields["readings"] = tuple(_list_of("readings", table.get("readings", []), str))
    fields["times"] = tuple(_list_of("times", table.get("times", [0]), int))
    experiment = Experiment(name=name, **fields)
    check_experiment(experiment)
    return experiment


def as_table(experiment: Experiment) -> dict[str, Any]:
    """The table that `experiment_from` reads; the two are inverse to each other."""
    table = {k: v for k, v in vars(experiment).items() if k != "name" and v is not None}
    table["environments"] = dict(experiment.environments)
    table["policies"] = dict(experiment.policies)
    if experiment.sweep:
        sweep = experiment.sweep
        table["sweep"] = {sweep.of: sweep.setting, "values": list(sweep.values)}
    for key in ("claims", "readings", "times"):
        table[key] = list(table[key])
    table["tuning"] = {name: dict(grid) for name, grid in experiment.tuning.items()}
    return table


def _check_type(key: str, value: Any, kind: type, rule: str) -> None:
    if not isinstance(value, kind) or (key == "title" and not value):
        check.fail(key, rule, value)


def _table(key: str, value: Any, kind: type) -> dict[str, Any]:
    _check_type(key, value, dict, "a table { name = value, ... }")
    for name, entry in value.items():
        _check_type(f"{key}.{name}", entry, kind, {str: "text", int: "a whole number"}[kind])
    return dict(value)


def _list_of(key: str, value: Any, kind: type) -> list[Any]:
    rule = {dict: "tables", str: "texts", int: "whole numbers", object: "values"}[kind]
    _check_type(key, value, list, f"a list of {rule}")
    for entry in value:
        _check_type(key, entry, kind, f"a list of {rule}")
    return list(value)


def _environments(table: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    if "environment" in table and "environments" in table:
        check.fail("environments", "left out where there is an `environment`", "both")
    if "environment" in table:
        _check_type("environment", table["environment"], str, "text")
        return ((table["environment"], table["environment"]),)
    return tuple(_table("environments", table.get("environments", {}), str).items())


def _sweep(table: Any) -> Sweep:
    _check_type("sweep", table, dict, 'a table such as { policy = "energy", values = [0, 0.1] }')
    for key in table:
        check.known("sweep", key, ["policy", "environment", "values"])
    swept = [of for of in ("policy", "environment") if of in table]
    if len(swept) != 1:
        check.fail("sweep", "over a setting of `policy` or of `environment`, one of them", table)
    values = table.get("values")
    if (
        not isinstance(values, list)
        or len(values) < 2
        or any(v in values[:i] for i, v in enumerate(values))
    ):
        check.fail("sweep.values", "a list of at least two different values", values)
    _check_type(f"sweep.{swept[0]}", table[swept[0]], str, "the name of a setting")
    return Sweep(swept[0], table[swept[0]], tuple(values))


def _tuning(table: Any) -> dict[str, dict[str, list[Any]]]:
    rule = "a table such as { window = [100, 1000] }"
    _check_type("tuning", table, dict, "a table of tables such as { swa = { alpha = [0.1, 0.2] } }")
    for name, grid in table.items():
        _check_type(f"tuning.{name}", grid, dict, rule)
        if not grid:
            check.fail(f"tuning.{name}", rule, grid)
        for setting, values in grid.items():
            found = _list_of(f"tuning.{name}.{setting}", values, object)
            if not found or any(value in found[:i] for i, value in enumerate(found)):
                check.fail(f"tuning.{name}.{setting}", "different values, at least one", values)
    return dict(table)


def check_experiment(experiment: Experiment) -> None:
    """Raises `InputError` for an experiment that cannot be run, before any work is done."""
    check.flag(hindsight=experiment.hindsight)
    check_sizes(experiment)
    check.known("measure", experiment.measure, MEASURES)
    check.known("scale", experiment.scale, SCALES)
    if experiment.quick is not None:
        check_quick(experiment, experiment.quick)
    for time in experiment.times:
        check.integer(times=time, at_least=0)
    check_tuning(experiment)
    if experiment.drawing is None:
        check_lines(experiment)
    else:
        check.known("drawing", experiment.drawing, DRAWINGS)
        check_drawing(experiment)
    for number, claim in enumerate(experiment.claims, start=1):
        try:
            if experiment.sweep and claim.get("higher") == EVERY_OTHER:
                check.fail("higher", "given by names in a sweep", EVERY_OTHER)
            for parsed in replace(experiment, claims=(claim,)).parsed_claims():
                check_claim(experiment, parsed)
        except InputError as error:
            raise InputError(f"claims[{number}]: {error}") from error
    try:
        experiment.made_quick().parsed_claims()
    except InputError as error:
        raise InputError(f"quick: {error}") from error


def check_quick(experiment: Experiment, quick: Any) -> None:
    _check_type("quick", quick, dict, "a table such as { runs = 4, horizon = 500 }")
    for key in quick:
        check.known("quick", key, ["runs", "horizon", "values", "environments", "tuning"])
    check.integer(**{f"quick.{key}": quick[key] for key in ("runs", "horizon") if key in quick})
    check.flag(**{"quick.tuning": quick.get("tuning", True)})
    if "environments" in quick:
        known = [name for name, _ in experiment.environments]
        chosen = _list_of("quick.environments", quick["environments"], str)
        if not chosen:
            check.fail("quick.environments", "at least one", chosen)
        for name in chosen:
            check.known("quick.environments", name, known)
    if "values" in quick:
        swept = experiment.sweep.values if experiment.sweep else ()
        values = _list_of("quick.values", quick["values"], object)
        if len(values) < 2 or any(value not in swept for value in values):
            check.fail("quick.values", "at least two values of the sweep", values)


def check_claim(experiment: Experiment, claim: Claim) -> None:
    if claim.kind == "counterexample" and experiment.drawing != "ratio_bound":
        check.fail("counterexample", "a claim about the drawing 'ratio_bound'", claim.names[0])
    if not goes_forward(claim, experiment.horizon):
        rule = "a span that goes forward (1 is the first pull, 1.0 the horizon)"
        check.fail("over", rule, list(claim.span or ()))
    for value in claim.values or ():
        if experiment.sweep is None or value not in experiment.sweep.values:
            check.fail("values", "values of the sweep", value)


def check_tuning(experiment: Experiment) -> None:
    if experiment.tuning and (experiment.sweep or experiment.drawing):
        check.fail(
            "tuning", "left out where there is a sweep or a drawing", dict(experiment.tuning)
        )
    if experiment.hindsight and not experiment.tuning:
        check.fail("hindsight", "left out where nothing is tuned", experiment.hindsight)
    names = [policy for policy, _ in experiment.policies]
    for name in experiment.tuning:
        check.known("tuning", name, names)
        if tuned_name(name) in names:
            check.fail("policies", f"without {tuned_name(name)!r}, which tuning makes", names)


def check_drawing(experiment: Experiment) -> None:
    if experiment.drawing == "best_arms" and not experiment.environments:
        check.fail("environments", "at least one", {})
    for key in ("policies", "sweep"):
        if getattr(experiment, key):
            check.fail(key, "left out in a drawing", getattr(experiment, key))
    for _, text in experiment.environments:
        if check_environment(text).spec.context_dim != 2 and experiment.drawing == "best_arms":
            check.fail("environments", "of two-dimensional contexts in this drawing", text)


def check_environment(text: str) -> Environment:
    try:
        return line_environment(text)
    except InputError as error:
        raise InputError(f"environments: {error}") from error


def check_measure(measure: str, environment: Environment, text: str) -> None:
    if measure == "recovery_time" and environment.era is None:
        rule = "another one in an environment whose drift has no moments to recover from"
        check.fail("measure", rule, f"{measure} in {text}")


def check_lines(experiment: Experiment) -> None:
    for key in ("policies", "environments"):
        if not getattr(experiment, key):
            check.fail(key, "at least one", {})
    labels = [line.label for line in experiment.lines()]
    if len(set(labels)) < len(labels):
        check.fail("policies", "named differently from each other", labels)
    for line in experiment.lines():
        environment = check_environment(line.environment)
        check_measure(experiment.measure, environment, line.environment)
        try:
            line_policy(line.policy, environment, experiment.horizon)
        except InputError as error:
            if line.policy_name == line.policy:  # it has no name of its own
                raise
            raise InputError(f"policies.{line.policy_name}: {error}") from error
