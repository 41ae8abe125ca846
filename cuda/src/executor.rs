//! Runs batches on a device: which kernels, in which order, on which bytes.
//!
//! ```text
//! part on the device, or in pieces that pass through
//!   group of up to 8 queries       few, merge; again below the last key while more may be within the margin
//!   group of up to 1,024 queries   measure (once a part); many, keep on stretches; few for lists that overflowed
//! ```
//!
//! Nothing waits for the device between the launches of a group, so the next piece is copied while kernels run.
//!
//! Invariant: the candidates of a query hold every vector of the part's best k ([`bound`](crate::bound)).

use crate::bound::{Lengths, Precision, ceiling};
use crate::cost::{FEW, MANY};
use crate::driver::{Driver, Fault, Scan};
use crate::encode;
use crate::memory::{DeviceMemory, DeviceRows, Role};
use holotype_index::rows::EncodedRows;
use holotype_index::scorer::{Batch, PartId};
use holotype_index::{Encoding, Metric, VectorSpec};
use std::ops::Range;

/// The largest k of one pass of `few`.
const KEPT: usize = 128;

/// Vectors of one step of a block of `few`, and vectors and queries of a tile of `many`.
const STEP: usize = 128;
const TILE: usize = 64;
const QUERY_TILE: usize = 128;

/// Vectors of the first stretch of `many` at least, and how many times as long as all before the others are for k of
/// one pass. So a stretch adds some times k keys to a list.
const FIRST: usize = 1024;
const GROWTH: usize = 3;

/// Keys of a list of `many`.
const CAPACITY: usize = 4096;

/// The largest k that a device is asked for.
pub(crate) const MOST_K: usize = 1024;

/// The share of the free memory that is used, in parts of four.
const USED_QUARTERS: u64 = 3;

/// Vectors of a piece, and its bytes at most. Filters begin a word at its start.
const PIECE_COUNT: usize = 1 << 24;
const PIECE_LEN: u64 = 256 << 20;

/// A part and the queries that it is compared with.
#[derive(Debug)]
pub(crate) struct Task<'a> {
    pub(crate) spec: VectorSpec,
    pub(crate) part: PartId,
    pub(crate) count: usize,
    /// Gives the vectors, and reads all of them for that. A part on the device is not asked for them.
    pub(crate) batch: &'a Batch<'a>,
    pub(crate) matching: Option<&'a [u64]>,
    pub(crate) queries: Vec<&'a [f32]>,
    pub(crate) k: usize,
}

/// Positions of each query.
pub(crate) type Candidates = Vec<Vec<usize>>;

/// A device with what it holds.
#[derive(Debug)]
pub(crate) struct Executor {
    driver: Box<dyn Driver>,
    memory: DeviceMemory,
}

/// Rows on the device, from position `first` of the part on.
#[derive(Clone, Copy)]
struct Piece<'a> {
    task: &'a Task<'a>,
    rows: DeviceRows,
    first: usize,
}

/// The vectors of a part, to be copied.
struct Vectors<'a> {
    encoded: EncodedRows<'a>,
    /// The length of the longest.
    longest: f64,
}

impl<'a> Vectors<'a> {
    /// Those of a part; `None` if some of them are damaged.
    fn of(task: &Task<'a>) -> Option<Self> {
        let encoded = task.batch.encoded()?;
        Some(Self { longest: encode::longest(&task.spec, &encoded), encoded })
    }
}

/// A group of queries that was started.
enum Started {
    Few { scan: Scan },
    Many { scan: Scan },
}

impl Executor {
    pub(crate) fn new(mut driver: Box<dyn Driver>) -> Result<Self, Fault> {
        let budget = driver.free_len()? / 4 * USED_QUARTERS;
        Ok(Self { driver, memory: DeviceMemory::new(budget) })
    }

    /// The name of the device.
    pub(crate) fn device(&self) -> &str {
        self.driver.device()
    }

    /// Bytes of vectors that stay on the device.
    pub(crate) fn resident_len(&self) -> u64 {
        self.memory.resident_len()
    }

