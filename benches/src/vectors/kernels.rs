//! Distance kernels by type, form and place, beside the scalar reference and beside reading alone.
//!
//! | form | what |
//! |---|---|
//! | one-to-one | a call for each pair |
//! | one-to-many | one query against all rows in a call |
//! | many-to-many | sixteen queries against all rows in a call |
//!
//! | place | rows |
//! |---|---|
//! | near | 256 KiB: they stay in the second cache |
//! | far | as much as `--far-mib` says, in order: they come from memory each time |
//!
//! Rows and queries begin on a boundary of 64 bytes, as those of a segment and prepared queries do: where every load
//! runs over the end of a cache line, codes are compared at half the rate. What is near lies in one page of 2 MiB, if
//! the system has those: in many small ones it may lie in the cache so that not all of it stays there. What is far lies
//! in small ones, as mapped files do.
//!
//! Rates are by processor time of the thread, the best of some rounds; `million_per_s` counts distances. `read`
//! combines the same bytes as whole words, in four places at a time, and does nothing else: `of_reading` is the share
//! of its rate at which a kernel's rows go by.

use crate::Result;
use crate::measure::{cpu_time, round};
use crate::random::Random;
use bytemuck::Pod;
use half::f16;
use holotype_index::distance::{kernels, scalar};
use memmap2::MmapMut;
use serde_json::{Value, json};
use std::hint::black_box;
use std::marker::PhantomData;
use std::time::Duration;

const QUERIES: usize = 16;
const NEAR_BYTES: usize = 256 << 10;
/// A round lasts so long at least.
const ROUND: Duration = Duration::from_millis(20);
/// As long about passes between two looks at the clock: a look takes as long as comparing a hundred rows.
const LOOK_AFTER: Duration = Duration::from_millis(1);
const ROUNDS: usize = 7;
/// The reference is slow: it gets so many rows.
const SCALAR_ROWS: usize = 256;

/// Measures the kernel of that name in its three forms, and its reference.
macro_rules! measure {
    ($place:ident, $kind:literal, $metric:literal, $queries:expr, $rows:expr, $one:ident, $many:ident) => {
        let many = |queries: &_, rows: &_, out: &mut _| kernels().$many(queries, $place.dim, rows, out);
        $place.measure([$kind, $metric], $queries, $rows, |a, b| kernels().$one(a, b), many, scalar::$one);
    };
}

/// Measures every kernel over vectors of `dim` numbers.
pub(crate) fn run(dim: usize, far_mib: usize) -> Result<()> {
    let mut random = Random(5);
    for (place, bytes) in [("near", NEAR_BYTES), ("far", far_mib << 20)] {
        let words: Aligned<u64> = Aligned::new(bytes / 8, |i| (i as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15))?;
        let reading = rate(bytes, || {
            black_box(sum(black_box(words.rows())));
        });
        let line = json!({
            "bench": "vectors", "engine": "holotype", "phase": "kernels", "kernel": "read", "place": place,
            "gb_per_s": round(reading / 1e9, 2),
        });
        println!("{line}");
        drop(words);
        let place = Place { name: place, bytes, dim, reading };
        let mut floats = |count: usize| -> Vec<f32> { (0..count).map(|_| random.normal()).collect() };
        let (asked, some) = (floats(QUERIES * dim), floats(4096));
        let queries = Aligned::new(asked.len(), |i| asked[i])?;
        let queries = queries.rows();
        let wide: Aligned<f32> = place.filled(4, |i| some[i % some.len()])?;
        measure!(place, "f32", "dot", queries, wide.rows(), dot_f32, dot_f32_many);
        measure!(place, "f32", "l2", queries, wide.rows(), l2_f32, l2_f32_many);
        drop(wide);
        let halves: Aligned<f16> = place.filled(2, |i| f16::from_f32(some[i % some.len()]))?;
        measure!(place, "f16", "dot", queries, halves.rows(), dot_f16, dot_f16_many);
        measure!(place, "f16", "l2", queries, halves.rows(), l2_f16, l2_f16_many);
        drop(halves);
        let code = |x: f32| (x * 40.0).clamp(-127.0, 127.0) as i8;
        let coded = Aligned::new(queries.len(), |i| code(queries[i]))?;
        let coded = coded.rows();
        let codes: Aligned<i8> = place.filled(1, |i| code(some[i % some.len()]))?;
        measure!(place, "i8", "dot", coded, codes.rows(), dot_i8, dot_i8_many);
        measure!(place, "i8", "l2", coded, codes.rows(), l2_i8, l2_i8_many);
        // A component is a bit: an eighth of the numbers.
        let place = Place { dim: dim / 8, ..place };
        let bits: Aligned<u8> = place.filled(1, |i| codes.rows()[i % codes.rows().len()] as u8)?;
        let asked: Vec<u8> = coded[..QUERIES * place.dim].iter().map(|code| *code as u8).collect();
        measure!(place, "binary", "hamming", &asked, bits.rows(), hamming, hamming_many);
    }
    Ok(())
}

/// Rows that are compared, and how fast their bytes can be read.
#[derive(Clone, Copy)]
struct Place {
    name: &'static str,
    bytes: usize,
    /// Numbers a row.
    dim: usize,
    reading: f64,
}

