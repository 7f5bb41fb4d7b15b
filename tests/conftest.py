"""Compiled programs are kept between test runs; the page's tests need a browser."""

import os
import shutil
from pathlib import Path

import jax
import pytest

WORKER = os.environ.get("PYTEST_XDIST_WORKER", "main")
CACHE = Path(__file__).parents[1] / ".pytest_cache" / "compiled" / WORKER

jax.config.update("jax_compilation_cache_dir", str(CACHE))
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.5)

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser")
PAGES = ["test_page.py", "test_service_page.py", "test_service_docs.py"]
collect_ignore = [] if BROWSER else PAGES


def pytest_terminal_summary(terminalreporter) -> None:
    if not BROWSER:
        terminalreporter.write_line(
            f"left out: {', '.join(PAGES)}, the pages in a real browser. To run them too, install "
            "Chromium (on Debian, as root: apt-get install chromium) and give the same command."
        )


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest file first, so that no core waits for it in the end."""
    items.sort(key=lambda item: item.path.name != "test_policy_contract.py")
