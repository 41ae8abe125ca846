//! A fleet: thousands of databases, asked one question.
//!
//! ```text
//! route    the router's entries, scored by the question        router
//! ask      the best of them, a few at a time, in parallel      pool, question
//! merge    their rows, by one score                            here
//! say      what was not asked, what failed, what is out of date
//! ```
//!
//! Databases are opened for reading when they are asked, at most a number of them at once. A [`Router`] is an ordinary
//! database that says what each database of the fleet is about, so that a question need not be put to all of them.
//!
//! The score of a row counts its words as a share of the best match of its database, which is 1 somewhere in each
//! database, however little it has to say. So rows of several databases are compared by
//!
//! ```text
//! S'(row) = S(row) - (1 - c) * words(row),   c: the share of the question that its database's rows cover
//! ```
//!
//! (`words` of [`Parts`](crate::answer::Parts), `c` the `terms` of [`Strength`](crate::answer::Strength)).
//!
//! Invariants:
//! 1. S' of a row does not depend on what other databases are asked. So a question to all gives the rows of each
//!    database's own recall, merged.
//! 2. A database of the fleet is in the answer as asked, as not asked, or as failed.
//! 3. Every quote was read and hashed again at its owner for this answer.

mod answer;
mod parallel;
mod paths;
mod pool;
mod question;
mod router;

pub use answer::{Asked, FleetAnswer, FleetFailure, FleetRow, NotAsked, Outdated, Staleness};
pub use question::{DEFAULT_ROWS, FleetRecall};
pub use router::entry::{Entry, Part};
pub use router::update::{RouteOptions, RouteReport};
pub use router::{MARKER, Router};

use crate::core::handle::Holotype;
use crate::model::plural::counted;
use crate::options::{Accelerator, Options};
use crate::{Error, Result};
use holotype_storage::log::Head;
use holotype_storage::vfs::open_file_limit;
use pool::{Pool, standing_of};
use question::{Question, Said};
use router::Loaded;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Descriptors that an open database takes, at most, in most fleets: LOCK, the catalog and files of the log.
const DESCRIPTORS_OF_A_DATABASE: u64 = 6;

/// Databases that are open at once, at most, where the system sets no limit.
const MOST_OPEN: usize = 2_048;

/// With a router and no number, one of this many databases is asked, and no fewer than [`LEAST_ASKED`].
const ASKED_OF: usize = 20;
const LEAST_ASKED: usize = 16;

/// The time for which a look at all databases for what the router lacks is good enough.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Options of a fleet.
#[derive(Debug, Clone)]
pub struct FleetOptions {
    /// Databases that are open at once, at most. The default leaves half of the process's files to others.
    pub max_open: usize,
    /// Threads that ask and look; the number of processors by default.
    pub threads: usize,
    /// The options that each database is opened with, for reading whatever they say: an embedder, memory.
    pub database: Options,
    /// The router; without one all databases are asked.
    pub router: Option<PathBuf>,
}

impl Default for FleetOptions {
    fn default() -> Self {
        let by_files = open_file_limit().map(|files| files / 2 / DESCRIPTORS_OF_A_DATABASE);
        let by_files = by_files.and_then(|files| usize::try_from(files).ok()).unwrap_or(MOST_OPEN);
        FleetOptions {
            max_open: by_files.clamp(4, MOST_OPEN),
            threads: std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
            database: Options {
                cache_bytes: 1 << 20,
                memory_limit: 64 << 20,
                background_threads: 1,
                accelerator: Accelerator::Cpu,
                ..Options::read_only()
            },
            router: None,
        }
    }
}

