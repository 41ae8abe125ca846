//! The writers, the follower, and what must hold after each of their requests.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::collections::hash_map::DefaultHasher;
use std::future::Future;
use std::hash::{Hash as _, Hasher as _};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::LazyLock;

use holotype_replica::follow::{self, Follower};
use holotype_replica::head::{RemoteHead, origin};
use holotype_replica::manifest::Manifest;
use holotype_replica::push::{self, Pushed, Replicator};
use holotype_replica::{Error, chunk};
use holotype_storage::proof::note::SignerKey;

use super::Numbers;
use super::simulated_log::{DATABASE, LEN, SimulatedCopy, SimulatedLog};
use super::store::{FaultyStore, turn};

/// One key signs every head: making keys needs random numbers, and runs repeat.
static KEY: LazyLock<SignerKey> =
    LazyLock::new(|| SignerKey::generate(&origin(&DATABASE)).expect("the system has random numbers"));

/// Commits of a log, at most: states stay small.
const MAX_COMMITS: u64 = 40;

/// The part of the protocol that is left out.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Broken {
    push: Option<push::Check>,
    follow: Option<follow::Check>,
}

impl Broken {
    /// Every part, with a name.
    pub(super) fn all() -> Vec<(String, Self)> {
        use push::Check::{Chunks, Contains, Epoch, Fence, ListFirst, Prove, Rewrite, Serial, Settle};
        let pushes = [Contains, Epoch, Settle, Fence, Rewrite, Serial, Prove, ListFirst, Chunks];
        let follows = [follow::Check::Forward, follow::Check::Fresh];
        let pushes = pushes.map(|check| (format!("push: {check:?}"), Self { push: Some(check), follow: None }));
        let follows = follows.map(|check| (format!("follow: {check:?}"), Self { push: None, follow: Some(check) }));
        pushes.into_iter().chain(follows).collect()
    }
}

/// The state of a run.
pub(super) struct World {
    numbers: Rc<Numbers>,
    pub(super) store: FaultyStore,
    broken: Broken,
    logs: [RefCell<SimulatedLog>; 2],
    copy: RefCell<(SimulatedCopy, Option<RemoteHead>)>,
    /// The logs of heads, by their hashes.
    known: RefCell<BTreeMap<[u8; 32], SimulatedLog>>,
    acknowledged: Cell<u64>,
    /// The last head that was acknowledged.
    last_acknowledged: RefCell<Option<SimulatedLog>>,
    fenced: Cell<u64>,
    /// Heads that were checked.
    checked: Cell<usize>,
    objects: Cell<usize>,
    violation: RefCell<Option<String>>,
    is_swept: Cell<bool>,
}

impl World {
    pub(super) fn new(seed: u64, broken: Broken) -> Self {
        let numbers = Rc::new(Numbers::new(seed));
        Self {
            store: FaultyStore::new(Rc::clone(&numbers)),
            numbers,
            broken,
            logs: Default::default(),
            copy: RefCell::default(),
            known: RefCell::default(),
            acknowledged: Cell::new(0),
            last_acknowledged: RefCell::default(),
            fenced: Cell::new(0),
            checked: Cell::new(0),
            objects: Cell::new(0),
            violation: RefCell::default(),
            is_swept: Cell::new(false),
        }
    }

    pub(super) fn below(&self, bound: u64) -> u64 {
        self.numbers.below(bound)
    }

    pub(super) fn end_faults(&self) {
        self.store.faults.set(false);
    }

    pub(super) fn acknowledged(&self) -> u64 {
        self.acknowledged.get()
    }

    pub(super) fn fenced(&self) -> u64 {
        self.fenced.get()
    }

    fn note(&self, log: &SimulatedLog) {
        let mut known = self.known.borrow_mut();
        let number = log.commits();
        if number > 0 {
            known.insert(log.head(number).hash, log.clone());
        }
    }

    fn violate(&self, what: String) {
        self.violation.borrow_mut().get_or_insert(what);
    }

    /// A hash of everything in which states differ.
    pub(super) fn fingerprint(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        for (key, (_, tag)) in &self.store.content.borrow().objects {
            (key, tag).hash(&mut hasher);
        }
        self.logs.iter().for_each(|log| log.borrow().bytes.hash(&mut hasher));
        self.copy.borrow().0.shown.bytes.hash(&mut hasher);
        hasher.finish()
    }

