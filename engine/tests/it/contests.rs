//! Extraction and contests of rules 2 against a naive account: the generator knows what each text says, and the
//! definitions of `docs/memory.md` are applied to every item for every question, without tables, keys or caches.
//!
//! Compared are the claims with the items that won over them (`find claims`), and of default recalls the rows, the
//! counts of exclusions and the contested names. Only the standing of items (status, time, support, …) is read from
//! the database: the oracle and the tests of lineage have that.

use crate::random::Random;
use holotype::answer::{Answer, Output, Role, Row, Table};
use holotype::query::Params;
use holotype::time::FixedClock;
use holotype::{
    Durability, Holotype, ItemAttributes, ItemId, Kind, Layer, Mark, NewRecall, NewTrace, Options, Pointer, Snapshot,
    Status, Support, Transaction,
};
use holotype_storage::vfs::SimVfs;
use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::sync::Arc;

const CLOCK: i64 = 1_770_000_000_000_000;
const SECOND: i64 = 1_000_000;
/// `contest.window` by default.
const WINDOW: u64 = 60_000_000;

/// A claim as the account knows it.
#[derive(Debug, Clone)]
struct Claim {
    name: String,
    value: String,
    global: bool,
    /// The number of a claim that the caller stated; `None` for one that a text makes.
    number: Option<u64>,
}

/// An item with what it says.
struct Said {
    key: String,
    id: ItemId,
    /// The things whose names stand in its text.
    things: Vec<&'static str>,
    claims: Vec<Claim>,
    standing: Option<ItemAttributes>,
}

impl Said {
    fn standing(&self) -> &ItemAttributes {
        self.standing.as_ref().expect("read after the last commit")
    }

    fn is_trace(&self) -> bool {
        self.standing().kind.layer() == Layer::Trace
    }

    /// The claims that count: those of the caller replace those of the text.
    fn claims(&self) -> Vec<&Claim> {
        let stated = self.claims.iter().any(|claim| claim.number.is_some());
        self.claims.iter().filter(|claim| claim.number.is_some() == stated).collect()
    }
}

