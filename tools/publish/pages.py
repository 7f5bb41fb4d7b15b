"""Writes the pages of policies and environments from the docstrings, and CONTRIBUTING's map.

A page is what `driftbandits explain NAME` prints, with links, and with a picture of an environment
(`python -m tools.publish.environment_pictures` draws those).
"""

import re
from pathlib import Path

from driftbandits.catalogue import functions_of
from driftbandits.explanations import explain
from driftbandits.uses import ENVIRONMENT_USES, POLICY_USES, Use
from tools.layers import as_markdown
from tools.publish.environment_pictures import DRAWINGS
from tools.publish.finals import wrapped
from tools.publish.marks import with_table
from tools.publish.page_blocks import split

ROOT = Path(__file__).parents[2]
REFERENCE = ROOT / "docs" / "reference"
POLICIES = functions_of("policies", "POLICIES")
ENVIRONMENTS = functions_of("environments", "ENVIRONMENTS") | functions_of(
    "environments", "TRANSFORMATIONS"
)
FOLDERS = dict.fromkeys(POLICIES, "policies") | dict.fromkeys(ENVIRONMENTS, "environments")
NAMED = re.compile(r"(?<!\[)`(\w+)`")
PICTURES = "../../pictures/environments"
LONGEST_LINE = 140  # that links may make

CHOOSE = "- [Choose a policy](../../how_to/choose_a_policy.md)\n"
REGRET = "- [Drift and regret](../../explanation/drift_and_regret.md)\n"
PROBABILITIES = "- [Exact probabilities](../../explanation/exact_probabilities.md)\n"
YOUR_DATA = "- [Your own data](../../how_to/your_data.md)\n"
FURTHER = {
    "tracker": "- [How the tracker works](../../explanation/tracker.md)\n"
    "- [Its results](../../evidence/tracker/README.md)\n",
    "recurrent": "- [The Recurrent Bandit, and what holds of the paper]"
    "(../../explanation/recurrent_bandit.md)\n",
    "table": YOUR_DATA,
    "adversarial": YOUR_DATA,
    "delayed": "- [Late rewards](../../how_to/late_rewards.md)\n",
    **dict.fromkeys(
        [name for name in POLICIES if name.endswith(("thompson", "_ts"))], PROBABILITIES
    ),
}

POLICIES_INTRO = """\
A policy chooses an arm and learns from its reward. Give its name wherever one is asked for, with
settings in brackets if you like: `sw_ucb(window=500)`. `driftbandits explain NAME` prints the page
of a policy in a terminal. [Choose a policy](../../how_to/choose_a_policy.md) says which one suits
which kind of drift; if in doubt, take [`tracker`](tracker.md). Only policies listed under
*Contexts*, [`tracker`](tracker.md) and [`recurrent`](recurrent.md) use a context. A page says so if
its policy ignores the [features of arms](../../how_to/arms_with_features.md).
"""
ENVIRONMENTS_INTRO = """\
An environment is a bandit problem to simulate. Give its name wherever one is asked for, with
settings in brackets if you like: `sinusoidal(num_arms=5)`. Each can be changed by transformations,
written as settings: `sinusoidal(sleeping=0.5, delayed="geometric(mean=100)")`.
`driftbandits explain NAME` prints the page of an environment in a terminal. The pictures show the
mean reward of the arms over time, unless they say otherwise.
"""
USES = {  # a sentence below the heading
    "A start": "With or without drift, with or without a context.",
    "Forgetting": "Old rewards fade or drop out of a window. So do those of "
    "[`gaussian_thompson`](gaussian_thompson.md) with a discount such as 0.999.",
    "Change detection": "A test restarts what is known when an arm changes; `bandit_over_bandit` "
    "chooses a window.",
    "The paper's own": "Its ablations are `recurrent(energy=0)`, `recurrent(energy=0, "
    "epsilon=0.01)` and\n`recurrent(energy=0, temperature=2)`.",
}


def pages() -> dict[Path, str]:
    """Every page, by where it belongs."""
    texts = {REFERENCE / folder / f"{name}.md": page(name) for name, folder in FOLDERS.items()}
    policies = [policies_table(use) for use in POLICY_USES]
    texts[REFERENCE / "policies" / "README.md"] = index("Policies", POLICIES_INTRO, policies)
    environments = [environments_table(use) for use in ENVIRONMENT_USES]
    texts[REFERENCE / "environments" / "README.md"] = index(
        "Environments", ENVIRONMENTS_INTRO, environments
    )
    return texts


def page(name: str) -> str:
    """What `explain` says, with links and a picture."""
    heading, summary, rest = linked(explain(name), name).split("\n\n", 2)
    more = FURTHER.get(name, "") + (CHOOSE if name in POLICIES else REGRET)
    return "\n\n".join([heading, summary, *picture(name), f"{rest}\n{more}"])


def picture(name: str) -> list[str]:
    drawing = DRAWINGS.get(name)
    return (
        [f"![{drawing.caption}]({PICTURES}/{name}.png)", f"*{drawing.caption}*"] if drawing else []
    )


def linked(text: str, own: str) -> str:
    """The names of others in prose become links; code, tables and headings stay."""
    parts = []
    for block in split(text):
        if block.language:
            parts.append(f"```{block.language}\n{block.text}```\n")
        else:
            parts += [link_line(line, own) for line in block.text.splitlines(keepends=True)]
    return "".join(parts)


def link_line(line: str, own: str) -> str:
    def link(match: re.Match[str]) -> str:
        name = match[1]
        if name == own or name not in FOLDERS:
            return match[0]
        folder = "" if FOLDERS[name] == FOLDERS[own] else f"../{FOLDERS[name]}/"
        return f"[`{name}`]({folder}{name}.md)"

    if line.startswith(("#", "|", "    ")):
        return line
    found = NAMED.sub(link, line)
    return wrapped(found) + "\n" if len(found) > LONGEST_LINE else found


def index(title: str, intro: str, sections: list[str]) -> str:
    return "\n".join([f"# {title}\n", intro, *sections])


def policies_table(use: Use) -> str:
    rows = [f"| [`{name}`]({name}.md) | {POLICIES[name]['summary']} |" for name in use.names]
    return section(use, ["| policy | what it does |", "| --- | --- |", *rows])


def environments_table(use: Use) -> str:
    rows = [
        f"| [`{name}`]({name}.md) | {ENVIRONMENTS[name]['summary']} | "
        f"[![{DRAWINGS[name].caption}]({PICTURES}/{name}.png){{ width=220 }}]({name}.md) |"
        for name in use.names
    ]
    return section(use, ["| environment | what it is | picture |", "| --- | --- | --- |", *rows])


def section(use: Use, table: list[str]) -> str:
    intro = [f"{USES[use.title]}\n"] if use.title in USES else []
    return "\n".join([f"## {use.title}\n", *intro, *table]) + "\n"


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
