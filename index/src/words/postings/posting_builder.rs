//! Posting lists under construction, in their encoded form.
//!
//! The cost of adding a posting is memory latency: the lists of all terms do not fit into the cache. So the head of a
//! list is one cache line that stores the newest bytes itself; when it is full, they move to the arena together. The
//! posting of the newest document is kept decoded, because its frequency may still rise.
//!
//! | offset | size | field of a head |
//! |---|---|---|
//! | 0 | 4 | start of the first chunk |
//! | 4 | 4 | position of the next byte in the last chunk |
//! | 8 | 4 | the document that the gap to the newest posting counts from |
//! | 12 | 8 | the newest posting |
//! | 20 | 4 | number of postings, including the newest |
//! | 24 | 2 | free bytes of the last chunk |
//! | 26 | 2 | length of the last chunk; 0 without one |
//! | 28 | 1 | number of bytes in the head |
//! | 29 | 35 | these bytes |
//!
//! A chunk has 64, 128, … up to 1,024 bytes, the last four of which point to the next chunk.
//!
//! Cost: one or two bytes per posting, at most as much again for free space, and 64 bytes per list; one cache miss per
//! posting.

use crate::words::postings::{MAX_POSTING_LEN, ONCE, Posting, each_posting, put_posting};

/// The lengths of a list's first chunk and its largest chunks.
const FIRST_CHUNK: u16 = 64;
const LARGEST_CHUNK: u16 = 1024;
/// Length of the pointer to the next chunk.
const LINK_LEN: usize = 4;
/// Capacity of a head in bytes.
const HELD_LEN: usize = 35;
/// Sentinel: no document.
const NONE: u32 = u32::MAX;

/// Lists by number, from 0.
#[derive(Debug, Default)]
pub(crate) struct PostingBuilder {
    heads: Vec<Head>,
    arena: Vec<u8>,
}

#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct Head {
    first: u32,
    next: u32,
    /// The smallest document that the newest posting may have.
    least: u32,
    newest: Posting,
    count: u32,
    room: u16,
    chunk: u16,
    held_len: u8,
    held: [u8; HELD_LEN],
}

const _: () = assert!(size_of::<Head>() == 64);

const EMPTY: Head = Head {
    first: 0,
    next: 0,
    least: 0,
    newest: Posting { local: NONE, frequency: 0 },
    count: 0,
    room: 0,
    chunk: 0,
    held_len: 0,
    held: [0; HELD_LEN],
};

impl PostingBuilder {
    /// The approximate memory of all lists in bytes.
    pub(crate) fn byte_len(&self) -> usize {
        self.heads.capacity() * size_of::<Head>() + self.arena.capacity()
    }

    /// The number of lists.
    pub(crate) fn len(&self) -> usize {
        self.heads.len()
    }

    /// Adds an empty list and returns its number.
    pub(crate) fn add_list(&mut self) -> u32 {
        self.heads.push(EMPTY);
        self.heads.len() as u32 - 1
    }

    /// Prefetches the head of a list.
    #[inline]
    pub(crate) fn prefetch(&self, list: u32) {
        if let Some(head) = self.heads.get(list as usize) {
            crate::prefetch::prefetch(std::slice::from_ref(head));
        }
    }

    /// Prefetches the first and the last cache line of a list in the arena.
    #[inline]
    pub(crate) fn prefetch_bytes(&self, list: u32) {
        let Some(head) = self.heads.get(list as usize).filter(|head| head.chunk > 0) else { return };
        for place in [head.first, head.next - 1] {
            if let Some(byte) = self.arena.get(place as usize) {
                crate::prefetch::prefetch(std::slice::from_ref(byte));
            }
        }
    }

    /// Adds an occurrence to a list, in its last document or a later one.
    #[inline]
    pub(crate) fn add(&mut self, list: u32, local: u32, weight: u32) {
        let head = &mut self.heads[list as usize];
        if head.newest.local == local {
            head.newest.frequency = head.newest.frequency.saturating_add(weight);
            return;
        }
        if head.count > 0 {
            head.settle(&mut self.arena);
        }
        head.newest = Posting { local, frequency: weight };
        head.count += 1;
    }

    /// Appends a list to `bytes` in segment encoding and returns its posting count.
    pub(crate) fn encode_into(&self, list: u32, bytes: &mut Vec<u8>) -> u32 {
        let Some(head) = self.heads.get(list as usize).filter(|head| head.count > 0) else { return 0 };
        let (mut start, mut chunk, end) = (head.first as usize, FIRST_CHUNK, head.next as usize);
        if head.chunk > 0 {
            loop {
                let link = start + usize::from(chunk) - LINK_LEN;
                if (start..=link).contains(&end) {
                    bytes.extend_from_slice(self.arena.get(start..end).unwrap_or_default());
                    break;
                }
                bytes.extend_from_slice(self.arena.get(start..link).unwrap_or_default());
                let Some(link) = self.arena.get(link..).and_then(<[u8]>::first_chunk) else { break };
                start = u32::from_le_bytes(*link) as usize;
                chunk = (2 * chunk).min(LARGEST_CHUNK);
            }
        }
        bytes.extend_from_slice(head.held());
        put_posting(head.newest.local - head.least, head.newest.frequency, |byte| bytes.push(byte));
        head.count
    }

