//! The summary of a database: its words and its parts.
//!
//! - Its **words** are those of its items, lower case, the most frequent first. A question that names a rare thing
//!   finds the database by it, so all are kept, up to [`MOST_WORDS`].
//! - Its **parts** are the members of each of its themes, and what belongs to no theme in parts by vectors: about the
//!   square root of their number. Where themes are many, vectors alone decide.
//!
//! Items that no recall finds (inactive, erased, failed) are left out. The same state gives the same summary.

use super::clusters::{self, Rows};
use super::entry::{Entry, Part, head_of, instance_of};
use crate::Result;
use crate::core::handle::Holotype;
use crate::model::edge::Edge;
use crate::model::item::{ItemId, Layer};
use crate::model::space::{Metric, Space};
use crate::read::snapshot::Snapshot;
use crate::records::record::PointerTarget;
use crate::state::layers::pieces;
use holotype_storage::standing::Standing;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Words of an entry, at most.
const MOST_WORDS: usize = 8_000;

/// Bytes of a word; a longer run without a blank is cut.
const WORD_LEN: usize = 60;

/// Items that are read of a database, at most; of a larger one, items at equal distances.
const MOST_READ: usize = 20_000;

/// Words that mark a part.
const WORDS_OF_A_PART: usize = 8;

/// The entry of a database, and its parts.
pub(super) struct Summary {
    pub(super) entry: Entry,
    pub(super) parts: Vec<Part>,
    pub(super) space: Option<Space>,
}

/// The items of a database that are read, and its words.
struct Material<'s> {
    snapshot: &'s Snapshot,
    read: Vec<Read>,
    vocabulary: Vocabulary,
}

/// An item as it is summarised.
struct Read {
    id: ItemId,
    words: Vec<u32>,
    vector: Option<Vec<f32>>,
}

/// The words of a database: each once, with the number of items that have it.
#[derive(Default)]
struct Vocabulary {
    numbers: HashMap<String, u32>,
    counts: Vec<u32>,
}

/// Reads a database of that name. `most_parts` bounds its parts.
pub(super) fn summarise(
    name: &str,
    database: &Holotype,
    standing: Option<Standing>,
    most_parts: usize,
) -> Result<Summary> {
    let snapshot = &database.snapshot();
    let head = snapshot.state.head;
    let space = snapshot.space()?;
    let mut eligible = Vec::new();
    for layer in Layer::ALL {
        let sets = snapshot.state.attributes.base_sets(snapshot.state.bound());
        eligible.extend(sets.eligible(*layer)?.iter().map(ItemId));
    }
    eligible.sort_unstable();
    let step = eligible.len().div_ceil(MOST_READ).max(1);
    let (mut vocabulary, mut read) = (Vocabulary::default(), Vec::new());
    let (mut from, mut to) = (None, None);
    for id in eligible.iter().copied().step_by(step) {
        let content = snapshot.content(id)?;
        let mut words = BTreeSet::new();
        for (piece, _) in pieces(&content.record) {
            vocabulary.add(piece, &mut words);
        }
        for word in &words {
            vocabulary.counts[*word as usize] += 1;
        }
        let time = snapshot.attributes(id)?.time;
        from = from.into_iter().chain(time).min();
        to = to.into_iter().chain(time).max();
        let vector = if space.is_some() { snapshot.vector(id)? } else { None };
        read.push(Read { id, words: words.into_iter().collect(), vector });
    }
    let vectors = read.iter().filter(|item| item.vector.is_some()).count() * step;
    let material = Material { snapshot, read, vocabulary };
    let texts = material.vocabulary.texts();
    let parts = match &space {
        Some(space) => material.parts(space, &texts, most_parts)?,
        None => Vec::new(),
    };
    let entry = Entry {
        path: name.to_owned(),
        commit: head.commit.0,
        head: head_of(&head),
        items: eligible.len() as u64,
        vectors: (vectors as u64).min(eligible.len() as u64),
        from,
        to,
        space: space.as_ref().map(Space::to_string),
        sampled: step > 1,
        words: material.vocabulary.most_frequent(&texts),
        durable: standing.map_or(0, |standing| standing.durable.0),
        instance: instance_of(standing),
        forgets: snapshot.state.meta.forgets,
    };
    Ok(Summary { entry, parts, space })
}

impl Vocabulary {
    /// Adds the numbers of a text's words.
    fn add(&mut self, text: &str, words: &mut BTreeSet<u32>) {
        for run in text.split_whitespace() {
            let run = run.trim_matches(|letter: char| !letter.is_alphanumeric());
            let mut rest = run;
            while !rest.is_empty() {
                let end = if rest.len() <= WORD_LEN { rest.len() } else { rest.floor_char_boundary(WORD_LEN) };
                let (word, behind) = rest.split_at(end.max(1).min(rest.len()));
                rest = behind;
                let next = u32::try_from(self.counts.len()).unwrap_or(u32::MAX);
                let number = *self.numbers.entry(word.to_lowercase()).or_insert(next);
                if number == next {
                    self.counts.push(0);
                }
                words.insert(number);
            }
        }
    }

    /// The words by number.
    fn texts(&self) -> Vec<&str> {
        let mut texts = vec![""; self.counts.len()];
        for (word, number) in &self.numbers {
            texts[*number as usize] = word;
        }
        texts
    }

