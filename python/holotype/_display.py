"""How answers and tables look: as text for ``repr``, as HTML for notebooks."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._native import Answer, Citation, Item, Row, Table

MAX_ROWS = 20
MAX_WIDTH = 60

_VERDICT_COLOURS = {"ok": "#1a7f37", "mismatch": "#cf222e", "unresolved": "#cf222e", "redacted": "#6e7781"}
_STATUS_COLOURS = {"success": "#1a7f37", "failed": "#cf222e", "unknown": "#6e7781"}


def _plain(value: Any) -> str:
    """A value in one line, without control characters."""
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:.3f}"
    if isinstance(value, list):
        return ", ".join(_plain(member) for member in value)
    return "".join(char if char.isprintable() else " " for char in str(value))


def printable(text: str) -> str:
    """A text of several lines without control characters."""
    return "\n".join(map(_plain, text.split("\n")))


def _short(value: Any, width: int = MAX_WIDTH) -> str:
    text = _plain(value)
    return text if len(text) <= width else text[: width - 1] + "…"


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


# ---- text ----


def citation_text(citation: Citation) -> str:
    span = f"{citation.field}[{citation.start}..{citation.end}]" if citation.field else "page"
    quoted = f" {_short(citation.text)!r}" if citation.text is not None else ""
    return f"<{_plain(citation.target)} {span}{quoted} {citation.verdict}>"


def row_text(row: Row) -> str:
    return f"<{row.score:.3f} {_plain(row.key)} ({row.kind}) {_short(row.text)!r}, {_evidence(row)}>"


def _evidence(row: Row) -> str:
    verdicts = [citation.verdict for citation in row.citations]
    if not verdicts:
        return "no evidence"
    counts = [f"{verdicts.count(verdict)} {verdict}" for verdict in dict.fromkeys(verdicts)]
    return "evidence " + ", ".join(counts)


def _flags(row: Row) -> list[str]:
    """What a reader should know of a row besides its status."""
    flags = ["stale"] if row.stale else []
    flags += [f"quarantined: {row.quarantined}"] if row.quarantined else []
    flags += [f"{row.conflict} contradicts it"] if row.conflict else []
    return flags + ([f"included despite: {', '.join(row.relaxed)}"] if row.relaxed else [])


def _lines(row: Row) -> list[str]:
    """The other statements of the row's frame, and those that say the same."""
    lines = [f"{line.label} {_plain(line.key)}: {_short(line.text)}" for line in row.lines]
    lines += [f"same words: {_plain(', '.join(row.folded))}"] if row.folded else []
    return lines + ([f"{row.more} more of this kind"] if row.more else [])


def _remarks(answer: Answer) -> list[str]:
    """What an answer says beside its rows."""
    left_out = ", ".join(f"{count} {flaw}" for flaw, count in answer.excluded.items())
    remarks = [f"left out: {left_out}"] if left_out else []
    remarks += [f"stale: call {answer.refresh['tool']} again"] if answer.refresh else []
    return remarks + [f"note: {note}" for note in answer.notes]


def answer_text(answer: Answer) -> str:
    head = f"{_counted(len(answer), 'row')} as of commit {answer.commit}"
    if not answer.answerable:
        head += ", which may not answer the question"
    lines = [head]
    for number, row in enumerate(answer.rows[:MAX_ROWS], 1):
        where = "".join(f", {part}" for part in (row.tool, row.episode) if part)
        lines.append(f"{number:>3}  {row.score:.3f}  {_plain(row.key)}  {row.kind}{_plain(where)}")
        lines.append(f"     {_short(row.text, 100)}")
        lines.extend(f"     ! {_plain(flag)}" for flag in _flags(row))
        lines.extend(f"     - {line}" for line in _lines(row))
        lines.extend(f"     └─ {citation_text(citation)[1:-1]}" for citation in row.citations)
    if len(answer) > MAX_ROWS:
        lines.append(f"     … {len(answer) - MAX_ROWS} more")
    lines.extend(_plain(remark) for remark in _remarks(answer))
    return "\n".join(lines)


