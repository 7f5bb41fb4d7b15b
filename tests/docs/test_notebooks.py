"""Each tutorial is also a notebook, made from its page, and runs from first cell to last."""

import os
import sys
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

from tools.publish.notebooks import notebook_of
from tools.publish.page_blocks import same_but_numbers, with_output

TUTORIALS = sorted((Path(__file__).parents[2] / "docs" / "tutorials").glob("[a-z]*.md"))


@pytest.mark.parametrize("path", TUTORIALS, ids=lambda path: path.stem)
def test_a_tutorial_runs_as_a_notebook(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("MPLBACKEND", "agg")
    notebook = nbformat.reads(notebook_of(path.read_text()), as_version=4)
    assert sum(cell["cell_type"] == "code" for cell in notebook.cells) >= 3
    client = NotebookClient(notebook, timeout=900, resources={"metadata": {"path": tmp_path}})
    client.execute()
    for block, shown in with_output(path.read_text()):
        (cell,) = (cell for cell in notebook.cells if cell["source"] == block.text.rstrip())
        outputs = [out for out in cell["outputs"] if out.get("name") == "stdout"]
        printed = "".join(out["text"] for out in outputs)
        assert shown is None or same_but_numbers(shown, printed), f"{shown}\nis:\n{printed}"
    kinds = {output["output_type"] for cell in notebook.cells for output in cell.get("outputs", [])}
    assert "stream" in kinds
    assert "error" not in kinds
