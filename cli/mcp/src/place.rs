//! The database of a call that names none: one rule for the server, the hooks and the commands beside them.
//!
//! | in this order | the database |
//! |---|---|
//! | the caller's option (`--db`) | as given |
//! | the variable `HOLOTYPE_DB` | as given |
//! | the nearest folder `.holotype` from the working folder upwards | [`DATABASE`] in it |
//! | the user's data directory | `holotype/memory.holo` in it |
//!
//! Invariants:
//!
//! 1. A database never lies in a folder that a package manager or a cache owns: the next clean-up would delete it.
//! 2. A `.holotype` folder of another user is passed over: who can write it could plant memories.

use std::env;
use std::fmt;
use std::fs;
use std::path::{Component, Path, PathBuf};

/// The folder of a project's memory.
pub const FOLDER: &str = ".holotype";
/// The database in that folder.
pub const DATABASE: &str = "memory.holo";
/// The variable that names a database.
pub const VARIABLE: &str = "HOLOTYPE_DB";

/// Folders of package managers and caches.
const OWNED: &[&str] = &[
    "node_modules",
    "bower_components",
    "site-packages",
    "dist-packages",
    "__pypackages__",
    "__pycache__",
    ".venv",
    "venv",
    ".tox",
    ".nox",
    ".npm",
    "_npx",
    ".pnpm-store",
    ".yarn",
    ".cargo",
    ".rustup",
    ".gradle",
    ".m2",
    ".cache",
    "Caches",
    "INetCache",
];
/// The same, where only two names together say it.
const OWNED_PAIRS: &[(&str, &str)] = &[("var", "cache"), ("uv", "tools"), ("uv", "cache"), ("pipx", "venvs")];

/// The rule that chose a database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChosenBy {
    /// The caller named it.
    Option,
    /// The variable `HOLOTYPE_DB` named it.
    Variable,
    /// It is the memory of the project around the working folder.
    Project,
    /// It is the user's own memory.
    User,
}

/// A database and the rule that chose it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The path of the database.
    pub path: PathBuf,
    /// The rule.
    pub chosen_by: ChosenBy,
    /// `.holotype` folders that were passed over, because they are another user's or in a folder that is cleaned up.
    pub passed_over: Vec<PathBuf>,
}

/// The reason why no database can be chosen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PlaceError {
    /// It would lie in a folder of a package manager or a cache.
    Owned {
        /// The path of the database.
        path: PathBuf,
        /// The name of the folder.
        folder: String,
    },
    /// The user has no data directory.
    NoUserData,
}

impl fmt::Display for PlaceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PlaceError::Owned { path, folder } => write!(
                f,
                "the database {} would lie in {folder}, which a package manager or a cache cleans up; \
                 name another path with --db or {VARIABLE}",
                path.display()
            ),
            PlaceError::NoUserData => write!(
                f,
                "there is no {FOLDER} folder around and no data directory of the user; \
                 name a database with --db or {VARIABLE}"
            ),
        }
    }
}

impl std::error::Error for PlaceError {}

/// The surroundings that the choice depends on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Surroundings {
    /// The value of `HOLOTYPE_DB`.
    pub variable: Option<PathBuf>,
    /// The working folder.
    pub folder: PathBuf,
    /// The user's data directory.
    pub user_data: Option<PathBuf>,
}

impl Surroundings {
    /// The surroundings of this process.
    pub fn from_env() -> Surroundings {
        Surroundings {
            variable: path_in(VARIABLE),
            folder: env::current_dir().unwrap_or_default(),
            user_data: user_data(),
        }
    }
}

/// The path in a variable that is set and not empty.
fn path_in(name: &str) -> Option<PathBuf> {
    env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from)
}

/// The directory in which the system wants the user's data.
fn user_data() -> Option<PathBuf> {
    if cfg!(windows) {
        return path_in("LOCALAPPDATA").or_else(|| path_in("APPDATA"));
    }
    let home = || path_in("HOME");
    if cfg!(target_os = "macos") {
        return Some(home()?.join("Library/Application Support"));
    }
    // The standard has relative paths ignored.
    path_in("XDG_DATA_HOME").filter(|path| path.is_absolute()).or_else(|| Some(home()?.join(".local/share")))
}

/// Chooses the database for a caller who gave `given`, or nothing. Nothing is created.
///
/// # Errors
/// [`PlaceError`].
pub fn choose(given: Option<&Path>, around: &Surroundings) -> Result<Place, PlaceError> {
    let named = given.map(|path| (path, ChosenBy::Option));
    let named = named.or_else(|| Some((around.variable.as_deref()?, ChosenBy::Variable)));
    if let Some((path, chosen_by)) = named {
        let path = around.folder.join(path);
        return free(&path).map(|()| Place { path, chosen_by, passed_over: Vec::new() });
    }
    let mut passed_over = Vec::new();
    for folder in around.folder.ancestors() {
        let candidate = folder.join(FOLDER);
        let Ok(metadata) = fs::metadata(&candidate) else { continue };
        if !metadata.is_dir() {
            continue;
        }
        let path = candidate.join(DATABASE);
        if is_own(&metadata) && free(&path).is_ok() {
            return Ok(Place { path, chosen_by: ChosenBy::Project, passed_over });
        }
        passed_over.push(candidate);
    }
    let path = around.user_data.as_ref().ok_or(PlaceError::NoUserData)?.join("holotype").join(DATABASE);
    free(&path).map(|()| Place { path, chosen_by: ChosenBy::User, passed_over })
}

