//! `holotype mcp`: the database as a server of the Model Context Protocol. The server is the crate `holotype-mcp`.

use crate::database;
use crate::failure::{Failure, Problem, Status};
use holotype_mcp::{ANSWER_LIMIT, Config, DEFAULT_ADDRESS, Error};
use std::path::PathBuf;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The database [default: HOLOTYPE_DB, else .holotype/memory.holo upwards, else the one of the user]
    #[arg(long, value_name = "PATH")]
    db: Option<PathBuf>,
    /// Refuse everything that writes
    #[arg(long)]
    read_only: bool,
    /// Serve HTTP at this address instead of stdin and stdout
    #[arg(long, value_name = "ADDR:PORT", num_args = 0..=1, default_missing_value = DEFAULT_ADDRESS)]
    http: Option<String>,
    /// The file with the secret that HTTP clients must send; needed for addresses that others can reach
    #[arg(long, value_name = "FILE", requires = "http")]
    token_file: Option<PathBuf>,
    /// The most characters of an answer, from 1000 on
    #[arg(
        long,
        value_name = "N",
        default_value_t = ANSWER_LIMIT as u64,
        value_parser = clap::value_parser!(u64).range(1_000..=10_000_000)
    )]
    answer_limit: u64,
}

pub(crate) fn run(args: &Args) -> Result<Status, Failure> {
    let config = Config {
        db: args.db.clone(),
        read_only: args.read_only,
        http: args.http.clone(),
        token_file: args.token_file.clone(),
        answer_limit: usize::try_from(args.answer_limit).unwrap_or(ANSWER_LIMIT),
        options: database::options(),
    };
    holotype_mcp::serve(config, &database::note).map_err(problem)?;
    Ok(Status::Done)
}

fn problem(error: Error) -> Problem {
    match error {
        Error::Database { path, error } => database::about(&path, *error),
        Error::Usage { message, hint } => Problem::input("usage", message).hint(hint),
        Error::File { path, error } => Problem::io(&path, "read", &error),
        error @ Error::Place(_) => Problem::input("place", error.to_string()),
        error @ Error::Io { .. } => Problem::new(Status::Io, "io", error.to_string()),
    }
}
