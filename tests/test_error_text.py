"""The line of an error that is shown."""

import pytest

from driftbandits.error_text import first_line, last_line


@pytest.mark.parametrize(
    ("error", "first", "last"),
    [
        (ValueError("no such table"), "no such table", "no such table"),
        (ValueError("\nno such table\n[SQL: ...]\n"), "no such table", "[SQL: ...]"),
        (ValueError(), "ValueError", "ValueError"),
        (KeyboardInterrupt(" \n"), "KeyboardInterrupt", "KeyboardInterrupt"),
    ],
)
def test_one_line_of_any_error(error: BaseException, first: str, last: str) -> None:
    assert (first_line(error), last_line(error)) == (first, last)