/// Fails if a path, or the one that links lead to, is in a folder that is cleaned up.
fn free(path: &Path) -> Result<(), PlaceError> {
    let real = path.ancestors().find_map(|folder| folder.canonicalize().ok());
    let owned = owning_folder(path).or_else(|| owning_folder(&real?));
    match owned {
        Some(folder) => Err(PlaceError::Owned { path: path.to_owned(), folder }),
        None => Ok(()),
    }
}

/// The folder of a path that a package manager or a cache owns.
fn owning_folder(path: &Path) -> Option<String> {
    let names: Vec<&str> = path
        .components()
        .filter_map(|component| match component {
            Component::Normal(name) => name.to_str(),
            _ => None,
        })
        .collect();
    if let Some(name) = names.iter().find(|name| OWNED.contains(name)) {
        return Some((*name).to_owned());
    }
    let pair = names.windows(2).find(|pair| matches!(pair, [a, b] if OWNED_PAIRS.contains(&(a, b))))?;
    Some(pair.join("/"))
}

#[cfg(unix)]
fn is_own(metadata: &fs::Metadata) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    metadata.uid() == rustix::process::geteuid().as_raw()
}

#[cfg(not(unix))]
fn is_own(_metadata: &fs::Metadata) -> bool {
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    fn around(folder: &Path) -> Surroundings {
        Surroundings { variable: None, folder: folder.to_owned(), user_data: Some("/data".into()) }
    }

    #[test]
    fn the_caller_goes_before_the_variable_and_that_before_what_lies_around() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join(FOLDER)).unwrap();
        let surroundings = Surroundings { variable: Some("/v/a.holo".into()), ..around(dir.path()) };
        let place = choose(Some(Path::new("b.holo")), &surroundings).unwrap();
        assert_eq!((place.path, place.chosen_by), (dir.path().join("b.holo"), ChosenBy::Option));
        let place = choose(None, &surroundings).unwrap();
        assert_eq!((place.path, place.chosen_by), ("/v/a.holo".into(), ChosenBy::Variable));
        let place = choose(None, &around(dir.path())).unwrap();
        assert_eq!((place.path, place.chosen_by), (dir.path().join(".holotype/memory.holo"), ChosenBy::Project));
    }

    #[test]
    fn the_nearest_folder_upwards_is_the_projects() {
        let dir = tempfile::tempdir().unwrap();
        let inner = dir.path().join("a/b/c");
        fs::create_dir_all(&inner).unwrap();
        fs::create_dir(dir.path().join(FOLDER)).unwrap();
        fs::create_dir(dir.path().join("a").join(FOLDER)).unwrap();
        // A file of that name is no folder.
        fs::write(dir.path().join("a/b").join(FOLDER), "").unwrap();
        assert_eq!(choose(None, &around(&inner)).unwrap().path, dir.path().join("a/.holotype/memory.holo"));
    }

    #[test]
    fn without_a_project_it_is_the_users() {
        let dir = tempfile::tempdir().unwrap();
        let place = choose(None, &around(dir.path()));
        // The folder of temporary files may lie in a project of the one who runs the test.
        if let Ok(Place { path, chosen_by: ChosenBy::User, .. }) = place {
            assert_eq!(path, Path::new("/data/holotype/memory.holo"));
        }
        let nowhere = Surroundings { user_data: None, ..around(Path::new("/")) };
        assert_eq!(choose(None, &nowhere), Err(PlaceError::NoUserData));
    }

    #[test]
    fn no_database_lies_where_it_would_be_cleaned_up() {
        for path in [
            "/p/node_modules/x/m.holo",
            "/home/u/.cache/m.holo",
            "/home/u/Library/Caches/m.holo",
            "/home/u/.local/share/uv/tools/x/m.holo",
            "/p/.venv/lib/python3.12/site-packages/x/m.holo",
            "/var/cache/m.holo",
        ] {
            let refused = choose(Some(Path::new(path)), &around(Path::new("/")));
            assert!(matches!(refused, Err(PlaceError::Owned { .. })), "{path}: {refused:?}");
        }
        assert!(choose(Some(Path::new("/p/cache/uv/m.holo")), &around(Path::new("/"))).is_ok());
        let dir = tempfile::tempdir().unwrap();
        let package = dir.path().join("node_modules/server");
        fs::create_dir_all(package.join(FOLDER)).unwrap();
        fs::create_dir(dir.path().join(FOLDER)).unwrap();
        let place = choose(None, &around(&package)).unwrap();
        assert_eq!(place.path, dir.path().join(".holotype/memory.holo"));
        assert_eq!(place.passed_over, [package.join(FOLDER)]);
    }

    #[test]
    #[cfg(unix)]
    fn a_link_does_not_hide_a_cache() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join(".cache")).unwrap();
        std::os::unix::fs::symlink(dir.path().join(".cache"), dir.path().join("memory")).unwrap();
        let refused = choose(Some(&dir.path().join("memory/m.holo")), &around(dir.path()));
        assert!(matches!(refused, Err(PlaceError::Owned { .. })), "{refused:?}");
    }
}
