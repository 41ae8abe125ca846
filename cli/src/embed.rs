//! `holotype embed`: the vectors of texts that were written without the model.

use crate::database;
use crate::failure::{Failure, Status};
use crate::interrupt;
use crate::render::{self, Format};
use holotype::EmbedReport;
use holotype::plural::counted;
use serde_json::json;
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::time::Duration;

/// Items between two looks at Ctrl-C.
const STEP: u64 = 64;
/// The time between two looks at the database.
const PAUSE: Duration = Duration::from_millis(500);

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The database
    db: PathBuf,
    /// The most items to fill
    #[arg(long, value_name = "N", conflicts_with = "follow")]
    limit: Option<u64>,
    /// Go on with what others write, until Ctrl-C
    #[arg(long)]
    follow: bool,
}

pub(crate) fn run(args: &Args, format: Format) -> Result<Status, Failure> {
    let database = database::to_write(&args.db)?;
    let _deferred = interrupt::defer(1);
    let mut left = args.limit.unwrap_or(u64::MAX);
    let mut said = false;
    loop {
        let mut total = EmbedReport::default();
        while left > 0 && !interrupt::asked() {
            let report = database.embed_pending(left.min(STEP))?;
            let done = report.embedded + report.without;
            total.embedded += report.embedded;
            total.without += report.without;
            total.pending = report.pending;
            left = left.saturating_sub(done);
            if done == 0 {
                break;
            }
        }
        if !said || total.embedded + total.without > 0 {
            tell(&total, format)?;
            said = true;
        }
        if !args.follow || interrupt::asked() {
            break;
        }
        std::thread::sleep(PAUSE);
    }
    database::close(database)?;
    Ok(Status::Done)
}

fn tell(total: &EmbedReport, format: Format) -> Result<(), Failure> {
    let EmbedReport { embedded, without, pending } = *total;
    let json = json!({"embedded": embedded, "without": without, "pending": pending});
    let without = if without == 0 { String::new() } else { format!(", {} without one", counted(without, "texts")) };
    let text = format!("{} made{without}, {pending} pending", counted(embedded, "vectors"));
    let mut out = io::stdout().lock();
    render::write_fact(&mut out, &json, &text, format)?;
    out.flush()?;
    Ok(())
}