/// Databases that are asked together.
///
/// ```
/// use holotype::fleet::{Fleet, FleetOptions, FleetRecall};
/// use holotype::{Durability, Holotype, NewTrace, Options};
///
/// # let dir = tempfile::tempdir().unwrap();
/// for (name, text) in [("ann", "the night train costs 89 euros"), ("bob", "the boiler was repaired in May")] {
///     let database = Holotype::create(dir.path().join(format!("{name}.holo")), Options::default())?;
///     let mut transaction = database.begin()?;
///     transaction.record(NewTrace::turn("diary", text))?;
///     transaction.commit(Durability::Sync)?;
///     database.close()?;
/// }
/// let pattern = dir.path().join("*.holo");
/// let fleet = Fleet::open([&pattern], FleetOptions::default())?;
/// let answer = fleet.recall("what does the train cost?", &FleetRecall::default())?;
/// assert!(answer.rows[0].database.ends_with("ann.holo"));
/// assert_eq!((answer.asked.len(), answer.failed.len()), (2, 0));
/// # Ok::<(), holotype::Error>(())
/// ```
#[derive(Debug)]
pub struct Fleet {
    paths: Vec<PathBuf>,
    unread: Vec<FleetFailure>,
    threads: usize,
    pool: Pool,
    router: Option<Router>,
    looked: Mutex<Option<Look>>,
}

impl Fleet {
    /// A fleet of the databases that paths and patterns (`users/*.holo`, `**` for folders at any depth) name. None is
    /// opened yet. The router is no part of the fleet, even where a pattern matches it.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a wrong pattern and options that ask nothing; [`Error::Missing`] for a pattern that no
    /// database matches; as [`Router::open`].
    pub fn open<P: AsRef<Path>>(places: impl IntoIterator<Item = P>, options: FleetOptions) -> Result<Fleet> {
        let FleetOptions { max_open, threads, database, router } = options;
        if max_open == 0 || threads == 0 {
            return Err(Error::Invalid("a fleet needs at least one thread and one open database".to_owned()));
        }
        let found = paths::find(places)?;
        let mut fleet = Fleet {
            paths: found.paths,
            unread: found.unread,
            threads: threads.min(max_open),
            pool: Pool::new(database.clone(), max_open),
            router: None,
            looked: Mutex::default(),
        };
        if let Some(path) = router {
            fleet.leave_out(&path);
            fleet.router = Some(Router::open(&path, &database)?);
        }
        match fleet.paths.is_empty() && fleet.unread.is_empty() {
            true => Err(Error::Invalid("a fleet needs at least one database".to_owned())),
            false => Ok(fleet),
        }
    }

    /// The paths of its databases, in order.
    pub fn paths(&self) -> &[PathBuf] {
        &self.paths
    }

    /// The folders that could not be searched for databases.
    pub fn unread(&self) -> &[FleetFailure] {
        &self.unread
    }

    /// The router, if there is one.
    pub fn router(&self) -> Option<&Router> {
        self.router.as_ref()
    }

    /// The number of databases that are open now.
    pub fn open_count(&self) -> usize {
        self.pool.open_count()
    }

    /// Takes a path out of the fleet: the router is none of the databases it leads to.
    pub(crate) fn leave_out(&mut self, path: &Path) {
        let absolute = |path: &Path| std::path::absolute(path).ok();
        let left_out = absolute(path);
        self.paths.retain(|path| absolute(path) != left_out);
    }

    /// Does something with each database, opened for reading, in parallel; the results are in the order of
    /// [`Fleet::paths`].
    pub fn each<R: Send>(&self, work: impl Fn(&Path, &Holotype) -> Result<R> + Sync) -> Vec<Result<R>> {
        parallel::map(self.threads, &self.paths, |path| {
            let lease = self.pool.lease(path)?;
            work(path, &lease.database)
        })
    }

