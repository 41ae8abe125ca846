//! Batches on a device in memory, on the emulator where there is one, and on devices that fail.

use crate::driver::{Driver, Fault};
use crate::emulator::Emulator;
use crate::mock::{Mock, Weather};
use crate::scorer::{CudaScorer, DeviceUse, scorer};
use holotype_index::bitmap::Bits;
use holotype_index::scorer::{BatchScorer, CpuScorer};
use holotype_index::segment::layout::KIND;
use holotype_index::segment::merge_segments;
use holotype_index::{
    BuildOptions, Encoding, LoggedVectors, Metric, Rows, Search, SearchOptions, TailView, VectorIndex, VectorSegment,
    VectorSpec, VectorTail, build_segment,
};
use holotype_storage::segment_file::{FileIdentity, SegmentFile};
use holotype_storage::vfs::SimVfs;
use proptest::prelude::*;
use sha2::{Digest, Sha256};
use std::num::NonZero;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};

/// xorshift64*.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    fn number(&mut self) -> f32 {
        (self.next() >> 40) as f32 / (1u64 << 23) as f32 - 1.0
    }

    fn vector(&mut self, dim: usize) -> Vec<f32> {
        (0..dim).map(|_| self.number()).collect()
    }
}

/// Vectors of some kind.
#[derive(Clone, Copy, Debug)]
enum Kind {
    Random,
    /// Around three centres, so close that kernels cannot tell most of them apart.
    Clustered,
    /// Many of them equal, some zero, of lengths from 1e-6 to 1e4.
    Adversarial,
}

fn vectors(kind: Kind, dim: usize, count: usize, random: &mut Random) -> Vec<Vec<f32>> {
    let centres: Vec<Vec<f32>> = (0..3).map(|_| random.vector(dim)).collect();
    let mut made = Vec::with_capacity(count);
    for _ in 0..count {
        let choice = random.next() >> 33;
        made.push(match kind {
            Kind::Random => random.vector(dim),
            Kind::Clustered => centres[choice as usize % 3].iter().map(|x| x + 1e-5 * random.number()).collect(),
            Kind::Adversarial => match choice % 3 {
                0 => centres[0].clone(),
                1 => vec![0.0; dim],
                _ => random.vector(dim).iter().map(|x| x * 10f32.powi((choice >> 8) as i32 % 11 - 6)).collect(),
            },
        });
    }
    made
}

#[derive(Clone, Debug)]
struct Case {
    spec: VectorSpec,
    kind: Kind,
    count: usize,
    queries: usize,
    k: usize,
    share: f64,
    seed: u64,
}

fn case() -> impl Strategy<Value = Case> {
    let metric = prop_oneof![Just(Metric::Cosine), Just(Metric::Dot), Just(Metric::L2)];
    let encoding = prop_oneof![Just(Encoding::F32), Just(Encoding::F16), Just(Encoding::I8)];
    let kind = prop_oneof![Just(Kind::Random), Just(Kind::Clustered), Just(Kind::Adversarial)];
    let count = prop_oneof![Just(0usize), Just(1), Just(63), 65usize..900];
    let queries = prop_oneof![Just(1usize), Just(8), Just(9), Just(70)];
    let k = prop_oneof![Just(1usize), Just(10), Just(128), Just(200), Just(1024), Just(1025)];
    let share = prop_oneof![Just(0.0), Just(0.05), Just(0.5), Just(1.0)];
    (metric, encoding, kind, count, queries, (1usize..70, k, share, 1u64..1 << 40)).prop_map(
        |(metric, encoding, kind, count, queries, (dim, k, share, seed))| {
            let spec = VectorSpec::new(dim, metric, encoding).unwrap();
            Case { spec, kind, count, queries, k, share, seed }
        },
    )
}

/// An index with all vectors in the tail, queries, and a filter.
fn made(case: &Case) -> (VectorIndex, Vec<Vec<f32>>, Bits) {
    let mut random = Random(case.seed);
    let tail = VectorTail::new(case.spec);
    for (i, vector) in vectors(case.kind, case.spec.dim, case.count, &mut random).iter().enumerate() {
        tail.push(3 * i as u32, vector).unwrap();
    }
    let queries = vectors(Kind::Random, case.spec.dim, case.queries, &mut random);
    let filter = (0..3 * case.count as u32).filter(|_| f64::from(random.number()) < 2.0 * case.share - 1.0).collect();
    (VectorIndex::new(Vec::new(), tail.view()).unwrap(), queries, filter)
}

