//! Verifying: every checksum, hash, pointer and derived row, against the log.
//!
//! In this order: the log (framing, CRCs, record hashes, Merkle roots, chain, commits), the items (each record read and
//! decoded where the columns say it stands), the pointers (each span read and hashed again) and pages, the catalog's rows
//! and the derived segments' checksums. It goes on after a fault, and says what it did not check.

use crate::Result;
use crate::database::Holotype;
use crate::item::ItemId;
use crate::provenance::{Verdict, hex};
use crate::record::Record;
use crate::snapshot::{Snapshot, is_damage};
use crate::tables::{self, PageRow};
use holotype_storage::log::Head;
use holotype_storage::{Damage, codec};

/// One thing that is not as it was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The file, or the part of the database where no one file is to blame.
    pub file: String,
    /// The log page in the file, from 0.
    pub page: Option<u64>,
    /// The byte in the file.
    pub offset: Option<u64>,
    /// What is wrong.
    pub what: String,
}

impl From<&Damage> for Fault {
    fn from(damage: &Damage) -> Self {
        Fault {
            file: damage.file.display().to_string(),
            page: Some(damage.page),
            offset: Some(damage.offset),
            what: damage.what.clone(),
        }
    }
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.file)?;
        if let Some(page) = self.page {
            write!(f, ": log page {page}")?;
        }
        if let Some(offset) = self.offset {
            write!(f, ", byte offset {offset}")?;
        }
        write!(f, ": {}", self.what)
    }
}

/// What a verification did and found.
#[derive(Debug, Clone, Default)]
pub struct VerifyReport {
    /// What was checked, with how many of it.
    pub checked: Vec<(String, u64)>,
    /// What is wrong.
    pub faults: Vec<Fault>,
    /// What was not checked, and why.
    pub not_checked: Vec<String>,
    /// The head that was verified up to.
    pub head: Head,
}

impl VerifyReport {
    /// Whether nothing is wrong.
    pub fn is_clean(&self) -> bool {
        self.faults.is_empty()
    }
}

impl Holotype {
    /// Checks everything that can be checked. `progress` is told bytes of the log done and in all.
    ///
    /// # Errors
    /// Only when checking itself is impossible (the disk fails); what is wrong with the data is in the report.
    pub fn verify(&self, progress: &mut dyn FnMut(u64, u64)) -> Result<VerifyReport> {
        verify_all(&self.snapshot(), progress)
    }

