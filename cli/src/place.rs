//! The database of a command that names none, by the rule of the MCP server (`holotype_mcp::place`), and the user's
//! folders.

pub(crate) use holotype_mcp::place::FOLDER;
use holotype_mcp::place::{Surroundings, choose};
use std::env;
use std::path::{Path, PathBuf};

/// The database for a working folder; `None` if there is no `.holotype` around and the user has no data directory, or
/// if it would lie in a folder of a package manager or a cache.
pub(crate) fn database(given: Option<&Path>, folder: &Path) -> Option<PathBuf> {
    let surroundings = Surroundings { folder: folder.to_owned(), ..Surroundings::from_env() };
    choose(given, &surroundings).ok().map(|place| place.path)
}

/// The folder of the user's own memory.
pub(crate) fn user_memory() -> Option<PathBuf> {
    Surroundings::from_env().user_data.map(|path| path.join("holotype"))
}

/// The user's home directory.
pub(crate) fn home() -> Option<PathBuf> {
    env::var_os("HOME").or_else(|| env::var_os("USERPROFILE")).map(PathBuf::from).filter(|path| path.is_absolute())
}
