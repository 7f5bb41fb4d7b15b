"""What all tests share: one cache of compiled programs, a random order, maybe browser and hosts."""

import ctypes
import functools
import gc
import os
import random
import shutil
import subprocess
import sys
from pathlib import Path

TESTS = Path(__file__).parent
CACHE = TESTS.parent / ".pytest_cache" / "compiled"

# Before JAX is imported, and for the processes that tests start, too. A cache of limited size is
# locked while it is written, so that several processes can share it.
os.environ["JAX_COMPILATION_CACHE_DIR"] = str(CACHE)
os.environ["JAX_COMPILATION_CACHE_MAX_SIZE"] = str(2 * 2**30)
os.environ["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0.3"
os.environ["DRIFTBANDITS_CACHE"] = "off"  # what is tested is compiled, not found

import jax  # noqa: E402
import pytest  # noqa: E402
from xdist.scheduler import LoadScopeScheduling  # noqa: E402

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser")
PAGES = [
    "report/test_page.py", "service/http/test_page.py", "service/http/test_docs_page.py",
    "service/http/test_page_examples.py", "docs/test_site_in_browser.py",
]  # fmt: skip
HOSTS = ["service/test_hosts.py"]
SOAK = os.environ.get("SOAK") == "1"  # `make soak`: the long forms of what takes long
MUCH_MEMORY = 1.5e9  # bytes
BY_POLICY = ["policies/test_contract.py", "agents/test_policies.py"]  # a group for each policy
LONG = [  # what takes longest begins first, so that no worker waits for another one at the end
    "service/test_nothing_lost.py", *HOSTS, "service/test_soak.py", "test_wheel.py",
    "test_same_numbers.py",
    "running/test_published.py", "docs/test_pages.py", "docs/test_notebooks.py",
    "docs/test_reference.py", "test_readme.py", "simulation/test_engine.py",
    "cli/test_commands.py", "integrations/test_external.py", "agents/test_simulation.py",
    "service/http/test_docs.py", "service/http/test_routes.py", *BY_POLICY,
]  # fmt: skip
PAUSE_COVERAGE = [  # they compile and loop for long, and run no line that others do not
    "agents/test_policies.py", "agents/test_simulation.py", "environments/test_field.py",
    "environments/test_judging.py", "policies/test_contract.py", "policies/test_parity",
    "policies/tracker/", "running/test_published.py", "test_readme.py", "test_same_numbers.py",
]  # fmt: skip
QUICK = [  # what `make check` runs: little or nothing is compiled
    "agents/test_decision_book.py", "agents/test_refusals.py", "experiments/test_claims.py",
    "experiments/test_experiment.py", "experiments/test_mistakes.py", "experiments/test_theorem.py",
    "experiments/test_verdicts.py", "numerics/test_energy.py", "service/engine/test_drift_alarm.py",
    "service/engine/test_monitor.py", "service/http/test_connection.py",
    "service/http/test_deadlines.py", "service/http/test_parquet_stream.py",
    "service/http/test_readiness.py", "service/http/test_request_reading.py",
    "service/store/test_store.py", "service/test_errors.py", "service/test_metrics.py",
    "simulation/test_devices.py", "test_architecture.py", "test_catalogue.py", "test_client.py",
    "test_client_files.py", "docs/test_experiment_files.py",
]  # fmt: skip
QUICK_GROUPS = {"policies/test_contract.py ucb"}


def has_namespaces() -> bool:
    """Whether this process may make networks (as root may), and iproute2 is there."""
    trial = ["unshare", "--net", "ip", "link", "add", "trial", "type", "veth"]
    try:
        return subprocess.run(trial, capture_output=True).returncode == 0
    except FileNotFoundError:  # not on Linux
        return False


NAMESPACES = has_namespaces()
collect_ignore = [*([] if BROWSER else PAGES), *([] if NAMESPACES else HOSTS)]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--order", type=int, default=None, help="seed of the order of the tests")


def pytest_configure(config: pytest.Config) -> None:
    """The workers of xdist must agree, so the seed is drawn once and handed down."""
    if config.option.order is None:
        config.option.order = int(os.environ.setdefault("TEST_ORDER", str(random.randrange(10**6))))


def pytest_report_header(config: pytest.Config) -> str:
    return f"order of the tests: --order {config.option.order}"


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Groups in a random order, the long ones first, and the tests of each in a random order."""
    shuffled = random.Random(config.option.order)
    shuffled.shuffle(items)
    names = sorted({group_of(item.nodeid) for item in items})
    shuffled.shuffle(names)
    place = {name: number for number, name in enumerate(names)}
    for item in items:
        file = file_of(item.nodeid)
        if file in QUICK or group_of(item.nodeid) in QUICK_GROUPS:
            item.add_marker("quick")
        if file.startswith(tuple(PAUSE_COVERAGE)) and "one_arm" not in item.name:
            item.add_marker("no_cover")

    def turn(item: pytest.Item) -> tuple[int, int]:
        file = file_of(item.nodeid)
        return LONG.index(file) if file in LONG else len(LONG), place[group_of(item.nodeid)]

    items.sort(key=turn)


def file_of(nodeid: str) -> str:
    """From the folder of all tests."""
    return nodeid.split("::")[0].removeprefix(f"{TESTS.name}/")


def group_of(nodeid: str) -> str:
    """The tests that one worker takes, and sets up together: those of a file, or of a policy."""
    file, parameters = file_of(nodeid), nodeid.partition("[")[2].rstrip("]")
    return f"{file} {parameters.split('-')[0]}" if file in BY_POLICY else file


class Groups(LoadScopeScheduling):
    """A worker takes whole groups."""

    def _split_scope(self, nodeid: str) -> str:
        return group_of(nodeid)


def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> Groups:
    config.option.loadscopereorder = False  # they are in order already
    return Groups(config, log)


def pytest_terminal_summary(terminalreporter) -> None:
    terminalreporter.write_line(pytest_report_header(terminalreporter.config))
    if not BROWSER:
        terminalreporter.write_line(
            f"left out: {', '.join(PAGES)}, the pages in a real browser. To run them, too, install "
            "Chromium (on Debian: make browser) and give the same command again."
        )
    if not NAMESPACES:
        terminalreporter.write_line(
            f"left out: {', '.join(HOSTS)}, workers on several hosts. To run them, too, install "
            "iproute2 (on Debian: make hosts) and give the same command again as root."
        )


def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    ends = nextitem is None or group_of(nextitem.nodeid) != group_of(item.nodeid)
    if ends and sys.platform == "linux" and memory_held() > MUCH_MEMORY:
        forget_compiled_programs()


def memory_held() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def forget_compiled_programs() -> None:
    """Or a worker would hold thousands of programs, gigabytes of them."""
    for found in gc.get_objects():
        if isinstance(found, functools._lru_cache_wrapper):
            module = found.__module__ or ""
            if module.startswith(("driftbandits.", "tests.")) and not module.endswith(".devices"):
                found.cache_clear()
    jax.clear_caches()
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)  # the memory goes back to the system
