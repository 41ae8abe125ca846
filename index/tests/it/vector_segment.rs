//! The bytes of a segment: they come out as they went in, and no change of one goes unnoticed.

use crate::clusters;
use crate::clusters::{IDENTITY, clusters, index, open, options, rows, segment, spec};
use holotype_index::bitmap::Bits;
use holotype_index::segment::{layout, write_tail};
use holotype_index::{
    BuildOptions, Encoding, Error, Metric, SearchOptions, Strategy, VectorSegment, VectorSpec, VectorTail,
    build_segment,
};
use holotype_storage::segment_file::{SegmentFile, SegmentFileWriter};
use holotype_storage::vfs::{SimVfs, Vfs};

fn open_bytes(bytes: Vec<u8>, spec: &VectorSpec) -> Result<VectorSegment, Error> {
    VectorSegment::open(SegmentFile::from_bytes(bytes, layout::KIND, &IDENTITY)?, spec)
}

#[test]
fn a_segment_holds_what_it_was_made_of() {
    for (metric, encoding) in
        [(Metric::Cosine, Encoding::I8), (Metric::L2, Encoding::F16), (Metric::Dot, Encoding::F32)]
    {
        let rows = rows(spec(metric, encoding), &clusters(600, 31), |i| i as u32 * 2 + 9);
        let vfs = SimVfs::new();
        vfs.create_dir("d".as_ref()).unwrap();
        let path = "d/1.vseg".as_ref();
        build_segment(rows.clone(), IDENTITY, &options()).unwrap().write(&vfs, path).unwrap();
        let file = SegmentFile::open(&vfs, path, layout::KIND, &IDENTITY).unwrap();
        let segment = VectorSegment::open(file, &rows.spec()).unwrap();
        assert_eq!((segment.len(), segment.id_range(), segment.has_graph()), (600, 9..=1207, true));
        assert_eq!(segment.ids().unwrap(), rows.ids());
        let (mut a, mut b) = (vec![0.0; clusters::DIM], vec![0.0; clusters::DIM]);
        for position in 0..600 {
            segment.rows(None).unwrap().decode(position, &mut a);
            rows.view().decode(position, &mut b);
            assert_eq!(a, b);
        }
        let index = index(vec![segment]);
        assert_eq!(index.vector(9 + 2 * 77).unwrap().unwrap().len(), clusters::DIM);
        assert!(!index.contains(10).unwrap());
    }
}

#[test]
fn one_thread_makes_the_same_bytes_again() {
    let rows = rows(spec(Metric::Cosine, Encoding::F16), &clusters(900, 32), |i| i as u32);
    let make = || build_segment(rows.clone(), IDENTITY, &options()).unwrap().into_bytes();
    assert!(make() == make());
    let other = build_segment(rows.clone(), IDENTITY, &BuildOptions { seed: 1, ..options() }).unwrap().into_bytes();
    assert!(make() != other, "the seed shapes the levels");
}

/// A checkpoint writes a tail from where its vectors are, without a copy of them.
#[test]
fn a_tail_is_written_as_a_segment_of_its_vectors() {
    let flat = BuildOptions { graph_from: usize::MAX, ..options() };
    for (metric, encoding) in
        [(Metric::Cosine, Encoding::F16), (Metric::L2, Encoding::F32), (Metric::Dot, Encoding::I8)]
    {
        for count in [1, 255, 256, 5_000] {
            let (vfs, spec) = (SimVfs::new(), spec(metric, encoding));
            let [built, written] = ["1.vseg", "2.vseg"].map(std::path::Path::new);
            let tail = VectorTail::new(spec);
            for (id, vector) in (0..).step_by(3).zip(clusters(count, 35)) {
                tail.push(id, &vector).unwrap();
            }
            build_segment(tail.view().to_rows(), IDENTITY, &flat).unwrap().write(&vfs, built).unwrap();
            write_tail(&tail.view(), (IDENTITY, None), (&vfs, written)).unwrap();
            assert!(vfs.bytes(built).unwrap() == vfs.bytes(written).unwrap(), "{count} of {spec}");
        }
        let empty = VectorTail::new(spec(metric, encoding)).view();
        let refused = write_tail(&empty, (IDENTITY, None), (&SimVfs::new(), "3.vseg".as_ref()));
        assert!(matches!(refused, Err(Error::Empty)));
    }
}

/// So many vectors of two numbers.
fn grid(spec: VectorSpec, count: u32) -> holotype_index::Rows {
    let mut rows = holotype_index::Rows::new(spec);
    for id in 0..count {
        rows.push(id * 3, &[(id % 7) as f32, (id % 11) as f32]).unwrap();
    }
    rows
}

