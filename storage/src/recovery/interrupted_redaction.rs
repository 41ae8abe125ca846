//! A record that fails its checks because a crash interrupted its erasure.
//!
//! The log after it is searched for redaction records without a done record. A second scanner continues from the fault
//! with the erased forms that they name in place of unreadable records. If it reaches the redaction's commit, every
//! hash up to there matches, so the commit belongs to this log, and it was durable before anything was overwritten. If
//! it does not, the fault remains a fault. This costs time only after a crash during an erasure.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::Opening;
use crate::error::Result;
use crate::log::erasure::{Intent, Patches, Redacted};
use crate::log::fault::Fault;
use crate::log::scanner::{Entry, Scanner, Step};
use crate::log::segment::Segment;
use crate::log::writer::Geometry;
use crate::record::{self, ALIGNMENT, KIND_REDACT, KIND_REDACTED, Parsed, Place};

/// The redaction and done records found, by commit.
#[derive(Debug, Default)]
struct Redactions {
    intents: BTreeMap<u64, Patches>,
    done: BTreeSet<u64>,
}

impl Opening {
    /// True if a fault is a half erased record. Scanning then continues with its erased form.
    pub(super) fn patch(&mut self, fault: &Fault) -> Result<bool> {
        let found = candidates(&self.geometry, &self.segments, fault)?;
        let proven = match found.is_empty() {
            true => Patches::new(),
            false => prove(self.scanner.trial(all(&found)), found)?,
        };
        let explains = proven.contains_key(&fault.position);
        if explains {
            self.scanner.patch(proven);
        }
        Ok(explains)
    }
}

/// A scanner at `position`, if half erased records explain the fault in its page.
pub(super) fn enter(
    geometry: &Geometry,
    segments: &[Arc<Segment>],
    limit: u64,
    position: u64,
    fault: &Fault,
) -> Result<Option<Scanner>> {
    let found = candidates(geometry, segments, fault)?;
    if found.is_empty() {
        return Ok(None);
    }
    let at = |patches| Scanner::at_with(geometry.clone(), segments.to_vec(), limit, position, patches);
    let Entry::Ready(scanner) = at(all(&found))? else { return Ok(None) };
    let proven = prove(scanner.trial(Patches::new()), found)?;
    Ok(match at(proven)? {
        Entry::Ready(scanner) => Some(*scanner),
        Entry::Fault(_) | Entry::Mismatch(_) | Entry::Ended(_) => None,
    })
}

/// The erasures of unfinished redactions after a fault, by commit. Empty if none of them covers the fault.
fn candidates(geometry: &Geometry, segments: &[Arc<Segment>], fault: &Fault) -> Result<BTreeMap<u64, Patches>> {
    let mut found = Redactions::default();
    for segment in segments.iter().filter(|segment| segment.end() > fault.position) {
        search(geometry, segment, fault.position.max(segment.first), &mut found)?;
    }
    found.intents.retain(|commit, _| !found.done.contains(commit));
    let names_it = found.intents.values().any(|patches| patches.contains_key(&fault.position));
    Ok(if names_it { found.intents } else { BTreeMap::new() })
}

fn all(found: &BTreeMap<u64, Patches>) -> Patches {
    found.values().flatten().map(|(at, erasure)| (*at, erasure.clone())).collect()
}

/// The erasures of the redactions whose commits the trial scanner reaches.
fn prove(mut trial: Scanner, mut found: BTreeMap<u64, Patches>) -> Result<Patches> {
    let mut proven = Patches::new();
    loop {
        match trial.step()? {
            Step::Transaction { transaction, .. } => {
                proven.extend(found.remove(&transaction.number.0).unwrap_or_default());
            }
            Step::Fault(_) | Step::End | Step::Limit => break,
            _ => {}
        }
        if found.is_empty() {
            break;
        }
    }
    Ok(proven)
}

/// Notes every intact redaction and done record of a segment from a position on.
fn search(geometry: &Geometry, segment: &Segment, from: u64, found: &mut Redactions) -> Result<()> {
    let page = geometry.page;
    let end = segment.first + segment.len.min(segment.file_len);
    let mut start = page.start_of(from);
    let mut bytes = vec![0; page.len()];
    while start + page.bytes() <= end {
        segment.read(&mut bytes, start - segment.first)?;
        for at in (0..page.len()).step_by(ALIGNMENT) {
            let rest = bytes.get(at..).unwrap_or_default();
            if !matches!(rest.get(4), Some(&(KIND_REDACT | KIND_REDACTED))) {
                continue;
            }
            let Some(len) = record::claimed_len(rest) else { continue };
            let position = start + at as u64;
            if len <= rest.len() {
                note(geometry, segment, position, rest, found);
            } else if at == 0 && start + len as u64 <= end {
                let mut run = vec![0; len];
                segment.read(&mut run, position - segment.first)?;
                note(geometry, segment, position, &run, found);
            }
        }
        start += page.bytes();
    }
    Ok(())
}

fn note(geometry: &Geometry, segment: &Segment, position: u64, bytes: &[u8], found: &mut Redactions) {
    let place = Place { segment: segment.number, offset: position - segment.first };
    let Parsed::Record(view) = record::parse(bytes, &geometry.seed, place) else {
        return;
    };
    match view.kind {
        KIND_REDACT => {
            let Some(intent) = Intent::decode(view.payload) else { return };
            // A redaction names only records before it.
            let before = intent.erasures.into_iter().filter(|erasure| erasure.position < position);
            found.intents.entry(intent.commit).or_default().extend(before.map(|it| (it.position, it)));
        }
        _ => found.done.extend(Redacted::decode(view.payload).map(|done| done.commit)),
    }
}
