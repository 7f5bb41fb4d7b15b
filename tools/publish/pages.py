"""Writes the pages of policies and environments from the docstrings, and CONTRIBUTING's map."""

from pathlib import Path

from driftbandits.catalogue import IGNORES, explain, functions_of
from tools.layers import as_markdown
from tools.publish.marks import with_table

ROOT = Path(__file__).parents[2]
REFERENCE = ROOT / "docs" / "reference"
DEFAULT = "tracker"  # of the policies, the one to start with
INTRO = "Each page is what `driftbandits explain NAME` prints; `make docs` writes them.\n"


def pages() -> dict[Path, str]:
    """Every page, by where it belongs."""
    policies = functions_of("policies", "POLICIES")
    worlds = functions_of("environments", "ENVIRONMENTS")
    changes = functions_of("environments", "TRANSFORMATIONS")
    texts = {REFERENCE / "policies" / f"{name}.md": explain(name) for name in policies}
    texts |= {REFERENCE / "environments" / f"{name}.md": explain(name) for name in worlds | changes}
    contextual = {
        name: entry
        for name, entry in policies.items()
        if IGNORES not in texts[REFERENCE / "policies" / f"{name}.md"] and name != DEFAULT
    }
    start = {DEFAULT: policies.pop(DEFAULT)}
    free = {name: entry for name, entry in policies.items() if name not in contextual}
    groups = {"With or without a context: the default": start, "Context-free": free}
    texts[REFERENCE / "policies" / "README.md"] = index(
        "Policies", groups | {"Contextual": contextual}
    )
    texts[REFERENCE / "environments" / "README.md"] = index(
        "Environments", {"Environments": worlds, "Transformations of any environment": changes}
    )
    return texts


def index(title: str, groups: dict[str, dict[str, dict[str, str]]]) -> str:
    parts = [f"# {title}\n", INTRO]
    for heading, entries in groups.items():
        rows = [f"| [{name}]({name}.md) | {entry['summary']} |" for name, entry in entries.items()]
        parts += [f"## {heading}\n", "\n".join(["| | |", "| --- | --- |", *rows]) + "\n"]
    return "\n".join(parts)


def write_map() -> None:
    path = ROOT / "CONTRIBUTING.md"
    path.write_text(with_table(path.read_text(), "map", as_markdown() + "\n"))


def main() -> None:
    write_map()
    found = pages()
    for path in (*REFERENCE.glob("policies/*.md"), *REFERENCE.glob("environments/*.md")):
        if path not in found:
            path.unlink()
    for path, text in found.items():
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
