//! The effect of a crash on uncovered operations: each meets a fate, in all combinations or in samples.

use std::iter;

use super::SimVfs;
use super::disk::Disk;

/// The length that a disk writes atomically.
const SECTOR_LEN: u64 = 512;

/// The greatest number of uncovered operations whose fates are tried in all combinations.
pub(super) const MOST_TRIED: usize = 12;

/// The fates of an operation: lost, kept, or kept without its last, first or middle sector.
pub(super) const LOST: usize = 0;
pub(super) const KEPT: usize = 1;
const WITHOUT_LAST: usize = 2;
const WITHOUT_FIRST: usize = 3;

/// The fate of the uncovered operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Crash {
    /// All are lost.
    Lose,
    /// All are kept.
    Keep,
    /// Each meets a fate of its own, drawn from this seed.
    Seeded(u64),
}

/// The states that one crash may leave, from [`SimVfs::crash_states`]. The same state may occur more than once.
#[derive(Debug)]
pub struct CrashStates {
    disk: Disk,
    pending: usize,
    /// The number of combinations, if all are enumerated.
    all: Option<u64>,
    limit: u64,
    seed: u64,
    next: u64,
}

impl CrashStates {
    pub(super) fn new(disk: Disk, limit: u64, seed: u64) -> Self {
        let counts = disk.fate_counts();
        let pending = counts.len();
        let all = counts.into_iter().try_fold(1_u64, |all, count| all.checked_mul(count as u64));
        let all = all.filter(|&all| pending <= MOST_TRIED && all <= limit.max(1));
        Self { disk, pending, all, limit, seed, next: 0 }
    }

    /// The number of uncovered operations.
    #[must_use]
    pub fn pending(&self) -> usize {
        self.pending
    }

    /// True if every possible state is enumerated, instead of a sample.
    #[must_use]
    pub fn is_exhaustive(&self) -> bool {
        self.all.is_some()
    }
}

impl Iterator for CrashStates {
    type Item = SimVfs;

    fn next(&mut self) -> Option<SimVfs> {
        let number = self.next;
        if number >= self.all.unwrap_or(self.limit) {
            return None;
        }
        self.next += 1;
        let mut fates = match (self.all, number) {
            (Some(_), choice) => Fates::Enumerated(choice),
            (None, 0) => Fates::Always(LOST),
            (None, 1) => Fates::Always(KEPT),
            (None, sample) => Fates::Random(SplitMix(self.seed ^ sample.wrapping_mul(0xd134_2543_de82_ef95))),
        };
        Some(SimVfs::with_disk(self.disk.crashed(&mut fates)))
    }
}

/// The source of fates.
#[derive(Debug)]
pub(super) enum Fates {
    Always(usize),
    Random(SplitMix),
    /// A number whose digits, in the mixed radix of the operations' counts, are the fates.
    Enumerated(u64),
}

impl Fates {
    pub(super) fn new(crash: Crash) -> Self {
        match crash {
            Crash::Lose => Self::Always(LOST),
            Crash::Keep => Self::Always(KEPT),
            Crash::Seeded(seed) => Self::Random(SplitMix(seed)),
        }
    }

    pub(super) fn draw(&mut self, count: usize) -> usize {
        match self {
            Self::Always(fate) => *fate,
            Self::Random(random) => (random.next() % count as u64) as usize,
            Self::Enumerated(rest) => {
                let fate = *rest % count as u64;
                *rest /= count as u64;
                fate as usize
            }
        }
    }
}

/// Steele, Lea and Flood, "Fast Splittable Pseudorandom Number Generators", OOPSLA 2014.
#[derive(Debug)]
pub(super) struct SplitMix(u64);

impl SplitMix {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        super::content::mix(self.0)
    }
}

/// The number of sectors that a write touches.
pub(super) fn sectors(offset: u64, len: usize) -> u64 {
    (offset + len as u64).div_ceil(SECTOR_LEN) - offset / SECTOR_LEN
}

/// The pieces of a write that its fate keeps, with their offsets: all of it, or the pieces before and after the missing
/// sector.
pub(super) fn kept_sectors(offset: u64, bytes: &[u8], fate: usize) -> impl Iterator<Item = (usize, &[u8])> {
    let count = sectors(offset, bytes.len());
    let missing = match fate {
        LOST => None,
        KEPT => Some(count),
        WITHOUT_LAST => Some(count - 1),
        WITHOUT_FIRST => Some(0),
        _ => Some(count / 2),
    };
    let end = offset + bytes.len() as u64;
    // The start of the sector of this index, clamped to the write.
    let start_of = move |sector: u64| ((offset / SECTOR_LEN + sector) * SECTOR_LEN).clamp(offset, end);
    let piece = move |from: u64, to: u64| (from as usize, &bytes[(from - offset) as usize..(to - offset) as usize]);
    let pieces = missing.map(|sector| [piece(offset, start_of(sector)), piece(start_of(sector + 1), end)]);
    iter::once(pieces).flatten().flatten().filter(|(_, bytes)| !bytes.is_empty())
}