    /// The postings of a list below `bound`.
    pub(crate) fn postings(&self, list: u32, bound: u32) -> Vec<Posting> {
        let mut bytes = Vec::new();
        let mut postings = Vec::with_capacity(self.encode_into(list, &mut bytes) as usize);
        each_posting(&bytes, |posting| {
            let is_below = posting.local < bound;
            if is_below {
                postings.push(posting);
            }
            is_below
        });
        postings
    }
}

impl Head {
    fn held(&self) -> &[u8] {
        self.held.get(..usize::from(self.held_len)).unwrap_or_default()
    }

    /// The newest posting stays decoded.
    #[inline]
    fn settle(&mut self, arena: &mut Vec<u8>) {
        let Posting { local, frequency } = self.newest;
        let gap = local - self.least;
        let free = self.held.get_mut(usize::from(self.held_len)..).unwrap_or_default();
        match free {
            [byte, ..] if gap < 1 << 6 && frequency == ONCE => {
                *byte = (gap as u8) << 1 | 1;
                self.held_len += 1;
            }
            [low, high, ..] if gap < 1 << 13 && frequency == ONCE => {
                (*low, *high) = ((gap as u8) << 1 | 0x81, (gap >> 6) as u8);
                self.held_len += 2;
            }
            _ => self.settle_long(arena),
        }
        self.least = local + 1;
    }

    #[inline(never)]
    fn settle_long(&mut self, arena: &mut Vec<u8>) {
        if usize::from(self.held_len) + MAX_POSTING_LEN > HELD_LEN {
            self.spill(arena);
        }
        put_posting(self.newest.local - self.least, self.newest.frequency, |byte| {
            self.held[usize::from(self.held_len)] = byte;
            self.held_len += 1;
        });
    }

    /// Moves the bytes of the head to the arena.
    fn spill(&mut self, arena: &mut Vec<u8>) {
        let held = self.held;
        let mut rest = &held[..usize::from(std::mem::take(&mut self.held_len))];
        while !rest.is_empty() {
            if self.room == 0 {
                self.add_chunk(arena);
            }
            let (here, after) = rest.split_at(rest.len().min(usize::from(self.room)));
            arena[self.next as usize..][..here.len()].copy_from_slice(here);
            self.next += here.len() as u32;
            self.room -= here.len() as u16;
            rest = after;
        }
    }

    fn add_chunk(&mut self, arena: &mut Vec<u8>) {
        let start = u32::try_from(arena.len()).expect("a tail has no 4 GiB of postings");
        if self.chunk == 0 {
            self.first = start;
            self.chunk = FIRST_CHUNK;
        } else {
            arena[self.next as usize..][..LINK_LEN].copy_from_slice(&start.to_le_bytes());
            self.chunk = (2 * self.chunk).min(LARGEST_CHUNK);
        }
        arena.resize(arena.len() + usize::from(self.chunk), 0);
        (self.next, self.room) = (start, self.chunk - LINK_LEN as u16);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::words::postings::encoded::EncodedList;

    /// Against a vector for each list, with every bound, over the ends of chunks of every size.
    #[test]
    fn lists_are_those_of_vectors() {
        const LISTS: u32 = 7;
        const DOCUMENTS: u32 = 3_000;
        let mut lists = PostingBuilder::default();
        (0..LISTS).for_each(|list| assert_eq!(lists.add_list(), list));
        let mut vectors = vec![Vec::<Posting>::new(); LISTS as usize];
        let mut number = 1_u32;
        for local in 0..DOCUMENTS {
            for _ in 0..6 {
                number = number.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                // Smaller list numbers occur more often.
                let list = (number >> 8) % LISTS * ((number >> 16) % LISTS) / LISTS;
                let weight = if number >> 31 == 0 { ONCE } else { 1 + (number >> 20) };
                lists.add(list, local, weight);
                match vectors[list as usize].last_mut().filter(|last| last.local == local) {
                    Some(last) => last.frequency += weight,
                    None => vectors[list as usize].push(Posting { local, frequency: weight }),
                }
            }
            if local % 97 == 0 || local + 1 == DOCUMENTS {
                for (list, vector) in (0..).zip(&vectors) {
                    let (mut found, mut wanted) = (Vec::new(), EncodedList::default());
                    assert_eq!(lists.encode_into(list, &mut found) as usize, vector.len());
                    wanted.set(vector, &[]);
                    assert_eq!(found, wanted.bytes(), "list {list} of {local}");
                }
            }
        }
        for (list, vector) in (0..).zip(&vectors) {
            for bound in (0..=DOCUMENTS).step_by(7) {
                let below = vector.partition_point(|posting| posting.local < bound);
                assert_eq!(lists.postings(list, bound), vector[..below], "list {list} below {bound}");
            }
        }
        assert_eq!(lists.postings(LISTS, DOCUMENTS), []);
        assert!(vectors.iter().any(|vector| vector.len() > 2_500) && vectors.iter().any(|vector| vector.len() < 500));
        assert!(lists.byte_len() < 5 * vectors.iter().map(Vec::len).sum::<usize>());
    }

    /// A newest document of the highest number, and a frequency that can rise no further.
    #[test]
    fn the_longest_postings_have_room() {
        let mut lists = PostingBuilder::default();
        let list = lists.add_list();
        for local in [0, u32::MAX / 2, u32::MAX - 1] {
            lists.add(list, local, u32::MAX);
            lists.add(list, local, 1);
        }
        let wanted = [0, u32::MAX / 2, u32::MAX - 1].map(|local| Posting { local, frequency: u32::MAX });
        assert_eq!(lists.postings(0, u32::MAX), wanted);
    }
}
