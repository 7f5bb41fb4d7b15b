"""The listing is read off the source; it must be what the functions themselves say."""

import inspect
import subprocess
import sys

from driftbandits import ENVIRONMENTS, POLICIES, TRANSFORMATIONS
from driftbandits.catalogue import catalogue
from driftbandits.choice import settings_of
from driftbandits.experiments.files import read_experiment, shipped


def described(factory):
    summary = (inspect.getdoc(factory) or "").split("\n")[0]
    return {"summary": summary, "settings": settings_of(factory)}


def test_policies_are_what_the_table_has():
    listed = catalogue(["policies"])["policies"]
    assert list(listed) == list(POLICIES)
    assert listed == {name: described(factory) for name, factory in POLICIES.items()}


def test_environments_take_the_transformations():
    listed = catalogue(["environments"])["environments"]
    assert list(listed) == list(ENVIRONMENTS)
    for name, factory in ENVIRONMENTS.items():
        own = described(factory)
        assert listed[name]["summary"] == own["summary"]
        assert listed[name]["settings"] == {**own["settings"], **dict.fromkeys(TRANSFORMATIONS)}


def test_experiments_are_those_that_can_be_run():
    listed = catalogue(["experiments"])["experiments"]
    assert list(listed) == list(shipped())
    for name, entry in listed.items():
        experiment = read_experiment(name)
        assert entry["summary"] == experiment.title
        if not experiment.drawing:
            assert entry["settings"]["runs"] == experiment.runs
            assert entry["settings"]["policies"] == len(experiment.policies)


def test_listing_does_not_wait_for_jax():
    code = (
        "import sys; from driftbandits.cli.main import cli; cli(['list'], standalone_mode=False); "
        "sys.exit('jax' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True).returncode == 0
