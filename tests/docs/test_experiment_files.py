"""The page on experiment files names every key, and its example can be run."""

import re
from pathlib import Path

from driftbandits import MEASURES, read_experiment
from driftbandits.experiments.claims import ALSO, KINDS
from driftbandits.experiments.files import DRAWINGS, KEYS

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "experiment_files.md"


def test_every_key_and_kind_of_claim_is_named() -> None:
    text = PAGE.read_text()
    also = [key for keys in ALSO.values() for key in keys]
    for word in [*KEYS, *KINDS, *MEASURES, *DRAWINGS, *also]:
        assert f"`{word}" in text, word


def test_the_example_can_be_run(tmp_path: Path) -> None:
    (example,) = re.findall(r"^```toml\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    (tmp_path / "mine.toml").write_text(example)
    assert read_experiment(tmp_path / "mine.toml").claims
