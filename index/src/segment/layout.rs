//! The bytes of a `.vseg`: sections in the frame of [`holotype_storage::segment_file`], kind `VSEG`, version 1, or 2
//! where the vectors stand in the log.
//!
//! A *position* counts the vectors of the segment from 0, in id order. All integers are little-endian; each section
//! starts on a 64-byte boundary, so that arrays are read in place.
//!
//! | section | content | present |
//! |---|---|---|
//! | `HEAD` | the header below | always |
//! | `IDS ` | count * u32: ids, ascending | always |
//! | `VECS` | count * dim components in the encoding | unless they stand in the log |
//! | `SCAL` | count * f32: scale of each vector | encoding i8 |
//! | `SIGN` | count, rounded up to eight, of signs, see below | may be without a graph, metric cosine or dot |
//! | `SEST` | f32 standard error, dim * f32 mean, count * f32 factors | with `SIGN` |
//! | `CODE` | count * dim * i8: scan codes | with scan codes |
//! | `CERR` | count * u8: error of the code in 255ths of the largest error, rounded up | with scan codes |
//! | `MEAN` | dim * f32: subtracted before coding | with scan codes, metric l2 |
//! | `LNK0` | count * m0 * u32: positions linked at level 0, padded with `u32::MAX` | with a graph |
//! | `UPPR` | the levels above 0, lowest first, see below | with a graph |
//! | `TWIN` | pairs of u32: a leader and a twin of it, ascending, see below | with a graph |
//! | `MEMB` | the ids as a set, see below | with a graph, unless the ids are consecutive |
//! | `SUMS` | u32 CRC32s of the blocks of other sections, see below | with a graph |
//! | `CALB` | pairs of u32 ef and f32 recall@10, ascending, measured at the build on held-out vectors | with a graph |
//!
//! `HEAD`, 64 bytes:
//!
//! | offset | size | field |
//! |---|---|---|
//! | 0 | 4 | dim |
//! | 4 | 1 | metric: 0 cosine, 1 dot, 2 l2 |
//! | 5 | 1 | encoding of `VECS`: 0 f32, 1 f16, 2 i8 |
//! | 6 | 1 | scan codes: 0 none, 1 i8 with one scale; a graph has them |
//! | 7 | 1 | order of positions: 0 by id |
//! | 8 | 4 | count |
//! | 12 | 4 | m, links per node above level 0; 0 without a graph, like all fields up to the seed |
//! | 16 | 4 | m0, links per node at level 0 |
//! | 20 | 4 | ef_construction |
//! | 24 | 4 | levels above 0 |
//! | 28 | 4 | entry point: a position that is on the highest level |
//! | 32 | 8 | seed of the levels |
//! | 40 | 4 | f32: scale of the scan codes; 0 without them |
//! | 44 | 4 | first id |
//! | 48 | 4 | last id |
//! | 52 | 4 | f32: length of the longest vector, rounded up |
//! | 56 | 4 | f32: largest distance of a vector from its decoded code, rounded up; 0 without scan codes |
//! | 60 | 1 | the exact vectors: 0 in `VECS`, 1 in the log, as the records of the items have them; then with a graph |
//! | 61 | 3 | zero |
//!
//! `UPPR` has for each level its node count n as u32 and then three arrays of u32: n positions, ascending; n indices
//! of the same nodes in the level below (in level 1: the positions again); n * m links as indices in this level, padded
//! with `u32::MAX`. So a walk descends without a search. A node is on level l if mix(seed ^ mix(id)) is below each of
//! the first l of the numbers (2^64 - 1) / m, that / m, and so on, divisions rounded down. mix is the generator
//! splitmix64: its finaliser after adding 0x9e3779b97f4a7c15. No node is above level 31. Merges rely on that.
//!
//! Of vectors with equal codes only the first is linked; it is the leader, and the others are its twins. The list of a
//! twin in `LNK0` holds its leader only. In `TWIN` the highest bit of a twin is set if its exact vector is another than
//! that of its leader.
//!
//! `SIGN` has a bit for each component: 1 if it is above that of the mean in `SEST`. Component i is bit i % 64 of word
//! i / 64, a u64. Of every eight vectors the first words stand together, then the second words, and so on. With the
//! factor f of a vector x and its signs s, 1 or -1, the dot product of x and a query q is estimated as
//! q·mean + f (q·s), with f * length of q * standard error as the standard error.
//!
//! `SUMS` covers the sections `VECS`, `CODE`, `LNK0`, `IDS `, `CERR` and `UPPR`, in this order, each in blocks of 4,096
//! bytes with a shorter last one.
//!
//! `MEMB` has u64 words up to the word of the last id; bit i % 64 of word i / 64 - first id / 64 is set if id i is
//! present.
//! A u32 for each word follows: the number of ids in the words before it.

