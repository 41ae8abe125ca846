//! From the text of a line to a [`Line`]: which members each kind has, what they must be, and what is said when not.

mod member;

pub(super) use member::LARGEST_NUMBER;

use super::json::{JsonError, JsonText, JsonType, Name, Parser, quoted, sole_base64};
use super::line::{
    Claim, Commit, Credit, Deactivate, Episode, Event, FieldValue, Header, Line, Link, Mark, Page, Pointer, Reader,
    Recall, Receipt, Redact, Setting, Space, Span, Stated, Theme, Trace, Unit, VectorRef,
};
use super::vocabulary as words;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use member::{
    Member, Parsed, boolean, bounded, double, hash, instant, integer, list, name, object_start, required, return_score,
    scalar, single, small, text, unknown, word,
};

/// The names that a line may begin with.
const KINDS: &[&str] = &[
    "holotype",
    "space",
    "setting",
    "episode",
    "trace",
    "page",
    "recall",
    "theme",
    "link",
    "unlink",
    "claim",
    "mark",
    "deactivate",
    "redact",
    "credit",
    "receipt",
    "event",
    "commit",
];

/// One line, without its line ending.
pub(super) fn line(text: &str) -> Parsed<Line> {
    if let Some(offset) = text.find('\n') {
        return Err(JsonError::new(offset, "a line feed inside a line"));
    }
    let mut parser = Parser::new(text);
    let start = parser.offset();
    if !matches!(parser.peek(), Ok(JsonType::Object)) {
        let mut whole = parser.clone();
        let value = whole.peek().and_then(|found| whole.raw().and_then(|_| whole.end()).map(|()| found));
        let what = value.map_or("not JSON".to_owned(), |found| format!("{found}"));
        return Err(JsonError::new(
            start,
            format!("this line is {what}; expected an object such as {{\"trace\":{{…}}}}"),
        )
        .with_hint("a file to import holds JSON Lines: one JSON object a line"));
    }
    let mut line = None;
    parser.object(|p, name| {
        if line.is_some() {
            return Err(JsonError::new(name.offset, format!("a second name, {}, in one line", quoted(name.text)))
                .with_hint("one object a line, under one name that says what it is"));
        }
        line = Some(body(p, name)?);
        Ok(())
    })?;
    parser.end()?;
    line.ok_or_else(|| JsonError::new(start, "an empty object: expected a name that says what the line is"))
}

fn body(p: &mut Parser<'_>, name: &Name<'_>) -> Parsed<Line> {
    Ok(match name.text {
        "holotype" => Line::Header(header(p)?),
        "space" => Line::Space(space(p)?),
        "setting" => Line::Setting(setting(p)?),
        "episode" => Line::Episode(episode(p)?),
        "trace" => Line::Trace(trace(p)?),
        "page" => Line::Page(page(p)?),
        "recall" => Line::Recall(recall(p)?),
        "theme" => Line::Theme(theme(p)?),
        "link" => Line::Link(link(p, "link")?),
        "unlink" => Line::Unlink(link(p, "unlink")?),
        "claim" => Line::Claim(claim(p)?),
        "mark" => Line::Mark(mark(p)?),
        "deactivate" => Line::Deactivate(deactivate(p)?),
        "redact" => Line::Redact(redact(p)?),
        "credit" => Line::Credit(credit(p)?),
        "receipt" => Line::Receipt(receipt(p)?),
        "event" => Line::Event(event(p)?),
        "commit" => Line::Commit(commit(p)?),
        _ => return Err(unknown("kind of line", name, "a line holds", KINDS)),
    })
}

/// Reads an object member by member and gives its offset. `null` counts as absent; the right side of each name runs
/// with the parser before the value and `$at` naming the member for errors.
macro_rules! members {
    ($p:ident, $at:ident in $kind:expr, { $($name:literal => $take:expr,)* }) => {{
        const KNOWN: &[&str] = &[$($name),*];
        let start = object_start($p, $kind)?;
        $p.object(|$p, name| {
            let null = $p.null()?;
            match name.text {
                $($name => if !null {
                    let $at = Member { of: $kind, name: $name };
                    $take;
                },)*
                _ => return Err(unknown(&format!("member of `{}`", $kind), name, "it takes", KNOWN)),
            }
            Ok(())
        })?;
        start
    }};
}

