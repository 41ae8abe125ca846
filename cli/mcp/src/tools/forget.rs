//! `forget`: erasing content for ever, in two steps.
//!
//! The first call writes nothing: it lists the items that would go and the ones that rest on them. The second carries a
//! consent to exactly that list, and a list that has changed since is shown again. A client that can ask a person asks
//! him (protocol 2026-07-28); any other gets a token that is valid for ten minutes. The token is bound to the items, to
//! what rests on them and to a head that the log still has, but not to the newest one: a hook that records the first
//! call moves that.

use super::{Effect, Outcome, described, properties};
use crate::consent::{Refused, VALID_SECONDS};
use crate::memory::{Asked, Call};
use crate::problem::Problem;
use crate::quoting::{head, name, quoted};
use crate::reply::Reply;
use holotype::Snapshot;
use holotype::answer::{Output, Table};
use holotype::cell::Cell;
use holotype::plural::counted;
use holotype::query::{ParamValue, Params};
use rmcp::model::Tool;
use serde_json::json;
use std::fmt::Write as _;

/// Items that one call may name.
const MOST_KEYS: usize = 200;
/// Items that a person is shown by their text.
const SHOWN: usize = 20;

/// The items that would go, before they go.
pub(crate) struct Dry {
    /// The list for a person.
    pub(crate) question: String,
    /// Stands for the list.
    pub(crate) token: String,
}

/// One `forget` as its arguments state it.
struct Wanted {
    statement: String,
    params: Params,
}

/// The tool as clients are told of it.
pub(crate) fn tool() -> Tool {
    described(
        "forget",
        "Erase for ever",
        "Erase content for ever, for privacy: personal data, secrets. Call without confirm to see what would go, \
         then with the confirm token.",
        Effect::Erases,
        (
            properties(
                &["because"],
                json!({
                    "keys": {"type": "array", "items": {"type": "string"}},
                    "episode": {"type": "string"},
                    "because": {"type": "string"},
                    "cascade": {"type": "boolean", "description": "also all that rests on it"},
                    "confirm": {"type": "string"},
                }),
            ),
            json!({"forgotten": {"type": "integer"}, "rows": {"type": "array"}}),
        ),
    )
}

pub(crate) fn run(call: &Call<'_>) -> Result<Outcome, Problem> {
    call.memory.check_writable()?;
    let snapshot = call.snapshot()?;
    let wanted = wanted(call, &snapshot)?;
    let mut table = wanted.run(call, true)?;
    // A dry run says that it wrote nothing; the act is the same without that sentence.
    table.notes.retain(|note| note != "nothing was written");
    let act = act(call, &wanted, &table);
    let token = call.arguments.text("confirm")?.map(str::to_owned);
    let consent = match (&call.asked, token) {
        (Asked::Declined, _) => return Err(declined()),
        (Asked::Agreed(token), _) => Some(token.clone()),
        (_, Some(token)) => Some(token),
        (_, None) => None,
    };
    let Some(token) = consent else { return Ok(dry(call, &snapshot, &table, call.memory.consent.token(&act))) };
    if let Err(refused) = call.memory.consent.check(&token, &act) {
        return Err(refusal(refused));
    }
    let table = wanted.run(call, false)?;
    let forgotten = keys(&table, "forgotten");
    let opening = format!("Forgot {} for ever.", counted(forgotten.len() as u64, "items"));
    let mut reply = Reply::new(opening).with("forgotten", forgotten.len()).listing("Nothing is missing but names.");
    list(&mut reply, &table);
    for note in &table.notes {
        reply.note(note.clone());
    }
    Ok(reply.into())
}

fn declined() -> Problem {
    Problem::new("the user did not agree, so nothing was forgotten", "do not ask again unless the user brings it up")
}

fn refusal(refused: Refused) -> Problem {
    let again = "call forget again without `confirm`, look at the list, and use its new token";
    match refused {
        Refused::Expired => Problem::new("the token is older than ten minutes, so nothing was forgotten", again),
        Refused::Other => Problem::new(
            "the token does not stand for what would go now: the arguments or the memory changed, or it is of \
             another server, so nothing was forgotten",
            again,
        ),
    }
}