use crate::error::{Error, Result};
use crate::spec::{Encoding, MAX_DIM, Metric, VectorSpec};

/// The kind of file.
pub const KIND: [u8; 4] = *b"VSEG";
/// The version of the content with vectors.
pub const VERSION: u32 = 1;
/// The version of the content that refers to the log for the vectors.
pub const VERSION_LOGGED: u32 = 2;

pub(crate) const HEAD: [u8; 4] = *b"HEAD";
pub(crate) const IDS: [u8; 4] = *b"IDS ";
pub(crate) const VECTORS: [u8; 4] = *b"VECS";
pub(crate) const SCALES: [u8; 4] = *b"SCAL";
pub(crate) const SIGNS: [u8; 4] = *b"SIGN";
pub(crate) const SIGN_ESTIMATES: [u8; 4] = *b"SEST";
pub(crate) const CODES: [u8; 4] = *b"CODE";
pub(crate) const CODE_ERRORS: [u8; 4] = *b"CERR";
pub(crate) const MEAN: [u8; 4] = *b"MEAN";
pub(crate) const LINKS: [u8; 4] = *b"LNK0";
pub(crate) const UPPER: [u8; 4] = *b"UPPR";
pub(crate) const TWINS: [u8; 4] = *b"TWIN";
pub(crate) const MEMBERS: [u8; 4] = *b"MEMB";
pub(crate) const SUMS: [u8; 4] = *b"SUMS";
pub(crate) const CALIBRATION: [u8; 4] = *b"CALB";

/// The padding of link lists; no position is that large.
pub(crate) const NO_LINK: u32 = u32::MAX;

/// The greatest number of vectors in a segment: a walk stores a position and one more bit in 32 bits.
pub const MAX_COUNT: usize = (1 << 31) - 1;

/// The greatest number of links of a node; a list is copied to the stack while it is read.
pub(crate) const MAX_LINKS: usize = 256;

/// The bound of levels above 0 for any m from 2 on.
const MAX_LEVELS: u32 = 32;

const DIM: usize = 0;
const METRIC: usize = DIM + 4;
const ENCODING: usize = METRIC + 1;
const CODE_TYPE: usize = ENCODING + 1;
const ORDER: usize = CODE_TYPE + 1;
const COUNT: usize = ORDER + 1;
const M: usize = COUNT + 4;
const M0: usize = M + 4;
const EF_CONSTRUCTION: usize = M0 + 4;
const LEVELS: usize = EF_CONSTRUCTION + 4;
const ENTRY: usize = LEVELS + 4;
const SEED: usize = ENTRY + 4;
const CODE_SCALE: usize = SEED + 8;
const FIRST_ID: usize = CODE_SCALE + 4;
const LAST_ID: usize = FIRST_ID + 4;
const LONGEST: usize = LAST_ID + 4;
const CODE_ERROR: usize = LONGEST + 4;
const VECTORS_AT: usize = CODE_ERROR + 4;
const RESERVED: usize = VECTORS_AT + 1;
pub(crate) const HEAD_LEN: usize = RESERVED + 3;
const _: () = assert!(HEAD_LEN == 64);

const CODES_NONE: u8 = 0;
const CODES_I8: u8 = 1;
const ORDER_BY_ID: u8 = 0;
const IN_SECTION: u8 = 0;
const IN_LOG: u8 = 1;

/// The header of a segment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Head {
    pub(crate) spec: VectorSpec,
    /// The exact vectors stand in the log only.
    pub(crate) is_logged: bool,
    pub(crate) count: u32,
    pub(crate) first_id: u32,
    pub(crate) last_id: u32,
    /// An upper bound of the vectors' lengths.
    pub(crate) longest: f32,
    /// Always present with a graph, whose walks compare codes.
    pub(crate) codes: Option<CodesHead>,
    pub(crate) graph: Option<GraphHead>,
}

/// The header's fields about scan codes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct CodesHead {
    pub(crate) scale: f32,
    /// An upper bound of the distances of vectors from their decoded codes.
    pub(crate) error: f32,
}

/// The header's fields about the graph.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct GraphHead {
    pub(crate) m: u32,
    pub(crate) m0: u32,
    pub(crate) ef_construction: u32,
    pub(crate) levels: u32,
    pub(crate) entry: u32,
    pub(crate) seed: u64,
}

