//! A database whose next checkpoint links vectors, once there is one more of them: into a first graph, or into the
//! graph that is there. Graphs refer to the log for the vectors.

use std::ops::Range;
use std::sync::{Arc, LazyLock};

use holotype::{Durability, Holotype, Metric, NewTrace, Options, Space};
use holotype_storage::vfs::{Crash, SimVfs};

use crate::story::{self, DATABASE, are_logged};

/// Without a graph, one vector less than become one.
pub(super) static UNLINKED: LazyLock<Start> =
    LazyLock::new(|| Start::made(&[2_047]).expect("a database on a disk without faults is made"));

/// With a graph, and one vector less than are linked into it.
pub(super) static LINKED: LazyLock<Start> =
    LazyLock::new(|| Start::made(&[2_048, 4_095]).expect("a database on a disk without faults is made"));

/// About the centre of all vectors.
pub(super) const MIDDLE: [f32; 2] = [64.0, 64.0];

/// A database that runs begin with.
pub(super) struct Start {
    disk: SimVfs,
    /// The number of items.
    pub(super) count: u32,
}

impl Start {
    /// Records items, with a checkpoint when there are so many.
    fn made(checkpoints: &[u32]) -> holotype::Result<Self> {
        let disk = SimVfs::new();
        // The log has these vectors with the bytes that segments have, since none is brought to length one.
        let options = Options { space: Some(Space::new("explored", 2).metric(Metric::L2)), ..story::options() };
        let database = Holotype::create_on(Arc::new(disk.clone()), DATABASE, options)?;
        let mut count = 0;
        for &next in checkpoints {
            record(&database, count..next)?;
            count = next;
        }
        let (start, before) = (Self { disk: disk.crash(Crash::Keep), count }, are_logged(&disk));
        record(&database, count..count + 1)?;
        assert_eq!(
            (before.last(), are_logged(&disk)),
            (Some(&false), vec![true]),
            "one more vector makes them one graph"
        );
        Ok(start)
    }

    /// A copy of the disk, with everything synced but not closed.
    pub(super) fn disk(&self) -> SimVfs {
        self.disk.crash(Crash::Keep)
    }

    /// True for an item that the explorer looks at: one that was written after the start, and some before.
    pub(super) fn is_sample(&self, item: u32) -> bool {
        item >= self.count || item.is_multiple_of(256)
    }
}

fn record(database: &Holotype, items: Range<u32>) -> holotype::Result<()> {
    let mut transaction = database.begin()?;
    for item in items {
        // The end is a mark: no other item has these letters. With the rest the log has more than one segment.
        let text = format!("{} a{item:04x}b{item:04x}c{item:04x}d.", "as before, ".repeat(6));
        transaction.record(NewTrace::turn("first", text).key(format!("first-{item}")).vector(vector(item)))?;
    }
    transaction.commit(Durability::Sync)?;
    database.checkpoint()
}

/// A point of a square from 0 to 128, exact as halves.
fn vector(item: u32) -> Vec<f32> {
    let mixed = u64::from(item + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    [mixed >> 53, (mixed >> 42) & 0x7ff].map(|part| part as f32 / 16.0).to_vec()
}
