"""Loading files of columns: Parquet, Arrow's own format, CSV.

A file is read a batch at a time, so that it may be longer than memory; each batch is one transaction.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

from ._frames import rows_of
from .errors import InputError

if TYPE_CHECKING:
    from ._database import Database
    from ._types import _Durability as Durability

__all__ = ["load"]

_ATTRIBUTES = (
    "text", "vector", "episode", "kind", "key", "step", "time", "version", "status", "source", "speaker", "tool",
    "log_id", "labels",
)  # fmt: skip
_FIELD = "fields."


def load(
    database: Database,
    path: str | os.PathLike[str],
    map: Mapping[str, str],
    episode: str | None,
    batch: int,
    durability: Durability,
    progress: Callable[[int, int], None] | None,
) -> int:
    """Records the rows of a file as traces: see :meth:`holotype.Database.load`."""
    if isinstance(batch, bool) or not isinstance(batch, int) or batch < 1:
        raise InputError(f"batch: expected a whole number from 1, found {batch!r}")
    names, rows, batches = _opened(os.fspath(path), batch)
    places = _places(names, map, episode)
    done = 0
    for table in batches:
        columns: dict[str, Any] = {"episode": episode}
        fields: dict[str, Any] = {}
        vectors = None
        for name, place in places.items():
            column = table.column(name)
            if place == "vector":
                vectors = rows_of(column)
            elif place.startswith(_FIELD):
                fields[place[len(_FIELD) :]] = column
            else:
                columns[place] = column
        text = columns.pop("text")
        with database.begin(durability=durability) as tx:
            done += len(tx.record_columns(text, vectors=vectors, fields=fields or None, **columns))
        if progress is not None:
            progress(done, rows if rows >= 0 else done)
    return done


def _opened(path: str, batch: int) -> tuple[list[str], int, Iterator[Any]]:
    """The names of the columns of a file, the number of its rows (-1 if that is unknown), and its rows in batches."""
    try:
        pyarrow = import_module("pyarrow")
    except ImportError:
        hint = "install pyarrow"
        raise InputError(f"loading {path!r} needs pyarrow; {hint}", hint=hint) from None
    ending = os.path.splitext(path)[1].lower()
    if not os.path.exists(path):
        raise InputError(f"there is no file {path!r}")
    try:
        if ending in (".parquet", ".pq"):
            file = import_module("pyarrow.parquet").ParquetFile(path)
            return list(file.schema_arrow.names), file.metadata.num_rows, file.iter_batches(batch)
        if ending in (".arrow", ".feather", ".ipc"):
            table = import_module("pyarrow.feather").read_table(path)
        elif ending in (".csv", ".tsv"):
            csv = import_module("pyarrow.csv")
            options = csv.ParseOptions(delimiter="\t" if ending == ".tsv" else ",")
            table = csv.read_csv(path, parse_options=options)
        else:
            hint = "give a .parquet, .arrow, .feather, .csv or .tsv file; import_file reads JSON Lines"
            raise InputError(f"{path!r} is of no kind that can be loaded; {hint}", hint=hint)
    except (pyarrow.ArrowException, OSError) as error:
        raise InputError(f"{path!r} cannot be read: {error}") from error
    return list(table.schema.names), table.num_rows, iter(table.to_batches(batch))


def _places(names: list[str], map: Mapping[str, str], episode: str | None) -> dict[str, str]:
    """The attribute or field that each column goes to."""
    for name in map:
        if name not in names:
            raise InputError(f"map: the file has no column {name!r}; its columns are {', '.join(names)}")
    places: dict[str, str] = {}
    for name in names:
        place = map.get(name, name if name in _ATTRIBUTES else _FIELD + name)
        if place == "":
            continue
        if place not in _ATTRIBUTES and not (place.startswith(_FIELD) and len(place) > len(_FIELD)):
            hint = f"give {', '.join(_ATTRIBUTES)} or fields.NAME"
            raise InputError(f"map: {name!r} goes to {place!r}, which is no attribute; {hint}", hint=hint)
        if place in places.values():
            raise InputError(f"map: two columns go to {place!r}; give one of them another place")
        places[name] = place
    if "text" not in places.values():
        hint = "say which column has it: map={'COLUMN': 'text'}"
        raise InputError(f"the file has no column text; {hint}", hint=hint)
    if episode is not None and "episode" in places.values():
        raise InputError("episode is a column of the file and an argument; leave one of them out")
    if episode is None and "episode" not in places.values():
        hint = "give episode=, or map a column to it"
        raise InputError(f"the rows have no episode; {hint}", hint=hint)
    return places
