//! The floor file of a truncated log with any bytes: it is refused, or everything shown is what was written.

use std::path::Path;
use std::sync::LazyLock;

use holotype::ItemId;
use holotype_storage::vfs::{Crash, SimVfs};

use crate::story::{self, Seen, see, see_all};

const PATH: &str = "/db/log/floor";
/// The first retained commit.
const SINCE: u64 = 3;

/// The story with a truncated log, and its items.
static RETAINED: LazyLock<(SimVfs, Vec<Seen>)> = LazyLock::new(|| retain().expect("the story's log can be truncated"));

fn retain() -> holotype::Result<(SimVfs, Vec<Seen>)> {
    let disk = story::disk();
    let database = story::open(&disk)?;
    database.retain(SINCE, None)?;
    let seen = see_all(&database.snapshot())?;
    drop(database);
    Ok((disk.crash(Crash::Keep), seen))
}

/// Replaces the file by the bytes, and again by the bytes with a repaired checksum.
///
/// # Panics
/// When something that was never written is shown without an error.
pub fn target(data: &[u8]) {
    let (disk, written) = &*RETAINED;
    let mut repaired = data.to_vec();
    if let Some((fields, crc)) = repaired.split_last_chunk_mut() {
        *crc = crc32fast::hash(fields).to_le_bytes();
    }
    for bytes in [data, &repaired] {
        let disk = disk.crash(Crash::Keep);
        disk.replace(Path::new(PATH), bytes);
        let Ok(database) = story::open(&disk) else { continue };
        let snapshot = database.snapshot();
        for (number, written) in written.iter().enumerate().take(snapshot.len() as usize) {
            if let Ok(seen) = see(&snapshot, ItemId(number as u32)) {
                assert_eq!(seen, *written, "item {number} is shown and was never written so");
            }
        }
        // An invalid floor is reported as an error or as a fault.
        let _ = database.verify(&mut |_, _| ());
    }
}

/// The file as it is written.
pub fn seeds() -> Vec<Vec<u8>> {
    vec![RETAINED.0.bytes(Path::new(PATH)).expect("it was written")]
}