impl Place {
    /// Whole rows of numbers of that width, as many as there is room for.
    fn filled<T: Pod>(&self, width: usize, number: impl FnMut(usize) -> T) -> Result<Aligned<T>> {
        Aligned::new(self.bytes / width / self.dim * self.dim, number)
    }

    /// Measures a kernel in its three forms, and its reference.
    fn measure<Q: Copy, V, R: Copy + Default>(
        &self,
        [kind, metric]: [&str; 2],
        queries: &[Q],
        rows: &[V],
        one: impl Fn(&[Q], &[V]) -> R,
        many: impl Fn(&[Q], &[V], &mut [R]),
        reference: impl Fn(&[Q], &[V]) -> R,
    ) {
        let count = rows.len() / self.dim;
        let query = &queries[..self.dim];
        let mut out = vec![R::default(); count * QUERIES];
        let each = |rows: &[V], kernel: &dyn Fn(&[Q], &[V]) -> R| {
            for row in rows.chunks_exact(self.dim) {
                black_box(kernel(query, row));
            }
        };
        let few = SCALAR_ROWS.min(count);
        let forms = [
            ("one-to-one", rate(count, || each(rows, &one))),
            ("one-to-many", rate(count, || many(query, rows, black_box(&mut out[..count])))),
            ("many-to-many", rate(count * QUERIES, || many(queries, rows, black_box(&mut out)))),
            ("scalar", rate(few, || each(&rows[..few * self.dim], &reference))),
        ];
        for (form, rate) in forms {
            println!("{}", self.line(kind, metric, form, rate, size_of::<V>() * self.dim));
        }
    }

    fn line(&self, kind: &str, metric: &str, form: &str, rate: f64, row_bytes: usize) -> Value {
        let mut line = json!({
            "bench": "vectors", "engine": "holotype", "phase": "kernels", "kernel": metric, "type": kind, "form": form,
            "place": self.name, "table": kernels().name(), "dim": self.dim, "million_per_s": round(rate / 1e6, 2),
        });
        if form == "one-to-one" || form == "one-to-many" {
            let bytes = rate * row_bytes as f64;
            line["gb_per_s"] = json!(round(bytes / 1e9, 2));
            line["of_reading"] = json!(round(bytes / self.reading, 3));
        }
        line
    }
}

/// A page of the larger sort.
const LARGE_PAGE: usize = 2 << 20;

/// Numbers of which the first begins a page; all in one page of the larger sort, if they fit into one.
struct Aligned<T> {
    pages: MmapMut,
    first: usize,
    len: usize,
    numbers: PhantomData<T>,
}

impl<T: Pod> Aligned<T> {
    fn new(count: usize, number: impl FnMut(usize) -> T) -> Result<Self> {
        let len = count * size_of::<T>();
        // Whole pages behind the first that begins one: the system gives no large page for a part of it.
        let mut pages = MmapMut::map_anon(len.next_multiple_of(LARGE_PAGE) + LARGE_PAGE)?;
        let first = pages.as_ptr().align_offset(LARGE_PAGE);
        #[cfg(target_os = "linux")]
        if len <= LARGE_PAGE {
            // A system may have none.
            let _ = pages.advise(memmap2::Advice::HugePage);
        }
        let numbers: &mut [T] = bytemuck::cast_slice_mut(&mut pages[first..first + len]);
        numbers.iter_mut().zip((0..count).map(number)).for_each(|(place, number)| *place = number);
        Ok(Self { pages, first, len, numbers: PhantomData })
    }

    fn rows(&self) -> &[T] {
        bytemuck::cast_slice(&self.pages[self.first..self.first + self.len])
    }
}

/// The rate of `work`, which does `count` things, per second of processor time.
fn rate(count: usize, mut work: impl FnMut()) -> f64 {
    work();
    let started = cpu_time();
    work();
    let once = (cpu_time() - started).max(Duration::from_nanos(1));
    let repeats = (LOOK_AFTER.as_nanos() / once.as_nanos()).max(1) as usize;
    let mut best = 0f64;
    for _ in 0..ROUNDS {
        let (started, mut times) = (cpu_time(), 0);
        loop {
            (0..repeats).for_each(|_| work());
            times += repeats;
            let taken = cpu_time() - started;
            if taken >= ROUND {
                best = best.max((count * times) as f64 / taken.as_secs_f64());
                break;
            }
        }
    }
    best
}

/// Places that are read side by side: what fetches ahead begins again with every page, and the others go on meanwhile.
const PLACES: usize = 4;

/// In a sum of its own for each word of a cache line, so that additions do not wait for each other; more sums than that
/// would not stay in registers.
fn sum(words: &[u64]) -> u64 {
    let part = words.len() / PLACES;
    let [a, b, c, d]: [&[[u64; 8]]; PLACES] =
        std::array::from_fn(|place| words[place * part..][..part].as_chunks::<8>().0);
    let mut sums = [0u64; 8];
    for (((a, b), c), d) in a.iter().zip(b).zip(c).zip(d) {
        for (word, sum) in sums.iter_mut().enumerate() {
            *sum ^= a[word] ^ b[word] ^ c[word] ^ d[word];
        }
    }
    sums.into_iter().fold(0, |all, sum| all ^ sum)
}
