//! The simulated disk does what its fault model says, and nothing else.

use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;

use holotype_storage::vfs::{Crash, Failure, OpenMode, Operation, SimVfs, Vfs, VfsFile};

const SECTOR: usize = 512;

fn create(sim: &SimVfs, name: &str) -> Arc<dyn VfsFile> {
    sim.open(Path::new(name), OpenMode::CreateNew).unwrap()
}

/// A disk with `/a`, durable in name and content.
fn with_durable(content: &[u8]) -> (SimVfs, Arc<dyn VfsFile>) {
    let sim = SimVfs::new();
    let file = create(&sim, "/a");
    file.write_at(content, 0).unwrap();
    file.sync().unwrap();
    sim.sync_dir(Path::new("/")).unwrap();
    (sim, file)
}

fn contents(states: &[SimVfs]) -> BTreeSet<Vec<u8>> {
    states.iter().map(|state| state.bytes(Path::new("/a")).unwrap()).collect()
}

#[test]
fn what_is_synced_survives_every_crash() {
    let (sim, file) = with_durable(b"durable");
    assert_eq!(sim.crashes(100, 1).len(), 1);
    file.write_at(b"DUR", 0).unwrap();
    assert_eq!(sim.bytes(Path::new("/a")).unwrap(), b"DURable", "reads see what is not durable");
    let states = contents(&sim.crashes(100, 1));
    assert_eq!(states, BTreeSet::from([b"durable".to_vec(), b"DURable".to_vec()]));
    assert_eq!(sim.crash(Crash::Lose).bytes(Path::new("/a")).unwrap(), b"durable");
    assert_eq!(sim.crash(Crash::Keep).bytes(Path::new("/a")).unwrap(), b"DURable");
}

#[test]
fn syncing_a_file_does_not_make_its_name_durable() {
    let sim = SimVfs::new();
    let file = create(&sim, "/a");
    file.write_at(b"x", 0).unwrap();
    file.sync().unwrap();
    assert!(sim.crash(Crash::Lose).files().is_empty());
    assert_eq!(sim.crashes(100, 1).len(), 2);
    sim.sync_dir(Path::new("/")).unwrap();
    assert_eq!(sim.crashes(100, 1).len(), 1);
    assert_eq!(sim.crash(Crash::Lose).bytes(Path::new("/a")).unwrap(), b"x");
}

#[test]
fn content_length_and_name_persist_apart() {
    let (sim, file) = with_durable(b"");
    file.write_at(&[7; 4], 0).unwrap();
    let states = contents(&sim.crashes(100, 1));
    let expected = [vec![], vec![0; 4], vec![7; 4]];
    assert_eq!(states, BTreeSet::from(expected), "lost; length without content; both");
}

#[test]
fn a_write_tears_at_its_first_middle_and_last_sector_only() {
    let old = [1_u8; 5 * SECTOR];
    let (sim, file) = with_durable(&old);
    file.write_at(&[2; 5 * SECTOR], 0).unwrap();
    let sectors: BTreeSet<Vec<u8>> = contents(&sim.crashes(100, 1))
        .into_iter()
        .map(|content| {
            content
                .chunks(SECTOR)
                .map(|sector| {
                    assert!(sector.iter().all(|&byte| byte == sector[0]), "no mixed sector");
                    sector[0]
                })
                .collect()
        })
        .collect();
    assert_eq!(sim.crashes(100, 1).len(), 5);
    let expected = [[1, 1, 1, 1, 1], [2, 2, 2, 2, 2], [1, 2, 2, 2, 2], [2, 2, 1, 2, 2], [2, 2, 2, 2, 1]];
    assert_eq!(sectors, expected.iter().map(|sectors| sectors.to_vec()).collect());
}

#[test]
fn writes_persist_in_any_order_but_a_cut_stays_a_cut() {
    let (sim, file) = with_durable(&[1; 8]);
    file.write_at(&[2], 0).unwrap();
    file.write_at(&[3], 4).unwrap();
    assert_eq!(contents(&sim.crashes(100, 1)).len(), 4);
    file.sync().unwrap();
    file.set_len(2).unwrap();
    file.set_len(8).unwrap();
    let states = contents(&sim.crashes(100, 1));
    let expected = [vec![2, 1, 1, 1, 3, 1, 1, 1], vec![2, 1], vec![2, 1, 0, 0, 0, 0, 0, 0]];
    assert_eq!(states, BTreeSet::from(expected));
}