/// Hits of each query.
fn ask(
    index: &VectorIndex,
    queries: &[Vec<f32>],
    k: usize,
    filter: Option<&Bits>,
    by: &dyn BatchScorer,
) -> Vec<Search> {
    let asked: Vec<&[f32]> = queries.iter().map(Vec::as_slice).collect();
    let options = SearchOptions { filter, ..SearchOptions::default() };
    index.search_batch(&asked, k, options, by).unwrap()
}

fn hits(searches: Vec<Search>) -> Vec<Vec<holotype_index::Hit>> {
    searches.into_iter().map(|search| search.hits).collect()
}

fn by(driver: impl Fn() -> Result<Box<dyn Driver>, Fault> + Send + Sync + 'static) -> CudaScorer {
    CudaScorer::new(DeviceUse::WherePossible, Box::new(driver))
}

fn mock(free_len: u64, fault: Fault, weather: &Arc<Weather>) -> CudaScorer {
    let weather = Arc::clone(weather);
    by(move || Ok(Box::new(Mock::new(free_len, fault.clone(), &weather))))
}

fn lost() -> Fault {
    Fault::Lost("CUDA_ERROR_ILLEGAL_ADDRESS".to_owned())
}

fn check(case: &Case, by: &CudaScorer) -> Result<(), TestCaseError> {
    let (index, queries, filter) = made(case);
    for filter in [Some(&filter), None] {
        let want = hits(ask(&index, &queries, case.k, filter, &CpuScorer));
        prop_assert_eq!(hits(ask(&index, &queries, case.k, filter, by)), want, "filter {}", filter.is_some());
    }
    prop_assert_eq!(by.usage().fault, None);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(160))]

    /// Whatever the ranks of a device are within the bounds, ids and scores are the CPU's.
    #[test]
    fn a_device_answers_as_the_cpu_does(case in case(), off in 0u64..=1000, small in any::<bool>()) {
        let weather = Arc::new(Weather::default());
        weather.off.store(off, Ordering::Relaxed);
        // A small device has room for pieces of some hundreds of vectors beside the workspace.
        let free_len = if small { 16 << 20 } else { 1 << 30 };
        check(&case, &mock(free_len, lost(), &weather))?;
    }

    /// A fault at any call: the CPU's rows, and one reason.
    #[test]
    fn a_device_that_fails_changes_no_answer(case in case(), at in 1u64..60, memory in any::<bool>()) {
        let weather = Arc::new(Weather::default());
        let fault = if memory { Fault::OutOfMemory } else { lost() };
        let scorer = mock(1 << 30, fault.clone(), &weather);
        let (index, queries, filter) = made(&case);
        let want = hits(ask(&index, &queries, case.k, Some(&filter), &CpuScorer));
        weather.fails_at.store(at, Ordering::Relaxed);
        for _ in 0..3 {
            prop_assert_eq!(&hits(ask(&index, &queries, case.k, Some(&filter), &scorer)), &want);
        }
        let (calls, usage) = (weather.calls.load(Ordering::Relaxed), scorer.usage());
        match usage.fault {
            Some(told) => prop_assert_eq!(told, fault.to_string()),
            // Memory that others freed in time is no news.
            None => prop_assert!(calls < at || memory),
        }
        if !memory && calls >= at {
            prop_assert_eq!(calls, at, "a lost device is not asked again");
            prop_assert!(!scorer.takes_single_queries());
        }
    }
}

/// The kernels themselves, where `.ci/full` has built the emulator.
#[test]
fn the_kernels_in_the_emulator_answer_as_the_cpu_does() {
    if std::env::var_os("HOLOTYPE_EMULATOR").is_none() {
        return;
    }
    let cases = std::env::var("HOLOTYPE_EMULATOR_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(100);
    let scorer = by(|| Ok(Box::new(Emulator::start(1 << 30).unwrap())));
    let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig::with_cases(cases));
    runner.run(&case(), |case| check(&case, &scorer)).unwrap();
    assert!(scorer.usage().on_device > 0);
}