def table_text(table: Table) -> str:
    rows = [[_short(value) for value in row] for row in table.rows[:MAX_ROWS]]
    columns = [_plain(name) for name in table.columns]
    widths = [max(map(len, cells)) for cells in zip(columns, *rows)] if columns else []
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(cells, widths)).rstrip() for cells in [columns, *rows]]
    lines.insert(1, "─" * (sum(widths) + 2 * max(len(widths) - 1, 0)))
    more = len(table) - MAX_ROWS
    lines.append(f"{_counted(len(table), 'row')}" + (f", {more} not shown" if more > 0 else ""))
    lines.extend(f"note: {_plain(note)}" for note in table.notes)
    return "\n".join(lines)


# ---- HTML ----


def _cell(html: str, tag: str = "td") -> str:
    return f'<{tag} style="text-align:left;vertical-align:top">{html}</{tag}>'


def _coloured(word: str | None, colours: dict[str, str]) -> str:
    if word is None:
        return ""
    return f'<span style="color:{colours.get(word, "inherit")}">{escape(word)}</span>'


def _citation_html(citation: Citation) -> str:
    span = f"{citation.field}[{citation.start}..{citation.end}]" if citation.field else "page"
    quoted = f" <q>{escape(_short(citation.text))}</q>" if citation.text is not None else ""
    verdict = _coloured(citation.verdict, _VERDICT_COLOURS)
    return f"<code>{escape(_plain(citation.target))} {escape(span)}</code>{quoted} {verdict}"


def _row_cells(row: Row) -> str:
    text = "<br>".join([escape(_plain(row.text)), *(f"<small>{escape(line)}</small>" for line in _lines(row))])
    evidence = "<br>".join(_citation_html(citation) for citation in row.citations)
    flags = _flags(row)
    state = _coloured(row.status, _STATUS_COLOURS) + "".join(f"<br>{escape(_plain(flag))}" for flag in flags)
    cells = [f"{row.score:.3f}", f"<code>{escape(_plain(row.key))}</code>", row.kind, text, state, evidence]
    return "<tr>" + "".join(map(_cell, cells)) + "</tr>"


_COLUMNS = ("score", "key", "kind", "text", "state", "evidence")
_ROW_HEAD = "<tr>" + "".join(_cell(name, "th") for name in _COLUMNS) + "</tr>"


def row_html(row: Row) -> str:
    return f"<table>{_ROW_HEAD}{_row_cells(row)}</table>"


def answer_html(answer: Answer) -> str:
    head = f"{_counted(len(answer), 'row')} as of commit {answer.commit}"
    if not answer.answerable:
        head += ' <span style="color:#cf222e">may not answer the question</span>'
    rows = "".join(_row_cells(row) for row in answer.rows[:MAX_ROWS])
    remarks = [f"… {len(answer) - MAX_ROWS} more"] if len(answer) > MAX_ROWS else []
    remarks += _remarks(answer)
    notes = "".join(f"<div>{escape(_plain(remark))}</div>" for remark in remarks)
    return f"<div>{head}</div><table>{_ROW_HEAD}{rows}</table>{notes}"


def table_html(table: Table) -> str:
    head = "".join(_cell(escape(_plain(name)), "th") for name in table.columns)
    shown = [[_cell(escape(_plain(value))) for value in row] for row in table.rows[:MAX_ROWS]]
    rows = "".join("<tr>" + "".join(cells) + "</tr>" for cells in shown)
    more = [f"{len(table) - MAX_ROWS} rows not shown"] if len(table) > MAX_ROWS else []
    notes = "".join(f"<div>{escape(_plain(note))}</div>" for note in more + table.notes)
    return f"<table><tr>{head}</tr>{rows}</table>{notes}"


