//! The database of the bench: a world of topics, which episodes speak of.
//!
//! A topic is a direction in space and a handful of words. Fifty traces in a row belong to one sitting, of one topic;
//! a recall rests on three traces of a sitting, and a theme has the recalls of its topic that follow each other. What
//! stands where is arithmetic on the item's number, so the world need not be kept in memory to be asked about.

use crate::Result;
use crate::random::Random;
use holotype::{Durability, Holotype, Kind, NewRecall, NewTrace, Options, Pointer, Source, Space, Status, Target};
use std::path::Path;

/// The first of January 2026, in microseconds.
const BEGINNING: i64 = 1_767_225_600_000_000;
/// Items of one block: 40 traces, then 9 recalls, then a theme of these recalls.
const BLOCK: usize = 50;
const TRACES: usize = 40;
const RECALLS: usize = 9;
/// Blocks of an episode.
const EPISODE: usize = 50;
/// Words that everything is said with, and the topics.
const VOCABULARY: usize = 20_000;
const TOPICS: usize = 2_000;

pub(super) struct World {
    pub(super) items: usize,
    pub(super) dim: usize,
}

impl World {
    pub(super) fn name(&self) -> String {
        format!("language-{}x{}.holo", self.items, self.dim)
    }

    /// When an item happened.
    pub(super) fn time_of(&self, item: usize) -> i64 {
        BEGINNING + item as i64 * 30_000_000
    }

    /// The key of some trace.
    pub(super) fn some_trace(&self, random: &mut Random) -> String {
        let block = random.below((self.items / BLOCK).max(1));
        format!("i-{}", block * BLOCK + random.below(TRACES))
    }

    /// A question about some topic.
    pub(super) fn question(&self, random: &mut Random) -> (String, Vec<f32>) {
        let topic = random.below(TOPICS);
        (self.text(topic, 6, random), self.vector(topic, 0.5, random))
    }

    /// Writes the database, in transactions of 2,000 items, with one checkpoint in the end.
    pub(super) fn write(&self, path: &Path) -> Result<()> {
        let options = Options {
            space: Some(Space::new("language", self.dim)),
            // Nothing is checkpointed before the end, however long it takes.
            checkpoint_bytes: u64::MAX,
            checkpoint_records: u64::MAX,
            memory_limit: u64::MAX,
            cache_bytes: 256 << 20,
            max_tail_bytes: u64::MAX,
            max_unsealed_vectors: u64::MAX,
            background_threads: std::thread::available_parallelism().map_or(1, usize::from),
            ..Options::default()
        };
        let database = Holotype::create(path, options)?;
        let blocks = (self.items / BLOCK).max(1);
        let mut block = 0;
        while block < blocks {
            let mut transaction = database.begin()?;
            for _ in 0..40 {
                if block < blocks {
                    self.write_block(&mut transaction, block)?;
                }
                block += 1;
            }
            transaction.commit(Durability::None)?;
            eprint!("\r{} items", block.min(blocks) * BLOCK);
        }
        eprintln!(", closing");
        database.close()?;
        Ok(())
    }

    fn write_block(&self, transaction: &mut holotype::Transaction<'_>, block: usize) -> Result<()> {
        let mut random = Random(block as u64 * 0x9e37_79b9 + 1);
        let topic = random.below(TOPICS);
        let episode = format!("e-{}", block / EPISODE);
        let first = block * BLOCK;
        for nth in 0..TRACES {
            let item = first + nth;
            let text = self.text(topic, 10, &mut random);
            let trace = match random.below(4) {
                0 => NewTrace::turn(&episode, text).speaker(["Ada", "Ben"][nth % 2]).source(Source::User),
                _ => NewTrace::call(&episode, format!("tool-{}", random.below(8)), text).source(Source::Tool),
            };
            let status = match random.below(10) {
                0 => Status::Failed,
                1 => Status::Unknown,
                _ => Status::Success,
            };
            let step = (block % EPISODE * TRACES + nth) as u64;
            let vector = self.vector(topic, 0.7, &mut random);
            let trace = trace.key(format!("i-{item}")).step(step).time(self.time_of(item)).status(status);
            transaction.record(trace.vector(vector))?;
        }
        for nth in 0..RECALLS {
            let item = first + TRACES + nth;
            let mut fact = NewRecall::fact(self.text(topic, 8, &mut random)).key(format!("i-{item}"));
            for part in 0..3 {
                let source = format!("i-{}", first + (nth * 4 + part) % TRACES);
                fact = fact.from(Pointer { target: Target::Key(source), ..Pointer::to_key("") });
            }
            transaction.remember(fact.vector(self.vector(topic, 0.6, &mut random)))?;
        }
        let theme =
            NewRecall::new(Kind::Theme, self.text(topic, 5, &mut random)).key(format!("i-{}", first + BLOCK - 1));
        let theme = (0..RECALLS).fold(theme, |theme, nth| theme.child(format!("i-{}", first + TRACES + nth)));
        transaction.remember(theme.vector(self.vector(topic, 0.4, &mut random)))?;
        Ok(())
    }

    /// Words of a topic among common ones.
    fn text(&self, topic: usize, words: usize, random: &mut Random) -> String {
        let mut text = String::new();
        for nth in 0..words {
            let word = if nth % 3 == 0 {
                topic * 7 % VOCABULARY + random.below(12)
            } else {
                // The more common, the smaller its number: about Zipf's law.
                let (a, b) = (random.below(VOCABULARY), random.below(VOCABULARY));
                a * b / VOCABULARY
            };
            if nth > 0 {
                text.push(' ');
            }
            text += &spelled(word);
        }
        text
    }

    /// A vector around a topic's direction.
    fn vector(&self, topic: usize, spread: f32, random: &mut Random) -> Vec<f32> {
        let mut direction = Random(topic as u64 * 0x51_7c_c1_b7 + 99);
        (0..self.dim).map(|_| direction.normal() + spread * random.normal()).collect()
    }
}

/// A word for a number: syllables, so that stemming leaves it alone.
fn spelled(mut number: usize) -> String {
    const SYLLABLES: [&str; 16] =
        ["ba", "ko", "mi", "tu", "ra", "lo", "ni", "su", "ga", "do", "vi", "pu", "za", "fo", "ki", "wu"];
    let mut word = String::new();
    for _ in 0..4 {
        word += SYLLABLES[number % 16];
        number /= 16;
    }
    word
}
