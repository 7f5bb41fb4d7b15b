"""Colours and number formats: a policy has the same colour everywhere."""

from collections.abc import Iterable

import numpy as np

Dash = str | tuple[int, tuple[int, ...]]
Look = tuple[str, Dash]

# Okabe & Ito's colours and two of Tol's, which colour-blind readers can tell apart; with the dash
# pattern they are also apart in print. The paper's policies have theirs in every figure, under
# their names in its legends and under those of the command line.
LOOKS: dict[str, Look] = {
    "ours": ("#0072B2", "-"),
    "no EC": ("#D55E00", "--"),
    "epsilon-greedy": ("#CC79A7", "-."),
    "softmax T=2": ("#E69F00", (0, (5, 1, 1, 1, 1, 1))),
    "thompson": ("#009E73", "-"),
    "swa": ("#56B4E9", "--"),
    "fewa": ("#000000", ":"),
    "LinTS": ("#882255", "-"),
    "NeuralLinear": ("#999933", "--"),
}
LOOKS |= {
    "recurrent": LOOKS["ours"],
    "recurrent(energy=0)": LOOKS["no EC"],
    "lin_ts": LOOKS["LinTS"],
    "neural_linear": LOOKS["NeuralLinear"],
}
OTHERS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#882255"]
DASHES: list[Dash] = ["-", "--", ":", "-.", (0, (6, 2, 1, 2, 1, 2)), (0, (1, 3)), (0, (8, 3))]
MEANINGS = {
    "regret": "cumulative regret",
    "mean_regret": "regret per pull so far",
    "realised_regret": "cumulative realised regret",
    "policy_regret": "policy regret",
    "own_count_regret": "cumulative own-count regret",
    "window_regret": "regret per pull in the last twentieth of the horizon",
    "best_share": "share of pulls so far on a best arm",
    "recovery_time": "mean steps to recover from a change",
}


def looks_of(names: Iterable[str]) -> dict[str, Look]:
    """A colour and a dash pattern for each policy, by its name in the legend.

    Names without a look of their own share out what is left, in alphabetical order; so the same set
    of names, say all of a report, gives the same looks.
    """
    names = set(names)
    looks = {name: LOOKS[name] for name in names & LOOKS.keys()}
    taken = set(looks.values())
    free = [(colour, dash) for dash in DASHES for colour in OTHERS if (colour, dash) not in taken]
    for count, name in enumerate(sorted(names - LOOKS.keys())):
        looks[name] = free[count % len(free)]
    return looks


def number(value: float | np.ndarray) -> str:
    """Three or four significant digits, with separators."""
    magnitude = abs(float(value))
    if magnitude >= 1000:
        return f"{value:,.0f}"
    return f"{value:.1f}" if magnitude >= 100 else f"{value:.3g}"


def duration(seconds: float) -> str:
    """A duration in words."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
