//! Fuzz targets of Holotype: one per parser and decoder, and one for sequences of operations.
//!
//! A target is a plain function of bytes that panics when something is wrong: with the bytes as a whole, or with what
//! was made of them. Three things call it:
//!
//! - `cargo test`, with the target's seeds and a few thousand mutations of them from a fixed seed ([`mutate`]);
//! - libFuzzer, through the programs in `fuzz_targets/` and the feature `libfuzzer`, which needs a C++ compiler;
//! - a person with a crash in hand, as a file under `seeds/NAME/`, where it then stays as a regression test.
//!
//! ```text
//! cargo run -p holotype-fuzz --example seeds -- fuzz/corpus
//! cargo fuzz run query_parse fuzz/corpus/query_parse --features libfuzzer -s none -- -max_total_time=20
//! ```
//!
//! Seeds of text formats stand in `seeds/NAME/`; those of binary formats are made by the code that writes the format
//! ([`Target::seeds`]), so that they are never of an older one.
//!
//! Beside the targets stand the crash explorer ([`explore`]) and a process that is killed over and over, programs of
//! their own:
//!
//! ```text
//! cargo run --release -p holotype-fuzz --example explore -- --states 1000000
//! cargo run --release -p holotype-fuzz --example explore -- --mutants
//! cargo run --release -p holotype-fuzz --example kill -- --cycles 10000 --writers 4
//! ```
//!
//! Checksums are no obstacle: where a format has them, the target repairs them after the mutation, so that the code
//! behind them is reached too. What damage that checksums do find leads to is the business of [`damage`].

pub mod canary;
pub mod columns;
pub mod damage;
pub mod explore;
pub mod floor;
mod input;
pub mod interchange_line;
pub mod log_open;
pub mod mutate;
pub mod npy;
pub mod operations;
pub mod proof;
pub mod query_parse;
pub mod record_payload;
mod sections;
pub mod segment_frame;
pub mod statement;
mod story;
pub mod time;
pub mod vector_segment;
pub mod word_segment;

use std::path::Path;
use std::{fs, io};

/// A target with all that is needed to run it.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// Its name: of its module, its binary and its folder of seeds.
    pub name: &'static str,
    /// The target itself.
    pub run: fn(&[u8]),
    /// Seeds made by the writers of the format; none where they stand in files.
    pub seeds: fn() -> Vec<Vec<u8>>,
    /// How many mutations `cargo test` tries: few where one input costs a database.
    pub mutations: u32,
}

/// Every target but the [`canary`], which fails on purpose.
pub const TARGETS: &[Target] = &[
    Target { name: "query_parse", run: query_parse::target, seeds: query_parse::seeds, mutations: 3_000 },
    Target { name: "statement", run: statement::target, seeds: query_parse::seeds, mutations: 1_000 },
    Target { name: "interchange_line", run: interchange_line::target, seeds: Vec::new, mutations: 3_000 },
    Target { name: "npy", run: npy::target, seeds: npy::seeds, mutations: 3_000 },
    Target { name: "time", run: time::target, seeds: Vec::new, mutations: 5_000 },
    Target { name: "log_open", run: log_open::target, seeds: log_open::seeds, mutations: 1_000 },
    Target { name: "record_payload", run: record_payload::target, seeds: record_payload::seeds, mutations: 300 },
    Target { name: "segment_frame", run: segment_frame::target, seeds: segment_frame::seeds, mutations: 3_000 },
    Target { name: "vector_segment", run: vector_segment::target, seeds: vector_segment::seeds, mutations: 3_000 },
    Target { name: "word_segment", run: word_segment::target, seeds: word_segment::seeds, mutations: 3_000 },
    Target { name: "columns", run: columns::target, seeds: columns::seeds, mutations: 3_000 },
    Target { name: "floor", run: floor::target, seeds: floor::seeds, mutations: 500 },
    Target { name: "proof", run: proof::target, seeds: proof::seeds, mutations: 1_000 },
    Target { name: "damage", run: damage::target, seeds: damage::seeds, mutations: 300 },
    Target { name: "operations", run: operations::target, seeds: operations::seeds, mutations: 300 },
];

impl Target {
    /// All seeds: those the code makes, and those that stand in files, by their names.
    ///
    /// # Errors
    /// When the files cannot be read.
    pub fn all_seeds(&self) -> io::Result<Vec<(String, Vec<u8>)>> {
        let made = (self.seeds)().into_iter().enumerate();
        let mut seeds: Vec<_> = made.map(|(i, bytes)| (format!("made-{i}"), bytes)).collect();
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("seeds").join(self.name);
        if folder.exists() {
            let mut paths = fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<_>>>()?;
            paths.sort();
            for path in paths {
                let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
                seeds.push((name, fs::read(path)?));
            }
        }
        Ok(seeds)
    }
}
