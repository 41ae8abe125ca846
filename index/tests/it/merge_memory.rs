//! A merge reads its segments from end to end and keeps none of them in memory.
#![cfg(target_os = "linux")]

use std::path::{Path, PathBuf};

use crate::words_model::*;
use holotype_index::segment::{layout, merge_segments};
use holotype_index::words::{Analyzer, WORD_SEGMENT_KIND, WordSegment, merge_word_segments};
use holotype_index::{BuildOptions, Encoding, Metric, Rows, VectorSegment, VectorSpec, build_segment};
use holotype_storage::segment_file::SegmentFile;
use holotype_storage::vfs::OsVfs;

const MIB: u64 = 1 << 20;
/// The limit of a streamed segment's resident memory: a few MiB that were read last.
const MOST: u64 = 6 * MIB;

/// The bytes of a mapped file that are in this process's memory.
fn resident(path: &Path) -> u64 {
    let maps = std::fs::read_to_string("/proc/self/smaps").unwrap();
    let name = path.to_str().unwrap();
    let of_file = maps.lines().skip_while(|line| !line.ends_with(name)).find_map(|line| line.strip_prefix("Rss:"));
    let kib: u64 = of_file.unwrap().trim().strip_suffix(" kB").unwrap().parse().unwrap();
    kib << 10
}

/// A long word of letters, another for each number.
fn word(number: u32) -> String {
    (0..48).map(|at| char::from(b'a' + (number.wrapping_mul(2_654_435_761).rotate_left(at) % 26) as u8)).collect()
}

fn words(dir: &Path, number: u32) -> (PathBuf, WordSegment) {
    const WORDS: u32 = 400;
    let document = |id: u32| {
        let words: Vec<String> = (0..WORDS).map(|at| word(id * WORDS + at)).collect();
        Document { id, pieces: vec![(words.join(" "), 1.0)] }
    };
    let documents: Vec<Document> = (number * 500..number * 500 + 500).map(document).collect();
    let path = dir.join(format!("{number}.wseg"));
    tail_of(Analyzer::default(), &documents).build(u32::MAX, None, IDENTITY).unwrap().write(&OsVfs, &path).unwrap();
    let file = SegmentFile::open(&OsVfs, &path, WORD_SEGMENT_KIND, &IDENTITY).unwrap();
    (path, WordSegment::open(file).unwrap())
}

#[test]
fn a_merge_of_words_lets_go_of_what_it_read() {
    let dir = tempfile::tempdir().unwrap();
    let sources = [words(dir.path(), 0), words(dir.path(), 1)];
    let path = dir.path().join("merged.wseg");
    let segments: Vec<&WordSegment> = sources.iter().map(|(_, segment)| segment).collect();
    let len =
        merge_word_segments(Analyzer::default(), &segments, None, (IDENTITY, None), (&OsVfs, &path), None).unwrap();
    assert!(len > 20 * MIB, "{len} bytes were merged");
    for (path, segment) in &sources {
        assert!(
            segment.file_len() > 10 * MIB && resident(path) <= MOST,
            "{} of {}",
            resident(path),
            segment.file_len()
        );
    }
    let merged = SegmentFile::open(&OsVfs, &path, WORD_SEGMENT_KIND, &IDENTITY).unwrap();
    let merged = WordSegment::open(merged).unwrap();
    merged.check().unwrap();
    assert_eq!(resident(&path), 0, "after the check that the first question would make");
    merged.verify().unwrap();
    assert!(resident(&path) <= MOST, "{} of {len} after checking every byte", resident(&path));
}

fn vectors(dir: &Path, number: u32) -> (PathBuf, VectorSegment) {
    const DIM: usize = 1024;
    let spec = VectorSpec::new(DIM, Metric::L2, Encoding::F32).unwrap();
    let mut rows = Rows::new(spec);
    for id in number * 3000..number * 3000 + 3000 {
        rows.push(id, &[id as f32; DIM]).unwrap();
    }
    let path = dir.join(format!("{number}.vseg"));
    build_segment(rows, IDENTITY, &without_graph()).unwrap().write(&OsVfs, &path).unwrap();
    let file = SegmentFile::open(&OsVfs, &path, layout::KIND, &IDENTITY).unwrap();
    (path, VectorSegment::open(file, &spec).unwrap())
}

fn without_graph() -> BuildOptions<'static> {
    BuildOptions { graph_from: usize::MAX, ..BuildOptions::default() }
}

#[test]
fn a_merge_of_vectors_lets_go_of_what_it_read() {
    let dir = tempfile::tempdir().unwrap();
    let sources = [vectors(dir.path(), 0), vectors(dir.path(), 1)];
    let segments: Vec<&VectorSegment> = sources.iter().map(|(_, segment)| segment).collect();
    let path = dir.path().join("merged.vseg");
    merge_segments(&segments, None, (IDENTITY, None), (&OsVfs, &path), &without_graph()).unwrap();
    let merged = std::fs::metadata(&path).unwrap().len();
    assert!(merged > 22 * MIB, "{merged} bytes were merged");
    for (path, segment) in &sources {
        let len = segment.file().file_len();
        assert!(len > 11 * MIB && resident(path) <= MOST, "{} of {len}", resident(path));
    }
}
