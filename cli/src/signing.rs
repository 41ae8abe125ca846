//! Signing keys: where they are kept, and how they come to be.
//!
//! A key stands in a file of its own, outside the database, readable by its owner alone: a person with the database and
//! the key can sign any past. Unless another is named it is `DB.key` beside the database, and made when it is first
//! needed.

use crate::database;
use crate::failure::{Failure, Problem};
use holotype::proof::{SignerKey, VerifierKey};
use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

/// The key in `file`, or the database's own; made under the name `origin` if there is none.
pub(crate) fn key(db: &Path, file: Option<&Path>, origin: &str) -> Result<SignerKey, Failure> {
    let path = file.map_or_else(|| default_path(db), Path::to_owned);
    match fs::read_to_string(&path) {
        Ok(text) => text.parse().map_err(|error| wrong(&path, error)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => make(&path, origin),
        Err(error) => Err(Problem::io(&path, "read", &error).into()),
    }
}

/// The public key that `given` is, or that stands in the file of that name.
pub(crate) fn verifier(given: &str) -> Result<VerifierKey, Failure> {
    let path = Path::new(given);
    if !path.is_file() {
        return given.parse().map_err(|error| wrong(path, error));
    }
    let text = fs::read_to_string(path).map_err(|error| Problem::io(path, "read", &error))?;
    // The private half tells the public one.
    match text.parse::<SignerKey>() {
        Ok(key) => Ok(key.verifier().clone()),
        Err(_) => text.parse().map_err(|error| wrong(path, error)),
    }
}

fn make(path: &Path, origin: &str) -> Result<SignerKey, Failure> {
    let key = SignerKey::generate(origin).map_err(|error| wrong(path, error))?;
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(path).map_err(|error| Problem::io(path, "create", &error))?;
    writeln!(file, "{}", key.to_secret())
        .and_then(|()| file.sync_all())
        .map_err(|error| Problem::io(path, "write", &error))?;
    database::note(&format!(
        "{} is a new signing key: keep it secret and apart from the database; others check proofs with {}",
        path.display(),
        key.verifier()
    ));
    Ok(key)
}

fn default_path(db: &Path) -> PathBuf {
    let mut name = db.file_name().map_or_else(|| "holotype".into(), std::ffi::OsStr::to_owned);
    name.push(".key");
    db.with_file_name(name)
}

fn wrong(path: &Path, error: impl std::fmt::Display) -> Failure {
    let problem = Problem::input("key", error.to_string()).file(path.display().to_string());
    problem.hint("`holotype key DB` creates a key and prints its public part").into()
}
