//! Near duplicates: clusters of items that all resemble each other (complete linkage by cosine).
//!
//! Two clusters merge when every pair across them has a cosine above the bound, the most alike first: their likeness is
//! that of their least alike pair. Cosines count in millionths; of equal ones the pair with the smaller ids goes first.
//! Items with the very same vector are one from the beginning.
//!
//! Only pairs above the bound can merge, so that it suffices to find those and to go through them by falling cosine:
//! two clusters merge when the last pair across them has been met.
//!
//! 1. Up to [`EXACT`] vectors are compared pair by pair, as are bounds so low that sketches would not pay. The batch
//!    scorer proposes the pairs, cosines in double precision decide.
//! 2. Otherwise pairs are proposed by sketches: 2048 signs of random projections (two signed Walsh-Hadamard transforms
//!    a round), cut into bands. Pairs that share a band and differ in few signs are compared exactly, at the first band
//!    they share. A pair at the bound is overlooked with a probability below [`MISS`]; more alike ones practically
//!    never.
//! 3. With more than [`MAX_PAIRS`] pairs the items are halved by id, each half is reduced to one item a cluster, and
//!    what is left is clustered: a flood of alike items costs no more memory than that.

use crate::Result;
use crate::model::item::Layer;
use crate::read::snapshot::Snapshot;
use holotype_index::bitmap::Bits;
use holotype_index::{Metric, SearchOptions, VectorIndex};
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::rc::Rc;

/// As many vectors are compared pair by pair.
const EXACT: usize = 2048;
/// Vectors that are compared with all others in one pass.
const TOGETHER: usize = 512;
/// The most neighbours of a vector that the scorer is asked for.
const NEAR: usize = 128;
/// More than the rounding of a cosine in f32 and of one in millionths.
const MARGIN: f32 = 1e-4;
/// The most pairs that are held.
const MAX_PAIRS: usize = 4 << 20;
/// The probability to overlook a pair at the bound.
const MISS: f64 = 1e-4;
/// Signs of a sketch.
const BITS: usize = 2048;
/// Signs that are compared first.
const FIRST_WORDS: usize = 4;
const WORDS: usize = BITS / 64;
/// Vectors that are projected together: what is done to one is done to all, in the lanes of wide instructions.
const LANES: usize = 8;
/// The most numbers of vectors that are held while pairs are compared.
const MAX_HELD: usize = 8 << 20;

/// A pair above the bound: positions in the list of items, the smaller first.
struct Pair {
    /// In millionths.
    cosine: i32,
    low: u32,
    high: u32,
}

/// The clusters of two or more items, each ascending. `ids` is ascending.
pub(crate) fn clusters(snapshot: &Snapshot, layer: Layer, ids: &[u32], above: f32) -> Result<Vec<Vec<u32>>> {
    let Some(index) = snapshot.state.vector_index(layer, &snapshot.core.log)? else { return Ok(Vec::new()) };
    if ids.len() < 2 || above >= 1.0 {
        return Ok(Vec::new());
    }
    let (groups, same) = groups_of_equals(&index, ids)?;
    snapshot.charge_rows(ids.len() as u64)?;
    let sketches = Sketches::of(&index, &groups, above)?;
    let search = Search { snapshot, index: &index, above: millionths(f64::from(above)), sketches };
    let all: Vec<u32> = (0..groups.len() as u32).collect();
    let mut clusters: Vec<Vec<u32>> = Vec::new();
    for cluster in search.reduce(&groups, &all)? {
        let mut ids: Vec<u32> = cluster.iter().flat_map(|group| same[*group as usize].iter().copied()).collect();
        ids.sort_unstable();
        if ids.len() > 1 {
            clusters.push(ids);
        }
    }
    Ok(clusters)
}