    /// Asks the databases of which the router expects most, or all without a router.
    ///
    /// A database that cannot be opened or read is named in the answer, and the others answer.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a blank question, and for [`FleetRecall::ask`] without a router by which to choose; when
    /// the router cannot be read.
    pub fn recall(&self, text: &str, recall: &FleetRecall) -> Result<FleetAnswer> {
        let started = Instant::now();
        let question = Question::new(text, recall)?;
        let entries = self.router.as_ref().map(Router::load).transpose()?;
        let mut notes = Vec::new();
        let chosen = self.choose(&question, entries.as_deref(), &mut notes)?;
        let said = parallel::map(self.threads, &chosen.asked, |one| self.ask(&question, &self.paths[one.place]));
        let mut answer = FleetAnswer {
            rows: Vec::new(),
            answerable: false,
            asked: Vec::new(),
            not_asked: chosen.not_asked(&self.paths),
            failed: self.unread.clone(),
            outdated: entries.as_ref().map_or_else(Vec::new, |entries| self.outdated(entries)),
            notes,
            micros: 0,
        };
        let mut merged = Merged::default();
        for (one, said) in chosen.asked.iter().zip(said) {
            let path = &self.paths[one.place];
            match said {
                Ok(Reply::Said(said)) => {
                    if let Some(entries) = &entries {
                        correct(&mut answer.outdated, entries, path, &said.head);
                    }
                    let (commit, rows) = (said.answer.commit, said.answer.rows.len());
                    answer.asked.push(Asked { path: path.clone(), commit, rows, expected: one.expected });
                    merged.add(path, one.place, *said);
                }
                Ok(Reply::Router) => answer.failed.push(FleetFailure {
                    path: path.clone(),
                    code: "router",
                    message: "it is a router and remembers nothing: leave it out of the fleet, or ask by it".to_owned(),
                }),
                Err(error) => answer.failed.push(FleetFailure::new(path, &error)),
            }
        }
        answer.asked.sort_by(|a, b| a.path.cmp(&b.path));
        merged.finish(&mut answer, recall.limit);
        answer.micros = u64::try_from(started.elapsed().as_micros()).unwrap_or(u64::MAX);
        Ok(answer)
    }

    fn ask(&self, question: &Question<'_>, path: &Path) -> Result<Reply> {
        let lease = self.pool.lease(path)?;
        if router::is_router(&lease.database)? {
            return Ok(Reply::Router);
        }
        Ok(Reply::Said(Box::new(question.ask(&lease.database)?)))
    }

    /// The databases to ask, most promising first, and the others.
    fn choose(&self, question: &Question<'_>, entries: Option<&Loaded>, notes: &mut Vec<String>) -> Result<Chosen> {
        let all = self.paths.len();
        let place = |place: usize| Place { place, expected: None };
        let Some(entries) = entries else {
            return match question.recall.ask {
                Some(ask) if ask < all => Err(Error::Invalid(format!(
                    "asking {ask} of {} needs a router to choose them by; build one, or ask all",
                    counted(all as u64, "databases")
                ))),
                _ => Ok(Chosen { asked: (0..all).map(place).collect(), left: Vec::new() }),
            };
        };
        let ask = question.recall.ask.unwrap_or_else(|| all.div_ceil(ASKED_OF).max(LEAST_ASKED)).min(all);
        let expected = entries.expect(question, self.pool.options().embedder.as_ref(), notes)?;
        let mut places: Vec<Place> = Vec::with_capacity(all);
        for (place, path) in self.paths.iter().enumerate() {
            let expected = paths::name_of(path).ok().and_then(|name| expected.get(&name).copied());
            places.push(Place { place, expected });
        }
        // Those that the router does not know come last: nothing speaks for them.
        places.sort_by(|a, b| {
            let known = b.expected.is_some().cmp(&a.expected.is_some());
            let score = b.expected.unwrap_or(0.0).total_cmp(&a.expected.unwrap_or(0.0));
            known.then(score).then(a.place.cmp(&b.place))
        });
        let left = places.split_off(ask);
        Ok(Chosen { asked: places, left })
    }

    /// The databases of which the router has not the newest, as of a moment ago at most.
    fn outdated(&self, entries: &Loaded) -> Vec<Outdated> {
        let mut looked = self.looked.lock().unwrap_or_else(PoisonError::into_inner);
        let is_good = |look: &&Look| look.commit == entries.commit() && look.at.elapsed() < LOOK_EVERY;
        if let Some(look) = looked.as_ref().filter(is_good) {
            return look.outdated.clone();
        }
        let look = |path: &PathBuf| {
            let entry = paths::name_of(path).ok().and_then(|name| entries.entry(&name));
            let why = match (entry, standing_of(path)) {
                (None, _) => Staleness::Unknown,
                (Some(_), Err(Error::NotFound { .. })) => Staleness::Gone,
                // It cannot be looked at. Who asks it learns why.
                (Some(_), Err(_)) => return None,
                (Some(entry), Ok(standing)) if entry.is_of(standing) => return None,
                (Some(entry), Ok(_)) => Staleness::Written { routed: entry.commit, now: None },
            };
            Some(Outdated { path: path.clone(), why })
        };
        let outdated: Vec<Outdated> = parallel::map(self.threads, &self.paths, look).into_iter().flatten().collect();
        *looked = Some(Look { at: Instant::now(), commit: entries.commit(), outdated: outdated.clone() });
        outdated
    }
}

