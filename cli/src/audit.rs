//! `holotype audit`: how good memory was. So far its information density, from a file of decisions ([`density`]).

use crate::density;
use crate::failure::{Failure, Status};
use crate::render::Format;
use std::path::PathBuf;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Information density (PlugMem D) of decisions with and without memory: one JSON object a line, with `base` and
    /// `mem`, the probabilities of the right action, and, where known, `tokens`, `budget` and `actions`; `-` is stdin
    #[arg(long, value_name = "FILE.jsonl")]
    density: PathBuf,
}

pub(crate) fn run(args: &Args, format: Format) -> Result<Status, Failure> {
    density::run(&args.density, format)
}
