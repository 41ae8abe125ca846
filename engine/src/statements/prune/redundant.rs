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
//!    a round), cut into bands. Pairs that share a band and differ in few signs are compared exactly. A pair at the
//!    bound is overlooked with a probability below [`MISS`]; more alike ones practically never.
//! 3. With more than [`MAX_PAIRS`] pairs the items are halved by id, each half is reduced to one item a cluster, and
//!    what is left is clustered: a flood of alike items costs no more memory than that.

use crate::Result;
use crate::model::item::Layer;
use crate::read::snapshot::Snapshot;
use holotype_index::bitmap::Bits;
use holotype_index::{Metric, SearchOptions, VectorIndex};
use std::collections::HashMap;

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

/// A pair above the bound: positions in the list of items, the smaller first.
struct Pair {
    /// In millionths.
    cosine: i32,
    low: u32,
    high: u32,
}

/// The clusters of two or more items, each ascending. `ids` is ascending.
pub(crate) fn clusters(snapshot: &Snapshot, layer: Layer, ids: &[u32], above: f32) -> Result<Vec<Vec<u32>>> {
    let Some(index) = snapshot.state.layer(layer).vector_index()? else { return Ok(Vec::new()) };
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
    for id in ids {
        let Some(vector) = index.vector(*id)? else { continue };
        let mut hash = blake3::Hasher::new();
        vector.iter().for_each(|component| {
            hash.update(&component.to_le_bytes());
        });
        let group = *seen.entry(*hash.finalize().as_bytes()).or_insert(first.len());
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
        let firsts: Vec<u32> = halves.iter().map(|cluster| cluster[0]).collect();
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
        let mut pairs = Vec::new();
        for band in 0..sketches.bands {
            self.snapshot.tick()?;
            for bucket in sketches.buckets(band, among) {
                for (nth, one) in bucket.iter().enumerate() {
                    for other in &bucket[nth + 1..] {
                        if !sketches.may_be_alike(*one, *other) || sketches.met_before(band, *one, *other) {
                            continue;
                        }
                        let cosine = cosine(&self.unit(ids[*one as usize])?, &self.unit(ids[*other as usize])?);
                        if cosine > self.above {
                            pairs.push(Pair { cosine, low: *one, high: *other });
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

/// Complete linkage over the pairs above the bound.
fn linked(among: &[u32], mut pairs: Vec<Pair>) -> Vec<Vec<u32>> {
    pairs.sort_unstable_by(|a, b| b.cosine.cmp(&a.cosine).then_with(|| (a.low, a.high).cmp(&(b.low, b.high))));
    let place: HashMap<u32, u32> = among.iter().zip(0..).map(|(at, nth)| (*at, nth)).collect();
    let mut cluster_of: Vec<u32> = (0..among.len() as u32).collect();
    let mut clusters: Vec<Vec<u32>> = among.iter().map(|at| vec![*at]).collect();
    // The pairs met across two clusters, by the clusters' numbers, under both.
    let mut met: Vec<HashMap<u32, u32>> = vec![HashMap::new(); among.len()];
    for pair in pairs {
        let (a, b) = (cluster_of[place[&pair.low] as usize], cluster_of[place[&pair.high] as usize]);
        let seen = met[a as usize].entry(b).or_insert(0);
        *seen += 1;
        let seen = *seen;
        met[b as usize].insert(a, seen);
        if u64::from(seen) < clusters[a as usize].len() as u64 * clusters[b as usize].len() as u64 {
            continue;
        }
        let (into, from) = if clusters[a as usize].len() >= clusters[b as usize].len() { (a, b) } else { (b, a) };
        let moved = std::mem::take(&mut clusters[from as usize]);
        moved.iter().for_each(|at| cluster_of[place[at] as usize] = into);
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

/// The sketches of the vectors, by position.
struct Sketches {
    words: Vec<[u64; WORDS]>,
    /// Signs of a band.
    band: usize,
    bands: usize,
    /// The most signs in which a pair above the bound differs, within the first words and within all.
    first_most: u32,
    most: u32,
}

impl Sketches {
    /// The sketches; `None` where pair by pair is as good.
    fn of(index: &VectorIndex, ids: &[u32], above: f32) -> Result<Option<Sketches>> {
        let agree = 1.0 - f64::from(above.clamp(-1.0, 1.0)).acos() / std::f64::consts::PI;
        let misses = |band: usize| (1.0 - agree.powi(band as i32)).powi((BITS / band) as i32);
        let Some(band) = [16, 14, 12, 10, 8].into_iter().find(|band| misses(*band) < MISS) else { return Ok(None) };
        if ids.len() <= EXACT {
            return Ok(None);
        }
        // Six standard deviations above the mean of the bound.
        let most = |bits: f64| (bits * (1.0 - agree) + 6.0 * (bits * agree * (1.0 - agree)).sqrt()).ceil() as u32;
        let projection = Projection::new(index.spec().dim);
        let mut words = Vec::with_capacity(ids.len());
        for id in ids {
            words.push(projection.sketch(&index.vector(*id)?.unwrap_or_default()));
        }
        let (first_most, most) = (most((FIRST_WORDS * 64) as f64), most(BITS as f64));
        Ok(Some(Sketches { words, band, bands: BITS / band, first_most, most }))
    }

    /// The signs of a band of one sketch.
    fn key(&self, band: usize, at: u32) -> u16 {
        let (from, words) = (band * self.band, &self.words[at as usize]);
        let (word, shift) = (from / 64, from % 64);
        let mut bits = words[word] >> shift;
        if shift + self.band > 64 {
            bits |= words[word + 1] << (64 - shift);
        }
        (bits & ((1 << self.band) - 1)) as u16
    }

    /// The positions that agree in a band, two or more.
    fn buckets(&self, band: usize, among: &[u32]) -> Vec<Vec<u32>> {
        let mut keyed: Vec<(u16, u32)> = among.iter().map(|at| (self.key(band, *at), *at)).collect();
        keyed.sort_unstable();
        let runs = keyed.chunk_by(|a, b| a.0 == b.0).filter(|run| run.len() > 1);
        runs.map(|run| run.iter().map(|(_, at)| *at).collect()).collect()
    }

    fn may_be_alike(&self, one: u32, other: u32) -> bool {
        let (one, other) = (&self.words[one as usize], &self.words[other as usize]);
        let differ = |words: std::ops::Range<usize>| -> u32 {
            one[words.clone()].iter().zip(&other[words]).map(|(a, b)| (a ^ b).count_ones()).sum()
        };
        let first = differ(0..FIRST_WORDS);
        first <= self.first_most && first + differ(FIRST_WORDS..WORDS) <= self.most
    }

    /// True if an earlier band has met the pair.
    fn met_before(&self, band: usize, one: u32, other: u32) -> bool {
        (0..band).any(|earlier| self.key(earlier, one) == self.key(earlier, other))
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

    fn sketch(&self, vector: &[f32]) -> [u64; WORDS] {
        let mut words = [0; WORDS];
        let mut projected = vec![0.0_f32; self.len];
        for (round, [first, second]) in self.signs.iter().enumerate() {
            projected.fill(0.0);
            projected[..vector.len()].copy_from_slice(vector);
            for signs in [first, second] {
                projected.iter_mut().zip(signs).for_each(|(x, sign)| *x *= sign);
                transform(&mut projected);
            }
            let from = round * self.len;
            for (nth, x) in projected.iter().take(BITS - from).enumerate() {
                words[(from + nth) / 64] |= u64::from(*x > 0.0) << ((from + nth) % 64);
            }
        }
        words
    }
}

/// The Walsh-Hadamard transform, unscaled; the length is a power of two.
fn transform(values: &mut [f32]) {
    let mut half = 1;
    while half < values.len() {
        for pair in values.chunks_exact_mut(2 * half) {
            let (low, high) = pair.split_at_mut(half);
            for (a, b) in low.iter_mut().zip(high) {
                (*a, *b) = (*a + *b, *a - *b);
            }
        }
        half *= 2;
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
    fn sketches_find_what_comparing_pair_by_pair_finds() {
        let space = Options::with_space(Space::new("test", 48));
        let database = Holotype::create_on(Arc::new(SimVfs::new()), "/db", space).unwrap();
        let mut transaction = database.begin().unwrap();
        for vector in vectors(EXACT + 600, 48) {
            transaction.record(NewTrace::turn("e", "t").vector(vector)).unwrap();
        }
        transaction.commit(Durability::None).unwrap();
        let snapshot = database.snapshot();
        let index = snapshot.state.layer(Layer::Trace).vector_index().unwrap().unwrap();
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
