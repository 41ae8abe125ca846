//! The content of a simulated file: pages shared copy-on-write, so that a copy costs a pointer and a change costs its
//! pages, with a fingerprint that is recomputed only for changed pages.
//!
//! 1. There are `len / PAGE_LEN` pages, rounded up; bytes after `len` in the last one are zero.
//! 2. The hash of a page and the fingerprint of a content are computed at first use; 0 means not computed. A change
//!    resets them.
//! 3. A page that is overwritten entirely with zeros becomes the shared page of zeros.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use crate::zeros::is_zero;

pub(super) const PAGE_LEN: usize = 4096;

/// The bytes of a file.
#[derive(Clone, Debug, Default)]
pub(super) struct Content {
    pages: Arc<Pages>,
}

#[derive(Debug, Default)]
struct Pages {
    pages: Vec<Arc<Page>>,
    len: usize,
    fingerprint: AtomicU64,
}

impl Clone for Pages {
    /// Pages are only copied to be changed, so the copy has no fingerprint yet.
    fn clone(&self) -> Self {
        Self { pages: self.pages.clone(), len: self.len, fingerprint: AtomicU64::new(0) }
    }
}

#[derive(Debug)]
struct Page {
    bytes: [u8; PAGE_LEN],
    hash: AtomicU64,
}

impl Clone for Page {
    /// A page is only copied to be changed, so the copy has no hash yet.
    fn clone(&self) -> Self {
        Self { bytes: self.bytes, hash: AtomicU64::new(0) }
    }
}

impl Content {
    pub(super) fn from_bytes(bytes: &[u8]) -> Self {
        let mut content = Self::default();
        content.write(0, bytes);
        content
    }

    pub(super) fn len(&self) -> usize {
        self.pages.len
    }

    /// Copies bytes from `offset` to `buf` and returns their number.
    pub(super) fn read(&self, offset: u64, buf: &mut [u8]) -> usize {
        let Ok(start) = usize::try_from(offset) else { return 0 };
        let len = buf.len().min(self.len().saturating_sub(start));
        let mut done = 0;
        while done < len {
            let (page, within) = ((start + done) / PAGE_LEN, (start + done) % PAGE_LEN);
            let step = (len - done).min(PAGE_LEN - within);
            buf[done..done + step].copy_from_slice(&self.pages.pages[page].bytes[within..within + step]);
            done += step;
        }
        len
    }

    /// Writes at `offset`, filling a gap after the end with zeros.
    pub(super) fn write(&mut self, offset: usize, bytes: &[u8]) {
        let pages = self.pages_mut();
        if offset + bytes.len() > pages.len {
            pages.resize(offset + bytes.len());
        }
        let mut done = 0;
        while done < bytes.len() {
            let (page, within) = ((offset + done) / PAGE_LEN, (offset + done) % PAGE_LEN);
            let step = (bytes.len() - done).min(PAGE_LEN - within);
            let part = &bytes[done..done + step];
            match <&[u8; PAGE_LEN]>::try_from(part) {
                Ok(whole) => pages.pages[page] = page_of(whole),
                Err(_) => pages.page_mut(page)[within..within + step].copy_from_slice(part),
            }
            done += step;
        }
    }

    /// Truncates, or extends with zeros.
    pub(super) fn resize(&mut self, len: usize) {
        if len != self.len() {
            self.pages_mut().resize(len);
        }
    }

    /// Flips bits of the byte at `at`. Returns false if there is none.
    pub(super) fn flip(&mut self, at: usize, mask: u8) -> bool {
        let there = at < self.len();
        if there {
            self.pages_mut().page_mut(at / PAGE_LEN)[at % PAGE_LEN] ^= mask;
        }
        there
    }

    /// True if every byte of a range is zero or past the end.
    pub(super) fn is_blank(&self, offset: usize, len: usize) -> bool {
        let end = self.len().min(offset.saturating_add(len));
        let mut at = offset;
        while at < end {
            let within = at % PAGE_LEN;
            let step = (end - at).min(PAGE_LEN - within);
            let page = &self.pages.pages[at / PAGE_LEN];
            if !Arc::ptr_eq(page, zero_page()) && !is_zero(&page.bytes[within..within + step]) {
                return false;
            }
            at += step;
        }
        true
    }

    pub(super) fn to_vec(&self) -> Vec<u8> {
        let mut bytes = vec![0; self.len()];
        self.read(0, &mut bytes);
        bytes
    }

    /// Equal for equal bytes, and almost never for different ones.
    pub(super) fn fingerprint(&self) -> u64 {
        match self.pages.fingerprint.load(Ordering::Relaxed) {
            0 => {
                let pages = self.pages.pages.iter().enumerate();
                let sum = pages.fold(mix(self.len() as u64), |sum, (at, page)| {
                    sum.wrapping_add(mix(page.hash() ^ (at as u64) << 1))
                });
                self.pages.fingerprint.store(sum, Ordering::Relaxed);
                sum
            }
            known => known,
        }
    }

    fn pages_mut(&mut self) -> &mut Pages {
        let pages = Arc::make_mut(&mut self.pages);
        *pages.fingerprint.get_mut() = 0;
        pages
    }
}

impl Pages {
    fn resize(&mut self, len: usize) {
        if len < self.len && !len.is_multiple_of(PAGE_LEN) {
            self.page_mut(len / PAGE_LEN)[len % PAGE_LEN..].fill(0);
        }
        self.pages.resize_with(len.div_ceil(PAGE_LEN), || Arc::clone(zero_page()));
        self.len = len;
    }

