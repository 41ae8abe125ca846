//! A database with damaged files: the damage is refused, repaired from the log, or reported, and everything that is
//! shown as verified is what was written.

use std::path::Path;

use holotype::ItemId;
use holotype_storage::vfs::{SimVfs, Vfs as _};

use crate::input::Input;
use crate::story::{self, files, history, see};

/// Damages the story's files and opens the database.
///
/// # Panics
/// When something that was never written is shown without an error.
pub fn target(data: &[u8]) {
    let mut input = Input::new(data);
    let disk = story::disk();
    let mut count = 0;
    while !input.is_empty() && count < 16 {
        damage(&disk, &mut input);
        count += 1;
    }
    let Ok(database) = story::open(&disk) else { return };
    let snapshot = database.snapshot();
    let commit = usize::try_from(snapshot.commit()).expect("the story is short");
    let written = history().get(commit).expect("no commit was made up");
    assert!(snapshot.len() as usize <= written.len(), "items were made up");
    let mut whole = snapshot.len() as usize == written.len();
    for (number, written) in written.iter().enumerate() {
        match see(&snapshot, ItemId(number as u32)) {
            Ok(seen) => assert_eq!(seen, *written, "item {number} is shown, but was never written like that"),
            Err(_) => whole = false,
        }
    }
    let report = database.verify(&mut |_, _| ()).expect("a simulated disk can be read");
    assert!(whole || !report.is_clean(), "items are missing and verify found nothing wrong");
}

fn damage(disk: &SimVfs, input: &mut Input<'_>) {
    let files = files(disk);
    if files.is_empty() {
        return;
    }
    let what = input.byte();
    let path = files[input.below(files.len())].as_path();
    let mut bytes = disk.bytes(path).expect("it was listed");
    let at = input.below(bytes.len() + 1);
    let len = usize::from(input.u16());
    let end = (at + len).min(bytes.len());
    match what % 6 {
        0 if at < bytes.len() => bytes[at] ^= 1 << (len % 8),
        1 => bytes.truncate(at),
        2 => bytes[at..end].fill(0),
        3 => {
            let new = input.bytes(len);
            let end = (at + new.len()).min(bytes.len());
            bytes.splice(at..end, new.iter().copied());
        }
        4 => {
            let to = input.below(bytes.len() + 1);
            let copied = bytes[at..end].to_vec();
            let end = (to + copied.len()).min(bytes.len());
            bytes.splice(to..end, copied);
        }
        5 => {
            let _ = disk.remove(path);
            return;
        }
        _ => {}
    }
    disk.replace(path, &bytes);
}

/// One kind of damage each, to each of the files.
pub fn seeds() -> Vec<Vec<u8>> {
    let disk = story::disk();
    let mut seeds = vec![Vec::new()];
    for (number, path) in files(&disk).iter().enumerate() {
        let len = disk.bytes(Path::new(path)).map_or(0, |bytes| bytes.len()) as u32;
        for what in [0, 1, 2, 5_u8] {
            let mut seed = vec![what];
            seed.extend((number as u32).to_le_bytes());
            seed.extend((len / 3).to_le_bytes());
            seed.extend([64, 0]);
            seeds.push(seed);
        }
    }
    seeds
}
