"""Parts of a policy's state that files of version 1 know by other names."""

import re

import numpy as np

from driftbandits.choice import parse

RENAMED = {
    "recurrent_linear": [(r"\.made", ".filled")],
    "tracker": [
        (r"(.*)\.experts\.squares", r"\1.experts.squared_errors"),
        (r"(.*)\.experts\.heard", r"\1.experts.error_count"),
        (r"\.runs\.rewards", ".streaks.counts"),
        (r"\.runs\.total", ".streaks.excess"),
        (r"\.runs\.last", ".streaks.arm"),
        (r"\.runs\.(evidence|length)", r".streaks.\1"),
        (r"\.squares", ".context_squares"),
        (r"\.learnt", ".last_reward_time"),
    ],
}


def renamed(state: dict[str, np.ndarray], policy: str) -> dict[str, np.ndarray]:
    """Renames the arrays of a state to their paths in version 2."""
    rules = RENAMED.get(parse("policy", policy).name, [])
    return {new_path(path, rules): array for path, array in state.items()}


def new_path(path: str, rules: list[tuple[str, str]]) -> str:
    for old, new in rules:
        if found := re.fullmatch(old, path):
            return found.expand(new)
    return path