fn header(p: &mut Parser<'_>) -> Parsed<Header> {
    let mut version = None;
    let start = members!(p, at in "holotype", {
        "interchange" => version = Some((p.offset(), integer(p, at)?)),
    });
    let (offset, interchange) = required(version, start, "holotype", "interchange")?;
    if interchange != Header::VERSION {
        let known = Header::VERSION;
        return Err(JsonError::new(offset, format!("interchange version {interchange}: this build reads {known}"))
            .with_hint("a newer holotype wrote this file"));
    }
    Ok(Header { interchange })
}

fn space(p: &mut Parser<'_>) -> Parsed<Space> {
    let (mut model, mut dim, mut metric, mut encoding) = (None, None, None, None);
    let start = members!(p, at in "space", {
        "model" => model = Some(name(p, at)?),
        "dim" => dim = Some(bounded(p, at, 1, u64::from(u32::MAX))?),
        "metric" => metric = Some(word(p, at, words::METRICS)?),
        "encoding" => encoding = Some(word(p, at, words::ENCODINGS)?),
    });
    let model = required(model, start, "space", "model")?;
    let dim = required(dim, start, "space", "dim")?;
    Ok(Space { model, dim: u32::try_from(dim).unwrap_or(u32::MAX), metric, encoding })
}

fn setting(p: &mut Parser<'_>) -> Parsed<Setting> {
    let (mut setting, mut value) = (None, None);
    let start = members!(p, at in "setting", {
        "name" => setting = Some(name(p, at)?),
        "value" => value = Some(scalar(p, at)?),
    });
    let name = required(setting, start, "setting", "name")?;
    Ok(Setting { name, value: required(value, start, "setting", "value")? })
}

fn episode(p: &mut Parser<'_>) -> Parsed<Episode> {
    let (mut id, mut episode) = (None, Episode::default());
    let start = members!(p, at in "episode", {
        "id" => id = Some(name(p, at)?),
        "task" => episode.task = Some(text(p, at)?),
        "version" => episode.version = Some(text(p, at)?),
        "open" => episode.open = Some(boolean(p, at)?),
    });
    episode.id = required(id, start, "episode", "id")?;
    Ok(episode)
}

fn trace(p: &mut Parser<'_>) -> Parsed<Trace> {
    let (mut episode, mut trace) = (None, Trace::default());
    let start = members!(p, at in "trace", {
        "key" => trace.key = Some(name(p, at)?),
        "episode" => episode = Some(name(p, at)?),
        "step" => trace.step = Some(integer(p, at)?),
        "time" => trace.time = Some(instant(p, at)?),
        "kind" => trace.kind = Some(word(p, at, words::TRACE_KINDS)?),
        "source" => trace.source = Some(word(p, at, words::SOURCES)?),
        "tool" => trace.tool = Some(text(p, at)?),
        "log_id" => trace.log_id = Some(text(p, at)?),
        "status" => trace.status = Some(word(p, at, words::STATUSES)?),
        "version" => trace.version = Some(text(p, at)?),
        "speaker" => trace.speaker = Some(text(p, at)?),
        "fields" => trace.fields = fields(p, at)?,
        "row" => row(p, at, &mut trace.vector)?,
        "vector" => vector(p, at, &mut trace.vector)?,
    });
    trace.episode = required(episode, start, "trace", "episode")?;
    Ok(trace)
}

