//! A new directory for temporary files, removed with all that is in it when it is dropped.

use crate::failure::{Failure, Problem};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Names that are tried before giving up: others of them belong to demos that were killed.
const MOST_NAMES: u32 = 1000;

pub(crate) struct Scratch {
    path: PathBuf,
}

impl Scratch {
    pub(crate) fn new() -> Result<Scratch, Failure> {
        let parent = std::env::temp_dir();
        let process = std::process::id();
        let mut path = parent.clone();
        for number in 0..MOST_NAMES {
            path = parent.join(format!("holotype-demo-{process}-{number}"));
            match fs::create_dir(&path) {
                Ok(()) => return Ok(Scratch { path }),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(Problem::io(&path, "create", &error).into()),
            }
        }
        Err(Problem::io(&path, "create", &io::ErrorKind::AlreadyExists.into()).into())
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // The demo is over: what cannot be removed is left to the system's clean-up of temporary files.
        let _ = fs::remove_dir_all(&self.path);
    }
}
