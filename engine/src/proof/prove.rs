//! Creating proofs: the records of an item and its evidence, each with its path.

use super::{Growth, Proof, ProvenContent, ProvenRecord, SignerKey, TreeHead, VerifierKey};
use crate::model::item::ItemId;
use crate::model::plural::counted;
use crate::model::pointer::hex;
use crate::read::snapshot::Snapshot;
use crate::records::record::{FieldValue, PointerRecord, PointerTarget, Record};
use crate::records::tables;
use crate::records::tables::number_at;
use crate::state::history::Subject;
use crate::state::record_tree::Tree;
use crate::{Error, Result};
use holotype_storage::codec;
use holotype_storage::log::Lsn;
use holotype_storage::proof::tree::{consistency, inclusion, root};
use std::collections::BTreeSet;

impl Snapshot {
    /// The default name of a key for this database: `holotype/` and the database's id.
    #[must_use]
    pub fn origin(&self) -> String {
        format!("holotype/{}", hex(&self.core.log.database()))
    }

    /// The size and root of the tree at this snapshot, with the name of the key as origin.
    ///
    /// # Errors
    /// When the log or the catalog cannot be read.
    pub fn tree_head(&self, key: &VerifierKey) -> Result<TreeHead> {
        let mut tree = self.tree()?;
        let size = self.tree_size()?;
        Ok(TreeHead { origin: key.name().to_owned(), size, root: root(&mut tree, size)? })
    }

    /// The signed checkpoint of this snapshot.
    ///
    /// # Errors
    /// As [`Snapshot::tree_head`].
    pub fn signed_checkpoint(&self, key: &SignerKey) -> Result<String> {
        self.tree_head(key.verifier())?.sign(key).map_err(|error| Error::Proof { what: error.to_string() })
    }

    /// Proves an item: its record, the records of its pointers, and their targets.
    ///
    /// # Errors
    /// [`Error::Missing`]; when the log or the catalog cannot be read.
    pub fn prove(&self, item: ItemId, key: &SignerKey) -> Result<Proof> {
        let mut required = RequiredRecords { snapshot: self, places: Vec::new(), seen: BTreeSet::new() };
        required.item(item)?;
        let size = self.tree_size()?;
        let mut tree = self.tree()?;
        let head = TreeHead { origin: key.verifier().name().to_owned(), size, root: root(&mut tree, size)? };
        let checkpoint = head.sign(key).map_err(|error| Error::Proof { what: error.to_string() })?;
        let mut records = Vec::with_capacity(required.places.len());
        for (lsn, of) in required.places {
            let stored = self.core.log.read_stored(lsn)?;
            let content = match stored.content {
                Some((salt, payload)) => ProvenContent::Stored { header: stored.header, salt, payload },
                None => ProvenContent::Redacted { hash: stored.hash, item: of.0 },
            };
            let index = self.core.log.records_before(lsn)?;
            records.push(ProvenRecord { index, content, path: inclusion(&mut tree, index, size)? });
        }
        Ok(Proof { checkpoint, item: item.0, records })
    }

    /// Proves that this snapshot's log continues the log of a signed checkpoint.
    ///
    /// # Errors
    /// [`Error::Proof`] for a checkpoint that the key did not sign, or of a log longer than this one; when the log or
    /// the catalog cannot be read.
    pub fn prove_growth(&self, old: &str, key: &SignerKey) -> Result<Growth> {
        let before = TreeHead::open(old, key.verifier()).map_err(|error| Error::Proof { what: error.to_string() })?;
        let size = self.tree_size()?;
        if before.size > size {
            let signed = counted(before.size, "records");
            let what = format!("the checkpoint is of {signed}, and this log has {size}: the log was rolled back");
            return Err(Error::Proof { what });
        }
        let mut tree = self.tree()?;
        if root(&mut tree, before.size)? != before.root {
            let what = format!(
                "the checkpoint is of {}, and this log began with other ones: the log was forked",
                counted(before.size, "records")
            );
            return Err(Error::Proof { what });
        }
        let path = consistency(&mut tree, before.size, size)?;
        Ok(Growth { old: old.to_owned(), new: self.signed_checkpoint(key)?, path })
    }

    fn tree(&self) -> Result<Tree<'_>> {
        Tree::open(&self.core.log, &self.state, &self.core.tree_tail)
    }

    /// The number of records up to the end of this snapshot's commit.
    fn tree_size(&self) -> Result<u64> {
        match self.state.head.commit.0 {
            0 => Ok(0),
            _ => Ok(self.core.log.records_before(self.state.head.position)?),
        }
    }
}

/// The positions of the records that a proof needs, each once, with their items.
struct RequiredRecords<'a> {
    snapshot: &'a Snapshot,
    places: Vec<(Lsn, ItemId)>,
    seen: BTreeSet<u64>,
}