/// One text in one of the forms that extraction knows, with its claims.
fn text(random: &mut Random) -> (String, Vec<(&'static str, String)>, &'static str, Vec<Claim>) {
    let thing = ["TA11", "TB22"][random.below(2) as usize];
    let (price, gate) = (1 + random.below(3), 10 * (1 + random.below(2)));
    let both = random.percent(40);
    let of = |attribute: &str, value: String| Claim {
        name: format!("{attribute} of {}", thing.to_lowercase()),
        value,
        global: false,
        number: None,
    };
    let mut claims = vec![of("price", format!("{price} USD"))];
    if both {
        claims.push(of("gate", format!("d{gate}")));
    }
    let mut fields = Vec::new();
    let text = match (random.below(6), both) {
        (0, true) => format!("look(thing {thing}): price = ${price}, gate = D{gate}"),
        (0, false) => format!("look(thing {thing}): price = {price} dollars"),
        (1, true) => format!("{{\"thing\":\"{thing}\",\"price\":{price},\"currency\":\"USD\",\"gate\":\"D{gate}\"}}"),
        (1, false) => format!("{{\"thing\":\"{thing}\",\"price\":\"USD {price}.00\"}}"),
        (2, true) => format!("The price of thing {thing} is ${price}. The gate of thing {thing} is now D{gate}."),
        (2, false) => format!("Thing {thing} costs ${price}."),
        (3, true) => format!("Thing {thing}:\n- Price: ${price}\n- Gate: D{gate}"),
        (3, false) => format!("I believe the price of thing {thing} is ${price}."),
        (4, _) => {
            fields.extend([("thing", thing.to_owned()), ("price", price.to_string()), ("currency", "USD".to_owned())]);
            if both {
                fields.push(("gate", format!("D{gate}")));
            }
            "somebody looked".to_owned()
        }
        _ => {
            claims.clear();
            format!("nobody looked at {thing}")
        }
    };
    (text, fields, thing, claims)
}

/// A database with what its items say.
fn write(random: &mut Random) -> (Holotype, Vec<Said>) {
    let options = Options { page_size: 4096, clock: Arc::new(FixedClock(CLOCK)), ..Options::default() };
    let database = Holotype::create_on(Arc::new(SimVfs::new()), "/memory.holo", options).unwrap();
    let mut transaction = database.begin().unwrap();
    transaction.set("recall.fold", "1").unwrap();
    let (mut said, mut number) = (Vec::new(), 0);
    for nth in 0..3 + random.below(24) {
        if random.percent(10) {
            transaction.commit(Durability::None).unwrap();
            if random.percent(50) {
                database.checkpoint().unwrap();
            }
            transaction = database.begin().unwrap();
        }
        let mut new = item(random, &mut transaction, &said, nth);
        if random.percent(15) {
            let (name, value, global) =
                (["price of ta11", "n"][random.below(2) as usize], random.below(3).to_string(), random.percent(30));
            transaction.claim(new.id, name, &value, global, &[]).unwrap();
            new.claims.push(Claim { name: name.to_owned(), value, global, number: Some(number) });
            number += 1;
        }
        said.push(new);
        let any = said[random.below(said.len() as u64) as usize].id;
        match random.below(20) {
            0 => transaction.deactivate(any, None, None).unwrap(),
            1 => transaction.mark(any, Mark::Status(Status::Failed), None).unwrap(),
            _ => {}
        }
    }
    transaction.commit(Durability::None).unwrap();
    let snapshot = database.snapshot();
    for item in &mut said {
        item.standing = Some(snapshot.item(item.id).unwrap().attributes);
    }
    (database, said)
}

fn item(random: &mut Random, transaction: &mut Transaction<'_>, said: &[Said], nth: u64) -> Said {
    let (text, fields, thing, claims) = text(random);
    let key = format!("k{nth}");
    let traces: Vec<ItemId> = said.iter().filter(|item| !item.key.starts_with('f')).map(|item| item.id).collect();
    if !traces.is_empty() && fields.is_empty() && !text.starts_with('{') && random.percent(20) {
        let key = format!("f{nth}");
        let fact = NewRecall::fact(format!("{text}\nentry")).key(&key);
        let source = traces[random.below(traces.len() as u64) as usize];
        let id = transaction.remember(fact.from(Pointer::to_item(source))).unwrap();
        return Said { key, id, things: vec![thing], claims, standing: None };
    }
    let kind = [Kind::Turn, Kind::Call, Kind::Observation][random.below(3) as usize];
    let mut trace = NewTrace::new(kind, format!("e{}", random.below(2)), text).key(&key).field("summary", "entry");
    for (name, value) in fields {
        trace = trace.field(name, value);
    }
    if random.percent(80) {
        trace = trace.time(CLOCK + random.below(8) as i64 * 25 * SECOND);
    }
    match random.below(8) {
        0 => {}
        1 => trace = trace.status(Status::Unknown),
        2 => trace = trace.status(Status::Failed),
        _ => trace = trace.status(Status::Success),
    }
    if random.percent(30) {
        trace = trace.version(format!("v{}", random.below(2)));
    }
    Said { key, id: transaction.record(trace).unwrap(), things: vec![thing], claims, standing: None }
}

/// The position of a reader, as an answer gives it.
#[derive(Default)]
struct At {
    episode: Option<String>,
    step: Option<u64>,
    time: Option<i64>,
    version: Option<String>,
}

impl At {
    fn is_ahead(&self, item: &ItemAttributes) -> bool {
        let later = |item: Option<i64>, reader: Option<i64>| item.zip(reader).is_some_and(|(item, at)| item > at);
        let whole = |step: Option<u64>| step.map(|step| step as i64);
        self.episode.is_some()
            && item.episode == self.episode
            && (later(whole(item.step), whole(self.step)) || later(item.time, self.time))
    }

    fn is_foreign(&self, item: &ItemAttributes) -> bool {
        self.version.is_some() && item.version.is_some() && item.version != self.version
    }
}

/// A contest: the claims that compete, best first.
struct Contest<'s>(Vec<(&'s Said, &'s Claim)>);

fn unsaid(item: &ItemAttributes) -> Status {
    item.status.unwrap_or(Status::Unknown)
}

fn is_grounded(item: &Said) -> bool {
    item.is_trace() || item.standing().support == Support::Supported
}

impl<'s> Contest<'s> {
    /// The contest that a claim of an item takes part in, or would take part in.
    fn of(said: &'s [Said], at: &At, item: &Said, claim: &Claim) -> Contest<'s> {
        let scope = |item: &Said| item.standing().episode.clone().filter(|_| !claim.global);
        let mut rivals = Vec::new();
        for other in said {
            let standing = other.standing();
            if !standing.active || at.is_ahead(standing) || standing.version != item.standing().version {
                continue;
            }
            for rival in other.claims() {
                let competes = rival.number.is_some() || other.is_trace();
                let same = rival.name == claim.name && rival.global == claim.global && scope(other) == scope(item);
                if competes && same {
                    rivals.push((other, rival));
                }
            }
        }
        let newer = |item: &Said| (Reverse(item.standing().time), Reverse(item.standing().step));
        // Of equals a claim of a text is later than one of the caller, and then the later one is preferred.
        let later = |item: &Said, claim: &Claim| (claim.number.is_none().then_some(item.id), claim.number);
        rivals.sort_by_key(|(item, claim)| {
            (unsaid(item.standing()), newer(item), !is_grounded(item), Reverse(later(item, claim)))
        });
        Contest(rivals)
    }

    fn runner_up(&self) -> Option<&(&'s Said, &'s Claim)> {
        let (item, claim) = self.0.first()?;
        self.0.iter().find(|(other, rival)| other.id != item.id && rival.value != claim.value)
    }

    fn is_open(&self) -> bool {
        let (Some((item, _)), Some((other, _))) = (self.0.first(), self.runner_up()) else { return false };
        let (a, b) = (item.standing(), other.standing());
        let near = match (a.time, b.time) {
            (Some(a), Some(b)) => a.abs_diff(b) < WINDOW,
            _ if a.episode == b.episode && a.step.is_some() && b.step.is_some() => a.step == b.step,
            _ => true,
        };
        unsaid(a) == unsaid(b) && is_grounded(item) == is_grounded(other) && near
    }

    /// The item that won over a claim.
    fn won(&self, item: &Said, claim: &Claim) -> Option<&'s Said> {
        let (winner, best) = self.0.first().filter(|_| !self.is_open() && item.standing().active)?;
        (winner.id != item.id && best.value != claim.value).then_some(*winner)
    }
}

/// The claims that the question is about.
fn in_question<'i>(item: &'i Said, question: &str) -> Vec<&'i Claim> {
    let claims = item.claims();
    let asked: BTreeSet<String> = question.split(' ').map(str::to_lowercase).collect();
    let shared = |claim: &Claim| claim.name.split(' ').filter(|word| asked.contains(*word)).count();
    let most = claims.iter().map(|claim| shared(claim)).max().unwrap_or(0);
    claims.into_iter().filter(|claim| shared(claim) == most).collect()
}

