"""One-line error messages; an error without a message is named by its type."""


def first_line(error: BaseException) -> str:
    """The first line of an error, without a database's SQL or a long explanation."""
    return lines_of(error)[0]


def last_line(error: BaseException) -> str:
    """The last line of an error whose message ends like a traceback."""
    return lines_of(error)[-1]


def lines_of(error: BaseException) -> list[str]:
    return str(error).strip().splitlines() or [type(error).__name__]
