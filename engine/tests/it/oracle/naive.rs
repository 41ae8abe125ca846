//! The definitions, clause by clause, over exported rows.

mod claims;
mod listings;
mod recall;
mod score;
mod values;
mod walks;

use holotype::answer::Output;
use holotype::cell::Cell;
use holotype::query::plan::{Bound, Flaw, Predicate, Reader, Ref, Scope, Test};
use holotype::query::{FlawKind, ItemRef, Name, Noun, Op, Params};
use holotype::{Edge, ItemId, Snapshot};
use std::collections::{BTreeMap, BTreeSet};
pub(crate) use values::shown;
use values::{compares, matches, texts};

/// The cells of a row by name.
type Cells = BTreeMap<String, Cell>;

/// One item: every attribute by name, its fields, its vector.
pub(crate) struct Exported {
    pub(crate) items: Vec<Row>,
    pub(crate) episodes: BTreeSet<String>,
    pages: Vec<Cells>,
    episode_rows: Vec<Cells>,
    claims: Vec<Cells>,
    edges: BTreeSet<(u32, &'static str, u32)>,
}

pub(crate) struct Row {
    cells: Cells,
    vector: Option<Vec<f32>>,
    words: Vec<String>,
}

/// The answer of a listing.
pub(crate) struct Listed {
    pub(crate) columns: Vec<String>,
    pub(crate) rows: Vec<Vec<String>>,
}

/// The answer of a recall: the rows, and the score of every candidate.
pub(crate) struct Recalled {
    pub(crate) rows: Vec<u32>,
    pub(crate) all: Vec<(u32, f64)>,
    /// The rows hang on the order of items whose scores are nearly the same.
    pub(crate) is_close: bool,
}

/// The reader's position.
#[derive(Clone, Default, Debug)]
struct ReaderPosition {
    episode: Option<String>,
    step: Option<i64>,
    time: Option<i64>,
    version: Option<String>,
    /// The latest time that is seen.
    until: Option<i64>,
}

const DAY: i64 = 24 * 3_600_000_000;

impl Exported {
    pub(crate) fn of(snapshot: &Snapshot) -> Exported {
        let outputs = snapshot.query("find items return *", &Params::new()).expect("all items");
        let Some(Output::Table(table)) = outputs.into_iter().next() else { panic!("a table") };
        let listed = |statement: &str| -> Vec<Cells> {
            let outputs = snapshot.query(statement, &Params::new()).expect("a listing");
            let Some(Output::Table(table)) = outputs.into_iter().next() else { panic!("a table") };
            let named = |row: Vec<Option<Cell>>| {
                table.columns.iter().cloned().zip(row).filter_map(|(name, cell)| Some((name, cell?))).collect()
            };
            table.rows.into_iter().map(named).collect()
        };
        let mut world = Exported {
            items: Vec::new(),
            episodes: BTreeSet::new(),
            pages: listed("find pages"),
            episode_rows: listed("find episodes"),
            claims: listed("find claims return item, name, value, scope"),
            edges: BTreeSet::new(),
        };
        for (nth, row) in (0..).zip(table.rows) {
            let cells = table.columns.iter().cloned().zip(row).filter_map(|(name, cell)| Some((name, cell?)));
            let mut cells: BTreeMap<String, Cell> = cells.collect();
            let item = snapshot.item(ItemId(nth)).expect("it is there");
            let mut words: Vec<String> = Vec::new();
            for name in item.content.field_names() {
                let text = item.content.field_text(name).unwrap_or_default();
                words.extend(text.split_whitespace().map(str::to_owned));
                cells.insert(format!("fields.{name}"), Cell::text(text));
            }
            words.extend(item.content.speaker().map(str::to_owned));
            words.extend(item.content.tool().map(str::to_owned));
            for episode in texts(cells.get("episode")) {
                world.episodes.insert(episode);
            }
            for edge in Edge::ALL {
                for to in snapshot.linked(ItemId(nth), *edge).expect("edges") {
                    world.edges.insert((nth, edge.as_str(), to.0));
                }
            }
            let vector = snapshot.vector(ItemId(nth)).expect("vectors");
            world.items.push(Row { cells, vector, words });
        }
        world
    }

    pub(crate) fn has_claims(&self) -> bool {
        !self.claims.is_empty()
    }

    fn cell(&self, id: u32, name: &str) -> Option<&Cell> {
        self.items[id as usize].cells.get(name)
    }

    fn text(&self, id: u32, name: &str) -> Option<&str> {
        match self.cell(id, name)? {
            Cell::Text(text) => Some(text),
            _ => None,
        }
    }

