//! Building a router, and bringing it up to date.
//!
//! A database is read again only if its LOCK says more than its entry does: one small read otherwise. An entry is never
//! changed: a new one takes its key, and the one before becomes inactive. After an erasure in a database, and when it
//! leaves the fleet, its entries are erased from the router too, the old ones included.
//!
//! Invariant: the entries after an update are those of a router that is built then.

use super::entry::{self, Entry};
use super::summary::{Summary, summarise};
use super::{MARKER, check};
use crate::core::handle::Holotype;
use crate::fleet::pool::standing_of;
use crate::fleet::{Fleet, FleetFailure, Part, parallel, paths};
use crate::model::item::{ItemId, Layer};
use crate::model::space::{Encoding, Space};
use crate::options::{Durability, Options};
use crate::read::snapshot::Snapshot;
use crate::write::draft::NewRecall;
use crate::write::forget::Forget;
use crate::write::transaction::Transaction;
use crate::{Error, Result};
use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};

/// Databases that are read before their entries are written.
const AT_ONCE: usize = 64;

/// Options of a router's entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RouteOptions {
    /// Parts of a database, at most; a database has about as many as the square root of its vectors.
    pub max_parts: usize,
}

impl Default for RouteOptions {
    fn default() -> Self {
        RouteOptions { max_parts: 64 }
    }
}

impl RouteOptions {
    fn check(self) -> Result<()> {
        match self.max_parts {
            0 => Err(Error::Invalid("a database has at least one part".to_owned())),
            _ => Ok(()),
        }
    }
}

/// The outcome of an update of a router.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RouteReport {
    /// Databases that the router did not know.
    pub added: usize,
    /// Databases that were written to since.
    pub updated: usize,
    /// Databases that are no longer in the fleet.
    pub removed: usize,
    /// Databases that were not read, because nothing changed.
    pub unchanged: usize,
    /// Databases whose vectors are of another space than the router's: it knows them by their words.
    pub other_spaces: usize,
    /// Items of the router that were erased.
    pub erased: usize,
    /// Databases and folders that could not be read, and why. Their entries stay as they were.
    pub failed: Vec<FleetFailure>,
}

/// The router while it is written to.
struct Writing<'d> {
    database: &'d Holotype,
    known: HashMap<String, (ItemId, Entry)>,
    space: Option<Space>,
    report: RouteReport,
    /// Facts of databases that erased something, or are gone.
    erase: BTreeSet<ItemId>,
}

impl Fleet {
    /// Makes a router of this fleet at `path`. `progress` is called with the databases done and those there are.
    ///
    /// # Errors
    /// [`Error::Exists`]; as [`Holotype::create`]. A database that cannot be read is in the report.
    pub fn build_router(
        &mut self,
        path: impl AsRef<Path>,
        options: RouteOptions,
        progress: &mut dyn FnMut(usize, usize),
    ) -> Result<RouteReport> {
        options.check()?;
        let path = path.as_ref();
        let database = Holotype::create(path, self.router_options())?;
        let mut transaction = database.begin()?;
        let marker = "This database routes questions to the databases of a fleet; `holotype route update` renews it.";
        transaction.remember(NewRecall::theme(marker).key(MARKER))?;
        transaction.commit(Durability::Flush)?;
        self.write_router(path, database, options, progress)
    }

    /// Brings the router at `path` up to date with this fleet.
    ///
    /// # Errors
    /// As [`Holotype::open`]; [`Error::Invalid`] for a database that is no router. A database that cannot be read is in
    /// the report.
    pub fn update_router(
        &mut self,
        path: impl AsRef<Path>,
        options: RouteOptions,
        progress: &mut dyn FnMut(usize, usize),
    ) -> Result<RouteReport> {
        options.check()?;
        let path = path.as_ref();
        let database = Holotype::open(path, self.router_options())?;
        check(path, &database)?;
        self.write_router(path, database, options, progress)
    }

    fn router_options(&self) -> Options {
        Options { read_only: false, embedder: None, memory_limit: 256 << 20, ..self.pool.options().clone() }
    }

    fn write_router(
        &mut self,
        path: &Path,
        database: Holotype,
        options: RouteOptions,
        progress: &mut dyn FnMut(usize, usize),
    ) -> Result<RouteReport> {
        self.leave_out(path);
        let snapshot = database.snapshot();
        let known = entry::read_all(&snapshot)?.into_iter();
        let without_words = |entry| Entry { words: String::new(), ..entry };
        let mut writing = Writing {
            known: known.map(|(id, entry)| (entry.path.clone(), (id, without_words(entry)))).collect(),
            space: snapshot.space()?,
            report: RouteReport { failed: self.unread.clone(), ..RouteReport::default() },
            erase: BTreeSet::new(),
            database: &database,
        };
        drop(snapshot);
        let due = writing.due(self);
        progress(0, due.len());
        let mut done = 0;
        for some in due.chunks(AT_ONCE) {
            let read = parallel::map(self.threads, some, |(name, path)| {
                let lease = self.pool.lease(path)?;
                match super::is_router(&lease.database)? {
                    true => Ok(None),
                    false => summarise(name, &lease.database, lease.standing, options.max_parts).map(Some),
                }
            });
            writing.write(some, read)?;
            done += some.len();
            progress(done, due.len());
        }
        if self.unread.is_empty() {
            writing.remove_others(self)?;
        }
        writing.erase()?;
        let report = writing.report;
        database.close()?;
        Ok(report)
    }
}

