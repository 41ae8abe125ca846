//! `memory_limit` bounds the anonymous memory of a load and of the questions on it, and `stats` tells what takes it.

use crate::random::Random;
use holotype::{Durability, Encoding, Holotype, Layer, NewRecall, NewTrace, Options, Pointer, Space};

const DIM: usize = 768;
const LIMIT: u64 = 64 << 20;
/// As `f32` their vectors alone are three quarters of the limit; with codes and links they are far more.
const ITEMS: usize = 16_000;
const TOGETHER: usize = 100;

fn options() -> Options {
    let space = Space::new("test", DIM).encoding(Encoding::F32);
    Options { memory_limit: LIMIT, ..Options::with_space(space) }
}

fn vector(random: &mut Random) -> Vec<f32> {
    (0..DIM).map(|_| random.below(2_001) as f32 / 1_000.0 - 1.0).collect()
}

/// Commits traces, and facts that cite some of them; calls `see` after each commit.
fn load(database: &Holotype, random: &mut Random, mut see: impl FnMut(usize)) {
    for first in (0..ITEMS).step_by(TOGETHER) {
        let mut transaction = database.begin().unwrap();
        for item in first..first + TOGETHER {
            let words: Vec<String> = (0..20).map(|_| format!("word{}", random.below(30_000))).collect();
            let trace = NewTrace::turn(format!("episode-{}", item / 200), words.join(" ")).vector(vector(random));
            let trace = transaction.record(trace).unwrap();
            if item % 4 == 0 {
                let fact = NewRecall::fact(format!("Fact {item}.")).from(Pointer::to_item(trace));
                transaction.remember(fact.vector(vector(random))).unwrap();
            }
        }
        transaction.commit(Durability::None).unwrap();
        see(first);
    }
}

#[test]
fn stats_tell_what_takes_the_memory() {
    let dir = tempfile::tempdir().unwrap();
    let options = Options { checkpoint_bytes: u64::MAX, checkpoint_records: u64::MAX, ..options() };
    let database = Holotype::create(dir.path().join("a.holo"), options).unwrap();
    let mut transaction = database.begin().unwrap();
    transaction.record(NewTrace::turn("e", "some words").vector(vec![1.0; DIM])).unwrap();
    transaction.commit(Durability::None).unwrap();
    let part = |name: &str| {
        let memory = database.stats().unwrap().memory;
        memory.into_iter().find(|part| part.part == name).unwrap_or_else(|| panic!("no part {name}"))
    };
    assert_eq!(part("new vectors").used, (4 + 1) * DIM as u64, "with a code");
    assert!(part("new words").used > 0 && part("changed rows").used > 0);
    assert_eq!(part("catalog cache").most, Some(LIMIT / 16 * 3));
    assert_eq!(part("reserve").used, LIMIT / 16);
    let stats = database.stats().unwrap();
    let limit = stats.limits.iter().find(|limit| limit.limit == "memory_limit").unwrap();
    assert_eq!(limit.used, stats.memory.iter().map(|part| part.used).sum::<u64>());
    let most: u64 = stats.memory.iter().filter_map(|part| part.most).sum();
    assert!(most < LIMIT, "{most} bytes leave nothing for what is written");
    database.checkpoint().unwrap();
    assert_eq!(part("new vectors").used, 0);
    let table = format!("{:?}", database.stats().unwrap().to_table());
    assert!(table.contains("memory: edges"), "{table}");
}

/// The anonymous memory of this process in bytes.
#[cfg(target_os = "linux")]
fn anonymous() -> u64 {
    let all = std::fs::read_to_string("/proc/self/smaps_rollup").unwrap();
    let line = all.lines().find_map(|line| line.strip_prefix("Anonymous:")).unwrap();
    line.trim().strip_suffix(" kB").unwrap().parse::<u64>().unwrap() << 10
}

/// Loads and asks in a process of its own, whose memory no other test takes.
#[cfg(target_os = "linux")]
#[test]
fn a_loading_process() {
    let Some(path) = std::env::var_os("HOLOTYPE_SMALL_MEMORY") else { return };
    let (mut random, mut asked) = (Random(0x5eed), Random(0xa5c));
    let start = anonymous();
    let database = Holotype::create(path, options()).unwrap();
    let mut peak = 0;
    load(&database, &mut random, |first| {
        if first % 1_000 == 0 {
            let question = vector(&mut asked);
            let snapshot = database.snapshot();
            assert_eq!(snapshot.nearest(Layer::Trace, &question, 10).unwrap().len(), 10);
            snapshot.recall("word7 word8 word9").near(question).run().unwrap();
        }
        peak = peak.max(anonymous());
    });
    std::thread::scope(|scope| {
        let built = scope.spawn(|| database.checkpoint());
        while !built.is_finished() {
            peak = peak.max(anonymous());
            std::thread::yield_now();
        }
        built.join().unwrap().unwrap();
    });
    for _ in 0..20 {
        database.snapshot().recall("word7 word8").near(vector(&mut asked)).run().unwrap();
        peak = peak.max(anonymous());
    }
    println!("took {} bytes", peak - start);
    // Larger commits take more. A merge that keeps what checkpoints wrote since it began takes more than this.
    assert!(peak - start <= LIMIT / 4 * 3, "{} bytes, the limit is {LIMIT}", peak - start);
}

#[cfg(target_os = "linux")]
#[test]
fn a_load_and_its_questions_stay_within_64_mib() {
    let dir = tempfile::tempdir().unwrap();
    let output = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["small_memory::a_loading_process", "--exact", "--nocapture"])
        .env("HOLOTYPE_SMALL_MEMORY", dir.path().join("small.holo"))
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{told}{}", String::from_utf8_lossy(&output.stderr));
    assert!(told.contains("took "), "{told}");
}