impl RequiredRecords<'_> {
    /// Adds an item, all pointers that it ever had, and their targets.
    fn item(&mut self, item: ItemId) -> Result<()> {
        let state = &self.snapshot.state;
        let mut pointers = self.content(item)?;
        for commit in self.changes(item)? {
            pointers.extend(self.added_pointers(item, commit)?);
        }
        if state.pointers(item)?.iter().any(|pointer| !pointers.contains(pointer)) {
            pointers.extend(self.added_pointers(item, state.attributes(item)?.commit)?);
        }
        for pointer in pointers {
            match pointer.target {
                PointerTarget::Item(target) => {
                    self.content(ItemId(target))?;
                }
                PointerTarget::Page(page) => self.page(item, page)?,
            }
        }
        Ok(())
    }

    /// Adds an item's record and the chunks of its long fields. Returns the pointers that it states.
    fn content(&mut self, item: ItemId) -> Result<Vec<PointerRecord>> {
        let state = &self.snapshot.state;
        let lsn = Lsn(state.attributes(item)?.lsn);
        self.add(lsn, item);
        let record = self.snapshot.core.log.payload(lsn)?;
        if record.redacted {
            return Ok(Vec::new());
        }
        let record = Record::decode(record.kind, &record.bytes)?;
        if let Record::Replacement(restated) = &record {
            self.add(Lsn(restated.lsn), item);
        }
        let Record::Item(record) = record.unwrap_carrier()? else {
            return Err(Error::Corrupt { what: format!("log position {lsn} does not hold item {item}") });
        };
        if record.fields.iter().any(|field| matches!(field.value, FieldValue::Chunks { .. })) {
            for (_, value) in state.scan(tables::CHUNK, &tables::numbers([item.0]))? {
                self.add(Lsn(codec::decode(&value)?), item);
            }
        }
        Ok(record.from.clone())
    }

    /// The commits after the item's own that changed it.
    fn changes(&self, item: ItemId) -> Result<Vec<u64>> {
        let mut prefix = vec![Subject::Item as u8];
        prefix.extend_from_slice(&item.0.to_be_bytes());
        let rows = self.snapshot.state.scan(tables::CHANGE_INDEX, &prefix)?;
        let until = |key: &[u8]| {
            let (high, low) = (number_at(key, 5)?, number_at(key, 9)?);
            Some(u64::from(high) << 32 | u64::from(low))
        };
        Ok(rows.iter().filter_map(|(key, _)| until(key)).collect())
    }

    /// Adds the records of pointers that a later commit added to the item, and returns the pointers.
    fn added_pointers(&mut self, item: ItemId, commit: u64) -> Result<Vec<PointerRecord>> {
        let mut added = Vec::new();
        for record in self.transaction(commit)? {
            if let Some(Record::Pointers(pointers)) = Record::effective(&record)?.map(|effective| effective.record)
                && pointers.item == item.0
            {
                self.add_with_replacement(&record, item);
                added.extend(pointers.pointers);
            }
        }
        Ok(added)
    }

    /// Adds the record that closed a page.
    fn page(&mut self, item: ItemId, page: u32) -> Result<()> {
        let commit = self.snapshot.state.commit_when(|row| row.totals.pages > page)?;
        for record in self.transaction(commit)? {
            if let Some(Record::Page(closed)) = Record::effective(&record)?.map(|effective| effective.record)
                && closed.number == page
            {
                self.add_with_replacement(&record, item);
                return Ok(());
            }
        }
        Err(Error::Corrupt { what: format!("commit {commit} has no record of page {page}") })
    }

    fn transaction(&self, commit: u64) -> Result<Vec<holotype_storage::Record>> {
        let from = self.snapshot.state.commit_row(commit)?.from;
        if let Some(floor) = self.snapshot.core.log.floor().filter(|floor| commit <= floor.head.commit.0) {
            let what = format!("commit {commit}, which a proof needs,");
            return Err(Error::BeforeHistory { what, since: floor.head.commit.0 });
        }
        let from = if commit <= 1 { Lsn(0) } else { Lsn(from) };
        match self.snapshot.core.log.scan(from)?.next() {
            Some(transaction) => Ok(transaction?.records),
            None => Err(Error::Corrupt { what: format!("the log ends before commit {commit}") }),
        }
    }

    /// Adds a record and its replacement, if it has one.
    fn add_with_replacement(&mut self, record: &holotype_storage::Record, of: ItemId) {
        if let Some(instead) = record.replacement {
            self.add(instead, of);
        }
        self.add(record.lsn, of);
    }

    fn add(&mut self, lsn: Lsn, of: ItemId) {
        if self.seen.insert(lsn.0) {
            self.places.push((lsn, of));
        }
    }
}
