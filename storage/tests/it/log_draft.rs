//! A draft becomes the transaction of the records that were left in it, and the next one when it is used again.

use crate::log_fixture::{create, holds, open, records};
use holotype_storage::log::{Draft, OpenOptions};
use holotype_storage::vfs::SimVfs;
use holotype_storage::{Error, MAX_PAYLOAD, NewRecord};

fn push(draft: &mut Draft, record: &NewRecord) -> usize {
    let payload = |bytes: &mut Vec<u8>| {
        bytes.extend_from_slice(&record.payload);
        Ok::<(), Error>(())
    };
    draft.push(record.kind, payload).unwrap()
}

#[test]
fn what_is_taken_back_or_refused_leaves_nothing() {
    let sim = SimVfs::new();
    let log = create(&sim);
    let new = records(7, &[100, 0, 3_000, 5, 9_000]);
    let mut draft = Draft::default();
    assert_eq!(push(&mut draft, &new[0]), 100);
    let fails = |bytes: &mut Vec<u8>| {
        bytes.extend_from_slice(b"begun");
        Err(Error::Closed)
    };
    assert!(matches!(draft.push(1, fails), Err(Error::Closed)));
    for kind in [0, 0xf0] {
        let reserved = draft.push(kind, |_| Ok::<(), Error>(()));
        assert!(matches!(reserved, Err(Error::ReservedKind { kind: found }) if found == kind));
    }
    let too_long = draft.push(1, |bytes| {
        bytes.resize(bytes.len() + MAX_PAYLOAD + 1, 1);
        Ok::<(), Error>(())
    });
    assert!(matches!(too_long, Err(Error::TooLarge { .. })));
    new[1..4].iter().for_each(|record| assert_eq!(push(&mut draft, record), record.payload.len()));
    draft.truncate(2);
    push(&mut draft, &new[4]);

    let prepared = log.prepare_draft(draft).unwrap();
    log.append_prepared(&prepared, 1).unwrap();
    let mut draft = prepared.into_draft();
    push(&mut draft, &new[2]);
    log.append_prepared(&log.prepare_draft(draft).unwrap(), 2).unwrap();
    log.close().unwrap();

    let opened = open(&sim, &OpenOptions::default());
    let [first, second] = opened.transactions.as_slice() else { panic!("{} transactions", opened.transactions.len()) };
    assert!(holds(first, &[new[0].clone(), new[1].clone(), new[4].clone()]));
    assert!(holds(second, &new[2..3]));
}

#[test]
fn a_draft_that_is_longer_than_a_transaction_may_be_is_refused() {
    let log = create(&SimVfs::new());
    let mut draft = Draft::default();
    let large = NewRecord { kind: 1, payload: vec![1; MAX_PAYLOAD] };
    (0..4).for_each(|_| _ = push(&mut draft, &large));
    assert!(matches!(log.prepare_draft(draft), Err(Error::TooLarge { what: "a transaction", .. })));
}