    /// True if a part is on the device.
    pub(crate) fn holds(&self, part: PartId) -> bool {
        self.memory.holds(part)
    }

    /// The candidates of each query. `None` if a vector is damaged, or more ranks are about equal than passes pay for.
    pub(crate) fn candidates(&mut self, task: &Task<'_>) -> Result<Option<Candidates>, Fault> {
        let mut candidates = vec![Vec::new(); task.queries.len()];
        if task.count == 0 || task.k == 0 || task.queries.is_empty() {
            return Ok(Some(candidates));
        }
        // A part and the workspace share the budget.
        let fits = device_len(&task.spec, task.count) <= self.memory.budget() / 2 && task.count <= PIECE_COUNT;
        let complete = match fits {
            true => self.compare_resident(task, &mut candidates),
            false => self.compare_in_pieces(task, &mut candidates),
        };
        self.memory.pin(None);
        Ok(complete?.then_some(candidates))
    }

    /// Compares a part that stays on the device.
    fn compare_resident(&mut self, task: &Task<'_>, candidates: &mut Candidates) -> Result<bool, Fault> {
        if !self.memory.holds(task.part) {
            let Some(vectors) = Vectors::of(task) else { return Ok(false) };
            let rows = self.load(task, &vectors)?;
            self.memory.keep(task.part, rows);
        }
        self.memory.pin(Some(task.part));
        let Some(rows) = self.memory.resident(task.part).copied() else { return Ok(false) };
        let mut piece = Piece { task, rows, first: 0 };
        let complete = self.compare(&mut piece, candidates, None);
        if let Some(rows) = self.memory.resident(task.part) {
            rows.measured = piece.rows.measured;
        }
        complete
    }

    /// Compares a part that is too large to stay, a piece after the other; the next is copied while one is compared.
    fn compare_in_pieces(&mut self, task: &Task<'_>, candidates: &mut Candidates) -> Result<bool, Fault> {
        let row_len = device_len(&task.spec, 1);
        let room = PIECE_LEN.min(self.memory.budget() / 4) / row_len;
        let count = usize::try_from(room).unwrap_or(PIECE_COUNT).min(PIECE_COUNT) / TILE * TILE;
        if count == 0 {
            return Err(Fault::OutOfMemory);
        }
        let pieces: Vec<Range<usize>> =
            (0..task.count).step_by(count).map(|first| first..task.count.min(first + count)).collect();
        let Some(vectors) = Vectors::of(task) else { return Ok(false) };
        let mut next = Some(self.pass_through(task, &vectors, pieces[0].clone(), 0)?);
        for (at, range) in pieces.iter().enumerate() {
            let Some(rows) = next.take() else { return Ok(false) };
            let mut piece = Piece { task, rows, first: range.start };
            let mut after = pieces.get(at + 1).map(|range| NextPiece {
                range: range.clone(),
                set: (at + 1) % 2,
                vectors: &vectors,
                rows: None,
            });
            if !self.compare(&mut piece, candidates, after.as_mut())? {
                return Ok(false);
            }
            next = after.and_then(|after| after.rows);
        }
        Ok(true)
    }

    /// Copies a whole part into buffers of its own.
    fn load(&mut self, task: &Task<'_>, vectors: &Vectors<'_>) -> Result<DeviceRows, Fault> {
        let count = task.count;
        let lens = [count * encode::stride(&task.spec), vectors.encoded.scales.len() * 4, count * 8];
        let mut buffers = [0; 3];
        let loaded = self.load_into(task, vectors, lens, &mut buffers);
        if loaded == Err(Fault::OutOfMemory) {
            for (address, len) in buffers.into_iter().zip(lens).filter(|(address, _)| *address != 0) {
                self.memory.free(self.driver.as_mut(), address, len)?;
            }
        }
        loaded
    }

