"""Parts of the benchmark as they were measured: one JSON file each, in benchmarks/measured."""

import json
from dataclasses import asdict
from pathlib import Path

from benchmarks import surroundings
from benchmarks.measuring import Goal, Grid, Part, Series

ROOT = Path(__file__).parents[1]
SHORT = ROOT / "results" / "bench"
PARTS = {  # name: module, function, minutes it takes, about
    "recurrent": ("recurrent", "recurrent", 3),
    "neural_linear": ("neural_linear", "neural_linear", 3),
    "tracker": ("tracker", "tracker", 2),
    "policies": ("policies", "policies", 8),
    "peers": ("peers", "peers", 2),
    "growth": ("growth", "growth", 8),
    "memory": ("growth", "memory", 12),
    "tricks": ("tricks", "tricks", 5),
    "first": ("first_result", "first_result", 2),
    "profile": ("profile", "profiles", 25),
    "programs": ("programs", "programs", 15),
    "pairs": ("pairs", "single_pairs", 2),
    "service": ("service", "service_load", 9),
    "features": ("features", "features", 7),
}


def place(name: str, short: bool) -> Path:
    return (SHORT if short else ROOT / "benchmarks" / "measured") / f"{name}.json"


def keep(name: str, part: Part, about: dict[str, str], short: bool) -> None:
    target = place(name, short)
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = target.with_suffix(".partial")
    partial.write_text(json.dumps({"part": asdict(part), "about": about}, indent=1))
    partial.replace(target)


def read(name: str, short: bool) -> tuple[Part, dict[str, str]]:
    kept = json.loads(place(name, short).read_text())
    fields = kept["part"]
    fields["series"] = [Series(**values) for values in fields["series"]]
    fields["goals"] = [Goal(**values) for values in fields["goals"]]
    fields["grids"] = [Grid(**values) for values in fields.get("grids", [])]
    return Part(**fields), kept["about"]


def up_to_date(name: str, short: bool) -> bool:
    """Whether a part is there, of this machine and of the code as it is now."""
    if not place(name, short).exists():
        return False
    about = read(name, short)[1]
    return (about["code"], about["machine"]) == (surroundings.code(), surroundings.machine())