    /// The words of an entry: by the number of items that have them, then by the alphabet.
    fn most_frequent(&self, texts: &[&str]) -> String {
        let mut order: Vec<usize> = (0..texts.len()).collect();
        order.sort_unstable_by_key(|number| (std::cmp::Reverse(self.counts[*number]), texts[*number]));
        order.truncate(MOST_WORDS);
        order.into_iter().map(|number| texts[number]).collect::<Vec<_>>().join(" ")
    }

    /// The words that mark some items: frequent among them, and rare among all.
    fn marks(&self, texts: &[&str], all: usize, items: &[&Read]) -> String {
        let mut counts: BTreeMap<u32, u32> = BTreeMap::new();
        items.iter().flat_map(|item| &item.words).for_each(|word| *counts.entry(*word).or_default() += 1);
        let weigh = |(word, count): (u32, u32)| {
            let rarity = (1.0 + all as f64 / f64::from(self.counts[word as usize].max(1))).ln();
            (f64::from(count) * rarity, texts[word as usize])
        };
        let mut weighed: Vec<(f64, &str)> = counts.into_iter().map(weigh).collect();
        weighed.sort_unstable_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(b.1)));
        weighed.truncate(WORDS_OF_A_PART);
        weighed.into_iter().map(|(_, word)| word).collect::<Vec<_>>().join(" ")
    }
}

impl Material<'_> {
    /// The parts of a database by themes and vectors.
    fn parts(&self, space: &Space, texts: &[&str], most: usize) -> Result<Vec<Part>> {
        let read = &self.read;
        let mut groups = by_themes(self.snapshot, read, most)?;
        let grouped: BTreeSet<usize> = groups.iter().flatten().copied().collect();
        let rest: Vec<usize> =
            (0..read.len()).filter(|place| read[*place].vector.is_some() && !grouped.contains(place)).collect();
        let wanted = (rest.len() as f64).sqrt().ceil() as usize;
        let mut numbers = Vec::with_capacity(rest.len() * space.dim);
        for place in &rest {
            numbers.extend(direction(space, read[*place].vector.as_deref().unwrap_or_default()));
        }
        let parts = clusters::parts(&Rows { numbers: &numbers, dim: space.dim }, wanted.min(most));
        let mut by_part: Vec<Vec<usize>> = vec![Vec::new(); parts.iter().max().map_or(0, |most| most + 1)];
        for (place, part) in rest.iter().zip(parts) {
            by_part[part].push(*place);
        }
        groups.extend(by_part);
        let part = |group: &Vec<usize>| {
            let items: Vec<&Read> = group.iter().map(|place| &read[*place]).collect();
            let centroid = centroid(space, &items)?;
            let words = self.vocabulary.marks(texts, read.len(), &items);
            Some(Part { words, items: items.len() as u64, centroid })
        };
        Ok(groups.iter().filter_map(part).collect())
    }
}

/// The places of each theme with its members: its recalls, and the traces that they cite. Nothing where themes are
/// more than the parts that may be.
fn by_themes(snapshot: &Snapshot, read: &[Read], most: usize) -> Result<Vec<Vec<usize>>> {
    let sets = snapshot.state.attributes.base_sets(snapshot.state.bound());
    let themes = sets.eligible(Layer::Theme)?;
    if themes.count() > most as u64 {
        return Ok(Vec::new());
    }
    let places: HashMap<ItemId, usize> = read.iter().enumerate().map(|(place, item)| (item.id, place)).collect();
    let place = |id: ItemId| places.get(&id).copied().filter(|place| read[*place].vector.is_some());
    let mut groups = Vec::new();
    for theme in themes.iter().map(ItemId) {
        let mut members: BTreeSet<usize> = place(theme).into_iter().collect();
        for recall in snapshot.linking(theme, Edge::Parent)? {
            members.extend(place(recall));
            for pointer in snapshot.state.pointers(recall)? {
                if let PointerTarget::Item(trace) = pointer.target {
                    members.extend(place(ItemId(trace)));
                }
            }
        }
        if !members.is_empty() {
            groups.push(members.into_iter().collect());
        }
    }
    Ok(groups)
}

/// A vector as its space compares it: of length 1 under cosine.
fn direction(space: &Space, vector: &[f32]) -> Vec<f32> {
    let len = match space.metric {
        Metric::Cosine => vector.iter().map(|number| number * number).sum::<f32>().sqrt(),
        _ => 1.0,
    };
    vector.iter().map(|number| number / len).collect()
}

/// The mean of the items' vectors; `None` if they cancel, so that it points nowhere.
fn centroid(space: &Space, items: &[&Read]) -> Option<Vec<f32>> {
    let mut sum = vec![0f32; space.dim];
    let mut count = 0;
    for vector in items.iter().filter_map(|item| item.vector.as_deref()) {
        sum.iter_mut().zip(direction(space, vector)).for_each(|(sum, number)| *sum += number);
        count += 1;
    }
    let mean: Vec<f32> = sum.iter().map(|number| number / count.max(1) as f32).collect();
    let mean = direction(space, &mean);
    space.check_vector(&mean).is_ok().then_some(mean)
}