/// The first GPU, on a machine that has one and where `HOLOTYPE_GPU` says how many cases to try.
#[test]
fn the_gpu_answers_as_the_cpu_does() {
    let Some(cases) = std::env::var("HOLOTYPE_GPU").ok().and_then(|cases| cases.parse().ok()) else { return };
    let scorer = by(crate::nvidia::open);
    let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig::with_cases(cases));
    runner.run(&case(), |case| check(&case, &scorer)).unwrap();
    let usage = scorer.usage();
    println!("{}: {} parts on the device, {} on the CPU", scorer.name(), usage.on_device, usage.on_cpu);
    assert!(usage.on_device > 0);
}

const CASE: Case = Case {
    spec: VectorSpec { dim: 24, metric: Metric::Cosine, encoding: Encoding::F16 },
    kind: Kind::Random,
    count: 4096,
    queries: 3,
    k: 10,
    share: 1.0,
    seed: 7,
};

/// Eight threads find the device busy with being opened: it is then asked as often as by one batch of eight.
#[test]
fn threads_that_wait_for_the_same_vectors_share_a_pass() {
    let (index, queries, filter) = made(&Case { queries: 8, share: 0.5, ..CASE });
    let alone = Arc::new(Weather::default());
    let want = hits(ask(&index, &queries, 10, Some(&filter), &mock(1 << 30, lost(), &alone)));
    let weather = Arc::new(Weather::default());
    let (scorer, opened) = waits_for(7, &weather);
    std::thread::scope(|scope| {
        for (query, want) in queries.iter().zip(&want) {
            let (index, filter, scorer) = (&index, &filter, &scorer);
            scope.spawn(move || {
                let found = hits(ask(index, std::slice::from_ref(query), 10, Some(filter), scorer.as_ref()));
                assert_eq!(&found[0], want);
            });
        }
    });
    assert_eq!(opened.load(Ordering::Relaxed), 1);
    assert_eq!(weather.calls.load(Ordering::Relaxed), alone.calls.load(Ordering::Relaxed));
    assert_eq!((scorer.usage().on_device, scorer.waiting()), (8, 0));
}

/// Other parts, filters and k, and a device that fails while others wait: each thread has the rows of the CPU.
#[test]
fn threads_that_wait_for_other_vectors_have_their_own_answers() {
    let made = [1, 2].map(|seed| made(&Case { seed, share: 0.7, ..CASE }));
    for fails_at in [0, 1, 9, 20, 40] {
        let weather = Arc::new(Weather::default());
        weather.fails_at.store(fails_at, Ordering::Relaxed);
        let (scorer, _) = waits_for(11, &weather);
        std::thread::scope(|scope| {
            for thread in 0..12 {
                let ((index, queries, filter), scorer) = (&made[thread % 2], &scorer);
                let (k, filter) = (1 + 20 * thread, (thread % 3 > 0).then_some(filter));
                scope.spawn(move || {
                    let want = hits(ask(index, queries, k, filter, &CpuScorer));
                    assert_eq!(hits(ask(index, queries, k, filter, scorer.as_ref())), want, "fails at {fails_at}");
                });
            }
        });
        assert_eq!(scorer.waiting(), 0);
        assert_eq!(scorer.usage().on_device == 12, fails_at == 0);
    }
}

/// A scorer whose device is open only when so many requests wait for it, and how often it was opened.
fn waits_for(requests: usize, weather: &Arc<Weather>) -> (Arc<CudaScorer>, Arc<AtomicU64>) {
    let (own, opened) = (Arc::new(OnceLock::<Weak<CudaScorer>>::new()), Arc::new(AtomicU64::new(0)));
    let (known, count, weather) = (Arc::clone(&own), Arc::clone(&opened), Arc::clone(weather));
    let scorer = Arc::new(by(move || {
        let scorer = known.get().and_then(Weak::upgrade).expect("the scorer");
        while scorer.waiting() < requests {
            std::thread::yield_now();
        }
        count.fetch_add(1, Ordering::Relaxed);
        Ok(Box::new(Mock::new(1 << 30, lost(), &weather)))
    }));
    own.set(Arc::downgrade(&scorer)).expect("the first time");
    (scorer, opened)
}