#[test]
fn a_rename_is_whole_or_did_not_happen() {
    let (sim, _) = with_durable(b"old");
    let new = create(&sim, "/b");
    new.write_at(b"new", 0).unwrap();
    new.sync().unwrap();
    sim.sync_dir(Path::new("/")).unwrap();
    sim.rename(Path::new("/b"), Path::new("/a")).unwrap();
    assert_eq!(contents(&sim.crashes(100, 1)), BTreeSet::from([b"old".to_vec(), b"new".to_vec()]));
    sim.sync_dir(Path::new("/")).unwrap();
    sim.remove(Path::new("/a")).unwrap();
    let counts: BTreeSet<usize> = sim.crashes(100, 1).iter().map(|state| state.files().len()).collect();
    assert_eq!(counts, BTreeSet::from([0, 1]));
}

#[test]
fn a_crash_leaves_the_running_disk_alone_and_seeds_repeat() {
    let (sim, file) = with_durable(&[0; 64 * SECTOR]);
    for sector in 0..64 {
        file.write_at(&[1; SECTOR], sector * SECTOR as u64).unwrap();
    }
    let once = sim.crash(Crash::Seeded(5)).bytes(Path::new("/a")).unwrap();
    let again = sim.crash(Crash::Seeded(5)).bytes(Path::new("/a")).unwrap();
    let other = sim.crash(Crash::Seeded(6)).bytes(Path::new("/a")).unwrap();
    assert_eq!(once, again);
    assert_ne!(once, other);
    assert_eq!(sim.bytes(Path::new("/a")).unwrap(), vec![1; 64 * SECTOR]);
    let sampled = sim.crashes(50, 1);
    assert_eq!(sampled.len(), 50, "too many choices to try them all");
    assert_eq!(contents(&sampled).len(), 50, "no state twice");
}

#[test]
fn a_failed_sync_loses_for_good_what_reads_still_show() {
    let (sim, file) = with_durable(b"durable");
    file.write_at(b"DUR", 0).unwrap();
    sim.fail_at(sim.calls(), Failure::Io, false);
    assert!(file.sync().is_err());
    assert_eq!(sim.bytes(Path::new("/a")).unwrap(), b"DURable");
    file.sync().expect("the next sync succeeds, and lies");
    assert_eq!(sim.crash(Crash::Keep).bytes(Path::new("/a")).unwrap(), b"durable");
}

#[test]
fn calls_fail_once_or_for_ever() {
    let (sim, file) = with_durable(b"content");
    sim.fail_at(sim.calls() + 1, Failure::NoSpace, false);
    let mut buf = [0; 1];
    file.read_at(&mut buf, 0).unwrap();
    assert_eq!(file.read_at(&mut buf, 0).unwrap_err().kind(), ErrorKind::StorageFull);
    file.read_at(&mut buf, 0).unwrap();
    sim.fail_at(sim.calls(), Failure::Io, true);
    assert!(file.len().is_err());
    assert!(sim.list(Path::new("/")).is_err());
    sim.heal();
    assert_eq!(file.len().unwrap(), 7);
}

#[test]
fn a_failing_write_writes_half() {
    let (sim, file) = with_durable(b"........");
    sim.fail_at(sim.calls(), Failure::Io, false);
    assert!(file.write_at(b"12345678", 0).is_err());
    assert_eq!(sim.bytes(Path::new("/a")).unwrap(), b"1234....");
}

#[test]
fn a_failed_sync_of_a_directory_loses_its_names_for_good() {
    let (sim, _) = with_durable(b"old");
    create(&sim, "/b").sync().unwrap();
    sim.remove(Path::new("/a")).unwrap();
    sim.fail_at(sim.calls(), Failure::Io, false);
    assert!(sim.sync_dir(Path::new("/")).is_err());
    assert_eq!(sim.list(Path::new("/")).unwrap(), ["b"], "lookups go on showing what was done");
    sim.sync_dir(Path::new("/")).expect("the next sync succeeds, and lies");
    assert_eq!(sim.crash(Crash::Keep).files(), [Path::new("/a")]);
    // Naming it again is a new change, which the next sync makes durable.
    sim.rename(Path::new("/b"), Path::new("/c")).unwrap();
    sim.sync_dir(Path::new("/")).unwrap();
    assert_eq!(sim.crash(Crash::Lose).files(), [Path::new("/a"), Path::new("/c")]);
}

#[test]
fn interrupted_and_short_calls_are_made_whole_below_the_trait() {
    for kind in [Failure::Interrupted, Failure::Short] {
        // A read, a write, a sync, and calls that only interruption can hit.
        for call in 0..8 {
            let (sim, file) = with_durable(b"0123456789");
            sim.fail_at(sim.calls() + call, kind, false);
            let mut buf = [0; 7];
            file.read_at(&mut buf, 2).unwrap();
            assert_eq!(&buf, b"2345678");
            file.write_at(b"abcdef", 1).unwrap();
            file.set_len(9).unwrap();
            file.sync().unwrap();
            sim.rename(Path::new("/a"), Path::new("/b")).unwrap();
            sim.sync_dir(Path::new("/")).unwrap();
            assert_eq!(sim.crash(Crash::Lose).bytes(Path::new("/b")).unwrap(), b"0abcdef78", "{kind:?} at {call}");
        }
    }
}

