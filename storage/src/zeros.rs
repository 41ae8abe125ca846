//! Runs of zeros, which make up most of a log's files. They are compared in blocks: a loop that may end at each byte
//! takes many times as long.

const BLOCK: usize = 64;

/// True if all bytes are zero.
pub(crate) fn is_zero(bytes: &[u8]) -> bool {
    !bytes.chunks(BLOCK).any(is_used)
}

/// The index of the first byte that is not zero.
pub(crate) fn first_used(bytes: &[u8]) -> Option<usize> {
    let start = bytes.chunks(BLOCK).position(is_used)? * BLOCK;
    let at = bytes.get(start..)?.iter().position(|&byte| byte != 0)?;
    Some(start + at)
}

/// The index of the last byte that is not zero.
pub(crate) fn last_used(bytes: &[u8]) -> Option<usize> {
    let behind = bytes.rchunks(BLOCK).position(is_used)? * BLOCK;
    bytes.get(..bytes.len() - behind)?.iter().rposition(|&byte| byte != 0)
}

fn is_used(block: &[u8]) -> bool {
    block.iter().fold(0, |seen, byte| seen | byte) != 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn used_bytes_are_found_wherever_they_stand() {
        for len in [0, 1, 63, 64, 65, 200] {
            let zeros = vec![0; len];
            assert_eq!((first_used(&zeros), last_used(&zeros), is_zero(&zeros)), (None, None, true));
            for at in 0..len {
                let mut bytes = zeros.clone();
                bytes[at] = 0x80;
                assert_eq!((first_used(&bytes), last_used(&bytes), is_zero(&bytes)), (Some(at), Some(at), false));
                bytes[len - 1] = 1;
                assert_eq!((first_used(&bytes), last_used(&bytes)), (Some(at), Some(len - 1)));
            }
        }
    }
}
