"""What a person sees in the terminal: tables, a progress bar, and programs that start faster."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import jax
import numpy as np
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn
from rich.table import Table

from driftbandits.choice import write
from driftbandits.comparison import Comparison
from driftbandits.comparison import Progress as Report


def keep_compiled_programs() -> None:
    """Keeps what XLA compiled for the next call, unless the user has said where already."""
    if "JAX_COMPILATION_CACHE_DIR" not in os.environ:
        home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        jax.config.update("jax_compilation_cache_dir", str(home / "driftbandits"))
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.3)


@contextmanager
def progress_bar() -> Iterator[Report | None]:
    """A bar for each policy with the time left, on a terminal; nothing elsewhere."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield None
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f}%"),
        TimeRemainingColumn(elapsed_when_finished=True),
    )
    tasks: dict[str, TaskID] = {}
    with Progress(*columns, console=console) as bar:

        def report(policy: str, done: int, total: int) -> None:
            if policy not in tasks:
                tasks[policy] = bar.add_task(escape(policy), total=total)
            bar.update(tasks[policy], completed=done)

        yield report


def print_comparison(comparison: Comparison) -> None:
    """The ranking at the horizon, best first."""
    title = (
        f"{comparison.environment}: {comparison.measure} after {comparison.horizon} pulls, "
        f"{comparison.runs} runs, seed {comparison.seed}"
    )
    table = Table()
    table.add_column("")
    table.add_column("policy")
    table.add_column("mean", justify="right")
    table.add_column("95% interval", justify="right")
    for rank, (policy, final) in enumerate(comparison.final().items(), start=1):
        missing = np.isnan(final.low)
        interval = "one run" if missing else f"{number(final.low)} to {number(final.high)}"
        table.add_row(str(rank), escape(policy), number(final.mean), interval)
    console = Console(width=None if Console().is_terminal else 120, highlight=False)
    console.print(f"[bold]{escape(title)}[/bold]")
    console.print(table)


def number(value: np.ndarray) -> str:
    """Four significant digits, with separators."""
    magnitude = abs(float(value))
    if magnitude >= 1000:
        return f"{value:,.0f}"
    return f"{value:.1f}" if magnitude >= 100 else f"{value:.4g}"


def print_catalogue(listing: dict[str, dict[str, Any]]) -> None:
    """Names, one line each, and their settings with defaults."""
    console = Console(highlight=False)
    for kind, entries in listing.items():
        console.print(f"[bold]{kind}[/bold]")
        for name, entry in entries.items():
            console.print(f"  [cyan]{name}[/cyan]: {escape(entry['summary'])}", soft_wrap=True)
            settings = [f"{key}={write(value)}" for key, value in entry["settings"].items()]
            if settings:
                console.print(f"      [dim]{escape(', '.join(settings))}[/dim]", soft_wrap=True)
