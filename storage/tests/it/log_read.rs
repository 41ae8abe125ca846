//! Reading one record whose length is not what was written: an error that says so, of whatever length.

use crate::log_fixture::{PAGE, create, records, segment_path};
use holotype_storage::Error;
use holotype_storage::log::Lsn;
use holotype_storage::vfs::SimVfs;

#[test]
fn a_length_is_believed_as_far_as_it_fits() {
    let sim = SimVfs::new();
    let log = create(&sim);
    let first = log.append(&records(1, &[2_500, 100]), 1).unwrap().lsns;
    log.append(&records(2, &[9_000]), 2).unwrap();
    let last = log.append(&records(3, &[2_500]), 3).unwrap();
    log.flush().unwrap();
    let (end, page) = (log.end().0, PAGE as usize);
    assert_eq!((first[0], end), (Lsn(PAGE), last.end.0));
    let told = |position: u64, len: usize| {
        let (path, offset) = (segment_path(position / (4 * PAGE) + 1), position % (4 * PAGE));
        let old = sim.bytes(&path).unwrap();
        let masks = old[offset as usize..].iter().zip((len as u32).to_le_bytes()).map(|(old, new)| old ^ new);
        let masks: Vec<u8> = masks.take(4).collect();
        let flip = || (offset..).zip(&masks).for_each(|(at, &mask)| sim.flip(&path, at, mask).unwrap());
        flip();
        let read = log.read(Lsn(position));
        flip();
        match read {
            Err(Error::Damaged(damage)) if damage.position.0 == position => damage.what,
            other => panic!("{other:?}"),
        }
    };
    // First in its page, a record may take a run as long as the segment; behind others, what is left of the page.
    let run = 3 * page - 96 - 28;
    let left = page - 96 - first[1].0 as usize % page - 28;
    // The last record of the log ends where the log does, at most.
    let until_end = (end - last.lsns[0].0) as usize - 28;
    let most = [(first[0].0, run), (first[1].0, left), (last.lsns[0].0, until_end)];
    for (position, most) in most {
        assert!(told(position, most).starts_with("record checksum is"), "{position} {most}");
        for more in [most + 1, most + 8, 4 * page, 16 << 20] {
            let what = told(position, more);
            assert!(what.contains("does not fit the"), "{position} {more}: {what}");
        }
    }
    // One page less than what was written, and such as would end in the footer.
    for len in [page - 96 - 28 + 1, 2 * page - 96 - 28, 2 * page - 96 - 28 + 1] {
        assert!(told(first[0].0, len).starts_with("record checksum is"), "{len}");
    }
}
