//! Posting lists that grow side by side, in one arena.
//!
//! A list is a chain of chunks of 2, 4, 8, … and at last 128 slots. A chunk is filled to its end; when one posting more comes,
//! the posting in its last slot moves to the beginning of a new chunk, and the slot says where that is.
//!
//! ```text
//! slots: [ a0 → ][ b0 b1 ][ a1 a2 a3 → ][ a4 a5 .. .. .. .. .. .. ]
//!             └────────────┘        └─────┘
//! ```
//!
//! So adding to a list costs one miss of the cache for its head and one for the slot, and no allocation.
//!
//! Cost: 8 bytes a posting and as much again at most for room, 16 bytes a list.

use super::postings::Posting;

/// Slots of a list's first chunk, and of its largest ones.
const FIRST_CHUNK: u16 = 2;
const LARGEST_CHUNK: u16 = 128;
/// No document.
const NONE: u32 = u32::MAX;

/// Lists by number, from 0.
#[derive(Debug, Default)]
pub(super) struct GrowingLists {
    heads: Vec<Head>,
    slots: Vec<Posting>,
}

#[derive(Clone, Copy, Debug)]
struct Head {
    /// Where its first chunk begins.
    first: u32,
    /// Where the next posting goes.
    next: u32,
    /// The document of its last posting.
    last_local: u32,
    /// Free slots of its last chunk, and all of them.
    room: u16,
    chunk: u16,
}

const EMPTY: Head = Head { first: 0, next: 0, last_local: NONE, room: 0, chunk: 0 };

const EMPTY_CHUNK: [Posting; LARGEST_CHUNK as usize] = [Posting { local: 0, frequency: 0 }; LARGEST_CHUNK as usize];

impl GrowingLists {
    /// About how many bytes of memory the postings take.
    pub(super) fn byte_len(&self) -> usize {
        self.slots.len() * size_of::<Posting>()
    }

    /// Adds an occurrence to a list, in a document that is not before its last one.
    #[inline]
    pub(super) fn add(&mut self, list: u32, local: u32, weight: u32) {
        let list = list as usize;
        if list >= self.heads.len() {
            self.heads.resize(list + 1, EMPTY);
        }
        let head = &mut self.heads[list];
        if head.last_local == local {
            if let Some(last) = self.slots.get_mut(head.next as usize - 1) {
                last.frequency = last.frequency.saturating_add(weight);
            }
            return;
        }
        if head.room == 0 {
            Self::add_chunk(head, &mut self.slots);
        }
        if let Some(slot) = self.slots.get_mut(head.next as usize) {
            *slot = Posting { local, frequency: weight };
        }
        head.next += 1;
        head.room -= 1;
        head.last_local = local;
    }

    #[inline(never)]
    fn add_chunk(head: &mut Head, slots: &mut Vec<Posting>) {
        let start = u32::try_from(slots.len()).expect("a tail has no 32 GiB of postings");
        let last = (head.next as usize).checked_sub(1).filter(|_| head.chunk > 0);
        head.chunk = if head.chunk == 0 { FIRST_CHUNK } else { (2 * head.chunk).min(LARGEST_CHUNK) };
        slots.extend_from_slice(&EMPTY_CHUNK[..head.chunk as usize]);
        (head.next, head.room) = (start, head.chunk);
        match last {
            Some(last) => {
                slots[start as usize] = std::mem::replace(&mut slots[last], Posting { local: start, frequency: 0 });
                head.next += 1;
                head.room -= 1;
            }
            None => head.first = start,
        }
    }

    /// Appends the postings of a list in documents before `bound` to `postings`.
    pub(super) fn copy_into(&self, list: u32, bound: u32, postings: &mut Vec<Posting>) {
        let Some(head) = self.heads.get(list as usize).filter(|head| head.chunk > 0) else { return };
        let (mut start, mut chunk, end) = (head.first as usize, FIRST_CHUNK, head.next as usize);
        loop {
            let is_last = (start + 1..=start + chunk as usize).contains(&end);
            let stop = if is_last { end } else { start + chunk as usize - 1 };
            let here = self.slots.get(start..stop).unwrap_or_default();
            let below = here.partition_point(|posting| posting.local < bound);
            postings.extend_from_slice(&here[..below]);
            if is_last || below < here.len() {
                return;
            }
            let Some(link) = self.slots.get(stop) else { return };
            start = link.local as usize;
            chunk = (2 * chunk).min(LARGEST_CHUNK);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Against a vector for each list, with every bound, over the ends of chunks of every size.
    #[test]
    fn lists_are_those_of_vectors() {
        const LISTS: u32 = 7;
        let mut lists = GrowingLists::default();
        let mut vectors = vec![Vec::<Posting>::new(); LISTS as usize];
        let mut number = 1_u32;
        for local in 0..700 {
            for _ in 0..6 {
                number = number.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                // The smaller the number the more often it comes.
                let (list, weight) = ((number >> 8) % LISTS * ((number >> 16) % LISTS) / LISTS, 1 + (number >> 24));
                lists.add(list, local, weight);
                match vectors[list as usize].last_mut().filter(|last| last.local == local) {
                    Some(last) => last.frequency += weight,
                    None => vectors[list as usize].push(Posting { local, frequency: weight }),
                }
            }
        }
        let mut found = Vec::new();
        for (list, vector) in (0..).zip(&vectors) {
            for bound in 0..=700 {
                found.clear();
                lists.copy_into(list, bound, &mut found);
                let below = vector.partition_point(|posting| posting.local < bound);
                assert_eq!(found, vector[..below], "list {list} below {bound}");
            }
        }
        found.clear();
        lists.copy_into(LISTS, 700, &mut found);
        assert_eq!(found, []);
        assert!(vectors.iter().any(|vector| vector.len() > 600) && vectors.iter().any(|vector| vector.len() < 200));
        assert!(lists.byte_len() < 3 * 8 * vectors.iter().map(Vec::len).sum::<usize>());
    }
}
