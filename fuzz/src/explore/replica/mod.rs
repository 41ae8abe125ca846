//! Explores the protocol of replicas: two writers, each with its sweeps, and a follower, over a store that fails.
//!
//! Every request to the store is a step. A seed chooses who makes the next one, whether it fails, and how: refused, its
//! answer lost after it was carried out, a stale read, or carried out once more later. Writers append, erase, push,
//! sweep, crash and begin again; one that was fenced, or whose log went another way, begins with a restored log. After
//! each step must hold:
//!
//! 1. each head continues the one before, another writer's in a higher epoch, and so contains everything acknowledged;
//! 2. the manifest and the chunks that the head names are there, and hold its log;
//! 3. what a manifest does not list as pending is erased in its chunks, and in the copy of a follower that shows it;
//! 4. a follower shows the log of a head, and never goes back.
//!
//! When the faults end, a writer moves the head, the follower shows it, and after a sweep no object has erased content.

mod actors;
mod simulated_log;
mod store;

use std::cell::RefCell;
use std::collections::HashSet;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Waker};

use actors::{Broken, World};

/// Steps of one run before its faults end.
const STEPS: usize = 400;
/// Steps after that within which everything must come to rest.
const LAST_STEPS: usize = 6_000;

/// The count of a run.
#[derive(Clone, Copy, Debug, Default)]
pub struct Explored {
    /// Different states.
    pub states: u64,
    /// Steps.
    pub steps: u64,
    /// Heads that were acknowledged.
    pub acknowledged: u64,
    /// Writers that were fenced.
    pub fenced: u64,
}

/// Explores until there are this many different states.
///
/// # Errors
/// The first state in which something does not hold, with the seed that leads to it.
pub fn explore(states: u64, seed: u64) -> Result<Explored, String> {
    let mut seen = HashSet::new();
    let mut total = Explored::default();
    for run in 0.. {
        if seen.len() as u64 >= states {
            break;
        }
        run_one(seed.wrapping_add(run), Broken::default(), &mut seen, &mut total)?;
    }
    total.states = seen.len() as u64;
    Ok(total)
}

/// Each part of the protocol that can be left out, with the violation that this led to within a number of runs.
#[must_use]
pub fn mutants(runs: u64, seed: u64) -> Vec<(String, Option<String>)> {
    let tried = Broken::all().into_iter().map(|(name, broken)| {
        let (mut seen, mut total) = (HashSet::new(), Explored::default());
        let noticed = (0..runs).find_map(|run| run_one(seed.wrapping_add(run), broken, &mut seen, &mut total).err());
        (name, noticed)
    });
    tried.collect()
}

fn run_one(seed: u64, broken: Broken, seen: &mut HashSet<u64>, total: &mut Explored) -> Result<(), String> {
    let world = Rc::new(World::new(seed, broken));
    let failed = |what: String| format!("seed {seed}: {what}");
    let mut futures: Vec<Pin<Box<dyn Future<Output = ()>>>> = (0..3).map(|id| actors::start(&world, id)).collect();
    let mut context = Context::from_waker(Waker::noop());
    for step in 0..STEPS + LAST_STEPS {
        if step == STEPS {
            world.end_faults();
            (0..3).for_each(|id| futures[id] = actors::start(&world, id));
        }
        let id = world.below(3) as usize;
        if step < STEPS && world.below(60) == 0 {
            // A crash: what was under way is never finished.
            futures[id] = actors::start(&world, id);
        }
        let _ = futures[id].as_mut().poll(&mut context);
        world.store.deliver_late();
        total.steps += 1;
        world.check().map_err(failed)?;
        seen.insert(world.fingerprint());
        if step > STEPS && world.is_at_rest() {
            break;
        }
    }
    total.acknowledged += world.acknowledged();
    total.fenced += world.fenced();
    world.check_at_rest().map_err(failed)
}

/// A small generator of numbers.
#[derive(Debug)]
pub(super) struct Numbers(RefCell<u64>);

impl Numbers {
    fn new(seed: u64) -> Self {
        Self(RefCell::new(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1))
    }

    /// A number below `bound`.
    fn below(&self, bound: u64) -> u64 {
        let mut state = self.0.borrow_mut();
        *state ^= *state << 13;
        *state ^= *state >> 7;
        *state ^= *state << 17;
        (state.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) % bound.max(1)
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn nothing_acknowledged_is_lost() {
        let explored = super::explore(3_000, 1).unwrap();
        assert!(explored.acknowledged > 20 && explored.fenced > 3, "{explored:?}");
    }
}
