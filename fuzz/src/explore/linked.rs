//! A database with one vector less than become a graph: a checkpoint behind the next write links them. The graph refers
//! to the log for the vectors.

use std::ops::Range;
use std::sync::{Arc, LazyLock};

use holotype::{Durability, Holotype, Metric, NewTrace, Options, Space};
use holotype_storage::vfs::{Crash, SimVfs};

use crate::story::{self, DATABASE, has_logged_graph};

/// The number of items.
pub(super) const COUNT: u32 = 2_047;

/// About the centre of all vectors.
pub(super) const MIDDLE: [f32; 2] = [64.0, 64.0];

/// True for an item that the explorer looks at.
pub(super) fn is_sample(item: u32) -> bool {
    item.is_multiple_of(256)
}

/// A copy of the disk, with everything synced but not closed.
pub(super) fn disk() -> SimVfs {
    static DISK: LazyLock<SimVfs> = LazyLock::new(|| made().expect("a database on a disk without faults is made"));
    DISK.crash(Crash::Keep)
}

fn made() -> holotype::Result<SimVfs> {
    let disk = SimVfs::new();
    // The log has these vectors with the bytes that segments have, since none is brought to length one.
    let options = Options { space: Some(Space::new("explored", 2).metric(Metric::L2)), ..story::options() };
    let database = Holotype::create_on(Arc::new(disk.clone()), DATABASE, options)?;
    record(&database, 0..COUNT)?;
    let unlinked = disk.crash(Crash::Keep);
    record(&database, COUNT..COUNT + 1)?;
    assert!(has_logged_graph(&disk) && !has_logged_graph(&unlinked), "one more vector makes a graph");
    Ok(unlinked)
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