#[test]
fn a_part_stays_and_the_least_used_makes_room() {
    let weather = Arc::new(Weather::default());
    // A block is 4096 rows of 32 halves with measures: about 300 KiB of a budget of 3/4.
    let scorer = mock(2 << 20, lost(), &weather);
    let block = |seed| made(&Case { seed, ..CASE });
    let blocks: Vec<_> = (1..7).map(block).collect();
    let mut most = 0;
    for _ in 0..2 {
        for (index, queries, _) in &blocks {
            let before = weather.calls.load(Ordering::Relaxed);
            let first = hits(ask(index, queries, 10, None, &scorer));
            let between = weather.calls.load(Ordering::Relaxed);
            assert_eq!(first, hits(ask(index, queries, 10, None, &CpuScorer)));
            assert_eq!(first, hits(ask(index, queries, 10, None, &scorer)));
            let after = weather.calls.load(Ordering::Relaxed);
            assert!(after - between < between - before, "the second time nothing is copied");
            most = most.max(scorer.usage().resident_len);
        }
    }
    assert!(most > 512 << 10 && most <= (2 << 20) * 3 / 4, "{most}");
    assert_eq!((scorer.usage().fault, scorer.usage().on_cpu), (None, 0));
}

/// The bytes of the vectors of ids from 0 on, and how many were read.
#[derive(Debug)]
struct Log {
    bytes: Vec<u8>,
    read: AtomicU64,
}

impl LoggedVectors for Log {
    fn find(&self, id: u32, out: &mut [u8]) -> Option<NonZero<u64>> {
        let place = NonZero::new(u64::from(id) + 1)?;
        self.copy(place, out).then_some(place)
    }

    fn copy(&self, place: NonZero<u64>, out: &mut [u8]) -> bool {
        self.read.fetch_add(1, Ordering::Relaxed);
        let start = (place.get() as usize - 1) * out.len();
        self.bytes.get(start..start + out.len()).is_some_and(|bytes| {
            out.copy_from_slice(bytes);
            true
        })
    }

    fn prefetch(&self, _place: NonZero<u64>, _len: usize) {}
}

/// A part whose vectors stand in the log is read once, and later only for the scores of candidates.
#[test]
fn a_part_that_stays_is_not_read_from_the_log_again() {
    let (spec, count) = (CASE.spec, CASE.count);
    let mut random = Random(11);
    let tail = VectorTail::new(spec);
    (0..count as u32).for_each(|id| tail.push(id, &random.vector(spec.dim)).unwrap());
    let rows = tail.view().to_rows();
    let log = Arc::new(Log { bytes: rows.view().encoded().unwrap().bytes.into_owned(), read: AtomicU64::new(0) });
    let (identity, vfs, path) = (FileIdentity { database: [1; 16], generation: 2, place: 0 }, SimVfs::new(), "/graph");
    let options = BuildOptions { graph_from: 0, log: Some(log.as_ref()), ..BuildOptions::default() };
    let flat = flat(&rows);
    let places = merge_segments(&[&flat], None, (identity, None), (&vfs, Path::new(path)), &options).unwrap();
    let file = SegmentFile::open(&vfs, Path::new(path), KIND, &identity).unwrap();
    let graph = VectorSegment::open(file, &spec).unwrap().with_places(places);
    assert!(graph.is_logged());
    let index = VectorIndex::new(vec![Arc::new(graph)], TailView::empty(spec)).unwrap();
    let index = index.in_log(Arc::clone(&log) as Arc<dyn LoggedVectors>);
    let queries: Vec<Vec<f32>> = (0..3).map(|_| random.vector(spec.dim)).collect();
    let asked: Vec<&[f32]> = queries.iter().map(Vec::as_slice).collect();
    let exact = |by: &dyn BatchScorer| {
        let before = log.read.load(Ordering::Relaxed);
        let options = SearchOptions { exact: true, ..SearchOptions::default() };
        let found = hits(index.search_batch(&asked, 10, options, by).unwrap());
        (found, log.read.load(Ordering::Relaxed) - before)
    };
    let scorer = mock(1 << 30, lost(), &Arc::new(Weather::default()));
    let (want, _) = exact(&CpuScorer);
    let (first, read) = exact(&scorer);
    assert!(first == want && read >= count as u64, "{read} were read");
    let (second, read) = exact(&scorer);
    assert!(second == want && read <= count as u64 / 16, "{read} were read");
    assert_eq!((scorer.usage().on_device, scorer.usage().fault), (2, None));
}

