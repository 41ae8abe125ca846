//! The database of a command that names none.
//!
//! | in this order | the database |
//! |---|---|
//! | `--db` | as given |
//! | the variable `HOLOTYPE_DB` | as given |
//! | the nearest folder `.holotype` from the working folder upwards | `memory.holo` in it |
//! | the user's data directory | `holotype/memory.holo` in it |

use std::env;
use std::path::{Path, PathBuf};

/// The folder of a project's memory.
pub(crate) const FOLDER: &str = ".holotype";
/// The database in that folder.
pub(crate) const DATABASE: &str = "memory.holo";
/// The variable that names a database.
pub(crate) const VARIABLE: &str = "HOLOTYPE_DB";

/// The database for a working folder; `None` if there is no `.holotype` around and the user has no data directory.
pub(crate) fn database(given: Option<&Path>, folder: &Path) -> Option<PathBuf> {
    let named = |name: &str| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let of_project = || folder.ancestors().map(|above| above.join(FOLDER)).find(|path| path.is_dir());
    given
        .map(Path::to_owned)
        .or_else(|| named(VARIABLE))
        .or_else(|| of_project().map(|path| path.join(DATABASE)))
        .or_else(|| user_memory().map(|path| path.join(DATABASE)))
}

/// The folder of the user's own memory.
pub(crate) fn user_memory() -> Option<PathBuf> {
    user_data().map(|path| path.join("holotype"))
}

/// The user's data directory.
fn user_data() -> Option<PathBuf> {
    let named = |name: &str| env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    match env::consts::OS {
        "windows" => named("LOCALAPPDATA"),
        "macos" => home().map(|home| home.join("Library/Application Support")),
        _ => named("XDG_DATA_HOME").or_else(|| home().map(|home| home.join(".local/share"))),
    }
}

/// The user's home directory.
pub(crate) fn home() -> Option<PathBuf> {
    env::var_os("HOME").or_else(|| env::var_os("USERPROFILE")).map(PathBuf::from).filter(|path| path.is_absolute())
}
