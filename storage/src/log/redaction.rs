//! Erasing records: a transaction names them, and once it is durable they are overwritten.
//!
//! See [`erasure`](super::erasure) for the records that name them, and `recovery` for the handling of a crash.

use std::collections::{BTreeMap, BTreeSet};

use super::draft::Prepared;
use super::erasure::{Erase, Erasure, Intent, Redaction};
use super::handle::Log;
use super::writer::Appended;
use crate::error::{Error, Result};
use crate::record::{self, FIRST_RESERVED_KIND, NewRecord, Place};

impl Log {
    /// Appends a transaction that names records to erase. [`Self::complete_redaction`] erases them. Records that were
    /// erased before are left unchanged.
    ///
    /// # Errors
    /// As [`Self::append`]; [`Error::NoRecord`] and [`Error::Damaged`] for a position with nothing to erase.
    pub fn append_redaction(
        &self,
        records: &[NewRecord],
        erase: &[Erase],
        time_us: i64,
    ) -> Result<(Appended, Redaction)> {
        let prepared = self.prepare(records)?;
        self.append_prepared_redaction(&prepared, erase, time_us)
    }

    /// As [`Self::append_redaction`], for a prepared transaction.
    ///
    /// # Errors
    /// As [`Self::append_redaction`].
    pub fn append_prepared_redaction(
        &self,
        prepared: &Prepared,
        erase: &[Erase],
        time_us: i64,
    ) -> Result<(Appended, Redaction)> {
        let mut seen = BTreeSet::new();
        let mut drafts = Vec::with_capacity(erase.len());
        for erase in erase {
            let record = self.read(erase.lsn)?;
            if record.is_redacted() || !seen.insert(erase.lsn) {
                continue;
            }
            if record.kind >= FIRST_RESERVED_KIND {
                return Err(Error::ReservedKind { kind: record.kind });
            }
            let erasure = Erasure {
                position: erase.lsn.0,
                payload_len: record.payload.len() as u32,
                kind: record.kind,
                replacement: 0,
                hash: record.hash,
            };
            drafts.push((erasure, erase.replacement));
        }
        let len = prepared.byte_len() + Intent::stored_len(drafts.len());
        if len as u64 > self.limits.max_transaction_bytes {
            let limit = self.limits.max_transaction_bytes;
            return Err(Error::TooLarge { what: "a transaction", len: len as u64, limit });
        }
        let mut writer = self.writer()?;
        let (appended, erasures) = writer.append_redaction(&self.group, &self.table, prepared, drafts, time_us)?;
        *self.head_guard() = writer.tip().public_head();
        let redaction = Redaction { commit: appended.commit, end: appended.end, erasures };
        Ok((appended, redaction))
    }

    /// Makes a redaction durable, erases the records that it names, and logs that it is done. The erased content cannot
    /// be read afterwards.
    ///
    /// # Errors
    /// [`Error::Poisoned`] after a failed write or sync, now or before: the next opening for writing then completes the
    /// redaction.
    pub fn complete_redaction(&self, redaction: &Redaction) -> Result<()> {
        self.sync_to(redaction.end)?;
        self.erase(&redaction.erasures)?;
        let mut writer = self.writer()?;
        writer.redacted(&self.group, &self.table, redaction.commit.0)?;
        drop(writer);
        self.sync_to(self.end())
    }

    /// Overwrites records with their erased form, and syncs.
    fn erase(&self, erasures: &[Erasure]) -> Result<()> {
        let _erasing = self.geometry.erasing.begin();
        let mut touched = BTreeMap::new();
        for erasure in erasures {
            // The record was in a segment that has been removed since.
            let Some(segment) = self.table.of(erasure.position) else { continue };
            let place = Place { segment: segment.number, offset: erasure.position - segment.first };
            let Erasure { kind, payload_len, hash, replacement, .. } = erasure;
            let bytes = record::redacted(*kind, *payload_len, hash, *replacement, &self.geometry.seed, place);
            let file = segment.file()?;
            let written = file.write_at(&bytes, place.offset).map_err(Error::io(&segment.path, "write"));
            written.map_err(|error| self.group.poison(&error))?;
            touched.insert(segment.number, (segment, file));
        }
        for (segment, file) in touched.values() {
            self.group.sync_file(file, &segment.path)?;
        }
        Ok(())
    }
}
