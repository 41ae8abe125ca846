//! `holotype mcp`: a database as a server of the Model Context Protocol, for agents that speak it.
//!
//! ```text
//! client ── stdio (lines) or HTTP (http) ── rmcp: sessions and versions ── server ── tools ── holotype
//! ```
//!
//! | file | concept |
//! |---|---|
//! | [`place`] | the choice of the database, for hooks and commands too |
//! | `tools` | the eight tools: what a client is told, and what they do |
//! | `arguments`, `problem` | checked arguments; errors of two sentences |
//! | `reply`, `quoting` | answers in two forms within a limit; text of memory as quoted data |
//! | `memory`, `consent` | the open database; tokens for what cannot be undone |
//! | `background` | vectors and checkpoints while nothing else has to be done |
//! | `server`, `resources` | the protocol's view: tools, one prompt, resources |
//! | `lines`, `http` | its two transports |
//!
//! The database is shared: other servers, hooks and shells write to it at the same time.

mod arguments;
mod background;
mod consent;
mod http;
mod lines;
mod memory;
pub mod place;
mod problem;
mod quoting;
mod reply;
mod resources;
mod server;
mod tools;

pub use http::DEFAULT_ADDRESS;
pub use server::INSTRUCTIONS_BYTES;
pub use tools::LIST_BYTES;

use background::Background;
use consent::Consent;
use holotype::embed::HashingEmbedder;
use holotype::{Holotype, Options, Space};
use memory::Memory;
use place::{ChosenBy, Place, PlaceError, Surroundings};
use rmcp::service::{ServerInitializeError, ServiceExt as _};
use server::Server;
use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Characters of an answer without another limit.
pub const ANSWER_LIMIT: usize = 20_000;
/// Threads that run calls.
const CALLS_AT_ONCE: usize = 8;
/// The time for threads that still run a call when the server has ended.
const LEAVING: Duration = Duration::from_millis(200);

/// A server as the command line states it.
#[derive(Debug)]
pub struct Config {
    /// The database; [`place::choose`] finds one where there is none.
    pub db: Option<PathBuf>,
    /// Refuse what writes.
    pub read_only: bool,
    /// The address to serve HTTP at; without one, standard input and output are served.
    pub http: Option<String>,
    /// The file with the token that HTTP clients must send.
    pub token_file: Option<PathBuf>,
    /// The most characters of an answer.
    pub answer_limit: usize,
    /// The options to open the database with; it is always shared.
    pub options: Options,
}

/// The reason why a server could not begin.
#[derive(Debug)]
pub enum Error {
    /// No database can be chosen.
    Place(PlaceError),
    /// The database cannot be opened or created.
    Database {
        /// Its path.
        path: PathBuf,
        /// The error of the engine.
        error: Box<holotype::Error>,
    },
    /// The arguments do not go together.
    Usage {
        /// The fault.
        message: String,
        /// The remedy.
        hint: String,
    },
    /// A file cannot be read.
    File {
        /// Its path.
        path: PathBuf,
        /// The error of the system.
        error: io::Error,
    },
    /// The system refused something.
    Io {
        /// The action.
        what: &'static str,
        /// The error of the system.
        error: io::Error,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Place(error) => error.fmt(f),
            Error::Database { error, .. } => write!(f, "{error}"),
            Error::Usage { message, .. } => f.write_str(message),
            Error::File { path, error } => write!(f, "cannot read {}: {error}", path.display()),
            Error::Io { what, error } => write!(f, "cannot {what}: {error}"),
        }
    }
}

impl std::error::Error for Error {}