    fn load_into(
        &mut self,
        task: &Task<'_>,
        vectors: &Vectors<'_>,
        lens: [usize; 3],
        buffers: &mut [u64; 3],
    ) -> Result<DeviceRows, Fault> {
        for (buffer, len) in buffers.iter_mut().zip(lens).filter(|(_, len)| *len > 0) {
            *buffer = self.memory.allocate(self.driver.as_mut(), len)?;
        }
        let [rows, scales, measures] = *buffers;
        let len = lens.iter().map(|len| *len as u64).sum();
        let (count, longest) = (whole(task.count)?, vectors.longest);
        let loaded = DeviceRows { rows, scales, measures, measured: false, count, longest, len };
        self.copy_rows(task, vectors, 0..task.count, &loaded)?;
        Ok(loaded)
    }

    /// Copies some rows into the buffers of one of two sets.
    fn pass_through(
        &mut self,
        task: &Task<'_>,
        vectors: &Vectors<'_>,
        range: Range<usize>,
        set: usize,
    ) -> Result<DeviceRows, Fault> {
        let (spec, count, set) = (&task.spec, range.len(), set as u8);
        let driver = self.driver.as_mut();
        let rows = self.memory.scratch(driver, Role::Rows(set), count * encode::stride(spec))?;
        let scales = match vectors.encoded.scales.is_empty() {
            true => 0,
            false => self.memory.scratch(driver, Role::Scales(set), count * 4)?,
        };
        let measures = self.memory.scratch(driver, Role::Measures(set), count * 8)?;
        let (count, longest) = (whole(count)?, vectors.longest);
        let passing = DeviceRows { rows, scales, measures, measured: false, count, longest, len: 0 };
        self.copy_rows(task, vectors, range, &passing)?;
        Ok(passing)
    }

    fn copy_rows(
        &mut self,
        task: &Task<'_>,
        vectors: &Vectors<'_>,
        range: Range<usize>,
        to: &DeviceRows,
    ) -> Result<(), Fault> {
        // Padded a few at a time, so that the copies of a large part need little memory.
        const STAGED: usize = 1 << 14;
        let stride = encode::stride(&task.spec);
        for start in range.clone().step_by(STAGED) {
            let count = STAGED.min(range.end - start);
            let bytes = encode::rows(&task.spec, &vectors.encoded, start, count);
            self.driver.write(to.rows + ((start - range.start) * stride) as u64, &bytes)?;
        }
        if to.scales != 0 {
            self.driver.write(to.scales, bytemuck::cast_slice(&vectors.encoded.scales[range]))?;
        }
        Ok(())
    }