    fn page_mut(&mut self, at: usize) -> &mut [u8; PAGE_LEN] {
        let page = Arc::make_mut(&mut self.pages[at]);
        *page.hash.get_mut() = 0;
        &mut page.bytes
    }
}

impl Page {
    fn hash(&self) -> u64 {
        match self.hash.load(Ordering::Relaxed) {
            0 => {
                let hash = hash(&self.bytes) | 1;
                self.hash.store(hash, Ordering::Relaxed);
                hash
            }
            known => known,
        }
    }
}

fn zero_page() -> &'static Arc<Page> {
    static ZERO: OnceLock<Arc<Page>> = OnceLock::new();
    ZERO.get_or_init(|| Arc::new(Page { bytes: [0; PAGE_LEN], hash: AtomicU64::new(0) }))
}

fn page_of(bytes: &[u8; PAGE_LEN]) -> Arc<Page> {
    match is_zero(bytes) {
        true => Arc::clone(zero_page()),
        false => Arc::new(Page { bytes: *bytes, hash: AtomicU64::new(0) }),
    }
}

/// Four independent lanes of multiply and rotate, which the processor runs in parallel.
fn hash(bytes: &[u8; PAGE_LEN]) -> u64 {
    let mut lanes = [1_u64, 2, 3, 4];
    let (blocks, _) = bytes.as_chunks::<32>();
    for block in blocks {
        for (lane, word) in lanes.iter_mut().zip(block.as_chunks::<8>().0) {
            *lane = (*lane ^ u64::from_le_bytes(*word)).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
        }
    }
    lanes.into_iter().fold(0, |sum, lane| mix(sum.rotate_left(7) ^ lane))
}

/// The finaliser of SplitMix64.
pub(super) fn mix(mut word: u64) -> u64 {
    word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Against a plain vector: reads, writes across pages, cuts and growth; copies keep what they had.
        #[test]
        fn it_is_a_vector_of_bytes(steps in prop::collection::vec((0..4_u8, 0..20_000_usize, 1..9000_usize), 1..20)) {
            let (mut content, mut model) = (Content::default(), Vec::new());
            for (number, (kind, at, len)) in steps.into_iter().enumerate() {
                let (before, was) = (content.clone(), model.clone());
                match kind {
                    0 => {
                        content.resize(at);
                        model.resize(at, 0);
                    }
                    1 => {
                        let flipped = content.flip(at, 0x11);
                        prop_assert_eq!(flipped, at < model.len());
                        if flipped {
                            model[at] ^= 0x11;
                        }
                    }
                    _ => {
                        let bytes: Vec<u8> = (0..len).map(|i| (i * 7 + number) as u8).collect();
                        content.write(at, &bytes);
                        model.resize(model.len().max(at + len), 0);
                        model[at..at + len].copy_from_slice(&bytes);
                    }
                }
                prop_assert_eq!(&content.to_vec(), &model);
                prop_assert_eq!(before.to_vec(), was);
                prop_assert_eq!(content.fingerprint(), Content::from_bytes(&model).fingerprint());
                let mut buf = vec![0; len];
                let read = content.read(at as u64, &mut buf);
                prop_assert_eq!(&buf[..read], model.get(at..(at + len).min(model.len())).unwrap_or_default());
                let blank = model.iter().skip(at).take(len).all(|&byte| byte == 0);
                prop_assert_eq!(content.is_blank(at, len), blank);
            }
        }
    }

    #[test]
    fn a_range_is_blank_by_its_own_bytes() {
        let mut content = Content::default();
        content.write(10, &[1; 10]);
        content.write(2 * PAGE_LEN + 10, &[1]);
        for (offset, len, blank) in [
            (0, 10, true),
            (5, 5, true),
            (0, 11, false),
            (19, 1, false),
            (20, PAGE_LEN, true),
            (20, 2 * PAGE_LEN - 10, true),
            (20, 2 * PAGE_LEN - 9, false),
            (2 * PAGE_LEN + 11, 100, true),
        ] {
            assert_eq!(content.is_blank(offset, len), blank, "{len} bytes from {offset}");
        }
    }

    /// The first numbers that SplitMix64 gives from 0.
    #[test]
    fn mixing_is_that_of_split_mix() {
        let step = 0x9e37_79b9_7f4a_7c15_u64;
        let expected = [0xe220_a839_7b1d_cdaf, 0x6e78_9e6a_a1b9_65f4, 0x06c4_5d18_8009_454f];
        assert_eq!([1, 2, 3].map(|number| mix(step.wrapping_mul(number))), expected);
    }

    #[test]
    fn a_fingerprint_tells_places_and_lengths_apart() {
        let mut seen = std::collections::HashSet::new();
        for len in [0, 1, PAGE_LEN, PAGE_LEN + 1, 3 * PAGE_LEN] {
            let zeros = Content::from_bytes(&vec![0; len]);
            assert!(seen.insert(zeros.fingerprint()), "{len} zeros");
            for at in (0..len).step_by(509) {
                let mut flipped = zeros.clone();
                assert!(flipped.flip(at, 1));
                assert!(seen.insert(flipped.fingerprint()), "a bit at {at} of {len}");
            }
        }
    }
}