/// Serves until the input ends, or over HTTP until the process does. `say` tells a person what happens.
///
/// # Errors
/// [`Error`]; nothing was served then.
pub fn serve(config: Config, say: &(dyn Fn(&str) + Sync)) -> Result<(), Error> {
    let door = match (&config.http, &config.token_file) {
        (Some(address), token_file) => Some(http::Door::new(address, token_file.as_deref())?),
        (None, None) => None,
        (None, Some(_)) => {
            let message = "--token-file is for HTTP".to_owned();
            return Err(Error::Usage { message, hint: "give --http too".to_owned() });
        }
    };
    let place = place::choose(config.db.as_deref(), &Surroundings::from_env()).map_err(Error::Place)?;
    for folder in &place.passed_over {
        say(&format!("{} is passed over: it is another user's, or lies where it is cleaned up", folder.display()));
    }
    let io = |what| move |error| Error::Io { what, error };
    let consent = Consent::new().map_err(io("get random numbers"))?;
    let database = open(&place, &config)?;
    let episode = episode_name().map_err(io("get random numbers"))?;
    let (read_only, answer_limit) = (config.read_only, config.answer_limit);
    let built_in = built_in(&database, &config)
        .map_err(|error| Error::Database { path: place.path.clone(), error: Box::new(error) })?;
    let embeds = config.options.embedder.is_some() || built_in.is_some();
    let background =
        (!read_only).then(|| Background::start(database.clone(), embeds)).transpose().map_err(io("start a thread"))?;
    let memory = Memory { database: database.clone(), read_only, built_in, answer_limit, episode, consent };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(CALLS_AT_ONCE)
        .build()
        .map_err(io("begin"))?;
    let served = match door {
        Some(door) => runtime.block_on(http::serve(door, Server::new(memory), say)),
        None => runtime.block_on(serve_lines(Server::new(memory).in_order())),
    };
    runtime.shutdown_timeout(LEAVING);
    if let Some(background) = background {
        background.stop(LEAVING);
    }
    let closed = database.close().map_err(|error| Error::Database { path: place.path.clone(), error: Box::new(error) });
    served.and(closed)
}

/// Serves standard input and output to the end of input.
async fn serve_lines(server: Server) -> Result<(), Error> {
    let lines = lines::Lines::new(server.ending()).map_err(|error| Error::Io { what: "begin", error })?;
    match server.serve(lines).await {
        Ok(running) => {
            // It ends with its input; answers under way are written first.
            let _ = running.waiting().await;
            Ok(())
        }
        Err(ServerInitializeError::ConnectionClosed(_) | ServerInitializeError::Cancelled) => Ok(()),
        Err(error) => Err(Error::Io { what: "begin the session", error: io::Error::other(error.to_string()) }),
    }
}

/// Opens the database, or creates it with the space of its embedder.
fn open(place: &Place, config: &Config) -> Result<Holotype, Error> {
    let path = &place.path;
    let failed = |error| Error::Database { path: path.clone(), error: Box::new(error) };
    if config.read_only {
        return Holotype::open(path, Options { read_only: true, ..config.options.clone() }).map_err(failed);
    }
    if place.chosen_by == ChosenBy::User {
        make_folder(path.parent().unwrap_or(path))?;
    }
    let shared = Options::shared();
    let mut options =
        Options { exclusive: shared.exclusive, write_timeout: shared.write_timeout, ..config.options.clone() };
    if options.embedder.is_none() {
        let built_in = HashingEmbedder::default();
        options.space = Some(Space::new(built_in.name(), built_in.dim()));
    }
    Holotype::open_or_create(path, options).map_err(failed)
}

/// The built-in embedder, in its own space and where no other is given.
fn built_in(database: &Holotype, config: &Config) -> holotype::Result<Option<HashingEmbedder>> {
    if config.options.embedder.is_some() {
        return Ok(None);
    }
    let space = database.snapshot().space()?;
    Ok(space.and_then(|space| HashingEmbedder::from_name(&space.model).filter(|own| own.dim() == space.dim)))
}

/// Makes a folder for the user alone.
fn make_folder(folder: &Path) -> Result<(), Error> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder).map_err(|error| Error::File { path: folder.to_owned(), error })
}

/// The name of the episode of this server: the second it began, and a random number.
fn episode_name() -> io::Result<String> {
    let mut random = [0; 4];
    getrandom::fill(&mut random).map_err(io::Error::other)?;
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let micros = i64::try_from(since.as_secs()).unwrap_or(0).saturating_mul(1_000_000);
    Ok(format!("mcp-{}-{:08x}", holotype::time::format(micros), u32::from_le_bytes(random)))
}
