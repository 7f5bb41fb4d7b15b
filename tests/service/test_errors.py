"""Every error has a code, which is the name of its function, and says what helps."""

import inspect
from typing import Any

import pytest

from driftbandits.service import errors

MADE_BY = dict(inspect.getmembers(errors, inspect.isfunction))
EXAMPLES: dict[type, Any] = {str: "shop", int: 7, float: 0.5, tuple[str, ...]: ("a", "b")}


@pytest.mark.parametrize("name", MADE_BY)
def test_an_error_is_named_by_its_code(name: str) -> None:
    parameters = inspect.signature(MADE_BY[name], eval_str=True).parameters.values()
    arguments = [EXAMPLES.get(each.annotation, "shop") for each in parameters]
    error = MADE_BY[name](*arguments)
    assert error.code == name
    assert error.message
    assert error.remedy
    assert (error.retry_after is not None) == (error.status in (429, 503, 504))
    assert error.as_json() == {"code": name, "message": error.message, "remedy": error.remedy}