#[test]
fn a_part_larger_than_the_device_passes_through_in_pieces() {
    let weather = Arc::new(Weather::default());
    // Half of the budget is less than the 300 KiB of the part.
    let scorer = mock(700 << 10, lost(), &weather);
    for queries in [3, 8] {
        let (index, queries, filter) = made(&Case { queries, share: 0.5, ..CASE });
        let found = hits(ask(&index, &queries, 10, Some(&filter), &scorer));
        assert_eq!(found, hits(ask(&index, &queries, 10, Some(&filter), &CpuScorer)));
    }
    let usage = scorer.usage();
    assert_eq!((usage.on_device, usage.resident_len, usage.fault), (2, 0, None));
    let tiny = mock(4 << 10, lost(), &weather);
    let (index, queries, _) = made(&CASE);
    assert_eq!(hits(ask(&index, &queries, 10, None, &tiny)), hits(ask(&index, &queries, 10, None, &CpuScorer)));
    assert_eq!(tiny.usage().fault, Some(Fault::OutOfMemory.to_string()));
}

/// One segment, which is one part.
fn segment(spec: VectorSpec, vectors: impl Iterator<Item = Vec<f32>>) -> VectorIndex {
    let tail = VectorTail::new(spec);
    for (id, vector) in (0..).zip(vectors) {
        tail.push(id, &vector).unwrap();
    }
    VectorIndex::new(vec![Arc::new(flat(&tail.view().to_rows()))], TailView::empty(spec)).unwrap()
}

fn flat(rows: &Rows) -> VectorSegment {
    let identity = FileIdentity { database: [1; 16], generation: 1, place: 0 };
    let options = BuildOptions { graph_from: usize::MAX, ..BuildOptions::default() };
    let file = build_segment(rows.clone(), identity, &options).unwrap();
    let file = SegmentFile::from_bytes(file.into_bytes(), KIND, &identity).unwrap();
    VectorSegment::open(file, &rows.spec()).unwrap()
}

/// The device in memory, and the emulator and the GPU where there is one.
fn devices(off: u64) -> Vec<CudaScorer> {
    let weather = Arc::new(Weather::default());
    weather.off.store(off, Ordering::Relaxed);
    let mut devices = vec![mock(1 << 30, lost(), &weather)];
    if std::env::var_os("HOLOTYPE_EMULATOR").is_some() {
        devices.push(by(|| Ok(Box::new(Emulator::start(1 << 30).unwrap()))));
    }
    if std::env::var_os("HOLOTYPE_GPU").is_some() {
        devices.push(by(crate::nvidia::open));
    }
    devices
}

#[test]
fn long_parts_are_compared_in_stretches() {
    let spec = VectorSpec::new(5, Metric::L2, Encoding::F16).unwrap();
    let mut random = Random(77);
    let index = segment(spec, (0..13_000).map(|_| random.vector(5)));
    let queries: Vec<Vec<f32>> = (0..20).map(|_| random.vector(5)).collect();
    let filter: Bits = (0..13_000).filter(|id| id % 5 != 0).collect();
    for device in devices(1000) {
        for (k, filter) in [(10, None), (100, Some(&filter))] {
            let want = hits(ask(&index, &queries, k, filter, &CpuScorer));
            assert_eq!(hits(ask(&index, &queries, k, filter, &device)), want);
        }
        assert_eq!((device.usage().on_device, device.usage().fault), (2, None));
    }
}