fn page(p: &mut Parser<'_>) -> Parsed<Page> {
    let (mut episode, mut first, mut last, mut page) = (None, None, None, Page::default());
    let start = members!(p, at in "page", {
        "key" => page.key = Some(name(p, at)?),
        "episode" => episode = Some(name(p, at)?),
        "first" => first = Some(name(p, at)?),
        "last" => last = Some(name(p, at)?),
        "state" => page.state = Some(word(p, at, words::PAGE_STATES)?),
        "hash" => page.hash = Some(hash(p, at)?),
    });
    page.episode = required(episode, start, "page", "episode")?;
    page.first = required(first, start, "page", "first")?;
    page.last = required(last, start, "page", "last")?;
    Ok(page)
}

fn recall(p: &mut Parser<'_>) -> Parsed<Recall> {
    let mut recall = Recall::default();
    members!(p, at in "recall", {
        "key" => recall.key = Some(name(p, at)?),
        "kind" => recall.kind = Some(word(p, at, words::RECALL_KINDS)?),
        "text" => recall.text = Some(text(p, at)?),
        "from" => recall.from = list(p, at, pointer)?,
        "status" => recall.status = Some(word(p, at, words::STATUSES)?),
        "row" => row(p, at, &mut recall.vector)?,
        "vector" => vector(p, at, &mut recall.vector)?,
        "episode" => recall.stated.episode = Some(name(p, at)?),
        "source" => recall.stated.source = Some(word(p, at, words::SOURCES)?),
        "step" => recall.stated.step = Some(integer(p, at)?),
        "time" => recall.stated.time = Some(instant(p, at)?),
        "version" => recall.stated.version = Some(text(p, at)?),
        "utility" => recall.stated.utility = Some(single(p, at)?),
        "return_score" => recall.stated.return_score = Some(return_score(p, at)?),
        "active" => recall.stated.active = Some(boolean(p, at)?),
        "ungrounded" => recall.stated.ungrounded = Some(boolean(p, at)?),
        "origin" => recall.stated.origin = Some(word(p, at, words::ORIGINS)?),
        "fields" => recall.stated.fields = fields(p, at)?,
    });
    Ok(recall)
}

fn theme(p: &mut Parser<'_>) -> Parsed<Theme> {
    let mut theme = Theme::default();
    let stated: &mut Stated = &mut theme.stated;
    members!(p, at in "theme", {
        "key" => theme.key = Some(name(p, at)?),
        "kind" => theme.kind = Some(word(p, at, words::THEME_KINDS)?),
        "text" => theme.text = Some(text(p, at)?),
        "children" => theme.children = list(p, at, name)?,
        "row" => row(p, at, &mut theme.vector)?,
        "vector" => vector(p, at, &mut theme.vector)?,
        "episode" => stated.episode = Some(name(p, at)?),
        "source" => stated.source = Some(word(p, at, words::SOURCES)?),
        "step" => stated.step = Some(integer(p, at)?),
        "time" => stated.time = Some(instant(p, at)?),
        "version" => stated.version = Some(text(p, at)?),
        "utility" => stated.utility = Some(single(p, at)?),
        "return_score" => stated.return_score = Some(return_score(p, at)?),
        "active" => stated.active = Some(boolean(p, at)?),
        "ungrounded" => stated.ungrounded = Some(boolean(p, at)?),
        "origin" => stated.origin = Some(word(p, at, words::ORIGINS)?),
        "fields" => stated.fields = fields(p, at)?,
    });
    Ok(theme)
}

fn link(p: &mut Parser<'_>, kind: &'static str) -> Parsed<Link> {
    let (mut from, mut edge, mut to) = (None, None, None);
    let start = members!(p, at in kind, {
        "from" => from = Some(name(p, at)?),
        "edge" => edge = Some(word(p, at, words::EDGES)?),
        "to" => to = Some(link_end(p, at)?),
    });
    let from = required(from, start, kind, "from")?;
    let edge = required(edge, start, kind, "edge")?;
    Ok(Link { from, edge, to: required(to, start, kind, "to")? })
}