    /// Checks every head since the last check, and that the objects of the present one are there.
    pub(super) fn check(&self) -> Result<(), String> {
        if let Some(what) = self.violation.borrow_mut().take() {
            return Err(what);
        }
        let content = self.store.content.borrow();
        let count = content.heads.len();
        if count == self.checked.get() && content.objects.len() == self.objects.get() {
            return Ok(());
        }
        self.objects.set(content.objects.len());
        let read = |bytes: &[u8]| RemoteHead::open(bytes, Some(KEY.verifier())).map_err(|error| error.to_string());
        for at in self.checked.get().max(1)..count {
            let (before, next) = (read(&content.heads[at - 1])?, read(&content.heads[at])?);
            // Another writer is told by its number, too: the epoch says so to people and to other programs.
            let least = before.epoch + u64::from(next.writer != before.writer);
            if next.epoch < least || next.serial <= before.serial {
                let (serial, epoch) = (next.serial, next.epoch);
                return Err(format!("head {serial} of epoch {epoch} follows {} of {}", before.serial, before.epoch));
            }
            let known = self.known.borrow();
            let log = |head: &RemoteHead| known.get(&head.head.hash).ok_or("a head of an unknown log".to_owned());
            if before.head.commit.0 > 0 && !log(&before)?.begins(log(&next)?) {
                return Err(format!("commit {} does not continue {}", next.head.commit, before.head.commit));
            }
        }
        self.checked.set(count);
        let Some(last) = content.heads.last() else { return Ok(()) };
        let head = read(last)?;
        let object = |key: &str| content.objects.get(key).ok_or(format!("{key} is missing, and the head names it"));
        let manifest = Manifest::decode(&head.manifest, &object(&head.manifest)?.0, &head.manifest_hash)
            .map_err(|error| error.to_string())?;
        let mut bytes = Vec::new();
        for it in &manifest.chunks {
            let stored = object(&chunk::key(&it.hash))?;
            let log = chunk::decode(&stored.0, &it.hash, it.first, it.end).map_err(|error| error.to_string())?;
            bytes.extend_from_slice(&log);
        }
        let log = SimulatedLog { bytes };
        let pending: Vec<u64> = manifest.pending.iter().map(|pending| pending.commit).collect();
        check_erased(&log, &pending)?;
        if log.head(log.commits()) != head.head {
            return Err("the chunks hold another log than the head".to_owned());
        }
        match &*self.last_acknowledged.borrow() {
            Some(acknowledged) if !acknowledged.begins(&log) => {
                Err(format!("commit {} was acknowledged and is lost", acknowledged.commits()))
            }
            _ => Ok(()),
        }
    }

    pub(super) fn is_at_rest(&self) -> bool {
        self.is_swept.get() && !self.store.has_late() && self.check_at_rest().is_ok()
    }

    /// The follower has the last head, and no object has erased content.
    pub(super) fn check_at_rest(&self) -> Result<(), String> {
        let content = self.store.content.borrow();
        let last = content.heads.last().ok_or("no head was ever written")?;
        let head = RemoteHead::open(last, None).map_err(|error| error.to_string())?;
        let copy = self.copy.borrow();
        if !self.is_swept.get() {
            return Err("no writer came to an end".to_owned());
        }
        if copy.0.shown.head(copy.0.shown.commits()) != head.head {
            return Err("the follower does not come to the last head".to_owned());
        }
        let shown = &copy.0.shown;
        for number in 1..=shown.commits() {
            let erased = shown.erases(number);
            let secret = if erased > 0 { secret_of(shown, erased) } else { continue };
            for (key, (bytes, _)) in &content.objects {
                let log = bytes.get(chunk::HEADER_LEN..).filter(|_| key.starts_with("chunks/"));
                let log = log.and_then(|frame| zstd::bulk::decompress(frame, 1 << 16).ok()).unwrap_or_default();
                if log.windows(8).any(|window| window == secret) {
                    return Err(format!("{key} still has what commit {number} erased"));
                }
            }
        }
        Ok(())
    }
}

/// The content of a commit before it was erased.
fn secret_of(log: &SimulatedLog, number: u64) -> [u8; 8] {
    let at = ((number - 1) * LEN) as usize;
    let random = u16::from_le_bytes([log.bytes[at], log.bytes[at + 1]]);
    let mut secret = [0; 8];
    secret[..4].copy_from_slice(&(number as u32).to_le_bytes());
    secret[4..].copy_from_slice(&(u32::from(random) | 1 << 31).to_le_bytes());
    secret
}