/// One id for each different vector, ascending, and all ids with that vector.
fn groups_of_equals(index: &VectorIndex, ids: &[u32]) -> Result<(Vec<u32>, Vec<Vec<u32>>)> {
    let mut seen: HashMap<[u8; 32], usize> = HashMap::with_capacity(ids.len());
    let (mut first, mut all): (Vec<u32>, Vec<Vec<u32>>) = (Vec::new(), Vec::new());
    let mut bytes = Vec::with_capacity(4 * index.spec().dim);
    for id in ids {
        let Some(vector) = index.vector(*id)? else { continue };
        bytes.clear();
        bytes.extend(vector.iter().flat_map(|component| component.to_le_bytes()));
        let group = *seen.entry(*blake3::hash(&bytes).as_bytes()).or_insert(first.len());
        if group == first.len() {
            first.push(*id);
            all.push(Vec::new());
        }
        all[group].push(*id);
    }
    Ok((first, all))
}

/// The search for pairs among some vectors.
struct Search<'s> {
    snapshot: &'s Snapshot,
    index: &'s VectorIndex,
    /// In millionths.
    above: i32,
    sketches: Option<Sketches>,
}

impl Search<'_> {
    /// The clusters of some positions in `ids`, those of one member too.
    fn reduce(&self, ids: &[u32], among: &[u32]) -> Result<Vec<Vec<u32>>> {
        self.snapshot.tick()?;
        if let Some(pairs) = self.pairs(ids, among)? {
            return Ok(linked(among, pairs));
        }
        let (left, right) = among.split_at(among.len() / 2);
        let (mut halves, right) = (self.reduce(ids, left)?, self.reduce(ids, right)?);
        halves.extend(right);
        let mut firsts: Vec<u32> = halves.iter().map(|cluster| cluster[0]).collect();
        firsts.sort_unstable();
        let Some(pairs) = self.pairs(ids, &firsts)? else { return Ok(halves) };
        let of_first: HashMap<u32, Vec<u32>> = halves.into_iter().map(|cluster| (cluster[0], cluster)).collect();
        let whole = |cluster: &Vec<u32>| -> Vec<u32> {
            cluster.iter().filter_map(|first| of_first.get(first)).flatten().copied().collect()
        };
        Ok(linked(&firsts, pairs).iter().map(whole).collect())
    }

    /// The pairs above the bound; `None` if there are too many to hold.
    fn pairs(&self, ids: &[u32], among: &[u32]) -> Result<Option<Vec<Pair>>> {
        match &self.sketches {
            Some(sketches) if among.len() > EXACT => self.sketched(sketches, ids, among),
            _ => self.exact(ids, among),
        }
    }

    fn unit(&self, id: u32) -> Result<Vec<f64>> {
        Ok(unit(self.index.vector(id)?.unwrap_or_default()))
    }

    /// All pairs above the bound. The scorer of the database proposes for each vector those near the bound, by batches;
    /// of a vector with more than [`NEAR`] such neighbours all pairs are compared.
    fn exact(&self, ids: &[u32], among: &[u32]) -> Result<Option<Vec<Pair>>> {
        self.snapshot.keep(among.len() * self.index.spec().dim * 12)?;
        let vectors: Vec<Vec<f64>> = among.iter().map(|at| self.unit(ids[*at as usize])).collect::<Result<_>>()?;
        let place: HashMap<u32, usize> = among.iter().enumerate().map(|(nth, at)| (ids[*at as usize], nth)).collect();
        let filter: Bits = place.keys().copied().collect();
        let mut pairs = Vec::new();
        for (part, chunk) in vectors.chunks(TOGETHER).enumerate() {
            self.snapshot.tick()?;
            let near = self.near(chunk, &filter)?;
            for (nth, hits) in (part * TOGETHER..).zip(near) {
                let mut compare = |other: usize| {
                    let cosine = cosine(&vectors[nth], &vectors[other]);
                    if other > nth && cosine > self.above {
                        pairs.push(Pair { cosine, low: among[nth], high: among[other] });
                    }
                };
                match hits {
                    Some(hits) => hits.iter().filter_map(|id| place.get(id)).for_each(|other| compare(*other)),
                    None => (nth + 1..among.len()).for_each(compare),
                }
            }
            if pairs.len() > MAX_PAIRS {
                return Ok(None);
            }
        }
        Ok(Some(pairs))
    }

    /// For each vector the ids that may be above the bound; `None` if there are more than the scorer was asked for, or
    /// it does not compare by cosine.
    fn near(&self, vectors: &[Vec<f64>], filter: &Bits) -> Result<Vec<Option<Vec<u32>>>> {
        if self.index.spec().metric != Metric::Cosine {
            return Ok(vec![None; vectors.len()]);
        }
        let queries: Vec<Vec<f32>> = vectors.iter().map(|vector| vector.iter().map(|x| *x as f32).collect()).collect();
        let queries: Vec<&[f32]> = queries.iter().map(Vec::as_slice).collect();
        let options =
            SearchOptions { filter: Some(filter), exact: true, skip_damaged: true, ..SearchOptions::default() };
        let found = self.index.search_batch(&queries, NEAR, options, self.snapshot.core.scorer.as_ref())?;
        let least = self.above as f32 / 1e6 - MARGIN;
        let of = |search: holotype_index::Search| {
            let complete = search.hits.len() < NEAR || search.hits.last().is_some_and(|hit| hit.score < least);
            let may_be = search.hits.into_iter().filter(|hit| hit.score >= least);
            complete.then(|| may_be.map(|hit| hit.id).collect())
        };
        Ok(found.into_iter().map(of).collect())
    }

    fn sketched(&self, sketches: &Sketches, ids: &[u32], among: &[u32]) -> Result<Option<Vec<Pair>>> {
        let mut units = Units { search: self, ids, held: vec![None; ids.len()], room: MAX_HELD };
        let mut pairs = Vec::new();
        for band in 0..sketches.bands() {
            self.snapshot.tick()?;
            let (ends, members) = sketches.buckets(band, among);
            let mut start = 0;
            for end in ends {
                let bucket = &members[start as usize..end as usize];
                start = end;
                for (nth, one) in bucket.iter().enumerate() {
                    self.snapshot.tick()?;
                    let mut of_one = None;
                    for other in &bucket[nth + 1..] {
                        if !sketches.are_new_and_near(band, one, other) {
                            continue;
                        }
                        let of_one = match &mut of_one {
                            Some(unit) => unit,
                            none => none.insert(units.of(one.at)?),
                        };
                        let cosine = cosine(of_one, &units.of(other.at)?);
                        if cosine > self.above {
                            pairs.push(Pair { cosine, low: one.at, high: other.at });
                        }
                    }
                    if pairs.len() > MAX_PAIRS {
                        return Ok(None);
                    }
                }
            }
        }
        Ok(Some(pairs))
    }
}

