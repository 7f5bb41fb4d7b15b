"""One-line error messages; an error without a message is named by its type."""


def first_line(error: BaseException) -> str:
    """What went wrong, without what follows: a database's SQL, a long explanation."""
    return lines_of(error)[0]


def last_line(error: BaseException) -> str:
    """What a message that ends like a traceback says at its end."""
    return lines_of(error)[-1]


def lines_of(error: BaseException) -> list[str]:
    return str(error).strip().splitlines() or [type(error).__name__]
