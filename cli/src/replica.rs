//! Places, keys and errors of replicas, for the commands that use them.

use crate::failure::{Failure, Problem, Status};
use crate::{interrupt, signing};
use holotype::hex;
use holotype_replica::Error;
use holotype_replica::head::origin;
use holotype_replica::place::Place;
use holotype_replica::push::{Pushed, Replicator};
use holotype_replica::source::Source as _;
use holotype_replica::{LocalLog, block_on};
use serde_json::{Value, json};
use std::path::Path;

/// The problem of a replica's error.
pub(crate) fn failed(error: Error) -> Failure {
    let status = match &error {
        Error::Store(_) | Error::Io { .. } | Error::Log(_) => Status::Io,
        Error::NoReplica { .. } | Error::Damaged { .. } => Status::Unopened,
        Error::Fenced { .. } | Error::Diverged { .. } | Error::Signature(_) => Status::Found,
        _ => Status::Wrong,
    };
    let hint = match &error {
        Error::Diverged { .. } | Error::Fenced { .. } => {
            Some("`holotype restore` makes a database of the replica; `holotype export` says what is only here")
        }
        Error::Damaged { .. } => Some("restore from another replica, or replicate the database to a new folder"),
        _ => None,
    };
    Problem::new(status, error.code(), error.to_string()).hint_if(hint.map(str::to_owned)).into()
}

/// A store that was found to keep the conditions of writes.
pub(crate) fn probed(address: &str) -> Result<Place, Failure> {
    let place = Place::open(address).map_err(failed)?;
    block_on(holotype_replica::probe::probe(&place, random()?)).map_err(failed)?;
    Ok(place)
}

/// Opens the log of a database, from the replica's head on where it has it.
pub(crate) fn open_log(db: &Path, place: &Place) -> Result<LocalLog, Failure> {
    let found = block_on(holotype_replica::push::look(place)).map_err(failed)?;
    LocalLog::open(db, found.map(|(head, _)| head.head)).map_err(failed)
}

/// Takes the replica over.
pub(crate) fn claim<'p>(
    db: &Path,
    log: &LocalLog,
    place: &'p Place,
    key: Option<&Path>,
) -> Result<Replicator<&'p Place>, Failure> {
    let key = signing::key(db, key, &origin(&log.database()))?;
    block_on(Replicator::claim(place, log, key, random()?)).map_err(failed)
}

/// The result of moving the head until the replica has everything.
#[derive(Default)]
pub(crate) struct Moved {
    pub(crate) log_bytes: u64,
    pub(crate) stored_bytes: u64,
}

/// Moves the head until the replica has everything that is durable now.
pub(crate) fn push_all(
    replicator: &mut Replicator<&Place>,
    log: &LocalLog,
    progress: &mut dyn FnMut(u64),
) -> Result<Moved, Error> {
    let mut moved = Moved::default();
    while let Pushed::Moved { log_bytes, stored_bytes, more, head } = block_on(replicator.push(log))? {
        moved.log_bytes += log_bytes;
        moved.stored_bytes += stored_bytes;
        progress(head.position.0);
        if !more || interrupt::asked() {
            break;
        }
    }
    Ok(moved)
}

/// The head of a replica as JSON.
pub(crate) fn head_json(head: &holotype_replica::head::RemoteHead) -> Value {
    json!({
        "position": head.head.position.0,
        "commit": head.head.commit.0,
        "hash": hex(&head.head.hash),
        "epoch": head.epoch,
        "serial": head.serial,
    })
}

/// A random number, which tells this session from others.
fn random() -> Result<u64, Failure> {
    holotype_replica::random_number().map_err(failed)
}
