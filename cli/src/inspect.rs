//! `holotype inspect`: a page that shows why an agent believed something (`holotype_inspect`).
//!
//! The database is opened to read, beside its writers, and every request reads the newest commit. `--allow-write` opens
//! it for writing, and the page may mark and retract.

use crate::database;
use crate::failure::{Failure, Problem, Status};
use holotype_inspect::{Error, Inspector};
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::process::Command;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The database
    db: PathBuf,
    /// The port on this machine; 0 takes a free one
    #[arg(long, value_name = "N", default_value_t = 0)]
    port: u16,
    /// Open the page in the browser of this desktop
    #[arg(long)]
    open: bool,
    /// Take the token of the page's address from the first line of this file instead of a random one
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// Let the page mark and retract items and keep receipts; without it the page only reads
    #[arg(long)]
    allow_write: bool,
}

pub(crate) fn run(args: &Args) -> Result<Status, Failure> {
    let database = if args.allow_write { database::to_write(&args.db)? } else { database::to_read(&args.db)? };
    let token = args.token_file.as_deref().map(std::fs::read_to_string).transpose()?;
    let token = token.map(|text| text.lines().next().unwrap_or_default().trim().to_owned());
    if token.as_deref().is_some_and(|token| token.len() < 16) {
        let hint = "put at least 16 characters on its first line";
        return Err(Problem::input("usage", "the token of --token-file is too short").hint(hint).into());
    }
    let inspector = Inspector::new(database, args.port, token).map_err(failed)?;
    let inspector = if args.allow_write { inspector.allow_write() } else { inspector };
    let url = inspector.url();
    writeln!(io::stdout().lock(), "{url}")?;
    let _ = writeln!(io::stderr(), "open this address in a browser of this machine; Ctrl-C ends the inspector");
    if args.open {
        open(&url);
    }
    inspector.run().map_err(failed)?;
    Ok(Status::Done)
}

/// The failure of an error of the inspector.
pub(crate) fn failed(error: Error) -> Failure {
    match error {
        Error::Database(error) => error.into(),
        Error::Io(error) => error.into(),
        Error::Invalid(message) => Problem::input("usage", message).into(),
    }
}

/// Opens an address in the desktop's browser. Without one the address is on the screen.
fn open(url: &str) {
    let program = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
    if let Err(error) = Command::new(program).arg(url).spawn() {
        let _ = writeln!(io::stderr(), "note: no browser was opened: {program}: {error}");
    }
}
