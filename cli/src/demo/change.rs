//! A copy of a database in which one byte of the log is changed; it goes when it is dropped.

use super::story;
use crate::failure::{Failure, Problem, Status};
use holotype::answer::Output;
use holotype::query::Params;
use holotype::{Fault, Holotype, Options, Verdict};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

pub(super) struct ChangedCopy {
    path: PathBuf,
    changed_at: u64,
}

impl ChangedCopy {
    /// A copy beside the database, with `from` turned into `to` where it stands in the log: once.
    pub(super) fn of(database: &Path, from: &str, to: &str) -> Result<ChangedCopy, Failure> {
        let mut name = database.as_os_str().to_owned();
        name.push(".changed");
        let path = PathBuf::from(name);
        let failed = |error: io::Error| Problem::io(&path, "copy the database to", &error);
        fs::create_dir(&path).map_err(failed)?;
        let mut copy = ChangedCopy { path: path.clone(), changed_at: 0 };
        copy_dir(database, &path).map_err(failed)?;
        copy.changed_at =
            change(&path.join("log"), from.as_bytes(), to.as_bytes()).map_err(failed)?.ok_or_else(|| {
                Problem::new(Status::Found, "demo", format!("{from:?} does not stand exactly once in the log"))
            })?;
        Ok(copy)
    }

    /// True if the fault names a place in the log page that was changed, at or before the changed byte.
    pub(super) fn is_where_it_was_changed(&self, fault: &Fault) -> bool {
        let page = self.changed_at / u64::from(Options::default().page_size);
        fault.page == Some(page) && fault.offset.is_some_and(|offset| offset <= self.changed_at)
    }

    /// A text about the copy, with its files named from the copy on.
    pub(super) fn within(&self, text: &str) -> String {
        text.replace(&format!("{}/", self.path.display()), "")
    }

    /// The faults that verifying the copy finds.
    pub(super) fn faults(&self) -> Result<Vec<Fault>, Failure> {
        let database = Holotype::open(&self.path, Options::read_only())?;
        Ok(database.verify(&mut |_, _| {})?.faults)
    }

    /// True if the copy, asked the story's question, shows the words as evidence that holds.
    pub(super) fn shows(&self, words: &str) -> Result<bool, Failure> {
        let database = Holotype::open(&self.path, Options::read_only())?;
        let Ok(outputs) = database.query(&story::statement(), &Params::new()) else { return Ok(false) };
        let rows = outputs.iter().filter_map(|output| match output {
            Output::Answer(answer) => Some(&answer.rows),
            _ => None,
        });
        let mut citations = rows.flatten().flat_map(|row| &row.citations);
        Ok(citations.any(|citation| {
            citation.verdict == Verdict::Ok && citation.text.as_deref().is_some_and(|text| text.contains(words))
        }))
    }
}

impl Drop for ChangedCopy {
    fn drop(&mut self) {
        // A copy that cannot be removed does no harm.
        let _ = fs::remove_dir_all(&self.path);
    }
}

fn copy_dir(from: &Path, to: &Path) -> io::Result<()> {
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            fs::create_dir(&target)?;
            copy_dir(&entry.path(), &target)?;
        } else {
            fs::copy(entry.path(), &target)?;
        }
    }
    Ok(())
}

/// Changes the one place in the files of a directory where `from` stands; gives its first changed byte.
fn change(dir: &Path, from: &[u8], to: &[u8]) -> io::Result<Option<u64>> {
    let mut places = Vec::new();
    for entry in fs::read_dir(dir)? {
        let path = entry?.path();
        let bytes = fs::read(&path)?;
        let found = bytes.windows(from.len()).enumerate().filter(|(_, window)| *window == from);
        places.extend(found.map(|(at, _)| (path.clone(), at)).collect::<Vec<_>>());
    }
    let [(path, at)] = places.as_slice() else { return Ok(None) };
    let mut bytes = fs::read(path)?;
    let place = bytes.get_mut(*at..at + from.len()).unwrap_or_default();
    place.copy_from_slice(to);
    fs::write(path, bytes)?;
    let differs = from.iter().zip(to).position(|(a, b)| a != b).unwrap_or(0);
    Ok(Some((at + differs) as u64))
}
