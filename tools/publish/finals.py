"""Final values and wrapped prose as Markdown, for the published pages."""

import textwrap

import polars as pl

from driftbandits.report.style import number
from driftbandits.report.wording import hanging_text

WIDTH = 100  # columns of prose


def wrapped(text: str) -> str:
    """A paragraph, or an entry of a list, in lines of bounded width."""
    indent = "  " if text.startswith("- ") else ""
    return textwrap.fill(
        text, WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )


def finals(table: pl.DataFrame) -> str:
    """Rows of `final_table`; 95% of the runs are better than the 95th percentile.

    Below them a note for each mean that depends on a few runs.
    """
    lines = [
        "| | mean | 95% interval | median | 95th percentile | worst run |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for row in table.iter_rows(named=True):
        one = row["low"] is None
        interval = "one run" if one else f"{number(row['low'])} to {number(row['high'])}"
        bad = [number(row[name]) for name in ("median", "percentile_95", "worst")]
        cells = [row["line"], number(row["mean"]), interval, *bad]
        lines.append(f"| {' | '.join(cells)} |")
    for row in table.iter_rows(named=True):
        if text := hanging_text(row, row["runs"]):
            lines.append("\n" + wrapped(f"{row['line']}: {text}."))
    return "\n".join(lines) + "\n"