#[test]
fn every_flipped_byte_and_every_cut_is_noticed() {
    let spec = VectorSpec::new(2, Metric::L2, Encoding::I8).unwrap();
    let rows = grid(spec, 60);
    let options = BuildOptions { m: 4, graph_from: 2, ..BuildOptions::default() };
    let bytes = build_segment(rows, IDENTITY, &options).unwrap().into_bytes();
    let whole = open_bytes(bytes.clone(), &spec).unwrap();
    assert!(whole.has_graph());
    let query = [3.2, 4.1];
    let whole = index(vec![whole]);
    let expected = whole.search(&query, 3, SearchOptions::default()).unwrap();
    let every = whole.search(&query, 60, SearchOptions { exact: true, ..SearchOptions::default() }).unwrap().hits;
    let mut went_around = 0;
    for at in 0..bytes.len() {
        let mut flipped = bytes.clone();
        flipped[at] ^= 0x10;
        // Bytes between the sections belong to none; only the frame checks them.
        let opened = open_bytes(flipped.clone(), &spec);
        let Ok(segment) = opened else { continue };
        assert!(padding(&bytes, at) || segment.check_all().is_err(), "byte {at} of {}", bytes.len());
        assert!(padding(&bytes, at) || segment.file().verify().is_err(), "byte {at} of {}", bytes.len());
        // Blocks that are not checked at opening are checked before an answer is returned.
        let index = index(vec![open_bytes(flipped, &spec).unwrap()]);
        let all = SearchOptions::default();
        let every_node = index.search(&query, 60, SearchOptions { ef: 60, ..all });
        assert!(padding(&bytes, at) || every_node.is_err(), "byte {at} of {}", bytes.len());
        let one = index.search(&query, 3, all);
        assert!(one.is_err() || one.unwrap() == expected, "byte {at} of {}", bytes.len());
        // Asked to go on, it compares what is whole, as it was written, and says what it could not compare. A segment
        // that is known to be damaged is no worse than one in which damage is met.
        for _ in 0..2 {
            let Ok(around) = index.search(&query, 3, SearchOptions { skip_damaged: true, ..all }) else { continue };
            let [part] = &around.parts[..] else { panic!("one segment gives {:?}", around.parts) };
            assert!(around.hits.iter().all(|hit| every.contains(hit)), "byte {at} of {}", bytes.len());
            let is_told = part.strategy == Strategy::SkipDamaged;
            let is_less = is_told && part.compared < part.matching;
            assert!(around.hits == expected.hits || is_less, "byte {at} of {}", bytes.len());
            went_around += usize::from(is_told);
        }
    }
    assert!(went_around > 100, "{went_around} searches went around damage");
    for len in 0..bytes.len() {
        assert!(open_bytes(bytes[..len].to_vec(), &spec).is_err(), "cut to {len}");
    }
}

#[test]
fn a_segment_without_a_graph_is_scanned_by_its_codes_and_nothing_else_is_found() {
    let vectors = clusters(900, 36);
    let flat = BuildOptions { graph_from: usize::MAX, ..options() };
    for (metric, encoding) in [Metric::Cosine, Metric::Dot, Metric::L2]
        .into_iter()
        .flat_map(|metric| [Encoding::F32, Encoding::F16, Encoding::I8].map(|encoding| (metric, encoding)))
    {
        let rows = rows(spec(metric, encoding), &vectors[..850], |i| i as u32 * 2);
        let segment = open(build_segment(rows.clone(), IDENTITY, &flat).unwrap(), &rows.spec());
        assert!(!segment.has_graph() && segment.file().section(*b"CODE").is_ok());
        let index = index(vec![segment]);
        let filters: [fn(u32) -> bool; 4] = [|_| true, |id| id % 3 == 0, |id| id > 100, |id| id % 100 == 0];
        for (query, filter) in vectors[840..].iter().zip(filters.into_iter().cycle()) {
            let filter: Bits = (0..1700).filter(|id| filter(*id)).collect();
            for (filter, k) in [(None, 10), (Some(&filter), 1), (Some(&filter), 10), (Some(&filter), 900)] {
                let options = SearchOptions { filter, ..SearchOptions::default() };
                let found = index.search(query, k, options).unwrap();
                assert_eq!(found, index.search(query, k, SearchOptions { exact: true, ..options }).unwrap());
            }
        }
    }
    let few = rows(spec(Metric::Cosine, Encoding::F16), &vectors[..100], |i| i as u32);
    assert!(open(build_segment(few.clone(), IDENTITY, &flat).unwrap(), &few.spec()).file().section(*b"CODE").is_err());
}

#[test]
fn every_flipped_byte_of_a_segment_without_a_graph_is_noticed_when_it_is_opened() {
    let spec = VectorSpec::new(2, Metric::L2, Encoding::I8).unwrap();
    let rows = grid(spec, 260);
    let bytes = build_segment(rows, IDENTITY, &BuildOptions::default()).unwrap().into_bytes();
    assert!(sections(&bytes).any(|(tag, _)| tag == b"CERR"));
    for at in (0..bytes.len()).filter(|at| !padding(&bytes, *at)) {
        let mut flipped = bytes.clone();
        flipped[at] ^= 0x10;
        assert!(open_bytes(flipped, &spec).is_err(), "byte {at} of {}", bytes.len());
    }
}

