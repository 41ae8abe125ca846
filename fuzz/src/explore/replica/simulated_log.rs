//! A log for the explorer: sixteen bytes a commit, eight that the hash chain covers and eight that can be erased.
//!
//! | offset | size | field |
//! |---|---|---|
//! | 0 | 2 | a random number of the commit |
//! | 2 | 2 | the commit that it erases, 0 for none |
//! | 4 | 4 | its number |
//! | 8 | 8 | content: its number and random number, or zeros once it is erased |

use std::ops::ControlFlow;

use holotype_replica::manifest::Manifest;
use holotype_replica::source::{Sink, Source};
use holotype_replica::{Error, Result};
use holotype_storage::log::{CommitNo, Floor, Growth, Head, Lsn, Span};

pub(super) const LEN: u64 = 16;
pub(super) const DATABASE: [u8; 16] = [7; 16];

/// A log in memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct SimulatedLog {
    pub(super) bytes: Vec<u8>,
}

impl SimulatedLog {
    pub(super) fn commits(&self) -> u64 {
        self.bytes.len() as u64 / LEN
    }

    fn commit(&self, number: u64) -> &[u8] {
        let at = ((number - 1) * LEN) as usize;
        &self.bytes[at..at + LEN as usize]
    }

    /// Appends a commit that may name another to be erased.
    pub(super) fn append(&mut self, random: u16, erases: u64) {
        let number = self.commits() as u32 + 1;
        self.bytes.extend_from_slice(&random.to_le_bytes());
        self.bytes.extend_from_slice(&(erases as u16).to_le_bytes());
        self.bytes.extend_from_slice(&number.to_le_bytes());
        self.bytes.extend_from_slice(&number.to_le_bytes());
        self.bytes.extend_from_slice(&(u32::from(random) | 1 << 31).to_le_bytes());
    }

    /// The commit that this one erases; 0 for none.
    pub(super) fn erases(&self, number: u64) -> u64 {
        let commit = self.commit(number);
        u16::from_le_bytes([commit[2], commit[3]]).into()
    }

    pub(super) fn is_erased(&self, number: u64) -> bool {
        self.commit(number)[8..] == [0; 8]
    }

    /// Overwrites what its commits name, as an opening does that finds it unfinished. Returns true if there was any.
    pub(super) fn finish_erasures(&mut self) -> bool {
        let mut found = false;
        for number in 1..=self.commits() {
            let erased = self.erases(number);
            if erased > 0 && !self.is_erased(erased) {
                let at = ((erased - 1) * LEN) as usize + 8;
                self.bytes[at..at + 8].fill(0);
                found = true;
            }
        }
        found
    }

    /// The head after a commit.
    pub(super) fn head(&self, number: u64) -> Head {
        let mut hash = [0; 32];
        for each in 1..=number {
            hash = *blake3_of(&[&hash[..], &self.commit(each)[..8]].concat());
        }
        if number == 0 {
            return Head::default();
        }
        Head { position: Lsn(number * LEN), commit: CommitNo(number), hash }
    }

    /// True if the other log begins with this one, apart from erasures.
    pub(super) fn begins(&self, other: &Self) -> bool {
        let number = self.commits();
        number <= other.commits() && self.head(number) == other.head(number)
    }
}

fn blake3_of(bytes: &[u8]) -> Box<[u8; 32]> {
    Box::new(holotype_storage::proof::leaf_hash(&[0; 8], &[], bytes))
}

impl Source for SimulatedLog {
    fn database(&self) -> [u8; 16] {
        DATABASE
    }

    fn page_size(&self) -> u32 {
        4096
    }

    fn floor(&self) -> Option<Floor> {
        None
    }

    fn contains(&self, head: Head) -> Result<bool> {
        Ok(head.commit.0 <= self.commits() && self.head(head.commit.0) == head)
    }

    fn spans(&self, _end: Lsn) -> Vec<Span> {
        vec![Span { number: 1, first: Lsn(0), len: 1 << 16 }]
    }

    fn end(&self) -> Lsn {
        Lsn(self.bytes.len() as u64)
    }

    fn growth(&self, from: Option<Head>, step: &mut dyn FnMut(Growth) -> ControlFlow<()>) -> Result<()> {
        let from = from.map_or(0, |from| from.commit.0);
        for number in from + 1..=self.commits() {
            let erased = self.erases(number);
            let range = (Lsn(erased.wrapping_sub(1).wrapping_mul(LEN)), Lsn(erased * LEN));
            let grown = Growth::Commit {
                head: self.head(number),
                time_us: number as i64,
                leaves: vec![*blake3_of(&self.commit(number)[..8])],
                erases: if erased > 0 { vec![range] } else { Vec::new() },
            };
            if step(grown).is_break() {
                return Ok(());
            }
        }
        for number in 1..=self.commits() {
            if self.erases(number) > 0 && self.is_erased(self.erases(number)) {
                let end = Lsn(self.bytes.len() as u64);
                if step(Growth::Erased { commit: number, end }).is_break() {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    fn read(&self, first: u64, end: u64) -> Result<Vec<u8>> {
        Ok(self.bytes[first as usize..end as usize].to_vec())
    }
}

/// A follower's copy.
#[derive(Clone, Debug, Default)]
pub(super) struct SimulatedCopy {
    bytes: Vec<u8>,
    /// The log that readers see, and the serial of its head.
    pub(super) shown: SimulatedLog,
    pub(super) pending: Vec<u64>,
}

impl Sink for SimulatedCopy {
    fn prepare(&mut self, manifest: &Manifest) -> Result<()> {
        let len = self.bytes.len().max(manifest.head.position.0 as usize);
        self.bytes.resize(len, 0);
        Ok(())
    }

    fn write(&mut self, first: u64, bytes: &[u8]) -> Result<()> {
        self.bytes[first as usize..first as usize + bytes.len()].copy_from_slice(bytes);
        Ok(())
    }

    fn show(&mut self, manifest: &Manifest) -> Result<()> {
        let bytes = self.bytes[..manifest.head.position.0 as usize].to_vec();
        let log = SimulatedLog { bytes };
        if log.head(log.commits()) != manifest.head {
            return Err(Error::Damaged { key: "copy".into(), what: "the chain does not lead to the head".into() });
        }
        self.shown = log;
        self.pending = manifest.pending.iter().map(|pending| pending.commit).collect();
        Ok(())
    }
}
