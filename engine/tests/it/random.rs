//! Random numbers from a seed, for tests that compare with a naive account: xorshift64* (Vigna 2016).

/// A generator; the seed is not 0.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    /// A number below `bound`.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) % bound
    }

    /// An index below `len`.
    pub(crate) fn index(&mut self, len: usize) -> usize {
        self.below(len as u64) as usize
    }

    /// True in so many of a hundred cases.
    pub(crate) fn percent(&mut self, share: u64) -> bool {
        self.below(100) < share
    }

    /// One of several.
    pub(crate) fn one<'t, T>(&mut self, of: &'t [T]) -> &'t T {
        &of[self.index(of.len())]
    }
}
