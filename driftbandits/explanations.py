"""The page of a policy, an environment or a transformation, made from its docstrings.

The docstring of its module has paragraphs in this order: `Title: summary.`, the rule as a formula
with what its symbols mean, `Paper: ...`, `Differences from the paper: ...`, `Use it ... Not ...`.
"""

import ast
import sys
from importlib.resources.abc import Traversable
from typing import NamedTuple

from driftbandits.catalogue import (
    IGNORES,
    arguments_of,
    described,
    homes_of,
    parsed,
    uses_features,
)
from driftbandits.check import known
from driftbandits.choice import write
from driftbandits.uses import use_of

PACKAGES = {
    "POLICIES": "policies",
    "ENVIRONMENTS": "environments",
    "TRANSFORMATIONS": "environments",
}
PAPER, DIFFERENCES, USE = "Paper: ", "Differences from the paper: ", "Use it "
RULE = ""  # every other paragraph
IGNORES_FEATURES = "It ignores the features of arms."
IGNORES_BOTH = "It ignores the context and the features of arms."
TRANSFORMED = {  # a value that shows what each does
    "max_consecutive": "10",
    "fatigue": "0.9",
    "sleeping": "0.5",
    "delayed": "100",
    "noisy": "0.5",
    "heavy_tailed": "0.5",
    "scaled": "[100, -50]",
}
WORLDS = {"table": "table(file='rewards.csv')", "rotting": "rotting(life=500)"}  # of examples
TABLE = 'Path("rewards.csv").write_text("red,green\\n0.2,0.9\\n0.7,0.1\\n0.4,0.8\\n")'
WIDEST = 100  # columns of a terminal


class About(NamedTuple):
    """What the docstring of a module says."""

    title: str
    summary: str
    rule: str
    use: str
    paper: str
    differences: str


def print_explanation(name: str) -> None:
    """Laid out for a terminal, or as Markdown for a pipe or a file."""
    text = explain(name)
    if not sys.stdout.isatty():
        print(text, end="")
        return
    from rich.console import Console
    from rich.markdown import Markdown
    from rich.theme import Theme

    console = Console(theme=Theme({"markdown.code": "bold cyan"}))
    console.print(Markdown(text), width=min(console.width, WIDEST))


def explain(name: str) -> str:
    """What there is to say about a policy, an environment or a transformation, in Markdown.

    Args:
        name: One of the names that `driftbandits list` shows.

    Returns:
        A page: summary, rule, when to use it, settings, examples, paper, and what is related.

    Raises:
        InputError: There is nothing of that name.
    """
    homes = {
        entry: (table, file)
        for table, package in PACKAGES.items()
        for entry, (file, _) in homes_of(package, table).items()
    }
    known("NAME", name, homes)
    table, file = homes[name]
    about = about_module(file)
    parts = [
        f"# {about.title} ({name})",
        about.summary,
        "## How it works",
        about.rule,
        "## When to use it",
        about.use if table != "POLICIES" or uses_features(file) else without_features(about.use),
        "## Settings",
        *settings(name, table, file),
        "## Example",
        *example(name, table),
        *(["## Paper", about.paper, about.differences] if about.paper else []),
        "## See also",
        related(name),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def about_module(file: Traversable) -> About:
    first, *others = (ast.get_docstring(parsed(file)) or "").split("\n\n")
    found: dict[str, list[str]] = {}
    for paragraph in others:
        starts = (PAPER, DIFFERENCES, USE, IGNORES, RULE)
        start = next(start for start in starts if paragraph.startswith(start))
        found.setdefault(start, []).append(paragraph)
    title, _, summary = first.replace("\n", " ").partition(": ")

    def text(*starts: str) -> str:
        return "\n\n".join(part for start in starts for part in found.get(start, []))

    return About(
        title=title,
        summary=capitalised(summary),
        rule=text(RULE),
        use=text(USE, IGNORES),
        paper=capitalised(text(PAPER).removeprefix(PAPER)),
        differences=text(DIFFERENCES),
    )


def without_features(use: str) -> str:
    """When to use a policy that ignores the features of arms."""
    if use.endswith(IGNORES):
        return use.removesuffix(IGNORES) + IGNORES_BOTH
    return f"{use}\n\n{IGNORES_FEATURES}"


def capitalised(text: str) -> str:
    return text[:1].upper() + text[1:]


def settings(name: str, table: str, file: Traversable) -> list[str]:
    """A table of the settings with their defaults; of a transformation, its one value."""
    meanings = arguments_of(file, name)
    if table == "TRANSFORMATIONS":
        (value,) = [text for argument, text in meanings.items() if argument != "environment"]
        return [f"`{name}` is a setting of every environment. Its value: {value}"]
    rows = [
        f"| `{key}` | `{write(value)}` | {meanings.get(key, '')} |"
        for key, value in described(file, name)["settings"].items()
    ]
    head = ["| setting | default | meaning |", "| --- | --- | --- |"]
    parts = ["\n".join([*head, *rows]) if rows else "There are none."]
    if table == "ENVIRONMENTS":
        changes = ", ".join(f"`{name}`" for name in homes_of("environments", "TRANSFORMATIONS"))
        parts.append(f"Like every environment it also takes the transformations\n{changes}.")
    return parts


def example(name: str, table: str) -> list[str]:
    """A comparison to paste, in Python and on the command line."""
    world, policies = world_of(name, table), policies_of(name, table)
    quoted = ", ".join(f'"{policy}"' for policy in policies)
    file = ["from pathlib import Path", ""] if name == "table" else []
    python = [
        *file,
        "from driftbandits import compare",
        "",
        *([TABLE] if file else []),
        f"policies = [{quoted}]",
        f'comparison = compare(policies, "{world}", horizon=2000, runs=8)',
        "for policy, final in comparison.final().items():",
        '    print(f"{policy}: regret {final.mean:.0f} ({final.low:.0f} to {final.high:.0f})")',
    ]
    shell = world if world.isidentifier() else f'"{world}"'
    chosen = " ".join(f"-p {policy}" for policy in policies)
    return [
        "Compare it with other policies:" if table == "POLICIES" else "Compare policies on it:",
        "\n".join(["```python", *python, "```"]),
        "The same on the command line:",
        f"```sh\ndriftbandits compare -e {shell} {chosen} -T 2000 -n 8\n```",
    ]


def world_of(name: str, table: str) -> str:
    """An environment that shows what a policy does, or a transformation."""
    if table == "POLICIES":
        return use_of(name).world
    return (
        f"bernoulli({name}={TRANSFORMED[name]})"
        if table == "TRANSFORMATIONS"
        else (WORLDS.get(name, name))
    )


def policies_of(name: str, table: str) -> list[str]:
    """Itself if it is a policy, the default, a well-known one, and chance."""
    own = [name] if table == "POLICIES" else []
    known_one = "lin_ts" if use_of(name).title.startswith("Contexts") else "thompson"
    return [*dict.fromkeys([*own, "tracker", known_one, "uniform"])]


def related(name: str) -> str:
    """The others of the same use."""
    use = use_of(name)
    others = ", ".join(f"`{other}`" for other in use.names if other != name)
    if not others:
        return "All others: `driftbandits list policies`."
    return f"For the same use ({use.title[0].lower()}{use.title[1:]}): {others}."
