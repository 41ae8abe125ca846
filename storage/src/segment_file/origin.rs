//! The commit up to which a derived file was derived: the section `LOG `, with the layout given in `segment_file`.
//!
//! The head hash of a commit covers the whole log up to it. So if a log contains the origin's commit with the same
//! head, the file was derived from that log. A file derived from a branch that was lost in a crash, or by restoring an
//! older copy, does not match.

use crate::chain::Hash;
use crate::log::{CommitNo, Head, Lsn};

pub(super) const TAG: [u8; 4] = *b"LOG ";
/// The compatible feature of a file with the section.
pub(super) const FEATURE: u8 = 1;

const POSITION: usize = 0;
const COMMIT: usize = POSITION + 8;
const HEAD: usize = COMMIT + 8;
const LEN: usize = HEAD + 32;
const _: () = assert!(LEN == 48);

pub(super) fn encode(origin: &Head) -> [u8; LEN] {
    let mut bytes = [0; LEN];
    bytes[POSITION..COMMIT].copy_from_slice(&origin.position.0.to_le_bytes());
    bytes[COMMIT..HEAD].copy_from_slice(&origin.commit.0.to_le_bytes());
    bytes[HEAD..].copy_from_slice(&origin.hash);
    bytes
}

pub(super) fn decode(bytes: &[u8]) -> Option<Head> {
    let bytes: &[u8; LEN] = bytes.try_into().ok()?;
    let number = |at: usize| u64::from_le_bytes(crate::log_page::field(bytes, at));
    let hash: Hash = crate::log_page::field(bytes, HEAD);
    Some(Head { position: Lsn(number(POSITION)), commit: CommitNo(number(COMMIT)), hash })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format_doc;

    #[test]
    fn the_document_says_the_same() {
        assert_eq!(format_doc::between(&[POSITION, COMMIT, HEAD, LEN]), format_doc::fields("Origin"));
    }

    #[test]
    fn the_bytes_are_fixed() {
        let origin = Head { position: Lsn(0x0102), commit: CommitNo(3), hash: [7; 32] };
        let expected = [&[2, 1, 0, 0, 0, 0, 0, 0][..], &[3, 0, 0, 0, 0, 0, 0, 0], &[7; 32]].concat();
        assert_eq!(encode(&origin).as_slice(), expected);
        assert_eq!(decode(&expected), Some(origin));
        assert_eq!(decode(&expected[1..]), None);
    }
}