/// Vectors that come nearer and nearer fill the lists, which overflow.
#[test]
fn queries_whose_lists_overflow_are_asked_again() {
    let spec = VectorSpec::new(3, Metric::Dot, Encoding::F32).unwrap();
    let index = segment(spec, (0..20_000).map(|i| vec![i as f32, 1.0, 0.5]));
    let queries: Vec<Vec<f32>> = (0..12).map(|i| vec![if i % 2 == 0 { 1.0 } else { -1.0 }, i as f32, 0.0]).collect();
    for device in devices(500) {
        let want = hits(ask(&index, &queries, 10, None, &CpuScorer));
        assert_eq!(hits(ask(&index, &queries, 10, None, &device)), want);
        assert_eq!((device.usage().on_device, device.usage().fault), (1, None));
    }
}

#[test]
fn more_equal_vectors_than_passes_are_worth_go_to_the_cpu() {
    let weather = Arc::new(Weather::default());
    let scorer = mock(1 << 30, lost(), &weather);
    let tail = VectorTail::new(CASE.spec);
    (0..4096).for_each(|id| tail.push(id, &[1.0; 24]).unwrap());
    let index = VectorIndex::new(Vec::new(), tail.view()).unwrap();
    let found = hits(ask(&index, &[vec![0.5; 24]], 10, None, &scorer));
    let ids: Vec<u32> = found[0].iter().map(|hit| hit.id).collect();
    assert_eq!(ids, (4086..4096).rev().collect::<Vec<u32>>());
    assert_eq!((scorer.usage().on_device, scorer.usage().on_cpu, scorer.usage().fault), (0, 1, None));
}

#[test]
fn whatever_keeps_a_device_from_opening_is_told_once_where_one_was_asked_for() {
    let (index, queries, _) = made(&CASE);
    let want = hits(ask(&index, &queries, 10, None, &CpuScorer));
    let old = Fault::OldDriver { found: "12.4".to_owned() };
    for (fault, is_news) in
        [(Fault::NoDriver, false), (Fault::NoDevice, false), (old, true), (Fault::OutOfMemory, true)]
    {
        for device_use in [DeviceUse::WherePossible, DeviceUse::WhereFaster] {
            let failing = fault.clone();
            let scorer = CudaScorer::new(device_use, Box::new(move || Err(failing.clone())));
            // So many queries that a device would pay.
            let many: Vec<Vec<f32>> = queries.iter().cycle().take(2000).cloned().collect();
            assert_eq!(hits(ask(&index, &many, 10, None, &scorer))[..3], want[..]);
            assert_eq!(hits(ask(&index, &queries, 10, None, &scorer)), want);
            let told = scorer.usage().fault;
            let is_told = is_news || device_use == DeviceUse::WherePossible;
            assert_eq!(told, is_told.then(|| fault.to_string()), "{device_use:?}");
            assert!(scorer.name().contains("cpu ("), "{}", scorer.name());
        }
    }
}

#[test]
fn this_machine_has_a_scorer_that_works() {
    let (index, queries, _) = made(&CASE);
    let scorer = scorer(DeviceUse::WherePossible);
    let found = hits(ask(&index, &queries, 10, None, scorer.as_ref()));
    assert_eq!(found, hits(ask(&index, &queries, 10, None, &CpuScorer)));
    let usage = scorer.usage();
    assert_eq!(usage.on_device + usage.on_cpu, 1);
    assert!(usage.on_device == 1 || usage.fault.is_some());
    assert_eq!(usage.fault == Some(Fault::NotCompiled.to_string()), cfg!(not(feature = "cuda")));
}

/// The kernels' sources, hashed as `ptx/build.py` does.
#[test]
fn the_ptx_is_of_these_sources() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files: Vec<_> =
        std::fs::read_dir(root.join("kernels")).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let mut hash = Sha256::new();
    for path in files {
        hash.update(path.file_name().unwrap().to_str().unwrap());
        hash.update([0]);
        hash.update(std::fs::read(&path).unwrap());
        hash.update([0]);
    }
    let made: String = hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    let kept = std::fs::read_to_string(root.join("ptx/source.sha256")).unwrap();
    assert_eq!(kept.trim(), made, "the kernels changed: run cuda/ptx/build.py");
}