    fn whole(&self, id: u32, name: &str) -> Option<i64> {
        match self.cell(id, name)? {
            Cell::Integer(number) | Cell::Time(number) => Some(*number),
            _ => None,
        }
    }

    fn is(&self, id: u32, name: &str) -> bool {
        self.cell(id, name) == Some(&Cell::Bool(true))
    }

    fn ids(&self) -> impl Iterator<Item = u32> + use<> {
        0..self.items.len() as u32
    }

    fn layer(&self, id: u32) -> &str {
        self.text(id, "layer").expect("every item has a layer")
    }

    /// The position of a reader with these members; absent ones are the newest values.
    fn standing(&self, scope: Option<&Scope>, given: Option<&Reader>) -> ReaderPosition {
        let mut standing = ReaderPosition::default();
        if let Some(Scope::Episodes(ids)) = scope
            && let [one] = ids.as_slice()
        {
            standing.episode = Some(one.clone());
        }
        let of_traces = |id: &u32| {
            let here = standing.episode.is_none() || self.text(*id, "episode") == standing.episode.as_deref();
            self.layer(*id) == "trace" && here
        };
        standing.time = self.ids().filter(of_traces).filter_map(|id| self.whole(id, "time")).max();
        if standing.episode.is_some() {
            standing.step = self.ids().filter(of_traces).filter_map(|id| self.whole(id, "step")).max();
            let mut with_version: Vec<u32> = self.ids().filter(of_traces).collect();
            with_version.retain(|id| self.text(*id, "version").is_some());
            with_version.sort_by_key(|id| self.whole(*id, "step"));
            let last = &with_version[with_version.len().saturating_sub(10)..];
            let count =
                |id: &&u32| last.iter().filter(|of| self.text(**of, "version") == self.text(**id, "version")).count();
            let prevailing = last.iter().max_by_key(count);
            standing.version = prevailing.and_then(|id| self.text(*id, "version")).map(str::to_owned);
        }
        if let Some(given) = given {
            standing.step = given.step.map(|step| step as i64).or(standing.step);
            let stated = given.time.map(|time| time.micros);
            standing.until = stated.filter(|stated| Some(*stated) != standing.time);
            standing.time = stated.or(standing.time);
            standing.version = given.version.clone().or(standing.version);
        }
        standing
    }

    fn is_of(&self, id: u32, noun: Noun) -> bool {
        let kind = self.text(id, "kind").expect("every item has a kind");
        match noun {
            Noun::Items => true,
            Noun::Themes | Noun::Recalls | Noun::Traces => format!("{}s", self.layer(id)) == noun.as_str(),
            Noun::Summaries => kind == "summary",
            noun => format!("{kind}s") == noun.as_str(),
        }
    }

    fn in_scope(&self, id: u32, scope: Option<&Scope>) -> bool {
        match scope {
            None | Some(Scope::All) => true,
            Some(Scope::Episodes(wanted)) => texts(self.cell(id, "episode")).iter().any(|of| wanted.contains(of)),
            Some(Scope::Pages(_)) => panic!("no statement asks for pages"),
        }
    }

    // ---- predicates ----

    fn value(&self, id: u32, name: &Name, standing: &ReaderPosition) -> Option<Cell> {
        self.value_of(id, &name.dotted(), standing)
    }

    fn holds(&self, id: u32, predicate: &Predicate, standing: &ReaderPosition) -> bool {
        holds(&|name| self.value_of(id, name, standing), &|test| self.passes(id, test, standing), predicate)
    }

    fn value_of(&self, id: u32, name: &str, standing: &ReaderPosition) -> Option<Cell> {
        match name {
            "age" => Some(Cell::Duration((standing.time? - self.whole(id, "time")?).max(0))),
            name => self.cell(id, name).cloned(),
        }
    }

    /// A test that only items stand.
    fn passes(&self, id: u32, test: &Test, standing: &ReaderPosition) -> bool {
        match test {
            Test::Flaw(flaw) => self.has_flaw(id, flaw, standing),
            Test::Redacted => self.is(id, "redacted"),
            Test::Edge { edge, target } => {
                let target = target.as_ref().map(|pointer| match &pointer.target {
                    Ref::Item(item) => match item {
                        ItemRef::Id(number) => *number as u32,
                        ItemRef::Key(_) => panic!("items are named by number"),
                    },
                    _ => panic!("only items are linked to"),
                });
                let names = |near: u32, far: u32| near == id && target.is_none_or(|target| far == target);
                self.edges.iter().any(|(from, of, to)| *of == edge.as_str() && names(*from, *to))
            }
            Test::Claims { name, value } => self.claims_of(id).any(|(claimed, cell)| {
                let holds = value.as_ref().is_none_or(|(op, value)| compares(cell, *op, value));
                matches(name.as_bytes(), claimed.as_bytes()) && holds
            }),
            _ => panic!("values are compared elsewhere"),
        }
    }