#[test]
fn short_calls_for_ever_still_get_there_and_interruptions_for_ever_do_not() {
    let (sim, file) = with_durable(&[0; 100]);
    sim.fail_at(sim.calls(), Failure::Short, true);
    let calls = sim.calls();
    file.write_at(&[7; 100], 0).unwrap();
    let mut buf = [0; 100];
    file.read_at(&mut buf, 0).unwrap();
    assert_eq!(buf, [7; 100]);
    assert!(sim.calls() - calls > 10, "in many steps");
    sim.fail_at(sim.calls(), Failure::Interrupted, true);
    for error in [file.sync().unwrap_err(), file.write_at(b"x", 0).unwrap_err(), file.len().map(drop).unwrap_err()] {
        assert!(error.to_string().contains("interrupted"), "{error}");
    }
    sim.heal();
    assert_eq!(sim.crash(Crash::Keep).bytes(Path::new("/a")).unwrap(), [7; 100], "an interrupted sync lost nothing");
}

#[test]
fn all_states_are_given_up_to_twelve_operations_and_samples_beyond() {
    let (sim, file) = with_durable(&[0; 16 * SECTOR]);
    for sector in 0..12 {
        file.write_at(&[1; SECTOR], sector * SECTOR as u64).unwrap();
    }
    let states = sim.crash_states(4096, 1);
    assert!(states.is_exhaustive());
    assert_eq!(states.pending(), 12);
    let prints: BTreeSet<u64> = states.map(|state| state.fingerprint()).collect();
    assert_eq!(prints.len(), 4096, "every choice of the twelve");
    assert!(!sim.crash_states(4095, 1).is_exhaustive(), "more than were asked for");
    file.write_at(&[1; SECTOR], 12 * SECTOR as u64).unwrap();
    let states = sim.crash_states(1 << 20, 1);
    assert!(!states.is_exhaustive(), "thirteen are sampled");
    let mut states = states.map(|state| state.bytes(Path::new("/a")).unwrap());
    assert_eq!(states.next().unwrap(), sim.crash(Crash::Lose).bytes(Path::new("/a")).unwrap());
    assert_eq!(states.next().unwrap(), sim.crash(Crash::Keep).bytes(Path::new("/a")).unwrap());
}

#[test]
fn fingerprints_tell_disks_apart() {
    let (sim, file) = with_durable(&[0; 9000]);
    let before = sim.fingerprint();
    assert_eq!(sim.crash(Crash::Lose).fingerprint(), before);
    file.write_at(&[1], 8999).unwrap();
    let after = sim.fingerprint();
    assert_ne!(after, before);
    assert_eq!(sim.crash(Crash::Lose).fingerprint(), before);
    assert_eq!(sim.crash(Crash::Keep).fingerprint(), after);
    sim.rename(Path::new("/a"), Path::new("/b")).unwrap();
    assert_ne!(sim.fingerprint(), after);
}

#[test]
fn a_full_disk_takes_what_fits() {
    let (sim, file) = with_durable(b"12345678");
    sim.set_quota(Some(10));
    file.write_at(b"overwriting is free"[..8].as_ref(), 0).unwrap();
    assert_eq!(file.write_at(b"abcd", 8).unwrap_err().kind(), ErrorKind::StorageFull);
    assert_eq!(sim.bytes(Path::new("/a")).unwrap(), b"overwritab");
    assert_eq!(sim.used_bytes(), 10);
    assert_eq!(file.set_len(11).unwrap_err().kind(), ErrorKind::StorageFull);
    file.set_len(4).unwrap();
    file.write_at(b"abcd", 4).unwrap();
    sim.set_quota(None);
    file.set_len(1000).unwrap();
}

#[test]
fn a_disk_may_be_just_full() {
    let (sim, file) = with_durable(b"12345678");
    sim.set_quota(Some(10));
    file.write_at(b"ab", 8).unwrap();
    file.set_len(10).unwrap();
    let changes = sim.history().len();
    assert_eq!(file.write_at(b"c", 10).unwrap_err().kind(), ErrorKind::StorageFull);
    assert_eq!(sim.history().len(), changes, "nothing fits, and nothing is written");
    // A file without a name takes no space.
    sim.remove(Path::new("/a")).unwrap();
    assert_eq!(sim.used_bytes(), 0);
    file.write_at(b"AB", 8).unwrap();
    create(&sim, "/b").write_at(&[1; 10], 0).unwrap();
    assert_eq!(file.write_at(b"c", 10).unwrap_err().kind(), ErrorKind::StorageFull);
}