/// Vectors of length 1, read once each as long as there is room.
struct Units<'s> {
    search: &'s Search<'s>,
    ids: &'s [u32],
    held: Vec<Option<Rc<[f64]>>>,
    /// The numbers that may be held beyond those that are.
    room: usize,
}

impl Units<'_> {
    fn of(&mut self, at: u32) -> Result<Rc<[f64]>> {
        if let Some(unit) = &self.held[at as usize] {
            return Ok(Rc::clone(unit));
        }
        let unit: Rc<[f64]> = self.search.unit(self.ids[at as usize])?.into();
        if let Some(left) = self.room.checked_sub(unit.len()) {
            self.search.snapshot.keep(unit.len() * size_of::<f64>())?;
            self.room = left;
            self.held[at as usize] = Some(Rc::clone(&unit));
        }
        Ok(unit)
    }
}

/// Hashing of numbers that are given here and not by a caller.
type Spread = BuildHasherDefault<SpreadHasher>;

/// Spreads a number over all bits by a multiplication.
#[derive(Default)]
struct SpreadHasher(u64);

impl Hasher for SpreadHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u32(u32::from(*byte)));
    }

    fn write_u32(&mut self, number: u32) {
        self.0 = (self.0 ^ u64::from(number)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}

/// Complete linkage over the pairs above the bound.
fn linked(among: &[u32], mut pairs: Vec<Pair>) -> Vec<Vec<u32>> {
    pairs.sort_unstable_by(|a, b| b.cosine.cmp(&a.cosine).then_with(|| (a.low, a.high).cmp(&(b.low, b.high))));
    let mut clusters: Vec<Vec<u32>> = among.iter().map(|at| vec![*at]).collect();
    // By position; the clusters count in the order of `among`.
    let mut cluster_of = vec![0; among.iter().max().map_or(0, |last| *last as usize + 1)];
    among.iter().zip(0..).for_each(|(at, nth)| cluster_of[*at as usize] = nth);
    // The pairs met across two clusters, by the clusters' numbers, under both.
    let mut met: Vec<HashMap<u32, u32, Spread>> = vec![HashMap::default(); among.len()];
    for pair in pairs {
        let (a, b) = (cluster_of[pair.low as usize], cluster_of[pair.high as usize]);
        let seen = met[a as usize].entry(b).or_insert(0);
        *seen += 1;
        let seen = *seen;
        met[b as usize].insert(a, seen);
        if u64::from(seen) < clusters[a as usize].len() as u64 * clusters[b as usize].len() as u64 {
            continue;
        }
        let (into, from) = if clusters[a as usize].len() >= clusters[b as usize].len() { (a, b) } else { (b, a) };
        let moved = std::mem::take(&mut clusters[from as usize]);
        moved.iter().for_each(|at| cluster_of[*at as usize] = into);
        clusters[into as usize].extend(moved);
        for (other, count) in std::mem::take(&mut met[from as usize]) {
            met[other as usize].remove(&from);
            if other != into {
                let sum = met[into as usize].entry(other).or_insert(0);
                *sum += count;
                let sum = *sum;
                met[other as usize].insert(into, sum);
            }
        }
    }
    clusters.retain(|cluster| !cluster.is_empty());
    clusters.iter_mut().for_each(|cluster| cluster.sort_unstable());
    clusters
}

fn millionths(cosine: f64) -> i32 {
    (cosine * 1e6).round() as i32
}

/// The cosine of two vectors of length 1, in millionths.
fn cosine(a: &[f64], b: &[f64]) -> i32 {
    millionths(a.iter().zip(b).map(|(a, b)| a * b).sum())
}

/// The vector with length 1.
fn unit(vector: Vec<f32>) -> Vec<f64> {
    let mut vector: Vec<f64> = vector.into_iter().map(f64::from).collect();
    let length = vector.iter().map(|x| x * x).sum::<f64>().sqrt();
    if length > 0.0 {
        vector.iter_mut().for_each(|x| *x /= length);
    }
    vector
}

/// A position in a bucket, with the first words of its sketch.
#[derive(Clone, Default)]
struct Member {
    at: u32,
    first: [u64; FIRST_WORDS],
}

/// The sketches of the vectors, by position.
struct Sketches {
    words: Vec<[u64; WORDS]>,
    /// Signs of a band.
    band: usize,
    /// Whole bands of a word.
    per_word: usize,
    /// The lowest sign of each band of a word.
    lowest: u64,
    /// The most signs in which a pair above the bound differs, within the first words and within all.
    first_most: u32,
    most: u32,
}

impl Sketches {
    /// The sketches; `None` where pair by pair is as good.
    fn of(index: &VectorIndex, ids: &[u32], above: f32) -> Result<Option<Sketches>> {
        let agree = 1.0 - f64::from(above.clamp(-1.0, 1.0)).acos() / std::f64::consts::PI;
        let misses = |band: usize| (1.0 - agree.powi(band as i32)).powi((WORDS * (64 / band)) as i32);
        let Some(band) = [16, 14, 12, 10, 8].into_iter().find(|band| misses(*band) < MISS) else { return Ok(None) };
        if ids.len() <= EXACT {
            return Ok(None);
        }
        // Six standard deviations above the mean of the bound.
        let most = |bits: f64| (bits * (1.0 - agree) + 6.0 * (bits * agree * (1.0 - agree)).sqrt()).ceil() as u32;
        let projection = Projection::new(index.spec().dim);
        let mut words = Vec::with_capacity(ids.len());
        let mut vectors = vec![[0.0; LANES]; index.spec().dim];
        for together in ids.chunks(LANES) {
            vectors.fill([0.0; LANES]);
            for (lane, id) in together.iter().enumerate() {
                let vector = index.vector(*id)?.unwrap_or_default();
                vectors.iter_mut().zip(vector).for_each(|(lanes, x)| lanes[lane] = x);
            }
            words.extend(projection.sketches(&vectors).into_iter().take(together.len()));
        }
        let (first_most, most) = (most((FIRST_WORDS * 64) as f64), most(BITS as f64));
        Ok(Some(Sketches { first_most, most, ..Sketches::with_bands(words, band) }))
    }

    /// Sketches with bands of so many signs, near which nothing is.
    fn with_bands(words: Vec<[u64; WORDS]>, band: usize) -> Sketches {
        let per_word = 64 / band;
        let lowest = (0..per_word).fold(0, |signs, nth| signs | 1 << (nth * band));
        Sketches { words, band, per_word, lowest, first_most: 0, most: 0 }
    }

    fn bands(&self) -> usize {
        WORDS * self.per_word
    }

    /// The signs of a band of one sketch.
    fn key(&self, band: usize, at: u32) -> usize {
        let word = self.words[at as usize][band / self.per_word];
        (word >> (band % self.per_word * self.band)) as usize & ((1 << self.band) - 1)
    }

    /// The members of all buckets of a band, one bucket after the other, and the end of each.
    fn buckets(&self, band: usize, among: &[u32]) -> (Vec<u32>, Vec<Member>) {
        let keys: Vec<usize> = among.iter().map(|at| self.key(band, *at)).collect();
        let mut ends = vec![0_u32; 1 << self.band];
        keys.iter().for_each(|key| ends[*key] += 1);
        let mut sum = 0;
        for end in &mut ends {
            (*end, sum) = (sum, sum + *end);
        }
        let mut members = vec![Member::default(); among.len()];
        for (at, key) in among.iter().zip(keys) {
            let member = &mut members[ends[key] as usize];
            member.at = *at;
            member.first.copy_from_slice(&self.words[*at as usize][..FIRST_WORDS]);
            ends[key] += 1;
        }
        (ends, members)
    }

    /// True for two that may be above the bound and share none of the bands before this one. Most pairs are decided by
    /// their first words.
    fn are_new_and_near(&self, band: usize, one: &Member, other: &Member) -> bool {
        let (mut differ, mut signs) = ([0; WORDS], 0);
        for (word, differ) in differ.iter_mut().enumerate().take(FIRST_WORDS) {
            *differ = one.first[word] ^ other.first[word];
            signs += differ.count_ones();
        }
        if signs > self.first_most || self.has_equal_band_before(band, &differ[..FIRST_WORDS]) {
            return false;
        }
        let (one, other) = (&self.words[one.at as usize], &self.words[other.at as usize]);
        for word in FIRST_WORDS..WORDS {
            differ[word] = one[word] ^ other[word];
            signs += differ[word].count_ones();
        }
        signs <= self.most && !self.has_equal_band_before(band, &differ)
    }

    /// True if a band before this one is zero in some words, as far as they go.
    fn has_equal_band_before(&self, band: usize, differ: &[u64]) -> bool {
        let (whole, rest) = (band / self.per_word, band % self.per_word * self.band);
        differ.iter().take(whole).any(|word| self.has_equal_band(*word))
            || differ.get(whole).is_some_and(|word| self.has_equal_band(word | u64::MAX << rest))
    }

    /// True if a band of a word is zero: of such bands the lowest sets its highest bit when one is taken from each, and
    /// without one none does.
    fn has_equal_band(&self, differ: u64) -> bool {
        differ.wrapping_sub(self.lowest) & !differ & (self.lowest << (self.band - 1)) != 0
    }
}

/// Random projections by signed Walsh-Hadamard transforms. The signs are the same at every run.
struct Projection {
    len: usize,
    /// Two patterns of signs a round.
    signs: Vec<[Vec<f32>; 2]>,
}

impl Projection {
    fn new(dim: usize) -> Projection {
        let len = dim.next_power_of_two().max(64);
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        let mut signs = |len: usize| -> Vec<f32> {
            let mut next = || {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                if state >> 63 == 0 { 1.0 } else { -1.0 }
            };
            (0..len).map(|_| next()).collect()
        };
        let rounds = BITS.div_ceil(len);
        Projection { len, signs: (0..rounds).map(|_| [signs(len), signs(len)]).collect() }
    }

    /// The sketches of vectors, each in a lane.
    fn sketches(&self, vectors: &[[f32; LANES]]) -> [[u64; WORDS]; LANES] {
        let mut sketches = [[0; WORDS]; LANES];
        let mut projected = vec![[0.0; LANES]; self.len];
        for (round, [first, second]) in self.signs.iter().enumerate() {
            projected.fill([0.0; LANES]);
            projected[..vectors.len()].copy_from_slice(vectors);
            for signs in [first, second] {
                for (lanes, sign) in projected.iter_mut().zip(signs) {
                    for x in lanes.iter_mut() {
                        *x *= sign;
                    }
                }
                transform(&mut projected);
            }
            for (word, part) in (round * self.len / 64..WORDS).zip(projected.chunks_exact(64)) {
                let mut words = [0; LANES];
                for (nth, lanes) in part.iter().enumerate() {
                    for lane in 0..LANES {
                        words[lane] |= u64::from(lanes[lane] > 0.0) << nth;
                    }
                }
                for lane in 0..LANES {
                    sketches[lane][word] = words[lane];
                }
            }
        }
        sketches
    }
}

/// The Walsh-Hadamard transform in each lane, unscaled; the length is a power of two. Two levels are done in a pass.
fn transform(values: &mut [[f32; LANES]]) {
    let mut quarter = 1;
    while quarter * 4 <= values.len() {
        for part in values.chunks_exact_mut(4 * quarter) {
            let (low, high) = part.split_at_mut(2 * quarter);
            let ((a, b), (c, d)) = (low.split_at_mut(quarter), high.split_at_mut(quarter));
            for at in 0..quarter {
                let (a, b, c, d) = (&mut a[at], &mut b[at], &mut c[at], &mut d[at]);
                for lane in 0..LANES {
                    let (sum, other_sum) = (a[lane] + b[lane], c[lane] + d[lane]);
                    let (difference, other_difference) = (a[lane] - b[lane], c[lane] - d[lane]);
                    (a[lane], c[lane]) = (sum + other_sum, sum - other_sum);
                    (b[lane], d[lane]) = (difference + other_difference, difference - other_difference);
                }
            }
        }
        quarter *= 4;
    }
    if quarter < values.len() {
        let (low, high) = values.split_at_mut(quarter);
        for (a, b) in low.iter_mut().zip(high) {
            for lane in 0..LANES {
                (a[lane], b[lane]) = (a[lane] + b[lane], a[lane] - b[lane]);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Durability, Holotype, NewTrace, Options, Space};
    use holotype_storage::vfs::SimVfs;
    use std::sync::Arc;

    /// xorshift64*: the same numbers at every run.
    fn below(state: &mut u64, bound: u64) -> u64 {
        *state ^= *state >> 12;
        *state ^= *state << 25;
        *state ^= *state >> 27;
        (state.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) % bound
    }

    /// Families of alike vectors among unlike ones.
    fn vectors(count: usize, dim: usize) -> Vec<Vec<f32>> {
        let mut state = 7;
        let mut normal = move || (0..4).map(|_| below(&mut state, 2001) as f32 - 1000.0).sum::<f32>() / 1000.0;
        let mut made: Vec<Vec<f32>> = Vec::new();
        for nth in 0..count {
            let noise: Vec<f32> = (0..dim).map(|_| normal()).collect();
            made.push(match nth % 4 {
                0 => noise,
                _ => {
                    let near = &made[nth - 1];
                    near.iter().zip(noise).map(|(x, noise)| x + 0.3 * noise).collect()
                }
            });
        }
        made
    }

    #[test]
    fn a_pair_has_met_before_if_an_earlier_band_is_the_same() {
        let mut state = 11;
        let mut met = 0;
        for band in [16, 14, 12, 10, 8] {
            let mut random = || -> [u64; WORDS] {
                std::array::from_fn(|_| (0..64).fold(0, |word, _| word << 1 | u64::from(below(&mut state, 9) == 0)))
            };
            let sketches = Sketches::with_bands((0..12).map(|_| random()).collect(), band);
            for (one, other) in (0..12).flat_map(|one| (0..12).map(move |other| (one, other))) {
                let (a, b) = (&sketches.words[one as usize], &sketches.words[other as usize]);
                let differ: Vec<u64> = a.iter().zip(b).map(|(a, b)| a ^ b).collect();
                let same = |band: usize| sketches.key(band, one) == sketches.key(band, other);
                for at in [0, 1, 2, sketches.per_word - 1, sketches.per_word, 9, sketches.bands() - 1] {
                    let found = sketches.has_equal_band_before(at, &differ);
                    assert_eq!(found, (0..at).any(same), "{band}, {at}, {one}, {other}");
                    met += usize::from(one != other && found);
                }
            }
        }
        assert!(met > 500, "{met}");
    }

    #[test]
    fn the_transform_is_that_of_its_definition() {
        for len in [64_usize, 128] {
            let mut state = 3;
            let given: Vec<f32> = (0..len).map(|_| below(&mut state, 100) as f32).collect();
            let mut lanes: Vec<[f32; LANES]> =
                given.iter().map(|x| std::array::from_fn(|lane| x * (lane as f32 + 1.0))).collect();
            transform(&mut lanes);
            for (row, found) in lanes.iter().enumerate() {
                let sign = |column: usize| [1.0, -1.0][(row & column).count_ones() as usize % 2];
                let expected: f32 = given.iter().enumerate().map(|(column, x)| sign(column) * x).sum();
                (0..LANES).for_each(|lane| assert_eq!(found[lane], expected * (lane as f32 + 1.0)));
            }
        }
    }

    #[test]
    fn sketches_find_what_comparing_pair_by_pair_finds() {
        let space = Options::with_space(Space::new("test", 48));
        let database = Holotype::create_on(Arc::new(SimVfs::new()), "/db", space).unwrap();
        let mut transaction = database.begin().unwrap();
        for vector in vectors(EXACT + 600, 48) {
            transaction.record(NewTrace::turn("e", "t").vector(vector)).unwrap();
        }
        transaction.commit(Durability::None).unwrap();
        let snapshot = database.snapshot();
        let index = snapshot.state.vector_index(Layer::Trace, &snapshot.core.log).unwrap().unwrap();
        let ids: Vec<u32> = (0..snapshot.len()).collect();
        let sketches = Sketches::of(&index, &ids, 0.9).unwrap();
        assert!(sketches.is_some());
        let search = Search { snapshot: &snapshot, index: &index, above: 900_000, sketches };
        let places = |pairs: Option<Vec<Pair>>| {
            let mut places: Vec<_> = pairs.unwrap().iter().map(|pair| (pair.low, pair.high)).collect();
            places.sort_unstable();
            places
        };
        let exact = places(search.exact(&ids, &ids).unwrap());
        assert!(exact.len() > 1000, "{}", exact.len());
        assert_eq!(places(search.pairs(&ids, &ids).unwrap()), exact);
    }
}