    /// Whether a head kept outside is part of this database's history: some transaction left the log with that hash.
    pub fn contains_head(&self, hash: &str) -> Result<bool> {
        let wanted = hash.to_ascii_lowercase();
        if hex(&self.head().hash) == wanted {
            return Ok(true);
        }
        for transaction in self.inner.log.scan(holotype_storage::log::Lsn(0))? {
            if hex(&transaction?.head.hash) == wanted {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// Checks everything.
pub(crate) fn verify_all(snapshot: &Snapshot, progress: &mut dyn FnMut(u64, u64)) -> Result<VerifyReport> {
    let mut report = VerifyReport { head: snapshot.state.head, ..VerifyReport::default() };
    verify_log(snapshot, progress, &mut report)?;
    verify_items(snapshot, &mut report)?;
    verify_pages(snapshot, &mut report)?;
    verify_catalog(snapshot, &mut report);
    verify_segments(snapshot, &mut report);
    let rollback = "whether the log was rolled back to an older state: compare `holotype head` with one kept elsewhere";
    report.not_checked.push(rollback.to_owned());
    Ok(report)
}

/// Checks the log itself.
pub(crate) fn verify_log(
    snapshot: &Snapshot,
    progress: &mut dyn FnMut(u64, u64),
    report: &mut VerifyReport,
) -> Result<()> {
    let log = snapshot.inner.log.verify(progress)?;
    let counts =
        [("log bytes", log.bytes), ("log pages", log.pages), ("records", log.records), ("transactions", log.commits)];
    report.checked.extend(counts.map(|(name, count)| (name.to_owned(), count)));
    if log.redacted > 0 {
        report.checked.push(("erased records".to_owned(), log.redacted));
    }
    report.faults.extend(log.faults.iter().map(Fault::from));
    report.not_checked.extend(log.not_checked);
    Ok(())
}

/// Checks that every item's record stands where the columns say, and every pointer against the bytes.
fn verify_items(snapshot: &Snapshot, report: &mut VerifyReport) -> Result<()> {
    let (mut pointers, mut redacted) = (0, 0);
    for id in (0..snapshot.len()).map(ItemId) {
        match snapshot.content(id) {
            Ok(content) if content.record.id == id.0 => {
                redacted += u64::from(snapshot.state.attributes(id)?.redacted);
            }
            Ok(_) => {
                report.faults.push(in_catalog(format!("the columns lead from item {id} to another item's record")));
            }
            Err(error) if is_damage(&error) => {
                report.faults.push(in_catalog(format!("item {id} cannot be read: {error}")));
            }
            Err(error) => return Err(error),
        }
        for citation in snapshot.citations(id)? {
            pointers += 1;
            if !matches!(citation.verdict, Verdict::Ok | Verdict::Redacted) {
                let place = if citation.field.is_empty() {
                    format!("page {}", citation.target)
                } else {
                    format!("{}.{}[{}..{}]", citation.target, citation.field, citation.start, citation.end)
                };
                report.faults.push(in_catalog(format!("item {id} cites {place}: {}", citation.verdict)));
            }
        }
    }
    report.checked.push(("items".to_owned(), u64::from(snapshot.len())));
    report.checked.push(("pointers".to_owned(), pointers));
    if redacted > 0 {
        report.checked.push(("forgotten items".to_owned(), redacted));
    }
    Ok(())
}

fn verify_pages(snapshot: &Snapshot, report: &mut VerifyReport) -> Result<()> {
    let mut count = 0;
    for (_, value) in snapshot.state.scan(tables::PAGE, &[])? {
        let page: PageRow = codec::decode(&value)?;
        count += 1;
        if snapshot.state.any_redacted(&page.traces)? {
            if page.hash != crate::forget::NO_HASH {
                report.faults.push(in_catalog(format!("page {} holds what was forgotten, and its hash", page.key)));
            }
            continue;
        }
        match snapshot.hash_page(&page.traces) {
            Ok(hash) if hash == page.hash => {}
            Ok(_) => report
                .faults
                .push(in_catalog(format!("page {} does not hash to what it did when it was closed", page.key))),
            Err(error) if is_damage(&error) => report.faults.push(in_catalog(format!("page {}: {error}", page.key))),
            Err(error) => return Err(error),
        }
    }
    report.checked.push(("memory pages".to_owned(), count));
    Ok(())
}

/// Checks the catalog's rows against their checksums.
pub(crate) fn verify_catalog(snapshot: &Snapshot, report: &mut VerifyReport) {
    let Some(catalog) = snapshot.state.rows.base() else {
        report.not_checked.push("the catalog: the database was opened without one".to_owned());
        return;
    };
    match catalog.verify(&mut |_| Ok::<_, holotype_storage::Error>(())) {
        Ok(rows) => report.checked.push(("catalog rows".to_owned(), rows)),
        Err(error) => report.faults.push(derived(snapshot.inner.files.catalog().display().to_string(), &error)),
    }
}

/// Checks the checksums of every derived file.
pub(crate) fn verify_segments(snapshot: &Snapshot, report: &mut VerifyReport) {
    let mut count = 0;
    let mut check = |file: &holotype_storage::segment_file::SegmentFile| {
        count += 1;
        if let Err(error) = file.verify() {
            report.faults.push(derived(file.path().display().to_string(), &error));
        }
    };
    snapshot.state.attributes.files().for_each(&mut check);
    for layer in &snapshot.state.layers {
        if let Some(vectors) = &layer.vectors {
            vectors.segments.iter().for_each(|segment| check(segment.file()));
        }
        layer.words.segments.iter().for_each(|segment| check(segment.file()));
    }
    report.checked.push(("derived files".to_owned(), count));
}

/// Checks that each record of the log can be decoded; part of `verify log`.
pub(crate) fn verify_records(snapshot: &Snapshot, report: &mut VerifyReport) -> Result<()> {
    let mut count = 0;
    for transaction in snapshot.inner.log.scan(holotype_storage::log::Lsn(0))? {
        let Ok(transaction) = transaction else { break };
        for record in &transaction.records {
            count += 1;
            if let Err(error) = Record::told(record) {
                report.faults.push(in_catalog(format!("the record at log position {}: {error}", record.lsn)));
            }
        }
    }
    report.checked.push(("records decoded".to_owned(), count));
    Ok(())
}

fn in_catalog(what: String) -> Fault {
    Fault { file: "database".to_owned(), page: None, offset: None, what }
}

fn derived(file: String, error: &holotype_storage::Error) -> Fault {
    let what = format!("{error}; nothing is lost: `holotype rebuild` makes it again from the log");
    Fault { file, page: None, offset: None, what }
}
