//! Both, side by side: transactions, and what is done between them, with all that was said on the way kept.

use crate::model::compare::compare;
use crate::model::effects::{apply_to_model, some_edge};
use crate::model::operation::{CLOCK, Op, key_name, text};
use crate::model::plain::Model;
use crate::observed::{answers, everything, faults};
use holotype::query::ParamValue;
use holotype::time::FixedClock;
use holotype::{
    Durability, EpisodeChange, Error, Holotype, ItemId, Layer, Mark, NewRecall, NewTrace, Options, Pointer, Snapshot,
    Space, Transaction,
};
use holotype_storage::vfs::{SimVfs, Vfs};
use std::collections::BTreeMap;
use std::sync::Arc;

const DATABASE: &str = "/memory.holo";

pub(crate) struct Bench {
    sim: SimVfs,
    database: Option<Holotype>,
    /// The committed state.
    model: Model,
    kept: Vec<(Snapshot, String)>,
    /// The content after each commit.
    said: BTreeMap<u64, String>,
}

/// Statements whose answers depend on everything that changes.
const ASKED: &str = "recall 'one fare of the flight' through themes 3 -> recalls 5 -> traces 5 expand;
    recall near $v include inactive, failed exclude unsupported limit 5;
    recall 'price of the bag' in episode 'e1' exclude stale, weakened relax below 3;
    find items where status = success and (support = supported or cites any) order by time desc, item;
    find recalls in episode 'e0' where has version return key, version, step, time;
    count items, mean utility, max step by kind, status, support; count edges by edge; conflicts; find items where conflicted; find claims where has won; find pages where tokens > 3;
    sources of 0, 1, 2 depth 5; dependents of 0, 1, 2, 3 depth 5 where not inactive";

/// All that a snapshot says, also to statements.
fn said(snapshot: &Snapshot) -> String {
    let params = [("v".to_owned(), ParamValue::Vector(vec![1.0, 0.5]))].into_iter().collect();
    let asked = match answers(snapshot, ASKED, &params) {
        Ok(answers) => answers,
        // The statement refers to something that does not exist yet.
        Err(error) => error.to_string(),
    };
    everything(snapshot).unwrap() + &asked
}

fn open_options() -> Options {
    Options {
        page_size: 4096,
        clock: Arc::new(FixedClock(CLOCK)),
        profile: Some("agent".to_owned()),
        ..Options::default()
    }
}

impl Bench {
    pub(crate) fn new() -> Self {
        let sim = SimVfs::new();
        let options = Options { space: Some(Space::new("test", 2)), ..open_options() };
        let database = Holotype::create_on(Arc::new(sim.clone()), DATABASE, options).unwrap();
        let model = Model { page_tokens: 1000, ..Model::default() };
        Bench { sim, database: Some(database), model, kept: Vec::new(), said: BTreeMap::new() }
    }

    /// Does the operations to both, and compares what they say after each transaction and, of the past, at the end.
    pub(crate) fn assert_agreement(&mut self, ops: &[Op]) {
        let mut ops = ops.iter().peekable();
        while ops.peek().is_some() {
            let mut model = self.model.clone();
            let mut after = None;
            let mut committed = false;
            {
                let database = self.database.as_ref().unwrap();
                let mut transaction = database.begin().unwrap();
                for op in ops.by_ref() {
                    match op {
                        Op::Commit(sync) => {
                            let durability = if *sync { Durability::Sync } else { Durability::None };
                            transaction.commit(durability).unwrap();
                            committed = true;
                            break;
                        }
                        Op::Drop => break,
                        Op::Look => compare(&transaction.snapshot().unwrap(), &model),
                        Op::Keep | Op::Checkpoint | Op::Reopen | Op::Rebuild => {
                            after = Some(op.clone());
                            break;
                        }
                        op => apply(op, &mut transaction, &mut model),
                    }
                }
            }
            if committed {
                self.model = model;
                let snapshot = self.database.as_ref().unwrap().snapshot();
                self.said.insert(snapshot.commit(), said(&snapshot));
            }
            if let Some(op) = after {
                self.between(&op);
            }
            compare(&self.database.as_ref().unwrap().snapshot(), &self.model);
        }
        self.check_the_past();
        self.between(&Op::Rebuild);
        self.check_the_past();
        for (snapshot, text) in &self.kept {
            assert_eq!(&everything(snapshot).unwrap(), text, "a snapshot changed");
        }
    }

    /// Runs an operation between transactions.
    fn between(&mut self, op: &Op) {
        let database = self.database.take().unwrap();
        let before = everything(&database.snapshot()).unwrap();
        match op {
            Op::Keep => {
                self.kept.push((database.snapshot(), before));
                self.database = Some(database);
                return;
            }
            Op::Checkpoint => {
                database.checkpoint().unwrap();
                self.database = Some(database);
            }
            _ => {
                self.check_kept();
                database.close().unwrap();
                if matches!(op, Op::Rebuild) {
                    for file in self.sim.files().into_iter().filter(|file| !file.starts_with("/memory.holo/log")) {
                        self.sim.remove(&file).unwrap();
                    }
                }
                self.database = Some(Holotype::open_on(Arc::new(self.sim.clone()), DATABASE, open_options()).unwrap());
            }
        }
        let database = self.database.as_ref().unwrap();
        let after = everything(&database.snapshot()).unwrap();
        let differs = before.lines().zip(after.lines()).find(|(before, after)| before != after);
        assert!(before == after, "{op:?} changed answers: {differs:#?}");
        assert_eq!(faults(database), [""; 0], "{op:?}");
    }