fn claim(p: &mut Parser<'_>) -> Parsed<Claim> {
    let (mut key, mut claimed, mut value, mut claim) = (None, None, None, Claim::default());
    let start = members!(p, at in "claim", {
        "key" => key = Some(name(p, at)?),
        "name" => claimed = Some(name(p, at)?),
        "value" => value = Some(scalar(p, at)?),
        "scope" => claim.scope = Some(word(p, at, words::SCOPES)?),
        "from" => claim.from = list(p, at, pointer)?,
        "won" => claim.won = Some(name(p, at)?),
    });
    claim.key = required(key, start, "claim", "key")?;
    claim.name = required(claimed, start, "claim", "name")?;
    claim.value = required(value, start, "claim", "value")?;
    Ok(claim)
}

fn mark(p: &mut Parser<'_>) -> Parsed<Mark> {
    let (mut key, mut mark) = (None, Mark::default());
    let start = members!(p, at in "mark", {
        "key" => key = Some(name(p, at)?),
        "status" => mark.status = Some(word(p, at, words::STATUSES)?),
        "utility" => mark.utility = Some(single(p, at)?),
        "reports" => mark.reports = Some(small(p, at)?),
        "credit" => mark.credit = Some(single(p, at)?),
        "rollouts" => mark.rollouts = Some(small(p, at)?),
        "because" => mark.because = Some(text(p, at)?),
    });
    mark.key = required(key, start, "mark", "key")?;
    if mark.status.is_none() && mark.utility.is_none() && mark.credit.is_none() {
        return Err(JsonError::new(start, "`mark` needs `status`, `utility` or `credit`"));
    }
    if mark.reports.is_some() && mark.utility.is_none() || mark.rollouts.is_some() && mark.credit.is_none() {
        return Err(JsonError::new(start, "`reports` stands beside `utility`, and `rollouts` beside `credit`"));
    }
    Ok(mark)
}

fn deactivate(p: &mut Parser<'_>) -> Parsed<Deactivate> {
    let (mut key, mut deactivate) = (None, Deactivate::default());
    let start = members!(p, at in "deactivate", {
        "key" => key = Some(name(p, at)?),
        "by" => deactivate.by = Some(name(p, at)?),
        "because" => deactivate.because = Some(text(p, at)?),
    });
    deactivate.key = required(key, start, "deactivate", "key")?;
    Ok(deactivate)
}

fn redact(p: &mut Parser<'_>) -> Parsed<Redact> {
    let (mut key, mut redact) = (None, Redact::default());
    let start = members!(p, at in "redact", {
        "key" => key = Some(name(p, at)?),
        "field" => redact.field = Some(name(p, at)?),
        "hash" => redact.hash = Some(hash(p, at)?),
        "because" => redact.because = Some(text(p, at)?),
    });
    redact.key = required(key, start, "redact", "key")?;
    Ok(redact)
}

fn credit(p: &mut Parser<'_>) -> Parsed<Credit> {
    let (mut item, mut credit) = (None, Credit::default());
    let start = members!(p, at in "credit", {
        "group" => credit.group = Some(text(p, at)?),
        "rollout" => credit.rollout = Some(integer(p, at)?),
        "step" => credit.step = Some(integer(p, at)?),
        "reward" => credit.reward = Some(double(p, at)?),
        "s_prev" => credit.s_prev = Some(double(p, at)?),
        "s_now" => credit.s_now = Some(double(p, at)?),
        "log_h" => credit.log_h = Some(double(p, at)?),
        "item" => item = Some(name(p, at)?),
        "delta" => credit.delta = Some(double(p, at)?),
        "delta_hat" => credit.delta_hat = Some(double(p, at)?),
        "log_rho" => credit.log_rho = Some(double(p, at)?),
        "beta" => credit.beta = Some(double(p, at)?),
        "gate" => credit.gate = Some(double(p, at)?),
        "advantage" => credit.advantage = Some(double(p, at)?),
        "smoothed" => credit.smoothed = Some(double(p, at)?),
        "trajectory_advantage" => credit.trajectory_advantage = Some(double(p, at)?),
        "token_advantage" => credit.token_advantage = Some(double(p, at)?),
    });
    credit.item = required(item, start, "credit", "item")?;
    Ok(credit)
}

