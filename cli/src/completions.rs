//! `holotype completions`: a script that lets a shell complete commands and options.

use crate::failure::{Failure, Status};
use clap_complete::Shell;
use std::io::{self, Write as _};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The shell
    shell: Shell,
}

pub(crate) fn run(args: &Args, mut command: clap::Command) -> Result<Status, Failure> {
    // Into memory first: the generator panics where it cannot write.
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut command, "holotype", &mut script);
    io::stdout().lock().write_all(&script)?;
    Ok(Status::Done)
}
