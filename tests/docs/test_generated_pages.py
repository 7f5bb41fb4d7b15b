"""The pages of policies and environments are those that the docstrings make."""

from pathlib import Path

import jax
import pytest

from driftbandits import ENVIRONMENTS, POLICIES, TRANSFORMATIONS, BanditSpec
from driftbandits.choice import settings_of
from driftbandits.core import blank_observation
from driftbandits.explanations import explain
from driftbandits.uses import ENVIRONMENT_USES, POLICY_USES
from tools.publish.pages import pages as found

DOCS = Path(__file__).parents[2] / "docs"
REFERENCE = DOCS / "reference"
TABLES = {**POLICIES, **ENVIRONMENTS, **TRANSFORMATIONS}
LARGEST_PICTURE = 40_000  # bytes
SECTIONS = ["How it works", "When to use it", "Settings", "Example", "See also"]


def test_pages_are_up_to_date() -> None:
    pages = found()
    written = {*REFERENCE.glob("policies/*.md"), *REFERENCE.glob("environments/*.md")}
    assert written == set(pages), "run: python -m tools.publish.pages"
    for path, text in pages.items():
        assert path.read_text() == text, f"{path.name} is old; run: python -m tools.publish.pages"


def test_everything_has_one_use() -> None:
    """By which the index pages are ordered, in driftbandits/uses.py."""
    assert sorted(name for use in POLICY_USES for name in use.names) == sorted(POLICIES)
    environments = sorted(name for use in ENVIRONMENT_USES for name in use.names)
    assert environments == sorted([*ENVIRONMENTS, *TRANSFORMATIONS])


@pytest.mark.parametrize("name", TABLES)
def test_every_page_has_its_sections(name: str) -> None:
    text = explain(name)
    heading, summary = text.split("\n\n")[:2]
    assert heading.startswith("# ")
    assert heading.endswith(f"({name})")
    assert len(summary) > 20
    assert summary.endswith(".")
    for section in SECTIONS:
        assert f"\n## {section}\n\n" in text
        assert not text.partition(f"## {section}\n\n")[2].startswith("#"), f"{section} is empty"


@pytest.mark.parametrize("name", {**POLICIES, **ENVIRONMENTS})
def test_every_setting_is_explained(name: str) -> None:
    text = explain(name)
    for setting, default in settings_of(TABLES[name]).items():
        row = next(line for line in text.splitlines() if line.startswith(f"| `{setting}` |"))
        assert len(row.split("|")[3].strip()) > 3, f"{setting} is not explained"
        assert default is not None or "`none`" in row


@pytest.mark.parametrize("name", POLICIES)
def test_a_page_says_whether_features_of_arms_are_ignored(name: str) -> None:
    """They are if no operation of a decision has them as an input."""
    spec = BanditSpec(num_arms=4, context_dim=3, horizon=300, arm_dim=2)
    policy, key = POLICIES[name](spec), jax.random.key(0)
    seen = blank_observation(spec, spec.num_arms if policy.sees_means else None)
    state = jax.eval_shape(policy.init, key)
    decide = jax.make_jaxpr(lambda arms, s: policy.act(key, s, seen._replace(arms=arms)))
    program = decide(seen.arms, state).jaxpr
    used = any(program.invars[0] is given for line in program.eqns for given in line.invars)
    text = explain(name)
    said = "\nIt ignores the features of arms.\n" in text
    said |= "\nIt ignores the context and the features of arms.\n" in text
    assert said != used


@pytest.mark.parametrize("name", {**ENVIRONMENTS, **TRANSFORMATIONS})
def test_every_environment_has_a_picture(name: str) -> None:
    path = DOCS / "pictures" / "environments" / f"{name}.png"
    assert path.exists(), f"run: python -m tools.publish.environment_pictures {name}"
    assert path.stat().st_size < LARGEST_PICTURE
    page = (REFERENCE / "environments" / f"{name}.md").read_text()
    assert f"](../../pictures/environments/{name}.png)" in page