/// One operation more where a write makes the file longer, and one fate more where a sector more may be lost.
#[test]
fn no_state_is_counted_twice() {
    let (sim, file) = with_durable(&[1; 3 * SECTOR]);
    for (offset, len, pending, states) in
        [(SECTOR, SECTOR, 1, 2), (SECTOR, 2 * SECTOR, 1, 4), (0, 3 * SECTOR, 1, 5), (2 * SECTOR, 2 * SECTOR, 2, 8)]
    {
        file.write_at(&vec![2; len], offset as u64).unwrap();
        let all = sim.crash_states(100, 1);
        assert_eq!((all.pending(), all.is_exhaustive(), all.count()), (pending, true, states), "{len} at {offset}");
        file.sync().unwrap();
        file.write_at(&[1; 4 * SECTOR], 0).unwrap();
        file.set_len(3 * SECTOR as u64).unwrap();
        file.sync().unwrap();
    }
}

/// Changes carry the tag they were made under; those of one order can be made in another.
#[test]
fn changes_are_tagged_and_made_in_another_order() {
    let (sim, file) = with_durable(b"1234");
    let before = sim.changes().len();
    assert!(sim.changes().iter().all(|(tag, _)| *tag == 0));
    sim.tag_changes(Arc::new(|operation| match operation {
        Operation::Write { offset, .. } => 10 + offset,
        _ => 5,
    }));
    file.write_at(b"a", 0).unwrap();
    file.write_at(b"b", 0).unwrap();
    file.sync().unwrap();
    let changes = sim.changes();
    assert_eq!(changes[before..].iter().map(|(tag, _)| *tag).collect::<Vec<_>>(), [10, 10, 5]);
    assert_eq!(changes.into_iter().map(|(_, operation)| operation).collect::<Vec<_>>(), sim.history());
    let order = |last: &[usize]| [&(0..before).collect::<Vec<_>>(), last].concat();
    for (last, read, durable) in [
        (&[before, before + 1, before + 2][..], b"b234", b"b234"),
        (&[before + 1, before], b"a234", b"1234"),
        (&[before, before + 2, before + 1], b"b234", b"a234"),
    ] {
        let other = sim.reordered(&order(last));
        assert_eq!(other.bytes(Path::new("/a")).unwrap(), read);
        assert_eq!(other.crash(Crash::Lose).bytes(Path::new("/a")).unwrap(), durable);
    }
}

#[test]
fn a_read_only_disk_refuses_changes_and_allows_the_rest() {
    let (sim, file) = with_durable(b"content");
    sim.set_read_only(true);
    let path = Path::new("/a");
    for error in [
        file.write_at(b"x", 0).unwrap_err(),
        file.set_len(0).unwrap_err(),
        sim.open(path, OpenMode::ReadWrite).unwrap_err(),
        sim.open(Path::new("/b"), OpenMode::CreateNew).unwrap_err(),
        sim.rename(path, Path::new("/b")).unwrap_err(),
        sim.remove(path).unwrap_err(),
        sim.create_dir(Path::new("/dir")).unwrap_err(),
    ] {
        assert_eq!(error.kind(), ErrorKind::ReadOnlyFilesystem);
    }
    assert_eq!(sim.open(path, OpenMode::Read).unwrap().len().unwrap(), 7);
}

#[test]
fn flips_hit_what_is_read_and_what_survives() {
    let (sim, _) = with_durable(b"content");
    sim.flip(Path::new("/a"), 1, 0x20).unwrap();
    assert_eq!(sim.bytes(Path::new("/a")).unwrap(), b"cOntent");
    assert_eq!(sim.crash(Crash::Lose).bytes(Path::new("/a")).unwrap(), b"cOntent");
    assert!(sim.flip(Path::new("/a"), 7, 1).is_err());
}

#[test]
fn a_replay_stands_at_every_point_of_the_run() {
    let sim = SimVfs::new();
    sim.create_dir(Path::new("/d")).unwrap();
    let file = create(&sim, "/d/a");
    file.write_at(b"one", 0).unwrap();
    file.sync().unwrap();
    sim.sync_dir(Path::new("/d")).unwrap();
    file.write_at(b"two", 0).unwrap();
    sim.rename(Path::new("/d/a"), Path::new("/d/b")).unwrap();
    let points: Vec<SimVfs> = sim.replay().collect();
    assert_eq!(points.len(), sim.history().len() + 1);
    assert!(points[0].files().is_empty());
    let last = points.last().unwrap();
    assert_eq!(last.files(), sim.files());
    assert_eq!(last.bytes(Path::new("/d/b")).unwrap(), b"two");
    // After the directory was synced, and before the second write, nothing is open to chance.
    let synced = sim.history().iter().position(|step| matches!(step, Operation::SyncDir(_))).unwrap();
    assert_eq!(points[synced + 1].crashes(100, 1).len(), 1);
    assert_eq!(points[synced].crashes(100, 1).len(), 2);
}