impl Writing<'_> {
    /// The databases of the fleet that have to be read, by name and path.
    fn due(&mut self, fleet: &Fleet) -> Vec<(String, PathBuf)> {
        let mut due = Vec::new();
        for path in &fleet.paths {
            match paths::name_of(path).and_then(|name| Ok((standing_of(path)?, name))) {
                Err(error) => self.report.failed.push(FleetFailure::new(path, &error)),
                // Without LOCK nothing says that it is what it was.
                Ok((Some(standing), name))
                    if self.known.get(&name).is_some_and(|(_, entry)| entry.is_of(Some(standing))) =>
                {
                    self.report.unchanged += 1;
                }
                Ok((_, name)) => due.push((name, path.clone())),
            }
        }
        due
    }

    /// Writes the entries of some databases in one transaction.
    fn write(&mut self, due: &[(String, PathBuf)], read: Vec<Result<Option<Summary>>>) -> Result<()> {
        let view = self.database.snapshot();
        let mut transaction = self.database.begin()?;
        for ((name, path), summary) in due.iter().zip(read) {
            match summary {
                Ok(None) => {}
                Ok(Some(summary))
                    if self.known.get(name).is_some_and(|(_, entry)| entry.is_as_new_as(&summary.entry)) =>
                {
                    self.report.unchanged += 1;
                }
                Ok(Some(summary)) => self.replace(&mut transaction, &view, name, &summary)?,
                Err(error) => self.report.failed.push(FleetFailure::new(path, &error)),
            }
        }
        transaction.commit(Durability::Sync)?;
        Ok(())
    }

    fn replace(
        &mut self,
        transaction: &mut Transaction<'_>,
        view: &Snapshot,
        name: &str,
        summary: &Summary,
    ) -> Result<()> {
        if let Some((fact, entry)) = self.known.get(name) {
            if entry.forgets != summary.entry.forgets {
                self.erase.insert(*fact);
            }
            retire(transaction, view, *fact, "the database was written to since")?;
            self.report.updated += 1;
        } else {
            self.report.added += 1;
        }
        if let (None, Some(space)) = (&self.space, &summary.space) {
            let space = space.clone().encoding(Encoding::F16);
            transaction.define_space(&space)?;
            self.space = Some(space);
        }
        let is_routed = is_same_space(self.space.as_ref(), summary.space.as_ref());
        if !is_routed && summary.space.is_some() {
            self.report.other_spaces += 1;
        }
        let parts: &[Part] = if is_routed { &summary.parts } else { &[] };
        summary.entry.write(transaction, parts)
    }

    /// Takes out the entries of databases that are not in the fleet.
    fn remove_others(&mut self, fleet: &Fleet) -> Result<()> {
        let is_gone = |path: &&PathBuf| matches!(standing_of(path), Err(Error::NotFound { .. }));
        let in_fleet: BTreeSet<String> =
            fleet.paths.iter().filter(|path| !is_gone(path)).filter_map(|path| paths::name_of(path).ok()).collect();
        let others: Vec<ItemId> =
            self.known.values().filter(|(_, entry)| !in_fleet.contains(&entry.path)).map(|(fact, _)| *fact).collect();
        if others.is_empty() {
            return Ok(());
        }
        self.report.removed = others.len();
        let view = self.database.snapshot();
        let mut transaction = self.database.begin()?;
        for fact in others {
            retire(&mut transaction, &view, fact, "the database is no longer in the fleet")?;
            self.erase.insert(fact);
        }
        transaction.commit(Durability::Sync)?;
        Ok(())
    }

    /// Erases the facts and the themes of entries that must leave no trace, and the older ones of their databases.
    fn erase(&mut self) -> Result<()> {
        if self.erase.is_empty() {
            return Ok(());
        }
        let snapshot = self.database.snapshot();
        let mut names = BTreeSet::new();
        for fact in &self.erase {
            names.extend(entry::database_of(&snapshot, *fact)?);
        }
        let mut items = Vec::new();
        for id in (0..snapshot.len()).map(ItemId) {
            let attributes = snapshot.attributes(id)?;
            if attributes.active || attributes.redacted || attributes.kind.layer() != Layer::Recall {
                continue;
            }
            if entry::database_of(&snapshot, id)?.is_some_and(|name| names.contains(&name)) {
                items.extend(entry::all_themes_of(&snapshot, id)?);
                items.push(id);
            }
        }
        drop(snapshot);
        self.report.erased = items.len();
        self.database.forget(&items, &Forget::because("its database erased content, or left the fleet"))?;
        Ok(())
    }
}

/// Makes an entry and its themes inactive, and frees its key.
fn retire(transaction: &mut Transaction<'_>, view: &Snapshot, fact: ItemId, because: &str) -> Result<()> {
    for theme in entry::themes_of(view, fact)? {
        transaction.deactivate(theme, None, Some(because.to_owned()))?;
    }
    transaction.retire_with_key(fact, because.to_owned())
}

/// True if vectors of one space compare with those of the other.
fn is_same_space(router: Option<&Space>, database: Option<&Space>) -> bool {
    match (router, database) {
        (Some(a), Some(b)) => (&a.model, a.dim, a.metric) == (&b.model, b.dim, b.metric),
        _ => false,
    }
}