fn wanted(call: &Call<'_>, snapshot: &Snapshot) -> Result<Wanted, Problem> {
    let arguments = &call.arguments;
    let keys = arguments.texts("keys")?;
    if keys.len() > MOST_KEYS {
        let cause = format!("forget takes at most {MOST_KEYS} keys, not {}", keys.len());
        return Err(Problem::new(cause, "call it several times"));
    }
    let mut params = Params::new();
    let mut targets = Vec::new();
    for (number, key) in keys.iter().enumerate() {
        let item = crate::memory::item(snapshot, key)?;
        let param = format!("k{number}");
        targets.push(format!("${param}"));
        params.insert(param, ParamValue::Int(item.id.0.into()));
    }
    if let Some(episode) = arguments.text("episode")? {
        if !snapshot.episodes(episode, 1)?.iter().any(|known| known == episode) {
            return Err(super::recall::no_episode(snapshot, episode, "`keys` instead"));
        }
        targets.push("episode $e".to_owned());
        params.insert("e".to_owned(), ParamValue::Text(episode.to_owned()));
    }
    if targets.is_empty() {
        return Err(Problem::new("forget needs `keys` or `episode`", "name what to forget by one of them"));
    }
    params.insert("because".to_owned(), ParamValue::Text(arguments.needed("because")?.to_owned()));
    let cascade = if arguments.truth("cascade")? { " cascade" } else { "" };
    Ok(Wanted { statement: format!("forget {}{cascade} because $because", targets.join(", ")), params })
}

impl Wanted {
    fn run(&self, call: &Call<'_>, dry: bool) -> Result<Table, Problem> {
        let statement = if dry { format!("explain {}", self.statement) } else { self.statement.clone() };
        let outputs = call.memory.database.query_within(&statement, &self.params, &call.limits)?;
        match outputs.into_iter().next() {
            Some(Output::Table(table)) => Ok(table),
            _ => Ok(Table::default()),
        }
    }
}

/// All that a consent is bound to, as one text.
fn act(call: &Call<'_>, wanted: &Wanted, table: &Table) -> String {
    let mut act = format!("{}\n{}", call.memory.database.path().display(), wanted.statement);
    for (name, value) in &wanted.params {
        let _ = write!(act, "\n{name} {value:?}");
    }
    for (what, key) in rows(table) {
        let _ = write!(act, "\n{what}\0{key}");
    }
    act
}

fn rows(table: &Table) -> impl Iterator<Item = (&str, &str)> {
    table.rows.iter().filter_map(|row| match row.as_slice() {
        [Some(Cell::Text(what)), Some(Cell::Text(key)), ..] => Some((what.as_str(), key.as_str())),
        _ => None,
    })
}

fn keys<'t>(table: &'t Table, wanted: &str) -> Vec<&'t str> {
    rows(table).filter(|(what, _)| *what == wanted).map(|(_, key)| key).collect()
}

fn list(reply: &mut Reply, table: &Table) {
    for (what, key) in rows(table) {
        let (what, key) = (what.to_owned(), key.to_owned());
        reply.row(key.clone(), move |_| (json!({"what": what, "key": key}), format!("{what} [{}]", name(&key))));
    }
}

/// The list before anything goes: a question for a person, or a token.
fn dry(call: &Call<'_>, snapshot: &Snapshot, table: &Table, token: String) -> Outcome {
    let go = keys(table, "forgotten");
    let rest = keys(table, "rests on it");
    let mut shown = Vec::new();
    for key in go.iter().take(SHOWN) {
        let item = snapshot.item_named(key).and_then(|id| snapshot.item(id));
        let text = item.map(|item| quoted(head(item.content.text(), 200), 80)).unwrap_or_default();
        shown.push(format!("[{}] {text}", name(key)));
    }
    if go.len() > SHOWN {
        shown.push(format!("and {} more", go.len() - SHOWN));
    }
    if call.asked == Asked::NotYet {
        let mut question = format!("Erase {} for ever?\n{}", counted(go.len() as u64, "items"), shown.join("\n"));
        if !rest.is_empty() {
            question += &format!("\n{} on them and stay.", counted(rest.len() as u64, "items rest"));
        }
        return Outcome::Consent(Dry { question, token });
    }
    let opening = format!(
        "Nothing is forgotten yet. {} would go for ever:\n{}",
        counted(go.len() as u64, "items"),
        shown.join("\n")
    );
    let mut reply = Reply::new(opening)
        .with("forgotten", 0)
        .with("would_go", go.len())
        .with("confirm", token.as_str())
        .with("valid_seconds", VALID_SECONDS)
        .listing("`query` lists them all: explain forget.");
    list(&mut reply, table);
    for note in &table.notes {
        reply.note(note.clone());
    }
    reply.note(format!(
        "If the user agrees, call forget within ten minutes with the same arguments and `confirm`: {token}"
    ));
    reply.into()
}