#[test]
fn what_grows_with_a_segment_is_not_read_when_it_is_opened() {
    let rows = rows(spec(Metric::L2, Encoding::F16), &clusters(2600, 35), |i| i as u32 * 3);
    let bytes = build_segment(rows.clone(), IDENTITY, &options()).unwrap().into_bytes();
    let grow = [b"VECS", b"CODE", b"LNK0", b"IDS ", b"CERR", b"UPPR"];
    for (tag, section) in sections(&bytes).filter(|(tag, _)| grow.contains(tag)) {
        let mut flipped = bytes.clone();
        flipped[section.start + section.len() / 2] ^= 1;
        let segment = open_bytes(flipped, &rows.spec()).unwrap();
        segment.damage().unwrap();
        assert!(matches!(segment.check_all(), Err(Error::Corrupt { .. })), "{}", tag.escape_ascii());
        assert!(segment.damage().is_err());
    }
    assert_eq!(sections(&bytes).filter(|(tag, _)| grow.contains(tag)).count(), grow.len());
}

/// The tag and the place of each section, by the frame's directory.
fn sections(bytes: &[u8]) -> impl Iterator<Item = (&[u8; 4], std::ops::Range<usize>)> {
    let count = u32::from_le_bytes(bytes[44..48].try_into().unwrap()) as usize;
    let entries = (0..count).map(|i| &bytes[64 + i * 32..][..32]);
    entries.map(|entry| {
        let start = u64::from_le_bytes(entry[8..16].try_into().unwrap()) as usize;
        let len = u64::from_le_bytes(entry[16..24].try_into().unwrap()) as usize;
        (entry.first_chunk().unwrap(), start..start + len)
    })
}

/// True if byte `at` is in no section.
fn padding(bytes: &[u8], at: usize) -> bool {
    let head = 64 + sections(bytes).count() * 32;
    at >= head && !sections(bytes).any(|(_, section)| section.contains(&at))
}

/// The sections of a segment with a graph.
const GRAPH_SECTIONS: [&[u8; 4]; 13] = [
    b"HEAD", b"IDS ", b"VECS", b"SCAL", b"CODE", b"CERR", b"MEAN", b"LNK0", b"UPPR", b"TWIN", b"MEMB", b"SUMS", b"CALB",
];

/// A segment with good checksums and one section that means nothing.
fn forged(tag: [u8; 4], change: impl Fn(&mut Vec<u8>)) -> Result<VectorSegment, Error> {
    let rows = rows(spec(Metric::L2, Encoding::I8), &clusters(520, 33), |i| i as u32 * 5);
    let whole = segment(&rows);
    let mut forged = SegmentFileWriter::new(layout::KIND, layout::VERSION, IDENTITY);
    for name in GRAPH_SECTIONS {
        let mut bytes = whole.file().section(*name).unwrap().to_vec();
        if *name == tag {
            change(&mut bytes);
        }
        forged.section(*name, bytes);
    }
    open_bytes(forged.into_bytes(), &rows.spec())
}

#[test]
fn sections_that_disagree_are_refused_even_with_good_checksums() {
    assert!(forged(*b"none", |_| ()).is_ok());
    for tag in GRAPH_SECTIONS {
        let cut = forged(*tag, |bytes| bytes.truncate(bytes.len().saturating_sub(4)));
        assert!(cut.is_err() || tag == b"TWIN", "{} cut", tag.escape_ascii());
        assert!(forged(*tag, |bytes| bytes.extend([0; 4])).is_err(), "{} longer", tag.escape_ascii());
    }
    let put =
        |at: usize, value: u32| move |bytes: &mut Vec<u8>| bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
    for (tag, at, value) in [
        (b"IDS ", 4, 0),
        (b"LNK0", 0, 520),
        (b"CODE", 0, 1),
        (b"VECS", 4, 1 << 30),
        (b"UPPR", 0, 400_000_000),
        (b"UPPR", 4, 519),
        (b"MEMB", 0, 2),
        (b"HEAD", 8, 519),
        (b"HEAD", 24, 9),
        (b"HEAD", 32, 12345),
        (b"HEAD", 44, 1),
    ] {
        let result = forged(*tag, put(at, value)).and_then(|segment| segment.check_all().map(|()| segment));
        assert!(matches!(result, Err(Error::Corrupt { .. })), "{} at {at}: {result:?}", tag.escape_ascii());
    }
}

#[test]
fn a_segment_of_another_space_or_of_nothing_is_refused() {
    let rows = rows(spec(Metric::L2, Encoding::F32), &clusters(20, 34), |i| i as u32);
    let bytes = build_segment(rows.clone(), IDENTITY, &options()).unwrap().into_bytes();
    assert!(!open_bytes(bytes.clone(), &rows.spec()).unwrap().has_graph());
    let other = spec(Metric::Dot, Encoding::F32);
    assert!(matches!(open_bytes(bytes, &other), Err(Error::Mismatch { .. })));
    let nothing = holotype_index::Rows::new(other);
    assert!(matches!(build_segment(nothing, IDENTITY, &options()), Err(Error::Empty)));
    let odd = BuildOptions { m: 1, graph_from: 1, ..options() };
    assert!(matches!(build_segment(rows, IDENTITY, &odd), Err(Error::Links { m: 1, .. })));
    assert_eq!(SearchOptions::default().ef, 64);
}
