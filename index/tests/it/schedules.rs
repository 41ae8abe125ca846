//! Shared state of threads under thousands of interleavings: with the feature `shuttle`, locks and atomics switch to
//! the thread that the scheduler draws.
//!
//! `HOLOTYPE_SCHEDULES` sets how many are drawn; a failure prints the schedule that leads to it.

use std::sync::Arc;

use crate::clusters::{IDENTITY, clusters, open, rows, spec};
use holotype_index::{
    BuildOptions, Encoding, Metric, SearchOptions, TailView, VectorIndex, VectorSegment, VectorTail, build_segment,
};
use shuttle::thread;

fn schedules(default: usize) -> usize {
    std::env::var("HOLOTYPE_SCHEDULES").ok().and_then(|count| count.parse().ok()).unwrap_or(default)
}

fn check(count: usize, test: impl Fn() + Send + Sync + 'static) {
    let mut config = shuttle::Config::new();
    // A build takes far more steps than the million that are allowed by default.
    config.max_steps = shuttle::MaxSteps::None;
    config.stack_size = 1 << 20;
    let scheduler = shuttle::scheduler::RandomScheduler::new_from_seed(0x5eed, schedules(count));
    shuttle::Runner::new(scheduler, config).run(test);
}

fn ids(index: &VectorIndex, query: &[f32], options: SearchOptions<'_>) -> Vec<u32> {
    index.search(query, 5, options).unwrap().hits.iter().map(|hit| hit.id).collect()
}

#[test]
fn a_graph_that_threads_build_holds_together() {
    check(600, || {
        let vectors = clusters(60, 3);
        let rows = rows(spec(Metric::L2, Encoding::F32), &vectors, |i| i as u32);
        let options = BuildOptions { threads: 3, graph_from: 1, m: 3, ef_construction: 8, ..BuildOptions::default() };
        let segment = open(build_segment(rows.clone(), IDENTITY, &options).unwrap(), &rows.spec());
        assert_eq!(segment.unreachable_ids().unwrap(), []);
        let index = VectorIndex::new(vec![Arc::new(segment)], TailView::empty(rows.spec())).unwrap();
        let all = SearchOptions { ef: 60, ..SearchOptions::default() };
        for query in &vectors[..5] {
            assert_eq!(ids(&index, query, all), ids(&index, query, SearchOptions { exact: true, ..all }));
        }
    });
}

#[test]
fn searches_that_check_a_fresh_segment_together_find_the_same() {
    check(1000, || {
        let vectors = clusters(80, 4);
        let rows = rows(spec(Metric::L2, Encoding::F32), &vectors, |i| i as u32);
        let options = BuildOptions { graph_from: 1, m: 3, ef_construction: 8, ..BuildOptions::default() };
        let segment = open(build_segment(rows.clone(), IDENTITY, &options).unwrap(), &rows.spec());
        let index = Arc::new(VectorIndex::new(vec![Arc::new(segment)], TailView::empty(rows.spec())).unwrap());
        let workers: Vec<_> = (0..3)
            .map(|at: usize| {
                let (index, query) = (Arc::clone(&index), vectors[at].clone());
                thread::spawn(move || {
                    let walked = SearchOptions { ef: 80, ..SearchOptions::default() };
                    let first = ids(&index, &query, walked);
                    assert_eq!(first, ids(&index, &query, SearchOptions { exact: true, ..walked }));
                    assert_eq!(first, ids(&index, &query, walked), "again, with memory that another search left");
                })
            })
            .collect();
        workers.into_iter().for_each(|worker| worker.join().unwrap());
        index.segments()[0].damage().unwrap();
    });
}

#[test]
fn nothing_is_lost_or_doubled_when_a_tail_is_handed_over() {
    const COUNT: u32 = 24;
    check(4000, || {
        let vectors = clusters(COUNT as usize, 5);
        let spec = spec(Metric::L2, Encoding::F32);
        // As a database keeps them: what is sealed, and the tail; both are swapped under one lock.
        let tail = Arc::new(VectorTail::new(spec));
        let sealed: Arc<shuttle::sync::Mutex<Vec<Arc<VectorSegment>>>> = Arc::default();
        let writer = thread::spawn({
            let (tail, vectors) = (Arc::clone(&tail), vectors.clone());
            move || (0..COUNT).zip(&vectors).for_each(|(id, vector)| tail.push(id, vector).unwrap())
        });
        let sealer = thread::spawn({
            let (tail, sealed) = (Arc::clone(&tail), Arc::clone(&sealed));
            move || {
                for _ in 0..2 {
                    let view = tail.view();
                    if view.is_empty() {
                        continue;
                    }
                    let file = build_segment(view.to_rows(), IDENTITY, &BuildOptions::default()).unwrap();
                    let segment = Arc::new(open(file, &spec));
                    let mut sealed = sealed.lock().unwrap();
                    sealed.push(segment);
                    tail.discard(&view);
                }
            }
        });
        let mut seen = 0;
        for _ in 0..4 {
            let index = {
                let sealed = sealed.lock().unwrap();
                VectorIndex::new(sealed.clone(), tail.view()).unwrap()
            };
            let exact = SearchOptions { exact: true, ..SearchOptions::default() };
            let search = index.search(&vectors[0], COUNT as usize, exact).unwrap();
            let mut found: Vec<u32> = search.hits.iter().map(|hit| hit.id).collect();
            found.sort_unstable();
            assert!(found.iter().copied().eq(0..found.len() as u32), "{found:?}");
            assert!(found.len() >= seen && found.len() == index.len(), "{} after {seen}", found.len());
            seen = found.len();
        }
        writer.join().unwrap();
        sealer.join().unwrap();
        let index = VectorIndex::new(sealed.lock().unwrap().clone(), tail.view()).unwrap();
        assert_eq!(index.len(), COUNT as usize);
    });
}
