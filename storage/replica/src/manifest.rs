//! A manifest: which chunks hold the log up to a head, as lines of text.
//!
//! ```text
//! holotype manifest 1
//! holotype/5f0c…                  the database
//! page 32768                      log page size
//! head 8192 17 1700000000 9a41…   position, commit, clock, hash
//! tree 60 HASH HASH …             the roots of complete subtrees; `tree -` where the beginning is gone
//! floor BYTES                     the file that states the beginning, in hexadecimal; only of a truncated log
//! segment 1 0 262144              number, first position, length: one line each
//! chunk 0 8192 17 1700000000 912 0 0 HASH
//!                                 first position, end, last commit and its clock, stored length, the last commit whose
//!                                 erasures it has, serial of the head for which it was written again, hash
//! pending 12 4096 4352 …          a commit whose erasures are not done, and the ranges of the records: pairs
//! ```
//!
//! 1. Chunks adjoin: they cover the log from its beginning to the head, in order.
//! 2. Everything is checked before it is used; a manifest is named with its hash by the head.

use std::fmt::Write as _;

use holotype_storage::Hash;
use holotype_storage::log::{CommitNo, Floor, Head, Lsn, Span};
use holotype_storage::proof::Frontier;

use crate::chunk;
use crate::error::{Error, Result};
use crate::head::origin;
use crate::hex;

const TITLE: &str = "holotype manifest 1";

/// The greatest length of a manifest that is read.
pub const MAX_LEN: usize = 64 << 20;

/// A chunk of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChunkRef {
    /// Its first position.
    pub first: u64,
    /// The position after its last byte.
    pub end: u64,
    /// The last commit at or before its end.
    pub commit: u64,
    /// The clock of that commit.
    pub time_us: i64,
    /// The length of the object.
    pub len: u64,
    /// The last commit of which it has erasures; 0 without any.
    pub erased: u64,
    /// The serial of the head for which it was written again after an erasure; 0 if it never was.
    pub fresh: u64,
    /// The hash of the object.
    pub hash: Hash,
}

/// Records that a commit named to be erased and that were not erased yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pending {
    /// The commit.
    pub commit: u64,
    /// The ranges of positions of the records.
    pub ranges: Vec<(u64, u64)>,
}

/// The content of a replica at one head.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Manifest {
    /// The database's id.
    pub database: [u8; 16],
    /// The log page size.
    pub page_size: u32,
    /// The last commit.
    pub head: Head,
    /// Its clock.
    pub time_us: i64,
    /// The tree over all records; `None` for a log whose beginning was removed before the replica was made.
    pub tree: Option<Frontier>,
    /// The file that states the beginning of a truncated log.
    pub floor: Option<Vec<u8>>,
    /// The files of the log.
    pub spans: Vec<Span>,
    /// The chunks, in order.
    pub chunks: Vec<ChunkRef>,
    /// Erasures that are not done.
    pub pending: Vec<Pending>,
}

impl Manifest {
    /// A manifest of nothing.
    #[must_use]
    pub fn empty(database: [u8; 16], page_size: u32) -> Self {
        Self {
            database,
            page_size,
            head: Head::default(),
            time_us: 0,
            tree: Some(Frontier::default()),
            floor: None,
            spans: Vec::new(),
            chunks: Vec::new(),
            pending: Vec::new(),
        }
    }

    /// Its name for a head. Two writers that begin an empty replica at the same time have the same epoch and serial, so
    /// the name has the number of the writer.
    #[must_use]
    pub fn key(&self, epoch: u64, serial: u64, writer: u64) -> String {
        format!("manifests/{epoch:010}-{:020}-{serial}-{writer:016x}", self.head.position.0)
    }

    /// The floor of a truncated log.
    #[must_use]
    pub fn parsed_floor(&self) -> Option<Floor> {
        self.floor.as_deref().and_then(Floor::from_bytes).map(|(floor, _)| floor)
    }