/// True if every claim that the question is about lost.
fn lost(said: &[Said], at: &At, item: &Said, question: &str) -> bool {
    let claims = in_question(item, question);
    !claims.is_empty() && claims.iter().all(|claim| Contest::of(said, at, item, claim).won(item, claim).is_some())
}

/// The other trace that won the contests of all claims that the question is about, with the same values; `None` for an
/// item with a claim whose contest is open.
fn restated_by(said: &[Said], at: &At, item: &Said, question: &str) -> Option<String> {
    let mut winners = BTreeSet::new();
    if item.claims().iter().any(|claim| Contest::of(said, at, item, claim).is_open()) {
        return None;
    }
    for claim in in_question(item, question) {
        let contest = Contest::of(said, at, item, claim);
        let (winner, best) = contest.0.first().filter(|_| !contest.is_open())?;
        if winner.id == item.id || best.value != claim.value || !winner.is_trace() {
            return None;
        }
        winners.insert(winner.key.clone());
    }
    winners.pop_first().filter(|_| winners.is_empty())
}

fn ask(snapshot: &Snapshot, statement: &str) -> Output {
    let outputs = snapshot.query(statement, &Params::new());
    outputs.unwrap_or_else(|error| panic!("{statement}: {error}")).pop().expect("one statement, one output")
}

fn answer(snapshot: &Snapshot, statement: &str) -> Answer {
    match ask(snapshot, statement) {
        Output::Answer(answer) => *answer,
        other => panic!("{statement}: {other:?}"),
    }
}

fn table(snapshot: &Snapshot, statement: &str) -> Table {
    match ask(snapshot, statement) {
        Output::Table(table) => table,
        other => panic!("{statement}: {other:?}"),
    }
}

/// `find claims` lists every claim that counts, with the item that won over it.
fn compare_claims(seed: u64, snapshot: &Snapshot, said: &[Said]) -> usize {
    let cell = |cell: &Option<holotype::cell::Cell>| cell.as_ref().map_or("-".to_owned(), ToString::to_string);
    let rows = table(snapshot, "find claims return item, name, value, won").rows;
    let mut found: Vec<Vec<String>> = rows.iter().map(|row| row.iter().map(cell).collect()).collect();
    let mut expected = Vec::new();
    let at = At::default();
    for item in said {
        for claim in item.claims() {
            let contest = Contest::of(said, &at, item, claim);
            let competes = item.is_trace() || claim.number.is_some();
            let won = contest.won(item, claim).filter(|_| competes).map_or("-".to_owned(), |won| won.key.clone());
            expected.push(vec![item.key.clone(), claim.name.clone(), claim.value.clone(), won]);
        }
    }
    found.sort();
    expected.sort();
    assert_eq!(found, expected, "seed {seed}");
    expected.len()
}