impl Head {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut bytes = vec![0; HEAD_LEN];
        let mut put = |at: usize, value: &[u8]| bytes[at..at + value.len()].copy_from_slice(value);
        put(DIM, &(self.spec.dim as u32).to_le_bytes());
        put(METRIC, &[self.spec.metric.code()]);
        put(ENCODING, &[self.spec.encoding.code()]);
        put(ORDER, &[ORDER_BY_ID]);
        put(VECTORS_AT, &[if self.is_logged { IN_LOG } else { IN_SECTION }]);
        put(COUNT, &self.count.to_le_bytes());
        put(FIRST_ID, &self.first_id.to_le_bytes());
        put(LAST_ID, &self.last_id.to_le_bytes());
        put(LONGEST, &self.longest.to_le_bytes());
        put(CODE_TYPE, &[CODES_NONE]);
        if let Some(codes) = &self.codes {
            put(CODE_TYPE, &[CODES_I8]);
            put(CODE_SCALE, &codes.scale.to_le_bytes());
            put(CODE_ERROR, &codes.error.to_le_bytes());
        }
        if let Some(graph) = &self.graph {
            put(M, &graph.m.to_le_bytes());
            put(M0, &graph.m0.to_le_bytes());
            put(EF_CONSTRUCTION, &graph.ef_construction.to_le_bytes());
            put(LEVELS, &graph.levels.to_le_bytes());
            put(ENTRY, &graph.entry.to_le_bytes());
            put(SEED, &graph.seed.to_le_bytes());
        }
        bytes
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<Self> {
        let Ok(bytes) = <&[u8; HEAD_LEN]>::try_from(bytes) else {
            return Err(Error::corrupt("HEAD", 0, format!("{} bytes, not {HEAD_LEN}", bytes.len())));
        };
        let u32_at = |at: usize| u32::from_le_bytes(array(bytes, at));
        let f32_at = |at: usize| f32::from_le_bytes(array(bytes, at));
        let bad = |at: usize, what: String| Err(Error::corrupt("HEAD", at, what));
        let dim = u32_at(DIM) as usize;
        if dim == 0 || dim > MAX_DIM {
            return bad(DIM, format!("dimension {dim}"));
        }
        let metrics = [Metric::Cosine, Metric::Dot, Metric::L2];
        let Some(metric) = metrics.into_iter().find(|metric| metric.code() == bytes[METRIC]) else {
            return bad(METRIC, format!("metric {}", bytes[METRIC]));
        };
        let encodings = [Encoding::F32, Encoding::F16, Encoding::I8];
        let encoding = encodings.into_iter().find(|encoding| encoding.code() == bytes[ENCODING]);
        let Some(encoding) = encoding else {
            return bad(ENCODING, format!("encoding {}", bytes[ENCODING]));
        };
        if bytes[ORDER] != ORDER_BY_ID {
            return bad(ORDER, format!("order {}", bytes[ORDER]));
        }
        let count = u32_at(COUNT);
        if count == 0 || count as usize > MAX_COUNT {
            return bad(COUNT, format!("{count} vectors"));
        }
        let (first_id, last_id) = (u32_at(FIRST_ID), u32_at(LAST_ID));
        if last_id.checked_sub(first_id).is_none_or(|span| span < count - 1) {
            return bad(FIRST_ID, format!("{count} ids from {first_id} to {last_id}"));
        }
        let longest = f32_at(LONGEST);
        if !(longest.is_finite() && longest >= 0.0) {
            return bad(LONGEST, format!("longest vector {longest}"));
        }
        let codes = match bytes[CODE_TYPE] {
            CODES_NONE => None,
            CODES_I8 => Some(CodesHead { scale: f32_at(CODE_SCALE), error: f32_at(CODE_ERROR) }),
            other => return bad(CODE_TYPE, format!("scan codes of type {other}")),
        };
        if let Some(codes) = &codes {
            if !(codes.scale.is_finite() && codes.scale > 0.0) {
                return bad(CODE_SCALE, format!("scale {}", codes.scale));
            }
            if !(codes.error.is_finite() && codes.error >= 0.0) {
                return bad(CODE_ERROR, format!("largest error {}", codes.error));
            }
        }
        let graph = bytes[M..CODE_SCALE].iter().any(|byte| *byte != 0).then(|| GraphHead {
            m: u32_at(M),
            m0: u32_at(M0),
            ef_construction: u32_at(EF_CONSTRUCTION),
            levels: u32_at(LEVELS),
            entry: u32_at(ENTRY),
            seed: u64::from_le_bytes(array(bytes, SEED)),
        });
        if let Some(graph) = &graph {
            if codes.is_none() {
                return bad(CODE_TYPE, "a graph without scan codes".to_owned());
            }
            let links = 1..=MAX_LINKS as u32;
            if !links.contains(&graph.m) || !links.contains(&graph.m0) {
                return bad(M, format!("m {} and m0 {}", graph.m, graph.m0));
            }
            if graph.levels > MAX_LEVELS {
                return bad(LEVELS, format!("{} levels", graph.levels));
            }
            if graph.entry >= count {
                return bad(ENTRY, format!("entry point {} of {count}", graph.entry));
            }
        }
        let is_logged = bytes[VECTORS_AT] == IN_LOG;
        if bytes[VECTORS_AT] > IN_LOG || (is_logged && (graph.is_none() || encoding == Encoding::I8)) {
            return bad(VECTORS_AT, format!("vectors in place {}, {} codes", bytes[VECTORS_AT], encoding.name()));
        }
        let spec = VectorSpec { dim, metric, encoding };
        Ok(Self { spec, is_logged, count, first_id, last_id, longest, codes, graph })
    }
}

