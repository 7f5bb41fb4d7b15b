"""Tables in a text that a command writes anew, between two marks."""

import re


def with_table(text: str, name: str, table: str) -> str:
    """The text with what stands between `<!-- name -->` and `<!-- end of name -->` replaced."""
    begin, end = f"<!-- {name} -->\n", f"<!-- end of {name} -->"
    pattern = re.escape(begin) + ".*?" + re.escape(end)
    new, found = re.subn(pattern, lambda _: begin + table + end, text, flags=re.DOTALL)
    if not found:
        raise ValueError(f"the text must have the marks of {name}, got none")
    return new
