"""The paper's Theorem 1, put to the test: does a mean energy of zero bound the arms' ratio?

For every number of arms, laws with zero mean energy are made from `parts.energy` and their ratio of
the largest to the smallest probability is set beside the bound that the theorem claims. One law
above the bound refutes it.
"""

import numpy as np
import polars as pl

from driftbandits.parts.energy import (
    claimed_ratio_bound,
    largest_logit_bound,
)
from driftbandits.verdicts import FAILS, UNDECIDED, Evidence

NUM_ARMS = [2, 3, 4, 5, 7, 10, 14, 20, 30, 50, 70, 100]
DRAWS = 10_000
CONCENTRATION = 0.3  # of the Dirichlet law that policies are drawn from
LOSER = -10.0  # the losing arms' logit in the counterexample


def zero_energy(laws: np.ndarray) -> np.ndarray:
    """The logits with these softmax laws and a mean energy of 0, in float64: (draws, arms)."""
    logs = np.log(laws)
    return logs - (laws * logs).sum(axis=1, keepdims=True)


def counterexample(num_arms: int) -> np.ndarray:
    """Logits with one winner, losers at -10, and zero mean energy."""
    low, high = 0.0, 1.0
    for _ in range(200):  # z e^z grows, so halving finds where it balances the losers
        middle = (low + high) / 2
        excess = middle * np.exp(middle) + (num_arms - 1) * LOSER * np.exp(LOSER)
        low, high = (low, middle) if excess > 0 else (middle, high)
    return np.array([low, *[LOSER] * (num_arms - 1)])


def ratio_table() -> pl.DataFrame:
    """For each number of arms: the claimed bound, and what laws with zero mean energy reach."""
    generator = np.random.default_rng(0)
    rows = []
    for num_arms in NUM_ARMS:
        bound = claimed_ratio_bound(num_arms)
        logits = counterexample(num_arms)
        law = np.exp(logits) / np.exp(logits).sum()
        laws = generator.dirichlet(np.full(num_arms, CONCENTRATION), DRAWS)
        laws = laws[laws.min(axis=1) > 1e-300]
        drawn = zero_energy(laws)
        log_ratios = np.log(laws.max(axis=1)) - np.log(laws.min(axis=1))
        rows.append(
            {
                "num_arms": num_arms,
                "claimed_ratio_bound": bound,
                "counterexample_ratio": float(law.max() / law.min()),
                "counterexample_mean_energy": float((law * logits).sum()),
                "counterexample_largest_probability": float(law.max()),
                "drawn_laws": len(laws),
                "drawn_share_above_bound": float((log_ratios > np.log(bound)).mean()),
                "drawn_median_log10_ratio": float(np.median(log_ratios) / np.log(10)),
                "largest_logit_bound": largest_logit_bound(num_arms),
                "drawn_largest_logit": float(drawn.max()),
            }
        )
    return pl.DataFrame(rows)


def judge_ratio_bound(table: pl.DataFrame) -> list[Evidence]:
    """A law with zero mean energy above the bound refutes it; none found proves nothing."""
    found = []
    for row in table.iter_rows(named=True):
        zero = abs(row["counterexample_mean_energy"]) < 1e-12
        refuted = zero and row["counterexample_ratio"] > row["claimed_ratio_bound"]
        what = (
            f"n = {row['num_arms']}: ratio of a law with zero mean energy, "
            f"claimed to be at most {row['claimed_ratio_bound']:.3g}"
        )
        ratio = row["counterexample_ratio"]
        found.append(Evidence(what, ratio, ratio, ratio, FAILS if refuted else UNDECIDED))
    return found