    /// Checks that what was said after each commit is what is said as of it.
    fn check_the_past(&self) {
        let snapshot = self.database.as_ref().unwrap().snapshot();
        for (commit, before) in &self.said {
            let now = said(&snapshot.as_of(*commit).unwrap());
            let differs = before.lines().zip(now.lines()).find(|(before, now)| before != now);
            assert!(*before == now, "as of commit {commit} of {}: {differs:#?}", snapshot.commit());
        }
        let newest = snapshot.commit();
        assert!(matches!(snapshot.as_of(newest + 1), Err(Error::FutureCommit { .. })));
        assert_eq!(snapshot.as_of(0).unwrap().len(), 0);
    }

    /// Checks the snapshots taken so far, and lets them go: they hold the lock of the database they were taken of.
    fn check_kept(&mut self) {
        for (snapshot, text) in self.kept.drain(..) {
            assert_eq!(everything(&snapshot).unwrap(), text, "a snapshot changed");
        }
    }
}

/// Does an operation to both; what the model refuses the engine must refuse, and the other way round.
fn apply(op: &Op, transaction: &mut Transaction<'_>, model: &mut Model) {
    let mut next = model.clone();
    let done = apply_to_model(op, &mut next);
    let outcome = apply_to_engine(op, transaction, model);
    let Some(outcome) = outcome else { return };
    assert_eq!(outcome.is_ok(), done.is_some(), "{op:?}: {outcome:?}");
    if done.is_some() {
        *model = next;
    }
}

fn apply_to_engine(op: &Op, transaction: &mut Transaction<'_>, model: &Model) -> Option<holotype::Result<()>> {
    let item = |number: u8| model.item(number).map(|id| ItemId(id as u32));
    let pointer = |(id, start, end): (usize, u64, u64)| Pointer::to_item(ItemId(id as u32)).bytes(start, end);
    Some(match op {
        Op::Record { episode, key, tool, step, time, version, status, source, words, vector } => {
            let mut trace = NewTrace::turn(format!("e{episode}"), text(*words, model.items.len()));
            trace = key.map_or(trace.clone(), |key| trace.key(key_name(key)));
            trace = tool.map_or(trace.clone(), |tool| trace.tool(format!("tool{tool}")));
            trace = step.map_or(trace.clone(), |step| trace.step(step));
            trace = time.map_or(trace.clone(), |time| trace.time(time));
            trace = version.map_or(trace.clone(), |version| trace.version(format!("v{version}")));
            trace = status.map_or(trace.clone(), |status| trace.status(status));
            trace = source.map_or(trace.clone(), |source| trace.source(source));
            trace = if *vector { trace.vector(vec![1.0, f32::from(*words)]) } else { trace };
            transaction.record(trace).map(drop)
        }
        Op::Remember { kind, key, from, page, children, ungrounded, episode, time, status, source } => {
            let mut recall = NewRecall::new(*kind, text(7, model.items.len()));
            recall = key.map_or(recall.clone(), |key| recall.key(key_name(key)));
            for span in from.iter().filter_map(|span| model.span(*span)) {
                recall = recall.from(pointer(span));
            }
            if let Some(page) = page.and_then(|page| model.pages.get(usize::from(page) % model.pages.len().max(1))) {
                recall = recall.from(Pointer::to_page(page.key.clone()));
            }
            if kind.layer() == Layer::Theme {
                for child in children.iter().filter_map(|child| model.items.get(model.item(*child)?)?.key.clone()) {
                    recall = recall.child(child);
                }
            }
            recall = if *ungrounded { recall.ungrounded() } else { recall };
            recall = episode.map_or(recall.clone(), |episode| recall.episode(format!("e{episode}")));
            recall = time.map_or(recall.clone(), |time| recall.time(time));
            recall = status.map_or(recall.clone(), |status| recall.status(status));
            recall = source.map_or(recall.clone(), |source| recall.source(source));
            transaction.remember(recall).map(drop)
        }
        Op::Update { key, from, ungrounded } => {
            let mut recall = NewRecall::fact(text(3, model.items.len()));
            for span in from.iter().filter_map(|span| model.span(*span)) {
                recall = recall.from(pointer(span));
            }
            recall = if *ungrounded { recall.ungrounded() } else { recall };
            transaction.update(&key_name(*key), recall).map(drop)
        }
        Op::Cite(id, span) => transaction.cite(item(*id)?, &pointer(model.span(*span)?)),
        Op::Link(from, edge, to) => transaction.link(item(*from)?, *edge, item(*to)?),
        Op::Unlink(from, edge, to) => {
            let (from, to) = some_edge(model, *from, *edge, *to)?;
            transaction.unlink(ItemId(from as u32), *edge, ItemId(to as u32))
        }
        Op::Status(id, status) => transaction.mark(item(*id)?, Mark::Status(*status), None),
        Op::Utility(id, utility) => transaction.mark(item(*id)?, Mark::Utility(f32::from(*utility), 3), None),
        Op::Inactive(id) => transaction.mark(item(*id)?, Mark::Inactive, Some("said so".to_owned())),
        Op::Claim(id, name, value, global) => {
            transaction.claim(item(*id)?, &format!("n{name}"), &value.to_string(), *global, &[])
        }
        Op::Episode(episode, version, open) => {
            let change =
                EpisodeChange { version: version.map(|version| format!("v{version}")), open: *open, task: None };
            transaction.episode(&format!("e{episode}"), change)
        }
        Op::PageTokens(tokens) => transaction.set("page.tokens", &tokens.to_string()),
        Op::Summarise(page, summarised) => {
            let page = model.pages.get(usize::from(*page) % model.pages.len().max(1))?;
            transaction.mark_page(&page.key, *summarised)
        }
        Op::Commit(_) | Op::Drop | Op::Look | Op::Keep | Op::Checkpoint | Op::Reopen | Op::Rebuild => return None,
    })
}