    /// The text.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut text = format!("{TITLE}\n{}\npage {}\n", origin(&self.database), self.page_size);
        // Writing to a string cannot fail.
        let Head { position, commit, hash } = self.head;
        let _ = writeln!(text, "head {position} {commit} {} {}", self.time_us, hex::encode(&hash));
        match &self.tree {
            None => text.push_str("tree -\n"),
            Some(tree) => {
                let _ = write!(text, "tree {}", tree.count());
                tree.peaks().iter().for_each(|peak| {
                    let _ = write!(text, " {}", hex::encode(peak));
                });
                text.push('\n');
            }
        }
        if let Some(floor) = &self.floor {
            let _ = writeln!(text, "floor {}", hex::encode(floor));
        }
        for span in &self.spans {
            let _ = writeln!(text, "segment {} {} {}", span.number, span.first, span.len);
        }
        for it in &self.chunks {
            let (hash, fields) = (hex::encode(&it.hash), [it.first, it.end, it.commit]);
            let [first, end, commit] = fields;
            let (time, len, erased, fresh) = (it.time_us, it.len, it.erased, it.fresh);
            let _ = writeln!(text, "chunk {first} {end} {commit} {time} {len} {erased} {fresh} {hash}");
        }
        for pending in &self.pending {
            let _ = write!(text, "pending {}", pending.commit);
            for (first, end) in &pending.ranges {
                let _ = write!(text, " {first} {end}");
            }
            text.push('\n');
        }
        text.into_bytes()
    }

    /// Reads a manifest whose hash is known.
    ///
    /// # Errors
    /// [`Error::Damaged`].
    pub fn decode(key: &str, bytes: &[u8], hash: &Hash) -> Result<Self> {
        let found: Hash = blake3::hash(bytes).into();
        if found != *hash || bytes.len() > MAX_LEN {
            return Err(Error::damaged(key, format!("its hash is {}", hex::encode(&found))));
        }
        let text = std::str::from_utf8(bytes).map_err(|_| Error::damaged(key, "it is not text"))?;
        if text.lines().next().is_some_and(|title| title != TITLE && title.starts_with("holotype manifest ")) {
            return Err(Error::damaged(key, "a newer version wrote it: upgrade to read it"));
        }
        let manifest = Self::parse(text).ok_or_else(|| Error::damaged(key, "its lines are not those of a manifest"))?;
        manifest.check().map_err(|what| Error::damaged(key, what))?;
        Ok(manifest)
    }

    fn parse(text: &str) -> Option<Self> {
        let mut lines = text.lines();
        if lines.next()? != TITLE {
            return None;
        }
        let database = hex::decode_array(lines.next()?.strip_prefix("holotype/")?)?;
        let mut manifest = Self::empty(database, lines.next()?.strip_prefix("page ")?.parse().ok()?);
        let mut head = lines.next()?.strip_prefix("head ")?.split(' ');
        let position = Lsn(head.next()?.parse().ok()?);
        let commit = CommitNo(head.next()?.parse().ok()?);
        manifest.time_us = head.next()?.parse().ok()?;
        manifest.head = Head { position, commit, hash: hex::decode_array(head.next()?)? };
        let mut tree = lines.next()?.strip_prefix("tree ")?.split(' ');
        manifest.tree = match tree.next()? {
            "-" => None,
            count => {
                let peaks = tree.map(hex::decode_array).collect::<Option<Vec<Hash>>>()?;
                Some(Frontier::from_parts(count.parse().ok()?, peaks)?)
            }
        };
        for line in lines {
            let (kind, fields) = line.split_once(' ')?;
            let mut fields = fields.split(' ');
            match kind {
                "floor" if manifest.floor.is_none() => manifest.floor = Some(hex::decode(fields.next()?)?),
                "segment" => manifest.spans.push(Span {
                    number: fields.next()?.parse().ok()?,
                    first: Lsn(fields.next()?.parse().ok()?),
                    len: fields.next()?.parse().ok()?,
                }),
                "chunk" => manifest.chunks.push(ChunkRef {
                    first: fields.next()?.parse().ok()?,
                    end: fields.next()?.parse().ok()?,
                    commit: fields.next()?.parse().ok()?,
                    time_us: fields.next()?.parse().ok()?,
                    len: fields.next()?.parse().ok()?,
                    erased: fields.next()?.parse().ok()?,
                    fresh: fields.next()?.parse().ok()?,
                    hash: hex::decode_array(fields.next()?)?,
                }),
                "pending" => {
                    let commit = fields.next()?.parse().ok()?;
                    let mut ranges = Vec::new();
                    while let Some(first) = fields.next() {
                        ranges.push((first.parse().ok()?, fields.next()?.parse().ok()?));
                    }
                    manifest.pending.push(Pending { commit, ranges });
                }
                _ => return None,
            }
            if fields.next().is_some() {
                return None;
            }
        }
        Some(manifest)
    }

    /// The first position that the chunks hold.
    #[must_use]
    pub fn first(&self) -> u64 {
        self.parsed_floor().map_or(0, |floor| floor.first.0)
    }

    /// Checks that the files adjoin, that the chunks do, and that they cover the log.
    fn check(&self) -> Result<(), String> {
        let floor = match &self.floor {
            None => None,
            Some(bytes) => {
                let (floor, database) = Floor::from_bytes(bytes).ok_or("its floor cannot be read")?;
                if database != self.database || floor.until.position > self.head.position {
                    return Err("its floor is that of another log".into());
                }
                Some(floor)
            }
        };
        let (number, first) = floor.map_or((1, 0), |floor| (floor.segment, floor.first.0));
        let (mut next, mut position) = (number, first);
        for span in &self.spans {
            let end = span.first.0.checked_add(span.len).ok_or("a segment is too long")?;
            if span.number != next || span.first.0 != position || end <= position {
                return Err(format!("segment {} does not follow the one before it", span.number));
            }
            (next, position) = (next + 1, end);
        }
        if position < self.head.position.0 {
            return Err("its segments end before its head".into());
        }
        let mut position = first;
        for it in &self.chunks {
            if it.first != position || it.end <= it.first || it.end - it.first > chunk::MAX_LOG_LEN {
                return Err(format!("the chunk at position {} does not follow the one before it", it.first));
            }
            position = it.end;
        }
        if position != self.head.position.0.max(first) {
            return Err(format!("its chunks end at {position}, and its head at {}", self.head.position));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest() -> Manifest {
        let mut tree = Frontier::default();
        (0..5).for_each(|leaf| tree.push([leaf; 32]));
        let chunk = |first, end| ChunkRef {
            first,
            end,
            commit: 3,
            time_us: -7,
            len: 100,
            erased: 2,
            fresh: 9,
            hash: [first as u8; 32],
        };
        Manifest {
            head: Head { position: Lsn(9000), commit: CommitNo(4), hash: [3; 32] },
            time_us: 12,
            tree: Some(tree),
            spans: vec![Span { number: 1, first: Lsn(0), len: 8192 }, Span { number: 2, first: Lsn(8192), len: 8192 }],
            chunks: vec![chunk(0, 5000), chunk(5000, 9000)],
            pending: vec![Pending { commit: 4, ranges: vec![(4096, 4200), (5000, 5056)] }],
            ..Manifest::empty([8; 16], 4096)
        }
    }

    #[test]
    fn a_manifest_reads_as_it_was_written() {
        for manifest in [manifest(), Manifest { tree: None, pending: Vec::new(), ..manifest() }] {
            let bytes = manifest.encode();
            let hash = blake3::hash(&bytes).into();
            assert_eq!(Manifest::decode("m", &bytes, &hash).unwrap(), manifest);
            assert!(Manifest::decode("m", &bytes, &[0; 32]).is_err());
        }
    }

    #[test]
    fn gaps_and_other_lines_are_refused() {
        let good = manifest();
        let read = |text: &str| Manifest::decode("m", text.as_bytes(), &blake3::hash(text.as_bytes()).into());
        let text = String::from_utf8(good.encode()).unwrap();
        assert!(read(&text).is_ok());
        for (from, to) in [
            ("segment 2 8192", "segment 3 8192"),
            ("segment 2 8192 8192", "segment 2 8192 100"),
            ("chunk 5000 9000", "chunk 5001 9000"),
            ("chunk 5000 9000", "chunk 5000 8999"),
            ("chunk 0 5000", "chunk 0 0"),
            ("page 4096", "page x"),
            ("pending 4 4096", "pending 4"),
            ("tree 5", "tree 7"),
            ("holotype manifest 1", "holotype manifest 2"),
        ] {
            assert!(text.contains(from), "{from}");
            assert!(read(&text.replace(from, to)).is_err(), "{to}");
        }
        assert!(read(&format!("{text}other 1\n")).is_err());
    }
}