def _code(value: Any) -> str:
    return f"<code>{escape(_plain(value))}</code>"


def _grid(names: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    head = "".join(_cell(name, "th") for name in names)
    return f"<table><tr>{head}</tr>" + "".join("<tr>" + "".join(map(_cell, row)) + "</tr>" for row in rows) + "</table>"


def item_html(item: Item) -> str:
    texts = {name: value for name, value in item.to_dict().items() if name not in ("fields", "text", "id", "key")}
    shown = {"key": item.key, "text": item.text, **texts, **{f"fields.{name}": value for name, value in item.fields.items()}}
    rows = [(escape(name), escape(_plain(value))) for name, value in shown.items()
            if value not in (None, False) and name != "fields.text"]  # fmt: skip
    return _grid(("attribute", "value"), rows)


_STANDING_COLOURS = _STATUS_COLOURS | {"supported": "#1a7f37", "weakened": "#9a6700", "unsupported": "#cf222e"}


def _told_of(row: dict[str, Any]) -> tuple[str, str, str, str]:
    """Key, kind, text and standing of an item in a story."""
    standing = [_coloured(row.get(name), _STANDING_COLOURS) for name in ("status", "support")]
    standing += ["inactive"] if row.get("active") is False else []
    text = escape(_short(row.get("text"), 120))
    return _code(row["key"]), escape(_plain(row.get("kind"))), text, ", ".join(filter(None, standing))


def _quotes(story: dict[str, Any], target: str) -> str:
    """The quotes of a source, each with its verdict."""
    cited = [one for one in story["citations"] if one["target"] == target]
    return "<br>".join(f"<q>{escape(_short(one['text'], 120))}</q> {_coloured(one['verdict'], _VERDICT_COLOURS)}" for one in cited)


def _once(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return list({row["key"]: row for row in reversed(rows)}.values())[::-1]


def story_html(story: dict[str, Any]) -> str:
    item = story["item"]
    columns = ("key", "kind", "text", "standing")
    parts = [_grid(columns, [_told_of(item)])]
    if sources := _once(story["sources"]):
        rows = [(*_told_of(row), _quotes(story, row["key"])) for row in sources]
        parts += ["<b>rests on</b>", _grid((*columns, "quotes"), rows)]
    if changes := [row for row in story["history"] if row["since"] > item["commit"]]:
        names = ("since", "attribute", "value", "because")
        parts += ["<b>changed</b>", _grid(names, [[escape(_plain(row.get(name))) for name in names] for row in changes])]
    if dependents := _once(story["dependents"]):
        parts += ["<b>would fall with it</b>", _grid(columns, map(_told_of, dependents))]
    if rivals := story["conflicts"]:
        names = ("name", "value", "item", "won")
        parts += ["<b>said otherwise</b>", _grid(names, [[escape(_plain(row.get(name))) for name in names] for row in rivals])]
    return "<div>" + "".join(parts) + "</div>"


def difference_html(found: dict[str, Any]) -> str:
    def changes(row: dict[str, Any]) -> str:
        told = (f"{one['attribute']}: {_plain(one['from'])} → {_plain(one['to'])}" for one in row["changes"])
        return "<br>".join(map(escape, told))

    changed = [(_code(row["key"]), changes(row), escape(_short(row["text"], 120))) for row in found["changed"]]
    added = [(_code(row["key"]), escape(row["kind"]), escape(_short(row["text"], 120))) for row in found["added"]]
    parts = [f"commit {found['from']} to commit {found['to']}"]
    parts += [f"<div><b>{found['changed_count']} changed</b></div>", _grid(("key", "change", "text"), changed[:MAX_ROWS])]
    parts += [f"<div><b>{found['added_count']} added</b></div>", _grid(("key", "kind", "text"), added[:MAX_ROWS])]
    return "<div>" + "".join(parts) + "</div>"