fn receipt(p: &mut Parser<'_>) -> Parsed<Receipt> {
    let (mut statement, mut receipt) = (None, Receipt::default());
    let start = members!(p, at in "receipt", {
        "key" => receipt.key = Some(name(p, at)?),
        "statement" => statement = Some(text(p, at)?),
        "params" => receipt.params = fields(p, at)?,
        "at" => receipt.at = Some(reader(p, at)?),
        "commit" => receipt.commit = Some(integer(p, at)?),
        "items" => receipt.items = list(p, at, name)?,
        "spans" => receipt.spans = list(p, at, pointer)?,
    });
    receipt.statement = required(statement, start, "receipt", "statement")?;
    Ok(receipt)
}

fn reader(p: &mut Parser<'_>, owner: Member) -> Parsed<Reader> {
    let mut reader = Reader::default();
    members!(p, at in owner.name, {
        "episode" => reader.episode = Some(name(p, at)?),
        "step" => reader.step = Some(integer(p, at)?),
        "time" => reader.time = Some(instant(p, at)?),
        "version" => reader.version = Some(text(p, at)?),
    });
    Ok(reader)
}

fn event(p: &mut Parser<'_>) -> Parsed<Event> {
    let (mut op, mut event) = (None, Event::default());
    let start = members!(p, at in "event", {
        "op" => op = Some(name(p, at)?),
        "time" => event.time = Some(instant(p, at)?),
        "episode" => event.episode = Some(name(p, at)?),
        "step" => event.step = Some(integer(p, at)?),
        "commit" => event.commit = Some(integer(p, at)?),
        "items" => event.items = list(p, at, name)?,
        "hashes" => event.hashes = list(p, at, hash)?,
        "tokens" => event.tokens = Some(integer(p, at)?),
        "text" => event.text = Some(text(p, at)?),
        "because" => event.because = Some(text(p, at)?),
    });
    event.op = required(op, start, "event", "op")?;
    Ok(event)
}

fn commit(p: &mut Parser<'_>) -> Parsed<Commit> {
    let mut commit = Commit::default();
    members!(p, at in "commit", {
        "number" => commit.number = Some(integer(p, at)?),
        "time" => commit.time = Some(instant(p, at)?),
    });
    Ok(commit)
}

/// The far end of an edge: a key, or a pointer.
fn link_end(p: &mut Parser<'_>, at: Member) -> Parsed<Pointer> {
    match p.peek()? {
        JsonType::String => Ok(Pointer::item(name(p, at)?)),
        JsonType::Object => pointer(p, at),
        found => Err(at.expected("a key or a pointer such as {\"key\":\"t1\"}", &found, p.offset())),
    }
}

fn pointer(p: &mut Parser<'_>, owner: Member) -> Parsed<Pointer> {
    if p.peek()? != JsonType::Object {
        return Err(owner.expected("a pointer such as {\"key\":\"t1\"}", &p.peek()?, p.offset()));
    }
    let (mut key, mut page, mut field, mut hashed) = (None, None, None, None);
    let (mut begins, mut ends, mut unit) = (None, None, None);
    let start = members!(p, at in owner.name, {
        "key" => key = Some(name(p, at)?),
        "page" => page = Some(name(p, at)?),
        "field" => field = Some(name(p, at)?),
        "start" => begins = Some(integer(p, at)?),
        "end" => ends = Some((p.offset(), integer(p, at)?)),
        "unit" => unit = Some(word(p, at, words::UNITS)?),
        "hash" => hashed = Some(hash(p, at)?),
    });
    let fault = |offset: usize, what: &str| Err(JsonError::new(offset, format!("`{}`: {what}", owner.name)));
    let unit = match unit.as_deref() {
        Some(_) if begins.is_none() || ends.is_none() => {
            return fault(start, "`unit` needs `start` and `end`");
        }
        Some("chars") => Unit::Chars,
        _ => Unit::Bytes,
    };
    let span = match (begins, ends) {
        (None, None) => None,
        (Some(_), None) => return fault(start, "`start` without `end`"),
        (None, Some(_)) => return fault(start, "`end` without `start`"),
        (Some(start), Some((offset, end))) if end < start => {
            return fault(offset, &format!("the end, {end}, is before the start, {start}"));
        }
        (Some(start), Some((_, end))) => Some(Span { start, end, unit }),
    };
    match (key, page) {
        (Some(key), None) => {
            let field = field.unwrap_or_else(|| Pointer::FIELD.to_owned());
            Ok(Pointer::Field { key, field, span, hash: hashed })
        }
        (None, Some(page)) if field.is_none() && span.is_none() => Ok(Pointer::Page { page, hash: hashed }),
        (None, Some(_)) => fault(start, "a page is named whole, without `field`, `start` and `end`"),
        (Some(_), Some(_)) => fault(start, "`key` and `page` exclude each other"),
        (None, None) => fault(start, "a pointer needs `key` or `page`"),
    }
}

