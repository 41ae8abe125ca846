"""The notebook runs from its first cell to its last, and is committed without outputs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

NOTEBOOK = Path(__file__).parent.parent / "examples" / "quickstart.ipynb"
PAPERS = sorted((NOTEBOOK.parent / "papers").glob("*.ipynb"))


def test_it_is_committed_without_outputs() -> None:
    nbformat = pytest.importorskip("nbformat")
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    nbformat.validate(notebook)
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert all(not cell.outputs and cell.execution_count is None for cell in cells)


def test_every_cell_runs() -> None:
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    pytest.importorskip("matplotlib")
    pytest.importorskip("ipykernel")
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    nbclient.NotebookClient(notebook, timeout=300, resources={"metadata": {"path": NOTEBOOK.parent}}).execute()
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", []) if "data" in output]
    # The answer with its evidence as a table, and the plot.
    tables = [output["data"]["text/html"] for output in outputs if "text/html" in output["data"]]
    assert "268 EUR per adult" in tables[0] and "#1a7f37" in tables[0]
    assert any("image/png" in output["data"] for output in outputs)


def code_of(path: Path) -> str:
    """The code of a notebook, which is JSON, in the order of its cells."""
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    assert all(not cell["outputs"] and cell["execution_count"] is None for cell in code)
    return "\n\n".join("".join(cell["source"]) for cell in code)


@pytest.mark.parametrize("path", PAPERS, ids=lambda path: path.stem)
def test_a_notebook_of_the_papers_runs(path: Path) -> None:
    pyplot = pytest.importorskip("matplotlib.pyplot")
    pyplot.switch_backend("agg")
    named: dict[str, Any] = {}
    exec(compile(code_of(path), str(path), "exec"), named)
    assert pyplot.get_fignums(), "it draws"
    pyplot.close("all")
    if path.stem == "helm_cases":
        assert (named["steps"][-1], named["stale"]) == (300, [False] * 4 + [True] * 2)
        assert named["excluded"] == {"failed": 1} and "Processed 1000 records" in named["memory"].text
    else:
        keeps, loses = named["credits"]
        assert keeps[-1]["advantage"] > 0 > loses[-1]["advantage"]
