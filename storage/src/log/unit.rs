//! The unit of scanning: a log page, or the run of a long record.

use crate::log_page::FOOTER_LEN;

/// A page or run, in memory.
#[derive(Clone, Debug, Default)]
pub(crate) struct Unit {
    /// The position of its first byte.
    pub(crate) start: u64,
    pub(crate) bytes: Vec<u8>,
}

impl Unit {
    /// The bytes that records may use.
    pub(crate) fn records_len(&self) -> usize {
        self.bytes.len() - FOOTER_LEN
    }

    /// The position after its last byte.
    pub(crate) fn end(&self) -> u64 {
        self.start + self.bytes.len() as u64
    }
}
