"""What is not asked for is not imported."""

import subprocess
import sys

import pytest

from driftbandits.factories import Factories
from tests.uncovered import without_coverage

LISTED = (
    "from driftbandits import ENVIRONMENTS, POLICIES; assert len(POLICIES) and list(ENVIRONMENTS)"
)
BUILT = "from driftbandits import simulate; simulate('thompson', 'bernoulli', horizon=9)"
AGENT = "from driftbandits import Agent; Agent(['red', 'green'], policy='thompson').decide()"
COMPARED = "import driftbandits; driftbandits.compare(['uniform'], 'bernoulli', horizon=9, runs=2)"
HEAVY = ["matplotlib", "polars", "optax", "scipy.special", "driftbandits.policies.recurrent"]


@pytest.mark.parametrize("program", [LISTED, BUILT, AGENT, COMPARED])
def test_nothing_else_is_imported(program: str) -> None:
    look = f"import sys; print(*[name for name in {HEAVY} if name in sys.modules])"
    command = [sys.executable, "-c", f"{program}\n{look}"]
    done = subprocess.run(command, capture_output=True, text=True, env=without_coverage())
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == []


def test_a_table_may_be_changed() -> None:
    table: Factories[object] = Factories("driftbandits.policies", ["tracker.policy", "ucb"])
    assert list(table) == ["tracker", "ucb"]
    assert table["tracker"].__module__ == "driftbandits.policies.tracker.policy"
    table["mine"] = dict
    assert table["mine"] is dict
    del table["tracker"]
    assert "tracker" not in table
    assert list(table) == ["ucb", "mine"]
    with pytest.raises(KeyError):
        table["tracker"]