/// Named values, the order kept.
fn fields(p: &mut Parser<'_>, at: Member) -> Parsed<Vec<(String, FieldValue)>> {
    let mut fields = Vec::new();
    at.want(p, JsonType::Object, "an object of named values")?;
    p.object(|p, name| {
        if name.text.is_empty() {
            return Err(JsonError::new(name.offset, format!("{at}: a name is empty")));
        }
        if let Some(value) = field_value(p, at)? {
            fields.push((name.text.to_owned(), value));
        }
        Ok(())
    })?;
    Ok(fields)
}

fn field_value(p: &mut Parser<'_>, at: Member) -> Parsed<Option<FieldValue>> {
    let offset = p.offset();
    Ok(Some(match p.peek()? {
        JsonType::Null => {
            p.null()?;
            return Ok(None);
        }
        JsonType::String => FieldValue::Text(p.string()?.into_owned()),
        JsonType::Boolean | JsonType::Number | JsonType::Array => FieldValue::Json(JsonText::trusted(p.raw()?)),
        JsonType::Object => {
            let raw = p.raw()?;
            let Some(value_at) = sole_base64(raw)? else {
                return Ok(Some(FieldValue::Json(JsonText::trusted(raw))));
            };
            let mut value = Parser::new(raw.get(value_at..).unwrap_or_default());
            let at_value = offset + value_at;
            let found = value.peek()?;
            if found != JsonType::String {
                return Err(at.expected("base64 text", &found, at_value));
            }
            let bytes = BASE64.decode(value.string()?.as_bytes()).map_err(|_| {
                JsonError::new(at_value, format!("{at}: not base64"))
                    .with_hint("the standard alphabet (A-Z a-z 0-9 + /), padded with =")
            })?;
            FieldValue::from_bytes(bytes)
        }
    }))
}

fn row(p: &mut Parser<'_>, at: Member, vector: &mut Option<VectorRef>) -> Parsed<()> {
    let offset = p.offset();
    let row = integer(p, at)?;
    set_vector(vector, VectorRef::Row(row), offset, at)
}

fn vector(p: &mut Parser<'_>, at: Member, vector: &mut Option<VectorRef>) -> Parsed<()> {
    let offset = p.offset();
    let numbers = list(p, at, single)?;
    if numbers.iter().all(|number| *number == 0.0) {
        let what = if numbers.is_empty() { "no numbers" } else { "a vector of length 0 (all numbers are 0)" };
        return Err(
            JsonError::new(offset, format!("{at}: {what}")).with_hint("leave out the vector of an item without")
        );
    }
    set_vector(vector, VectorRef::Inline(numbers), offset, at)
}

fn set_vector(slot: &mut Option<VectorRef>, vector: VectorRef, offset: usize, at: Member) -> Parsed<()> {
    if slot.replace(vector).is_some() {
        return Err(JsonError::new(offset, format!("{at}: `row` and `vector` exclude each other")));
    }
    Ok(())
}

#[cfg(test)]
mod tests;
