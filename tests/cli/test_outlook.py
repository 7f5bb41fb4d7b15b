"""How much is done and how long the rest will take."""

import pytest

from driftbandits.cli.console import Outlook
from driftbandits.running.planning import jobs_of, plan
from driftbandits.simulation.engine import WIDEST
from driftbandits.simulation.threads import available_cores
from tests.running.test_runner import tiny


def test_the_outlook_knows_that_policies_differ_in_cost() -> None:
    """Seconds per step are taken from the reports, and policies not yet seen from others."""
    policies = {name: name for name in ("uniform", "swa")}
    lines = plan(tiny(policies=policies, runs=WIDEST, claims=[]))
    jobs = jobs_of(lines)
    outlook = Outlook(jobs)
    assert outlook.seconds_left() is None
    assert outlook.share() == 0
    clock = iter([0.0, 1.0, 2.0, 12.0])
    outlook.clock = lambda: next(clock)
    for job, steps in [(jobs[0], 100), (jobs[0], 100), (jobs[1], 100), (jobs[1], 100)]:
        outlook.advanced(job, steps)  # 0.01 and 0.1 seconds per step
    total = 300 * sum(line.width for line in lines) // 2
    left = (total - 200) * (0.01 + 0.1)
    assert outlook.seconds_left() == pytest.approx(left / available_cores())
    assert outlook.share() == pytest.approx(200 / total)
    assert Outlook([], jobs).share() == 1


def test_the_outlook_takes_a_cluster_at_its_word() -> None:
    """One report per piece, with its seconds; as many pieces at once as there are CPUs."""
    jobs = jobs_of(plan(tiny(policies={"chance": "uniform"}, runs=WIDEST * 10, claims=[])))
    outlook = Outlook(jobs)
    outlook.cores = 4
    outlook.advanced(jobs[0], jobs[0].steps, seconds=2.0)
    outlook.advanced(jobs[1], jobs[1].steps, seconds=4.0)
    assert outlook.share() == pytest.approx(0.2)
    assert outlook.seconds_left() == pytest.approx(8 * 3.0 / 4)
    outlook.failed(jobs[2])
    assert outlook.seconds_left() == pytest.approx(7 * 3.0 / 4)