/// N bytes at a constant offset of the header.
fn array<const N: usize>(bytes: &[u8; HEAD_LEN], at: usize) -> [u8; N] {
    std::array::from_fn(|i| bytes[at + i])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head() -> Head {
        Head {
            spec: VectorSpec::new(384, Metric::L2, Encoding::F16).unwrap(),
            is_logged: true,
            count: 1000,
            first_id: 17,
            last_id: 2017,
            longest: 2.0,
            codes: Some(CodesHead { scale: 0.5, error: 1.0 }),
            graph: Some(GraphHead {
                m: 16,
                m0: 32,
                ef_construction: 200,
                levels: 2,
                entry: 999,
                seed: 0x0102_0304_0506_0708,
            }),
        }
    }

    #[test]
    fn the_header_reads_back() {
        let head = head();
        assert_eq!(Head::decode(&head.encode()).unwrap(), head);
        let coded = Head { graph: None, is_logged: false, ..head };
        assert_eq!(Head::decode(&coded.encode()).unwrap(), coded);
        let flat = Head { codes: None, ..coded };
        assert_eq!(Head::decode(&flat.encode()).unwrap(), flat);
        let on_nothing = Head { codes: None, ..head };
        assert!(Head::decode(&on_nothing.encode()).is_err());
        let scanned = Head { graph: None, ..head };
        assert!(Head::decode(&scanned.encode()).is_err(), "only a graph refers to the log");
        let spec = VectorSpec::new(384, Metric::L2, Encoding::I8).unwrap();
        assert!(Head::decode(&Head { spec, ..head }.encode()).is_err(), "the log has no such encoding");
    }

    #[test]
    fn the_header_has_these_bytes() {
        let expected: [u8; HEAD_LEN] = [
            0x80, 1, 0, 0, 2, 1, 1, 0, // dim, metric, encoding, codes, order
            0xe8, 3, 0, 0, 16, 0, 0, 0, // count, m
            32, 0, 0, 0, 200, 0, 0, 0, // m0, ef_construction
            2, 0, 0, 0, 0xe7, 3, 0, 0, // levels, entry
            8, 7, 6, 5, 4, 3, 2, 1, // seed
            0, 0, 0, 0x3f, 17, 0, 0, 0, // scale, first id
            0xe1, 7, 0, 0, 0, 0, 0, 0x40, // last id, longest
            0, 0, 0x80, 0x3f, 1, 0, 0, 0, // largest error, in the log, zero
        ];
        assert_eq!(head().encode(), expected);
    }

    #[test]
    fn a_header_out_of_bounds_is_refused() {
        for (at, value) in [
            (DIM, 0u32),
            (DIM, u32::MAX),
            (COUNT, 0),
            (COUNT, u32::MAX),
            (M, 0),
            (M0, 1 << 20),
            (LEVELS, 1000),
            (ENTRY, 1000),
            (CODE_SCALE, f32::NAN.to_bits()),
            (CODE_ERROR, (-1f32).to_bits()),
            (LONGEST, f32::INFINITY.to_bits()),
            (METRIC, 0x0000_0009),
            (VECTORS_AT, 2),
        ] {
            let mut bytes = head().encode();
            bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
            assert!(Head::decode(&bytes).is_err(), "{value} at {at}");
        }
        assert!(Head::decode(&[]).is_err());
    }
}
