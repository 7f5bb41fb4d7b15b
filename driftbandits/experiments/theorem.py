"""The paper's Theorem 1, put to the test: does a mean energy of zero bound the arms' ratio?

For every number of arms, policies' probabilities with zero mean energy are made, and the ratio of
the largest to the smallest is compared with the bound that the theorem claims. One ratio above the
bound refutes it.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from driftbandits.experiments.effects import FAILS, UNDECIDED
from driftbandits.experiments.evidence import Evidence
from driftbandits.numerics.energy import claimed_ratio_bound, largest_logit_bound

NUM_ARMS = [2, 3, 4, 5, 7, 10, 14, 20, 30, 50, 70, 100]
DRAWS = 10_000
CONCENTRATION = 0.3  # of the Dirichlet distribution that probabilities are drawn from
LOSER = -10.0  # the losing arms' logit in the counterexample


def zero_energy(probabilities: np.ndarray) -> np.ndarray:
    """The logits with this softmax and a mean energy of 0, in float64: (draws, arms)."""
    logs = np.log(probabilities)
    return logs - (probabilities * logs).sum(axis=1, keepdims=True)


def counterexample(num_arms: int) -> np.ndarray:
    """Logits with one winner, losers at -10, and zero mean energy."""
    low, high = 0.0, 1.0
    for _ in range(200):  # z e^z grows, so halving finds where it balances the losers
        middle = (low + high) / 2
        excess = middle * np.exp(middle) + (num_arms - 1) * LOSER * np.exp(LOSER)
        low, high = (low, middle) if excess > 0 else (middle, high)
    return np.array([low, *[LOSER] * (num_arms - 1)])


def ratio_rows() -> list[dict[str, Any]]:
    """For each number of arms: the claimed bound, and what is reached with zero mean energy."""
    generator = np.random.default_rng(0)
    rows = []
    for num_arms in NUM_ARMS:
        bound = claimed_ratio_bound(num_arms)
        logits = counterexample(num_arms)
        probabilities = np.exp(logits) / np.exp(logits).sum()
        drawn = generator.dirichlet(np.full(num_arms, CONCENTRATION), DRAWS)
        drawn = drawn[drawn.min(axis=1) > 1e-300]
        logits_drawn = zero_energy(drawn)
        log_ratios = np.log(drawn.max(axis=1)) - np.log(drawn.min(axis=1))
        rows.append(
            {
                "num_arms": num_arms,
                "claimed_ratio_bound": bound,
                "counterexample_ratio": float(probabilities.max() / probabilities.min()),
                "counterexample_mean_energy": float((probabilities * logits).sum()),
                "counterexample_largest_probability": float(probabilities.max()),
                "drawn_laws": len(drawn),
                "drawn_share_above_bound": float((log_ratios > np.log(bound)).mean()),
                "drawn_median_log10_ratio": float(np.median(log_ratios) / np.log(10)),
                "largest_logit_bound": largest_logit_bound(num_arms),
                "drawn_largest_logit": float(logits_drawn.max()),
            }
        )
    return rows


def judge_ratio_bound(rows: Sequence[Mapping[str, Any]]) -> list[Evidence]:
    """A ratio above the bound with zero mean energy refutes it; not finding one proves nothing."""
    found = []
    for row in rows:
        zero = abs(row["counterexample_mean_energy"]) < 1e-12
        refuted = zero and row["counterexample_ratio"] > row["claimed_ratio_bound"]
        what = (
            f"n = {row['num_arms']}: ratio with zero mean energy, "
            f"claimed to be at most {row['claimed_ratio_bound']:.3g}"
        )
        ratio = row["counterexample_ratio"]
        found.append(Evidence(what, ratio, ratio, ratio, FAILS if refuted else UNDECIDED))
    return found
