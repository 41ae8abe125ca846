//! Any damage to any file of the log: what is saved is sound and is what was there, and nothing forgotten comes back.
//!
//! `HOLOTYPE_SALVAGE_CASES` says how many damaged logs are tried; each is named by its seed.

use crate::random::Random;
use holotype::query::Params;
use holotype::{
    Durability, Holotype, ItemId, Mark, NewRecall, NewTrace, Options, Pointer, Space, Status, Target, salvage_on,
};
use holotype_storage::vfs::{SimVfs, Vfs as _};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const SOURCE: &str = "/memory.holo";
const DEST: &str = "/saved.holo";
const PAGE: usize = 4096;
const SECRET: &str = "sub rosa";

type Log = Vec<(PathBuf, Vec<u8>)>;

/// The content of an item before the damage.
struct Said {
    key: String,
    text: String,
    redacted: bool,
    lsn: u64,
}

/// A database: its log, its other files, and what it says.
struct Busy {
    log: Log,
    others: Log,
    said: Vec<Said>,
}

/// A database with every sort of change in it.
fn busy() -> Busy {
    let disk = SimVfs::new();
    let options = Options { page_size: PAGE as u32, ..Options::with_space(Space::new("toy", 2)) };
    let database = Holotype::create_on(Arc::new(disk.clone()), SOURCE, options).unwrap();
    for number in 0..70 {
        let mut transaction = database.begin().unwrap();
        let episode = format!("trip-{}", number / 10);
        let words = if number % 10 == 3 { SECRET.repeat(50) } else { "word ".repeat(number * 70 % 1800) };
        let trace = NewTrace::turn(episode, format!("turn {number} {words}")).key(format!("t{number}"));
        let trace = transaction.record(trace.vector(vec![1.0, number as f32])).unwrap();
        let fact = NewRecall::fact(format!("fact {number}")).key(format!("r{number}"));
        let fact = transaction.remember(fact.from(Pointer::to_key(format!("t{number}")))).unwrap();
        transaction.claim(fact, "number", &number.to_string(), true, &[Pointer::to_item(trace)]).unwrap();
        if number % 5 == 1 {
            let newer = NewRecall::fact(format!("later fact {number}")).from(Pointer::to_key(format!("t{number}")));
            transaction.update(&format!("r{}", number - 1), newer).unwrap();
            transaction.mark(trace, Mark::Status(Status::Failed), Some("it did".to_owned())).unwrap();
        }
        if number % 10 == 7 {
            let before = transaction.find(&Target::Key(format!("r{}", number - 2))).unwrap();
            transaction.cite(before, &Pointer::to_key(format!("t{}", number - 3))).unwrap();
        }
        transaction.commit(Durability::Flush).unwrap();
        let run = |script: String| database.query(&script, &Params::new()).map(drop).unwrap();
        match number % 10 {
            4 => run(format!("forget 't{}' because 'asked to'; recall 'fact' limit 2 with receipt", number - 1)),
            8 => run(format!(
                "link 'r{number}' sibling 'r{}'; unlink 'r{}' cites 't{}'",
                number - 1,
                number - 3,
                number - 4
            )),
            9 => run(format!("close episode 'trip-{}'; set recency.half-life = {number}d", number / 10)),
            _ => {}
        }
    }
    let snapshot = database.snapshot();
    let said = (0..snapshot.len()).map(|number| {
        let item = snapshot.item(ItemId(number)).unwrap();
        let (text, attributes) = (item.content.text().to_owned(), item.attributes);
        Said { key: item.key, text, redacted: attributes.redacted, lsn: attributes.lsn }
    });
    let said = said.collect();
    drop(snapshot);
    database.close().unwrap();
    let is_log = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "log");
    let (log, others): (Vec<_>, Vec<_>) = disk
        .files()
        .into_iter()
        .map(|path| (path.clone(), disk.bytes(&path).unwrap()))
        .partition(|(path, _)| is_log(path));
    Busy { log, others, said }
}

