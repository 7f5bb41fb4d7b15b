"""Theorem 1 put to the test: counterexamples refute it, and what is true is never broken."""

import json

import numpy as np
import polars as pl
import pytest

from driftbandits.experiments.claims import parse_claim
from driftbandits.experiments.effects import FAILS, UNDECIDED
from driftbandits.experiments.theorem import (
    NUM_ARMS,
    counterexample,
    judge_ratio_bound,
    ratio_rows,
)
from driftbandits.experiments.verdicts import Verdict
from driftbandits.numerics.energy import claimed_ratio_bound, largest_logit_bound


@pytest.fixture(scope="module")
def ratios() -> pl.DataFrame:
    return pl.DataFrame(ratio_rows())


@pytest.mark.parametrize(("num_arms", "bound"), [(2, 3.5911), (5, 5.5724), (10, 8.1744)])
def test_the_bound_that_theorem_1_claims(ratios, num_arms, bound) -> None:
    assert claimed_ratio_bound(num_arms) == pytest.approx(bound, abs=5e-5)
    row = ratios.row(by_predicate=pl.col("num_arms") == num_arms, named=True)
    assert row["claimed_ratio_bound"] == pytest.approx(bound, abs=5e-5)


def test_the_counterexample_with_two_arms(ratios: pl.DataFrame) -> None:
    winner, loser = counterexample(2)
    assert loser == -10
    assert winner == pytest.approx(0.000453793, abs=5e-10)
    assert winner * np.exp(winner) + loser * np.exp(loser) == pytest.approx(0, abs=1e-15)
    assert ratios.row(0, named=True)["counterexample_ratio"] == pytest.approx(22036.5, abs=0.05)


@pytest.mark.parametrize("num_arms", NUM_ARMS)
def test_every_counterexample_has_zero_mean_energy(num_arms: int) -> None:
    logits = counterexample(num_arms)
    probabilities = np.exp(logits) / np.exp(logits).sum()
    assert logits.shape == (num_arms,)
    assert probabilities @ logits == pytest.approx(0, abs=1e-12)
    assert probabilities.max() / probabilities.min() > 22_000


def test_the_true_bound_is_never_broken(ratios: pl.DataFrame) -> None:
    assert ratios["num_arms"].to_list() == NUM_ARMS
    bounds = [largest_logit_bound(num_arms) for num_arms in NUM_ARMS]
    assert ratios["largest_logit_bound"].to_list() == pytest.approx(bounds)
    assert (ratios["drawn_largest_logit"].to_numpy() <= np.array(bounds) + 1e-12).all()
    assert (ratios["drawn_laws"] > 0).all()
    assert ratios["drawn_share_above_bound"].is_between(0.5, 1).all(), "the false one mostly is"


def test_theorem_1_does_not_hold(ratios: pl.DataFrame) -> None:
    found = judge_ratio_bound(ratios.to_dicts())
    assert [entry.verdict for entry in found] == [FAILS] * len(NUM_ARMS)
    assert found[0].mean == found[0].low == found[0].high == pytest.approx(22036.5, abs=0.05)
    assert found[0].what.startswith("n = 2: ")
    assert "at most 3.59" in found[0].what
    claim = parse_claim({"text": "So.", "counterexample": "ratio_bound"}, [], [])
    json.dumps(Verdict(claim, FAILS, found).as_json(), allow_nan=False)


@pytest.mark.parametrize(
    "change",
    [
        (pl.col("claimed_ratio_bound") * 0.9).alias("counterexample_ratio"),
        pl.lit(1e-3).alias("counterexample_mean_energy"),
    ],
    ids=["below the bound", "with energy"],
)
def test_no_counterexample_proves_nothing(ratios: pl.DataFrame, change: pl.Expr) -> None:
    found = judge_ratio_bound(ratios.with_columns(change).to_dicts())
    assert [entry.verdict for entry in found] == [UNDECIDED] * len(NUM_ARMS)
