//! `holotype verify`: reads everything and reports each fault with its file, page and byte offset.
//!
//! With `--head`, it also looks for a hash that was kept elsewhere: a log that does not hold it was changed or rolled
//! back, however sound it looks now, and the verdict says so.

use crate::failure::{Failure, Problem, Status};
use crate::render::text::printable;
use crate::render::{self, Format};
use crate::screen::{Ink, Screen};
use crate::{database, screen};
use holotype::plural::counted;
use holotype::{Fault, KnownHead, VerifyOptions, VerifyReport, hex};
use serde_json::{Value, json};
use std::io;
use std::path::PathBuf;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The database
    db: PathBuf,
    /// Check that the log still holds this hash, an earlier output of `holotype head`; or COMMIT:HASH
    #[arg(long, value_name = "HASH")]
    head: Option<String>,
    /// Read at most this many MiB a second, to leave the disk to others
    #[arg(long, value_name = "N")]
    mib_per_second: Option<u64>,
}

pub(crate) fn run(args: &Args, format: Format) -> Result<Status, Failure> {
    let head = args.head.as_deref().map(checked_head).transpose()?;
    let database = database::to_read(&args.db)?;
    let bar = screen::progress("verifying", 1, false);
    let bytes_per_second = args.mib_per_second.map(|rate| rate.saturating_mul(1 << 20));
    let options = VerifyOptions { bytes_per_second, cancel: None };
    let report = database.verify_with(&options, &mut |done, total| {
        bar.set_length(total);
        bar.set_position(done);
    });
    bar.finish_and_clear();
    let report = report?;
    let known = head.map(|(commit, hash)| database.find_head(hash, commit)).transpose()?;
    if let Err(error) = database.note_verified(&report) {
        database::note(&format!("the time of this verification could not be stored: {error}"));
    }

    let screen = Screen::stdout();
    let text = text_of(&report, known, &screen);
    render::write_painted(&mut io::stdout().lock(), &json_of(&report, known), &text, format)?;
    Ok(if report.is_clean() && matches!(known, None | Some(KnownHead::At(_))) { Status::Done } else { Status::Found })
}

/// The hash, if it is one.
fn checked_head(given: &str) -> Result<(Option<u64>, &str), Problem> {
    let (commit, hash) = match given.split_once(':') {
        Some((commit, hash)) => (commit.parse().ok(), hash),
        None => (None, given),
    };
    let is_hash = hash.len() == 64 && hash.bytes().all(|digit| digit.is_ascii_hexdigit());
    if is_hash && commit.is_some() == given.contains(':') {
        return Ok((commit, hash));
    }
    let problem =
        Problem::input("usage", format!("--head {given:?} is neither a hash of 64 hex digits nor COMMIT:HASH"));
    Err(problem.hint("`holotype head DB` prints the one to keep"))
}

fn text_of(report: &VerifyReport, known: Option<KnownHead>, screen: &Screen) -> String {
    let mut lines = Vec::new();
    for fault in &report.faults {
        lines.push(screen.paint(Ink::Bad, &fault.to_string()));
    }
    let checked: Vec<String> = report.checked.iter().map(|(what, count)| counted(*count, what)).collect();
    lines.push(printable(&format!("checked: {}", checked.join(", "))));
    lines.extend(report.not_checked.iter().map(|what| screen.paint(Ink::Warn, &format!("not checked: {what}"))));
    let ink = if report.is_clean() { Ink::Good } else { Ink::Bad };
    match known {
        None => lines.push(screen.paint(ink, &report.verdict())),
        Some(KnownHead::At(_)) => {
            lines.push("the head given is part of this log's past".to_owned());
            lines.push(screen.paint(ink, &report.verdict()));
        }
        Some(lost) => {
            let why = match lost {
                KnownHead::RolledBack => "it ends before that commit, so it was rolled back",
                KnownHead::Forked => "that commit has another hash, so it was changed or is a fork",
                KnownHead::At(_) | KnownHead::Unknown => "it was changed or rolled back, or is another log",
            };
            if !report.is_clean() {
                lines.push(screen.paint(Ink::Bad, &report.verdict()));
            }
            lines.push(screen.paint(Ink::Bad, &format!("the head given is not in this log: {why}")));
        }
    }
    lines.join("\n")
}

fn json_of(report: &VerifyReport, known: Option<KnownHead>) -> Value {
    let fault =
        |fault: &Fault| json!({"file": fault.file, "page": fault.page, "offset": fault.offset, "what": fault.what});
    let checked: serde_json::Map<String, Value> =
        report.checked.iter().map(|(what, count)| (what.clone(), (*count).into())).collect();
    let head = &report.head;
    json!({
        "clean": report.is_clean(),
        "faults": report.faults.iter().map(fault).collect::<Vec<_>>(),
        "checked": checked,
        "not_checked": report.not_checked,
        "head": {"position": head.position.0, "commit": head.commit.0, "hash": hex(&head.hash)},
        "head_known": known.map(|known| matches!(known, KnownHead::At(_))),
        "head_lost": known.and_then(name_of_loss),
    })
}

/// Why a head is not known, for programs.
fn name_of_loss(known: KnownHead) -> Option<&'static str> {
    match known {
        KnownHead::At(_) => None,
        KnownHead::RolledBack => Some("rolled-back"),
        KnownHead::Forked => Some("forked"),
        KnownHead::Unknown => Some("unknown"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_is_64_hex_digits() {
        assert!(checked_head(&"0f".repeat(32)).is_ok());
        assert!(checked_head(&"0F".repeat(32)).is_ok());
        let (commit, hash) = (7, "0f".repeat(32));
        assert_eq!(checked_head(&format!("{commit}:{hash}")).ok(), Some((Some(commit), hash.as_str())));
        assert!(checked_head(&format!("x:{hash}")).is_err());
        for wrong in ["", "0f", &"0g".repeat(32), &"+f".repeat(32), &"é".repeat(32)] {
            assert!(checked_head(wrong).is_err(), "{wrong}");
        }
    }
}
