//! The databases that a fleet is named by: paths, and patterns of paths.

use super::FleetFailure;
use crate::{Error, Result};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// The databases of a fleet, and the folders that could not be searched for more.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// Without repetition, in order.
    pub(super) paths: Vec<PathBuf>,
    pub(super) unread: Vec<FleetFailure>,
}

/// The databases that these paths and patterns name. A path is taken as it is, whether something is there or not; of
/// the matches of a pattern, the databases are.
///
/// # Errors
/// [`Error::Invalid`] for a pattern that is none; [`Error::Missing`] for one that no database matches.
pub(super) fn find<P: AsRef<Path>>(places: impl IntoIterator<Item = P>) -> Result<Found> {
    let mut paths = BTreeSet::new();
    let mut unread = Vec::new();
    for place in places {
        let place = place.as_ref();
        let pattern = place.to_str().filter(|text| text.contains(['*', '?', '[']) && !place.exists());
        let Some(pattern) = pattern else {
            paths.insert(place.to_owned());
            continue;
        };
        let (known, unreadable) = (paths.len(), unread.len());
        let matches = glob::glob(pattern)
            .map_err(|error| Error::Invalid(format!("the pattern {pattern:?} is wrong: {}", error.msg)))?;
        for path in matches {
            match path {
                Ok(path) if is_database(&path) => drop(paths.insert(path)),
                Ok(_) => {}
                Err(error) => unread.push(FleetFailure {
                    path: error.path().to_owned(),
                    code: "io",
                    message: format!("the folder cannot be searched for databases: {}", error.error()),
                }),
            }
        }
        if paths.len() == known && unread.len() == unreadable {
            return Err(Error::Missing { what: "database matches", name: format!("'{pattern}'") });
        }
    }
    Ok(Found { paths: paths.into_iter().collect(), unread })
}

/// True for a folder that is a database, or what is left of one.
fn is_database(path: &Path) -> bool {
    path.is_dir() && (path.join("LOCK").exists() || path.join("log").is_dir())
}

/// The name of a database in a router: its path from the root, whatever the working folder is.
///
/// # Errors
/// [`Error::Invalid`] for a path that is not Unicode.
pub(super) fn name_of(path: &Path) -> Result<String> {
    let absolute = std::path::absolute(path).map_err(|source| Error::File { path: path.to_owned(), source })?;
    let name = absolute.into_os_string().into_string();
    name.map_err(|name| {
        let name = name.to_string_lossy();
        Error::Invalid(format!("the path {name} is not Unicode, so that no router can name it; rename the folder"))
    })
}