    /// Compares a piece with all queries. `after` is copied while the first of them are compared.
    fn compare(
        &mut self,
        piece: &mut Piece<'_>,
        candidates: &mut Candidates,
        mut after: Option<&mut NextPiece<'_>>,
    ) -> Result<bool, Fault> {
        let task = piece.task;
        let filter = self.write_filter(piece)?;
        let few = task.queries.len() <= FEW;
        let size = if few { FEW } else { MANY };
        for start in (0..task.queries.len()).step_by(size) {
            let group = start..task.queries.len().min(start + size);
            let started = match few {
                true => self.start_few(piece, &group, filter)?,
                false => self.start_many(piece, &group, filter)?,
            };
            if let Some(after) = after.take() {
                after.rows = Some(self.pass_through(task, after.vectors, after.range.clone(), after.set)?);
            }
            let complete = match started {
                Started::Few { scan } => self.finish_few(piece, &group, scan, candidates)?,
                Started::Many { scan } => self.finish_many(piece, &group, scan, candidates)?,
            };
            if !complete {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The filter of a piece on the device; 0 if all match.
    fn write_filter(&mut self, piece: &Piece<'_>) -> Result<u64, Fault> {
        let Some(words) = piece.task.matching else { return Ok(0) };
        let end = (piece.first + piece.rows.count as usize).div_ceil(64);
        self.put(Role::Filter, bytemuck::cast_slice(&words[piece.first / 64..end]))
    }

    /// Starts the first pass of `few`.
    fn start_few(&mut self, piece: &mut Piece<'_>, group: &Range<usize>, filter: u64) -> Result<Started, Fault> {
        let (task, count) = (piece.task, piece.rows.count as usize);
        let k = KEPT.min(task.k + (task.k / 8).max(8)).min(count);
        let blocks = count.div_ceil(STEP).min(4 * self.driver.multiprocessors() as usize).max(1);
        let queries = &task.queries[group.clone()];
        let mut scan = piece.scan(group.len())?;
        scan.filter = filter;
        let (halves, measures) = encode::split_queries(queries, task.spec.encoding, scan.stride as usize);
        scan.halves = self.put(Role::Halves, bytemuck::cast_slice(&halves))?;
        scan.query_measures = self.put(Role::QueryMeasures, bytemuck::cast_slice(&measures))?;
        if task.spec.metric == Metric::L2 || task.spec.encoding == Encoding::F32 {
            self.measure(piece, &scan)?;
        }
        scan.lists = self.scratch(Role::Lists, blocks * group.len() * k * 8)?;
        scan.answers = self.scratch(Role::Answers, group.len() * k * 8)?;
        scan.k = whole(k)?;
        scan.blocks = whole(blocks)?;
        self.pass_few(piece, &mut scan, &vec![u64::MAX; group.len()])?;
        Ok(Started::Few { scan })
    }

    /// One pass: the best of each query below its limit.
    fn pass_few(&mut self, piece: &Piece<'_>, scan: &mut Scan, limits: &[u64]) -> Result<(), Fault> {
        let mut keys = limits.to_vec();
        // No block has told yet what is reached.
        keys.resize(2 * limits.len(), 0);
        scan.limits = self.put(Role::Limits, bytemuck::cast_slice(&keys))?;
        self.driver.launch(&piece.kernel("few"), (scan.blocks, 1), scan)?;
        self.driver.launch("merge", (scan.query_count, 1), scan)
    }

    /// Reads what the first pass found, and makes further passes until nothing within the margin is missing.
    fn finish_few(
        &mut self,
        piece: &Piece<'_>,
        group: &Range<usize>,
        mut scan: Scan,
        candidates: &mut Candidates,
    ) -> Result<bool, Fault> {
        let (task, k) = (piece.task, scan.k as usize);
        let most_passes = 4 + 2 * task.k.div_ceil(k);
        let mut found: Vec<Vec<u64>> = vec![Vec::new(); group.len()];
        let mut limits = vec![u64::MAX; group.len()];
        for _ in 0..most_passes {
            let mut keys = vec![0u64; group.len() * k];
            self.driver.read(scan.answers, bytemuck::cast_slice_mut(&mut keys))?;
            for (at, new) in keys.chunks_exact(k).enumerate() {
                if limits[at] == 0 {
                    continue;
                }
                let count = new.iter().take_while(|key| **key != 0).count();
                found[at].extend(&new[..count]);
                let lengths = piece.lengths(group.start + at);
                let kth = found[at].get(task.k - 1).map(|key| f64::from(encode::rank_of(*key)));
                let least = kth.map(|kth| lengths.least(task.spec.metric, Precision::Split, kth));
                let last = new[..count].last().copied().filter(|_| count == k);
                limits[at] = match (last, least) {
                    (None, _) => 0,
                    (Some(last), Some(least)) if f64::from(encode::rank_of(last)) < least => 0,
                    (Some(last), _) => last,
                };
                if let Some(least) = least {
                    found[at].retain(|key| f64::from(encode::rank_of(*key)) >= least);
                }
            }
            if limits.iter().all(|limit| *limit == 0) {
                for (keys, candidates) in found.iter().zip(&mut candidates[group.clone()]) {
                    piece.add(keys, candidates)?;
                }
                return Ok(true);
            }
            self.pass_few(piece, &mut scan, &limits)?;
        }
        Ok(false)
    }

    /// Starts `many` and `keep` on all stretches.
    fn start_many(&mut self, piece: &mut Piece<'_>, group: &Range<usize>, filter: u64) -> Result<Started, Fault> {
        let (task, count) = (piece.task, piece.rows.count as usize);
        let dim = encode::padded(task.spec.dim);
        let (halves, measures) = encode::halves(&task.queries[group.clone()], dim, QUERY_TILE);
        let ceiling = ceiling(task.spec.metric) as f32;
        let margin = |query| piece.lengths(query).margin(task.spec.metric, Precision::Half) * (1.0 + 1e-6);
        let margins: Vec<[f32; 2]> = group.clone().map(|query| [margin(query) as f32, ceiling]).collect();
        let room = CAPACITY.min((4 * task.k + 64).next_power_of_two());
        let mut scan = piece.scan(group.len())?;
        scan.filter = filter;
        scan.halves = self.put(Role::Halves, bytemuck::cast_slice(&halves))?;
        scan.query_measures = self.put(Role::QueryMeasures, bytemuck::cast_slice(&measures))?;
        scan.margins = self.put(Role::Margins, bytemuck::cast_slice(&margins))?;
        scan.limits = self.put(Role::Limits, bytemuck::cast_slice(&vec![f32::NEG_INFINITY; group.len()]))?;
        scan.counts = self.put(Role::Counts, &vec![0; group.len() * 4])?;
        scan.overflowed = self.put(Role::Overflowed, &vec![0; group.len() * 4])?;
        scan.lists = self.scratch(Role::Lists, group.len() * CAPACITY * 8)?;
        scan.answers = self.scratch(Role::Answers, group.len() * room * 8)?;
        scan.k = whole(task.k)?;
        scan.capacity = CAPACITY as u32;
        self.measure(piece, &scan)?;
        let columns = group.len().div_ceil(QUERY_TILE);
        let (shortest, growth) = match task.k <= KEPT {
            true => (FIRST, GROWTH),
            false => (CAPACITY, 1),
        };
        // As many blocks as run at once: one more would run alone after the others.
        let busy = (3 * self.driver.multiprocessors() as usize / columns).max(1);
        let mut first = 0;
        while first < count {
            let stretch = (first * growth).max(shortest).min(count - first);
            scan.first = whole(first)?;
            scan.count = whole(stretch)?;
            let lines = stretch.div_ceil(TILE).min(busy).max(1);
            self.driver.launch(&piece.kernel("many"), (whole(columns)?, whole(lines)?), &scan)?;
            first += stretch;
            scan.room = if first < count { 0 } else { whole(room)? };
            self.driver.launch("keep", (scan.query_count, 1), &scan)?;
        }
        Ok(Started::Many { scan })
    }

    /// Measures the vectors of a piece unless they are.
    fn measure(&mut self, piece: &mut Piece<'_>, scan: &Scan) -> Result<(), Fault> {
        if !piece.rows.measured {
            let blocks = (scan.count as usize).div_ceil(8).min(8 * self.driver.multiprocessors() as usize);
            self.driver.launch(&piece.kernel("measure"), (whole(blocks)?, 1), scan)?;
            piece.rows.measured = true;
        }
        Ok(())
    }

    /// Reads what was found. Queries whose lists overflowed are asked with `few`.
    fn finish_many(
        &mut self,
        piece: &Piece<'_>,
        group: &Range<usize>,
        scan: Scan,
        candidates: &mut Candidates,
    ) -> Result<bool, Fault> {
        let room = scan.room as usize;
        let mut counts = vec![0u32; group.len()];
        let mut overflowed = vec![0u32; group.len()];
        let mut keys = vec![0u64; group.len() * room];
        self.driver.read(scan.counts, bytemuck::cast_slice_mut(&mut counts))?;
        self.driver.read(scan.overflowed, bytemuck::cast_slice_mut(&mut overflowed))?;
        self.driver.read(scan.answers, bytemuck::cast_slice_mut(&mut keys))?;
        let mut left = Vec::new();
        for (at, query) in group.clone().enumerate() {
            let count = counts[at] as usize;
            if overflowed[at] != 0 || count > room {
                left.push(query);
                continue;
            }
            piece.add(&keys[at * room..][..count], &mut candidates[query])?;
        }
        for queries in left.chunks(FEW) {
            if !self.ask_again(piece, queries, scan.filter, candidates)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Asks a piece for some queries with `few`.
    fn ask_again(
        &mut self,
        piece: &Piece<'_>,
        queries: &[usize],
        filter: u64,
        candidates: &mut Candidates,
    ) -> Result<bool, Fault> {
        let task = piece.task;
        let asked = Task {
            queries: queries.iter().map(|query| task.queries[*query]).collect(),
            ..Task { queries: Vec::new(), ..*task }
        };
        let mut piece = Piece { task: &asked, ..*piece };
        let all = 0..queries.len();
        let Started::Few { scan } = self.start_few(&mut piece, &all, filter)? else { return Ok(false) };
        let mut found = vec![Vec::new(); queries.len()];
        if !self.finish_few(&piece, &all, scan, &mut found)? {
            return Ok(false);
        }
        for (query, found) in queries.iter().zip(found) {
            candidates[*query].extend(found);
        }
        Ok(true)
    }

    fn scratch(&mut self, role: Role, len: usize) -> Result<u64, Fault> {
        self.memory.scratch(self.driver.as_mut(), role, len)
    }

    /// A workspace buffer with these bytes.
    fn put(&mut self, role: Role, bytes: &[u8]) -> Result<u64, Fault> {
        let address = self.scratch(role, bytes.len())?;
        self.driver.write(address, bytes)?;
        Ok(address)
    }
}

/// A piece that is to be copied while another is compared.
struct NextPiece<'a> {
    range: Range<usize>,
    set: usize,
    vectors: &'a Vectors<'a>,
    rows: Option<DeviceRows>,
}

impl Piece<'_> {
    /// The arguments that all launches share.
    fn scan(&self, query_count: usize) -> Result<Scan, Fault> {
        let spec = &self.task.spec;
        Ok(Scan {
            rows: self.rows.rows,
            scales: self.rows.scales,
            measures: self.rows.measures,
            count: self.rows.count,
            stride: whole(encode::stride(spec))?,
            dim: whole(encode::padded(spec.dim))?,
            query_count: whole(query_count)?,
            ..Scan::default()
        })
    }

    /// The kernel of that family for the encoding and, where it matters, the metric.
    fn kernel(&self, family: &str) -> String {
        let spec = &self.task.spec;
        let encoding = match spec.encoding {
            Encoding::F32 => "f32",
            Encoding::F16 => "f16",
            Encoding::I8 => "i8",
        };
        match (family, spec.metric) {
            ("measure", _) => format!("{family}_{encoding}"),
            (_, Metric::L2) => format!("{family}_{encoding}_l2"),
            (_, Metric::Cosine | Metric::Dot) => format!("{family}_{encoding}_dot"),
        }
    }

    fn lengths(&self, query: usize) -> Lengths {
        let dim = encode::padded(self.task.spec.dim);
        Lengths { dim, query: encode::length(self.task.queries[query]), longest: self.rows.longest }
    }

    /// Adds the positions of keys to the candidates of a query.
    fn add(&self, keys: &[u64], candidates: &mut Vec<usize>) -> Result<(), Fault> {
        for key in keys {
            let position = encode::position_of(*key);
            let at = self.first + position;
            let matches = self
                .task
                .matching
                .is_none_or(|words| words.get(at / 64).is_some_and(|word| word >> (at % 64) & 1 == 1));
            if position >= self.rows.count as usize || !matches {
                return Err(Fault::Lost(format!("it answered with position {at}, which was not asked for")));
            }
            candidates.push(at);
        }
        Ok(())
    }
}

/// Bytes on the device for so many rows, their scales and measures.
fn device_len(spec: &VectorSpec, count: usize) -> u64 {
    (encode::stride(spec) as u64 + 12) * count as u64
}

/// A number of the kernels.
fn whole(number: usize) -> Result<u32, Fault> {
    u32::try_from(number).map_err(|_| Fault::OutOfMemory)
}