    fn has_flaw(&self, id: u32, flaw: &Flaw, standing: &ReaderPosition) -> bool {
        match flaw.kind {
            FlawKind::Quarantined => false,
            FlawKind::Failed => self.text(id, "status") == Some("failed"),
            FlawKind::Stale => self.is_stale(id, flaw, standing),
            FlawKind::Conflicted => self.is_conflicted(id, standing),
            FlawKind::Weakened => self.text(id, "support") == Some("weakened"),
            FlawKind::Unsupported => self.text(id, "support") == Some("unsupported"),
            FlawKind::Ungrounded => self.is(id, "ungrounded"),
            FlawKind::Inactive => !self.is(id, "active"),
        }
    }

    fn is_stale(&self, id: u32, flaw: &Flaw, standing: &ReaderPosition) -> bool {
        let everything = flaw.window.is_empty();
        let (mut steps, mut age, mut version) = (everything.then_some(200), everything.then_some(7 * DAY), everything);
        for bound in &flaw.window {
            match bound {
                Bound::Steps(count) => steps = Some(*count as i64),
                Bound::Age(duration) => age = Some(duration.micros() as i64),
                Bound::Version => version = true,
            }
        }
        let distance = self.step_distance(id, standing);
        let old = standing.time.zip(self.whole(id, "time")).map(|(now, then)| now - then);
        matches!((steps, distance), (Some(bound), Some(distance)) if distance > bound)
            || matches!((age, old), (Some(bound), Some(old)) if old > bound)
            || version && self.is_foreign(id, standing)
    }

    /// Steps from an item to the reader, in an episode that is the item's first.
    fn step_distance(&self, id: u32, standing: &ReaderPosition) -> Option<i64> {
        let own = texts(self.cell(id, "episode")).into_iter().next();
        if standing.episode.is_none() || own != standing.episode {
            return None;
        }
        Some((standing.step? - self.whole(id, "step")?).max(0))
    }

    fn is_foreign(&self, id: u32, standing: &ReaderPosition) -> bool {
        let named = |version: &str| {
            let mut named = BTreeMap::new();
            for word in version.split(' ') {
                let (name, value) = word.split_once('=').unwrap_or(("task", word));
                named.insert(name.to_owned(), value.to_owned());
            }
            named
        };
        let (Some(mine), Some(version)) = (&standing.version, self.text(id, "version")) else { return false };
        let (mine, version) = (named(mine), named(version));
        mine.iter().any(|(name, value)| version.get(name).is_some_and(|other| other != value))
    }
}

/// True if a predicate holds for something that has values; `item` says so of the tests that only items stand.
fn holds(value: &dyn Fn(&str) -> Option<Cell>, item: &dyn Fn(&Test) -> bool, predicate: &Predicate) -> bool {
    let get = |name: &Name| value(&name.dotted());
    match predicate {
        Predicate::And(parts) => parts.iter().all(|part| holds(value, item, part)),
        Predicate::Or(parts) => parts.iter().any(|part| holds(value, item, part)),
        Predicate::Not(part) => !holds(value, item, part),
        Predicate::Test(test) => match &**test {
            Test::Compare { name, op, value: with } => get(name).is_some_and(|cell| compares(&cell, *op, with)),
            Test::In { name, not, list } => {
                get(name).is_some_and(|cell| list.iter().any(|with| compares(&cell, Op::Eq, with)) != *not)
            }
            Test::Between { name, not, low, high } => {
                get(name).is_some_and(|cell| (compares(&cell, Op::Ge, low) && compares(&cell, Op::Le, high)) != *not)
            }
            Test::Contains { name, not, text } => get(name).is_some_and(|cell| {
                let wanted = text.to_lowercase();
                texts(Some(&cell)).iter().any(|text| text.to_lowercase().contains(&wanted)) != *not
            }),
            Test::Matches { name, not, glob } => get(name).is_some_and(|cell| {
                texts(Some(&cell)).iter().any(|text| matches(glob.as_bytes(), text.as_bytes())) != *not
            }),
            Test::Has(name) => get(name).is_some(),
            test => item(test),
        },
    }
}