fn check_erased(log: &SimulatedLog, pending: &[u64]) -> Result<(), String> {
    for number in 1..=log.commits() {
        let erased = log.erases(number);
        if erased > 0 && !pending.contains(&number) && !log.is_erased(erased) {
            return Err(format!("commit {erased} is not erased, although {number} says so"));
        }
    }
    Ok(())
}

/// Starts an actor: 0 and 1 write, 2 follows.
pub(super) fn start(world: &Rc<World>, id: usize) -> Pin<Box<dyn Future<Output = ()>>> {
    let world = Rc::clone(world);
    match id {
        2 => Box::pin(follow(world)),
        _ => Box::pin(write(world, id)),
    }
}

async fn write(world: Rc<World>, id: usize) {
    loop {
        if !world.store.faults.get() && id == 1 {
            // One writer remains, so that it comes to an end.
            turn().await;
            continue;
        }
        if let Err(error) = write_session(&world, id).await {
            match error {
                Error::Fenced { .. } | Error::Diverged { .. } => {
                    world.fenced.set(world.fenced.get() + 1);
                    restore(&world, id).await;
                }
                Error::Store(_) => {}
                error => world.violate(format!("writer {id}: {error}")),
            }
        }
        turn().await;
    }
}

/// Claims the replica, and appends, erases, pushes and sweeps.
async fn write_session(world: &World, id: usize) -> Result<(), Error> {
    // An opening for writing finishes what a crash interrupted.
    world.logs[id].borrow_mut().finish_erasures();
    let log = world.logs[id].borrow().clone();
    if log.commits() > 0 {
        world.note(&log);
    }
    let writer = world.below(1 << 30);
    let mut replicator = Replicator::claim_skipping(&world.store, &log, KEY.clone(), writer, world.broken.push).await?;
    loop {
        if world.store.faults.get() {
            append(world, id);
        } else if world.logs[id].borrow().commits() == 0 {
            world.logs[id].borrow_mut().append(1, 0);
        } else {
            world.logs[id].borrow_mut().finish_erasures();
        }
        let log = world.logs[id].borrow().clone();
        world.note(&log);
        let pushed = replicator.push(&log).await;
        if let Ok(Pushed::Moved { head, .. }) = &pushed {
            world.acknowledged.set(world.acknowledged.get() + 1);
            let known = world.known.borrow().get(&head.hash).cloned();
            *world.last_acknowledged.borrow_mut() = known;
        }
        pushed?;
        if world.below(3) == 0 || !world.store.faults.get() {
            replicator.sweep(&log, 0).await?;
            world.is_swept.set(!world.store.faults.get());
        }
        turn().await;
    }
}

fn append(world: &World, id: usize) {
    let mut log = world.logs[id].borrow_mut();
    let count = log.commits();
    match world.below(8) {
        0 | 1 if count > 0 => {
            log.finish_erasures();
        }
        2 | 3 if count > 0 && count < MAX_COMMITS => {
            let random = world.below(1 << 16) as u16;
            log.append(random, 1 + world.below(count));
        }
        _ if count < MAX_COMMITS => log.append(world.below(1 << 16) as u16, 0),
        _ => {}
    }
}

/// Begins again with the log of the replica.
async fn restore(world: &World, id: usize) {
    let mut copy = SimulatedCopy::default();
    let mut follower = Follower::new(&world.store, None, None);
    match follower.poll(&mut copy).await {
        Ok(Some(_)) => *world.logs[id].borrow_mut() = copy.shown,
        Ok(None) | Err(Error::Store(_) | Error::NoReplica { .. }) => {}
        Err(error) => world.violate(format!("restoring for writer {id}: {error}")),
    }
}

async fn follow(world: Rc<World>) {
    loop {
        let (mut copy, at) = world.copy.borrow().clone();
        let before = copy.shown.clone();
        let mut follower = Follower::new(&world.store, None, at).skipping(world.broken.follow);
        match follower.poll(&mut copy).await {
            Ok(None) => {}
            Ok(Some(head)) => {
                if !before.begins(&copy.shown) {
                    world.violate("the follower went back, or another way".to_owned());
                }
                if let Err(what) = check_erased(&copy.shown, &copy.pending) {
                    world.violate(format!("the follower: {what}"));
                }
                *world.copy.borrow_mut() = (copy, Some(head));
            }
            Err(Error::Store(_) | Error::NoReplica { .. }) => {}
            Err(error) => world.violate(format!("the follower: {error}")),
        }
        turn().await;
    }
}