/// Damages a log in a few places. Says whether one header at least is as it was.
fn damage(log: &mut Log, random: &mut Random) -> bool {
    let sound: Vec<Vec<u8>> = log.iter().map(|(_, bytes)| bytes[..PAGE].to_vec()).collect();
    let paths: Vec<PathBuf> = log.iter().map(|(path, _)| path.clone()).collect();
    for _ in 0..=random.index(4) {
        let at = random.index(log.len());
        let used = log[at].1.iter().rposition(|byte| *byte != 0).map_or(1, |last| last + 1);
        let bytes = &mut log[at].1;
        let place = random.index(used.min(bytes.len()).max(1));
        match random.index(8) {
            0 | 1 if !bytes.is_empty() => bytes[place] ^= 1 << random.index(8),
            2 => bytes.iter_mut().skip(place / 512 * 512).take(512).for_each(|byte| *byte = 0),
            3 => bytes.iter_mut().skip(place / PAGE * PAGE).take(3 * PAGE).for_each(|byte| *byte = 0),
            4 => bytes.iter_mut().skip(place).take(100).for_each(|byte| *byte = random.index(256) as u8),
            5 if used > 2 * PAGE => {
                let other = random.index(used / PAGE) * PAGE;
                let page = bytes[other..other + PAGE].to_vec();
                let place = place.min(bytes.len() - PAGE) / PAGE * PAGE;
                bytes[place..place + PAGE].copy_from_slice(&page);
            }
            6 => bytes.truncate(place),
            7 if log.len() > 1 => drop(log.remove(at)),
            _ => {}
        }
    }
    let is_sound = |(path, bytes): &(PathBuf, Vec<u8>)| {
        let at = paths.iter().position(|known| known == path).unwrap();
        sound[at].iter().any(|byte| *byte != 0) && bytes.get(..PAGE) == Some(&sound[at])
    };
    log.iter().any(is_sound)
}

#[test]
fn what_is_saved_is_what_was_there() {
    let cases: u64 = std::env::var("HOLOTYPE_SALVAGE_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(40);
    let Busy { log, others, said } = busy();
    assert!(log.len() > 1);
    for seed in 0..cases {
        let (mut random, mut log) = (Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1), log.clone());
        let has_header = damage(&mut log, &mut random);
        let disk = SimVfs::new();
        disk.create_dir(&Path::new(SOURCE).join("log")).unwrap();
        for (path, bytes) in log.iter().chain(&others) {
            disk.replace(path, bytes);
        }
        let report = match salvage_on(Arc::new(disk.clone()), SOURCE, DEST) {
            Ok(report) => report,
            Err(error) => {
                assert!(!has_header, "seed {seed}: {error}");
                continue;
            }
        };
        let told: Vec<String> = report.lost.iter().map(ToString::to_string).collect();
        let database = Holotype::open_on(Arc::new(disk.clone()), DEST, Options::default()).unwrap();
        let verified = database.verify(&mut |_, _| {}).unwrap();
        assert!(verified.is_clean(), "seed {seed}: {verified:#?}\n{told:#?}");
        let snapshot = database.snapshot();
        let positions = String::from_utf8(disk.bytes(&Path::new(DEST).join("positions.tsv")).unwrap()).unwrap();
        let moved: BTreeMap<u64, u64> = positions
            .lines()
            .skip(1)
            .map(|line| line.split_once('\t').unwrap())
            .map(|(old, new)| (old.parse().unwrap(), new.parse().unwrap()))
            .collect();
        assert_eq!(moved.len() as u64, report.items, "seed {seed}");
        let saved: BTreeMap<u64, _> = (0..snapshot.len())
            .map(|id| snapshot.item(ItemId(id)).unwrap())
            .map(|item| (item.attributes.lsn, item))
            .collect();
        for said in &said {
            if let Some(item) = moved.get(&said.lsn).map(|new| &saved[new]).filter(|_| !said.redacted) {
                assert_eq!(item.content.text(), said.text, "seed {seed}: {}", said.key);
            }
            if said.redacted
                && let Some(item) = snapshot.get(&said.key).unwrap()
            {
                assert!(item.attributes.redacted && item.content.text().is_empty(), "seed {seed}: {}", said.key);
            }
        }
        // The record of what cites something forgotten was restated, and stands elsewhere than it stood.
        let restated = |said: &Said| said.redacted || said.key.ends_with('3');
        for said in said.iter().filter(|said| !restated(said) && !moved.contains_key(&said.lsn)) {
            let told_of = report.lost.iter().any(|lost| {
                let to_the_end = lost.len == 0 && lost.what.ends_with("missing");
                let is_in = (lost.position..lost.position + lost.len.max(1)).contains(&said.lsn);
                is_in || to_the_end && lost.position <= said.lsn
            });
            assert!(
                told_of,
                "seed {seed}: '{}' at {} is gone, and nothing is told of it: {told:#?}",
                said.key, said.lsn
            );
        }
        database.close().unwrap();
        for path in disk.files().iter().filter(|path| path.starts_with(DEST)) {
            let bytes = disk.bytes(path).unwrap();
            let found = bytes.windows(SECRET.len()).any(|window| window == SECRET.as_bytes());
            assert!(!found, "seed {seed}: {} says what was forgotten", path.display());
        }
    }
}
