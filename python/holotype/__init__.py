"""Holotype: an embedded database for provenance-tracked agent memory.

Traces say what happened, verbatim. Recalls say what was made of it, with pointers to the bytes they rest on. A recall
finds what is near *and* valid, and every row carries its evidence, read and hashed again for that answer.

>>> import holotype
>>> db = holotype.open_or_create(path, space="hashing-v1-256")
>>> with db.begin() as tx:
...     trace = tx.record("UA123 price=$450", episode="trip-42", kind="call", tool="search_flights",
...                       status="success", key="t1")
...     fact = tx.remember("UA123 costs $450", sources=[holotype.Pointer("t1", quote="price=$450")], key="r1")
>>> for row in db.recall("What does UA123 cost?", episode="trip-42"):
...     print(row.key, [(citation.text, citation.verdict) for citation in row.citations])
t1 [('UA123 price=$450', 'ok')]
r1 [('price=$450', 'ok')]
>>> db.close()

``docs/python.md`` is the guide; ``holotype.aio`` is the same for asyncio.
"""

from collections.abc import Sequence

from ._codec import jsonable
from ._database import Database, create, open, open_or_create, rebuild, salvage
from ._embedding import Embedder, HashingEmbedder, ModelEmbedder, minilm
from ._fleet import Fleet, FleetAnswer, FleetRow, fleet
from ._native import Answer, Citation, Item, Line, Row, Table
from ._snapshot import Snapshot
from ._story import Difference, Story
from ._transaction import Transaction
from ._values import Change, Commit, EmbedReport, Fault, Head, ImportReport, Pointer, ReembedReport, Space, VerifyReport
from .errors import Error, InputError, LimitError, OpenError, QueryError, StorageError, Timeout
from .proof import SigningKey, check_proof
from .roles import Model

__all__ = [
    "Answer",
    "Change",
    "Citation",
    "Commit",
    "Database",
    "Difference",
    "EmbedReport",
    "Embedder",
    "Error",
    "Fault",
    "Fleet",
    "FleetAnswer",
    "FleetRow",
    "HashingEmbedder",
    "Head",
    "ImportReport",
    "InputError",
    "Item",
    "LimitError",
    "Line",
    "Model",
    "ModelEmbedder",
    "OpenError",
    "Pointer",
    "QueryError",
    "ReembedReport",
    "Row",
    "SigningKey",
    "Snapshot",
    "Space",
    "Story",
    "StorageError",
    "Table",
    "Timeout",
    "Transaction",
    "VerifyReport",
    "check_proof",
    "create",
    "fleet",
    "jsonable",
    "minilm",
    "open",
    "open_or_create",
    "rebuild",
    "salvage",
]
# It has all that a sequence has. A table has it, too, and is not registered: polars reads a sequence of tuples where it
# could read Arrow.
Sequence.register(Answer)
del Sequence

__version__ = "0.1.0"
