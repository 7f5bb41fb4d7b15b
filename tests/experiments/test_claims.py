"""Claims as files write them: what is read is what was written, nonsense is refused."""

import pytest

from driftbandits import InputError
from driftbandits.experiments.claims import on_each, parse_claim, with_rivals

SWEEP = {"a": {0.0: "a0", 0.1: "a1", 1.0: "a2"}}
LABELS = ["a", "b", "c", "d", "a0", "a1", "a2"]
LINES = {
    "a on x": ("a", "x"), "b on x": ("b", "x"), "a on y": ("a", "y"), "b on y": ("b", "y"),
    "a tuned on x": ("a", "x"), "b tuned on x": ("b", "x"),
}  # fmt: skip


def test_what_is_read_is_what_was_written() -> None:
    table = {"text": "So.", "near": ["a", "b"], "to": "c", "factor": 3, "over": [0.0, 50]}
    claim = parse_claim(table, LABELS, [])
    assert (claim.kind, claim.names, claim.others) == ("near", ("a", "b"), ("c",))
    assert (claim.factor, claim.span, claim.text) == (3.0, (0.0, 50), "So.")
    claim = parse_claim({"text": "So.", "levels_off": "a"}, LABELS, [])
    assert (claim.names, claim.tolerance, claim.span) == (("a",), 0.1, None)


@pytest.mark.parametrize(
    ("lower", "rivals"),
    [
        ("a on x", ["b on x", "b tuned on x"]),
        ("a tuned on x", ["b on x", "b tuned on x"]),
        ("b on y", ["a on y"]),
    ],
)
def test_every_other_policy_is_in_the_same_environment(lower: str, rivals: list[str]) -> None:
    table = {"text": "So.", "lower": lower, "higher": "every other policy"}
    assert parse_claim(with_rivals(table, LINES), list(LINES), []).others == tuple(rivals)


@pytest.mark.parametrize("lower", [None, "a", ["a on x", "b on x"], 3])
def test_every_other_policy_is_against_one_line(lower: object) -> None:
    with pytest.raises(InputError, match="lower, where higher is 'every other policy', must be"):
        with_rivals({"lower": lower, "higher": "every other policy"}, LINES)


def test_a_policy_without_rivals_is_not_below_them() -> None:
    alone = with_rivals({"lower": "a", "higher": "every other policy"}, {"a": ("a", "x")})
    with pytest.raises(InputError, match="higher must be the name of a policy"):
        parse_claim({"text": "So.", **alone}, ["a"], [])


def test_a_claim_on_every_environment_is_one_for_each() -> None:
    table = {"text": "So it is.", "near": ["a", "b"], "to": "a", "factor": 2}
    tables = on_each({**table, "on": "every environment"}, ["x", "y"], "{} on {}".format)
    claims = [parse_claim(each, list(LINES), []) for each in tables]
    assert [claim.text for claim in claims] == ["So it is on x.", "So it is on y."]
    assert [claim.names for claim in claims] == [("a on x", "b on x"), ("a on y", "b on y")]
    assert [claim.others for claim in claims] == [("a on x",), ("a on y",)]
    assert on_each(table, ["x", "y"], "{} on {}".format) == [table]
    with pytest.raises(InputError, match="on must be one of every environment, got 'x'"):
        on_each({**table, "on": "x"}, ["x", "y"], "{} on {}".format)


@pytest.mark.parametrize(
    ("table", "messages"),
    [
        ({}, ["a claim must be of one kind: lower, near, falls", "got ['text']"]),
        ({"falls": "a", "rises": "a"}, ["a claim must be of one kind"]),
        ({"falls": "a", "ovr": [0, 9]}, ["key of a claim with 'falls'", "did you mean 'over'?"]),
        ({"falls": "a", "factor": 2}, ["key of a claim with 'falls'", "got 'factor'"]),
        ({"falls": "thomson"}, ["falls must be one of", "did you mean 'thompson'?"]),
        ({"falls": ["a", "thomson"]}, ["did you mean 'thompson'?"]),
        ({"lower": "a", "higher": "thomson"}, ["higher must be", "did you mean 'thompson'?"]),
        ({"lower": "a"}, ["higher must be the name of a policy", "got None"]),
        ({"lower": [], "higher": "b"}, ["lower must be the name of a policy", "got []"]),
        ({"lower": "a", "higher": 3}, ["higher must be the name of a policy", "got 3"]),
        ({"lower": "a", "higher": "b", "at": 5, "over": [0, 9]}, ["at must be left out", "over"]),
        ({"lower": "a", "higher": "b", "at": 0}, ["at must be a positive number, got 0"]),
        ({"lower": "a", "higher": "b", "at": "end"}, ["at must be a positive number, got 'end'"]),
        ({"lower": "a", "higher": "b", "factor": 0}, ["factor must be a positive number, got 0"]),
        ({"near": "a", "to": "b"}, ["factor must be given with 'near'"]),
        ({"stable": "s"}, ["factor must be given with 'stable'"]),
        ({"stable": "a", "factor": 2}, ["stable must be one of s, got 'a'"]),
        ({"stable": "s", "factor": 2, "values": 3}, ["values must be a list", "got 3"]),
        ({"levels_off": "a", "tolerance": -0.1}, ["tolerance must be a positive number, got -0.1"]),
        ({"falls": "a", "over": 0.5}, ["over must be a span [from, to], got 0.5"]),
        ({"falls": "a", "over": [0, 1, 2]}, ["over must be a span [from, to], got [0, 1, 2]"]),
        ({"falls": "a", "over": [-1, 2]}, ["over must be a number of at least 0, got -1"]),
        ({"falls": "a", "over": [0, "end"]}, ["over must be a positive number, got 'end'"]),
        ({"falls": "a", "section": 4}, ["section must be text, got 4"]),
        ({"text": "", "falls": "a"}, ["text must be text, got ''"]),
        ({"text": None, "falls": "a"}, ["text must be text, got None"]),
        ({"counterexample": "ratio"}, ["counterexample must be one of ratio_bound"]),
    ],
)
def test_a_claim_that_makes_no_sense_is_refused(table, messages) -> None:
    with pytest.raises(InputError) as error:
        parse_claim({"text": "So.", **table}, ["a", "b", "thompson"], ["s"])
    for message in messages:
        assert message in str(error.value)


def test_a_claim_without_a_text_is_refused() -> None:
    with pytest.raises(InputError, match="text must be text, got None"):
        parse_claim({"falls": "a"}, LABELS, [])