/// A look at all databases for what the router lacks.
#[derive(Debug)]
struct Look {
    at: Instant,
    /// The commit of the router.
    commit: u64,
    outdated: Vec<Outdated>,
}

/// Says of a database that was asked exactly what the router lacks.
fn correct(outdated: &mut Vec<Outdated>, entries: &Loaded, path: &Path, now: &Head) {
    let Some(entry) = paths::name_of(path).ok().and_then(|name| entries.entry(&name)) else { return };
    outdated.retain(|one| one.path != path);
    if entry.head != router::entry::head_of(now) {
        let why = Staleness::Written { routed: entry.commit, now: Some(now.commit.0) };
        outdated.push(Outdated { path: path.to_owned(), why });
        outdated.sort_by(|a, b| a.path.cmp(&b.path));
    }
}

/// The outcome of asking a database.
enum Reply {
    Said(Box<Said>),
    /// It is a router.
    Router,
}

/// A database by its place in the fleet, and what the router expects of it.
struct Place {
    place: usize,
    expected: Option<f32>,
}

struct Chosen {
    asked: Vec<Place>,
    left: Vec<Place>,
}

impl Chosen {
    fn not_asked(&self, paths: &[PathBuf]) -> Vec<NotAsked> {
        let one = |one: &Place| NotAsked { path: paths[one.place].clone(), expected: one.expected };
        self.left.iter().map(one).collect()
    }
}

/// Rows and remarks of several databases, as they come in.
#[derive(Default)]
struct Merged {
    rows: Vec<(usize, FleetRow)>,
    answerable: bool,
    /// The number of databases by remark.
    notes: BTreeMap<String, usize>,
    profiles: BTreeSet<String>,
}

impl Merged {
    fn add(&mut self, path: &Path, place: usize, Said { answer, profile, .. }: Said) {
        self.answerable |= answer.answerable;
        self.profiles.insert(profile);
        for note in answer.notes {
            *self.notes.entry(note).or_default() += 1;
        }
        if answer.pending > 0 {
            *self.notes.entry("texts wait for their vectors".to_owned()).or_default() += 1;
        }
        let uncovered = 1.0 - answer.strength.terms;
        let row = |row: crate::Row| {
            let score = row.score - uncovered * row.parts.words;
            (place, FleetRow { database: path.to_owned(), score, row })
        };
        self.rows.extend(answer.rows.into_iter().map(row));
    }

    /// Valid rows before relaxed ones, then by score, then in the order of databases and of their own rows.
    fn finish(mut self, answer: &mut FleetAnswer, limit: usize) {
        self.rows.sort_by(|(a_place, a), (b_place, b)| {
            let valid = a.row.relaxed.is_empty().cmp(&b.row.relaxed.is_empty()).reverse();
            valid.then(b.score.total_cmp(&a.score)).then(a_place.cmp(b_place))
        });
        self.rows.truncate(limit);
        answer.rows = self.rows.into_iter().map(|(_, row)| row).collect();
        answer.answerable = self.answerable;
        let of_databases = |(note, count): (String, usize)| format!("{}: {note}", counted(count as u64, "databases"));
        answer.notes.extend(self.notes.into_iter().map(of_databases));
        if self.profiles.len() > 1 {
            let profiles: Vec<String> = self.profiles.into_iter().collect();
            answer.notes.push(format!(
                "the databases score by different profiles ({}), which do not compare; set one for the question",
                profiles.join(", ")
            ));
        }
    }
}