/// A default recall excludes, counts and contests what the definitions say.
fn compare_recall(seed: u64, snapshot: &Snapshot, said: &[Said], question: &str, from: &str) -> (usize, u64) {
    let statement = format!("recall '{question}' {from} limit 100");
    let found = answer(snapshot, &statement);
    let context = format!("seed {seed}: {statement}");
    let at = At {
        episode: found.at.episode.clone(),
        step: found.at.step,
        time: found.at.time,
        version: found.at.version.clone(),
    };
    let in_scope = |item: &&Said| {
        let standing = item.standing();
        let within = at.episode.is_none() || standing.episode == at.episode;
        within && standing.active && !at.is_ahead(standing)
    };
    let visible: Vec<&Said> = said.iter().filter(in_scope).collect();
    let named = |thing: &&str| question.contains(*thing);
    let missing = ["TA11", "TB22"].iter().filter(|thing| named(thing)).any(|thing| {
        // The words of all fields are searched, and with them those of facts.
        !visible.iter().any(|item| item.things.contains(thing))
    });
    let is_failed = |item: &Said| item.standing().status == Some(Status::Failed);
    let is_foreign = |item: &Said| at.is_foreign(item.standing());
    let is_unsupported = |item: &Said| !item.is_trace() && item.standing().support == Support::Unsupported;
    let flawless = |item: &&&Said| !is_failed(item) && !is_foreign(item) && !is_unsupported(item);
    let (losers, rows): (Vec<&Said>, Vec<&Said>) =
        visible.iter().filter(flawless).copied().partition(|item| lost(said, &at, item, question));
    let count = |test: &dyn Fn(&Said) -> bool| visible.iter().filter(|item| test(item)).count() as u64;
    let counts = [
        ("failed", count(&is_failed)),
        ("version", count(&is_foreign)),
        ("unsupported", count(&is_unsupported)),
        ("conflicted", losers.len() as u64),
    ];
    let counts: Vec<(&str, u64)> = counts.into_iter().filter(|(_, count)| *count > 0).collect();
    assert_eq!(found.excluded, counts, "{context}");
    assert_eq!(found.covered, !missing && !rows.is_empty(), "{context}");
    let hits = found.rows.iter().filter(|row| row.role == Role::Hit);
    let folded = |row: &Row| row.folded.iter().map(|older| (older.clone(), Some(row.key.clone()))).collect::<Vec<_>>();
    let mut keys: Vec<(String, Option<String>)> =
        hits.flat_map(|row| [vec![(row.key.clone(), None)], folded(row)].concat()).collect();
    keys.sort_unstable();
    let is_row = |key: &String| rows.iter().any(|row| row.key == *key);
    let newer = |item: &Said| restated_by(said, &at, item, question).filter(|by| item.is_trace() && is_row(by));
    let mut expected: Vec<(String, Option<String>)> =
        rows.iter().filter(|_| !missing).map(|item| (item.key.clone(), newer(item))).collect();
    expected.sort_unstable();
    assert_eq!(keys, expected, "{context}");
    let mut contested = BTreeSet::new();
    for item in rows.iter().filter(|item| !missing && newer(item).is_none()) {
        for claim in item.claims() {
            let contest = Contest::of(said, &at, item, claim);
            let sides = [contest.0.first(), contest.runner_up()];
            if contest.is_open() && sides.iter().flatten().any(|(side, _)| side.id == item.id) {
                contested.insert(claim.name.clone());
            }
        }
    }
    assert_eq!(found.contested, contested.into_iter().collect::<Vec<_>>(), "{context}");
    (keys.len(), losers.len() as u64 + found.contested.len() as u64)
}

#[test]
fn claims_and_contests_are_what_the_definitions_say() {
    let number = |name: &str, otherwise| {
        std::env::var(name).ok().and_then(|value| value.parse::<u64>().ok()).unwrap_or(otherwise)
    };
    let (databases, first) = (number("HOLOTYPE_CONTESTS", 120), number("HOLOTYPE_SEED", 1));
    let (mut claims, mut rows, mut decided) = (0, 0, 0);
    for seed in first..first + databases {
        let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        let (database, said) = write(&mut random);
        let snapshot = database.snapshot();
        claims += compare_claims(seed, &snapshot, &said);
        for question in ["looked entry price TA11", "looked entry gate TB22", "looked entry gate TA11"] {
            for episode in ["e0", "e1"].iter().filter(|episode| table_has(&snapshot, episode)) {
                let step = random.below(12);
                for from in [format!("in episode '{episode}'"), format!("in episode '{episode}' at step {step}")] {
                    let (found, outcome) = compare_recall(seed, &snapshot, &said, question, &from);
                    rows += found;
                    decided += outcome;
                }
            }
        }
        assert!(database.verify(&mut |_, _| {}).unwrap().is_clean(), "seed {seed}");
    }
    println!("{claims} claims, {rows} rows, {decided} losers and contested names");
    let least = databases as usize;
    assert!(claims > 5 * least && rows > 10 * least && decided > databases, "too little to compare");
}

fn table_has(snapshot: &Snapshot, episode: &str) -> bool {
    !table(snapshot, &format!("find episodes where episode = '{episode}'")).rows.is_empty()
}
