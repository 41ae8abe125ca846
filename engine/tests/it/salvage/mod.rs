//! Everything readable of a damaged database is in the new one, and the report lists the rest.

mod forgotten;
mod interrupted;
mod random;

use holotype::query::Params;
use holotype::{
    Durability, Edge, Error, Holotype, NewRecall, NewTrace, Options, Pointer, SalvageReport, Space, Verdict, salvage,
};
use std::path::{Path, PathBuf};

const COUNT: usize = 60;

struct Place {
    dir: tempfile::TempDir,
}

impl Place {
    /// A database whose log has several segments of small pages.
    fn filled() -> Place {
        let place = Place { dir: tempfile::tempdir().unwrap() };
        let options = Options { page_size: 4096, ..Options::with_space(Space::new("toy", 2)) };
        let database = Holotype::create(place.source(), options).unwrap();
        for number in 0..COUNT {
            let mut transaction = database.begin().unwrap();
            let text = format!("turn {number} {}", "word ".repeat(1700));
            let trace = NewTrace::turn("trip", text).key(format!("t{number}")).time(1_000 + number as i64);
            transaction.record(trace.vector(vec![1.0, number as f32])).unwrap();
            let fact = NewRecall::fact(format!("fact {number}")).key(format!("r{number}"));
            transaction.remember(fact.from(Pointer::to_key(format!("t{number}")))).unwrap();
            transaction.commit(Durability::Flush).unwrap();
        }
        let run = |script: &str| database.query(script, &Params::new()).unwrap();
        run("forget 't7' because 'asked to'; mark 't8' failed because 'y'; link 'r1' sibling 'r2'; \
         close episode 'trip'");
        database.close().unwrap();
        place
    }

    fn source(&self) -> PathBuf {
        self.dir.path().join("memory.holo")
    }

    fn dest(&self) -> PathBuf {
        self.dir.path().join("saved.holo")
    }

    fn log(&self, number: u32) -> PathBuf {
        self.source().join(format!("log/{number:010}.log"))
    }

    /// Changes a file of the log around where some text stands, and says at which offset that is.
    fn damage(&self, log: u32, text: &str, change: impl FnOnce(&mut [u8], usize)) {
        let mut bytes = std::fs::read(self.log(log)).unwrap();
        let at = bytes.windows(text.len()).position(|window| window == text.as_bytes()).unwrap();
        change(&mut bytes, at);
        std::fs::write(self.log(log), &bytes).unwrap();
    }

    /// Salvages, and holds of the new database what must always hold.
    fn salvage(&self) -> (SalvageReport, Holotype) {
        let files = |place: &Place| {
            let names = std::fs::read_dir(place.source().join("log")).unwrap().map(|entry| entry.unwrap().path());
            let mut files: Vec<_> = names.map(|path| (std::fs::read(&path).unwrap(), path)).collect();
            files.sort();
            files
        };
        let before = files(self);
        let report = salvage(self.source(), self.dest()).unwrap();
        assert!(files(self) == before, "the source is changed");
        let database = Holotype::open(self.dest(), Options::default()).unwrap();
        let verified = database.verify(&mut |_, _| {}).unwrap();
        assert!(verified.is_clean(), "{verified:?}");
        assert_eq!(u64::from(database.snapshot().len()), report.items);
        let told = std::fs::read_to_string(self.dest().join("positions.tsv")).unwrap();
        assert_eq!(told.lines().count() as u64, report.items + 1);
        (report, database)
    }
}

fn text_of(database: &Holotype, key: &str) -> Option<String> {
    database.snapshot().get(key).unwrap().map(|item| item.content.text().to_owned())
}

fn texts(report: &SalvageReport) -> Vec<String> {
    report.lost.iter().map(ToString::to_string).collect()
}

#[test]
fn a_sound_database_is_salvaged_whole() {
    let place = Place::filled();
    let (report, new) = place.salvage();
    assert_eq!((report.items, texts(&report)), (2 * COUNT as u64, Vec::new()));
    let old = Holotype::open(place.source(), Options::read_only()).unwrap();
    for number in 0..COUNT {
        for key in [format!("t{number}"), format!("r{number}")] {
            let [a, b] = [&old, &new].map(|database| database.snapshot().get(&key).unwrap().unwrap());
            assert_eq!((a.key, a.content.text()), (b.key, b.content.text()));
            let told = |a: &holotype::ItemAttributes| {
                (a.status, a.redacted, a.time, a.step, a.support, a.commit, a.has_vector)
            };
            assert_eq!(told(&a.attributes), told(&b.attributes));
            assert_eq!(old.snapshot().vector(a.id).unwrap(), new.snapshot().vector(b.id).unwrap());
            let said = |database: &Holotype| format!("{:?}", database.snapshot().citations(a.id).unwrap());
            assert_eq!(said(&old), said(&new));
        }
    }
    let sibling = new.snapshot().get("r2").unwrap().unwrap().id;
    let from = new.snapshot().get("r1").unwrap().unwrap().id;
    assert_eq!(new.snapshot().linked(from, Edge::Sibling).unwrap(), [sibling]);
    assert_ne!(old.head().hash, new.head().hash, "it is another database");
    drop(new);
    assert!(matches!(salvage(place.source(), place.dest()), Err(Error::Exists { .. })), "never over something");
    let nowhere = place.dir.path().join("nowhere");
    assert!(matches!(salvage(&nowhere, place.dir.path().join("x")), Err(Error::NotFound { .. })));
}

#[test]
fn damage_in_the_middle_costs_what_it_touches() {
    let place = Place::filled();
    let mut stood = 0;
    place.damage(1, "turn 5 ", |bytes, at| bytes[at] ^= 1);
    // The page that the second half of a record stands in, and its neighbour.
    place.damage(2, "turn 40 ", |bytes, at| bytes[at / 4096 * 4096..][..8192].fill(0));
    place.damage(2, "turn 45 ", |_, at| stood = at as u64);
    let (report, database) = place.salvage();
    let told = texts(&report);
    assert!(report.items > 2 * COUNT as u64 - 10 && report.items < 2 * COUNT as u64, "{told:#?}");
    for (file, least) in [("0000000001.log", 8000), ("0000000002.log", 8000)] {
        assert!(report.lost.iter().any(|lost| lost.what.contains(file) && lost.len >= least), "{file}: {told:#?}");
    }
    assert!(report.lost.windows(2).all(|two| two[0].position <= two[1].position), "{told:#?}");
    assert_eq!((text_of(&database, "t5"), text_of(&database, "t40")), (None, None));
    let snapshot = database.snapshot();
    let r5 = snapshot.get("r5").unwrap().unwrap();
    assert!(r5.attributes.ungrounded && snapshot.citations(r5.id).unwrap().is_empty());
    assert!(told.iter().any(|lost| lost.contains("1 pointer of the item")), "{told:#?}");
    let r59 = snapshot.get("r59").unwrap().unwrap();
    assert_eq!(snapshot.citations(r59.id).unwrap()[0].verdict, Verdict::Ok);
    assert!(snapshot.get("t7").unwrap().unwrap().attributes.redacted);
    let moved = std::fs::read_to_string(place.dest().join("positions.tsv")).unwrap();
    let old: Vec<u64> = moved.lines().skip(1).map(|line| line.split('\t').next().unwrap().parse().unwrap()).collect();
    let first = std::fs::metadata(place.log(1)).unwrap().len();
    assert!(old.iter().any(|old| (first + stood - 500..first + stood).contains(old)), "{stood}: {old:?}");
    database.query("record turn 'on' in episode 'trip'", &Params::new()).unwrap();
}

#[test]
fn a_missing_file_costs_what_stood_in_it() {
    let place = Place::filled();
    std::fs::remove_file(place.log(1)).unwrap();
    assert!(Holotype::open(place.source(), Options::read_only()).is_err());
    let (report, database) = place.salvage();
    let told = texts(&report);
    assert!(told[0].starts_with("log position 0, 262144 bytes: log segment 1 is missing"), "{told:#?}");
    assert!(told.iter().any(|lost| lost.contains("the vector of the item")), "{told:#?}");
    assert!(report.items > 0 && report.items < 2 * COUNT as u64);
    assert_eq!(text_of(&database, "t0"), None);
    assert_eq!(text_of(&database, "r59").as_deref(), Some("fact 59"));
    // The last commits name the episode.
    assert_eq!(database.snapshot().episodes("", 9).unwrap(), ["trip"]);
}

#[test]
fn damaged_headers_cost_nothing() {
    let place = Place::filled();
    for log in [1, 2] {
        place.damage(log, "HOLO-LOG", |bytes, at| {
            bytes[at..at + 100].fill(0xff);
            bytes[at + 2048..at + 2148].fill(0xff);
        });
    }
    assert!(Holotype::open(place.source(), Options::read_only()).is_err());
    // Another file still says whose the log is.
    let (report, database) = place.salvage();
    let told = texts(&report);
    assert_eq!(report.items, 2 * COUNT as u64, "{told:#?}");
    assert!(report.lost.iter().all(|lost| lost.what.contains(".log: log page 0, ")), "{told:#?}");
    assert!(text_of(&database, "t0").is_some_and(|text| text.starts_with("turn 0 ")));
}

#[test]
fn nothing_is_made_of_a_log_without_one_header() {
    let place = Place::filled();
    for entry in std::fs::read_dir(place.source().join("log")).unwrap() {
        let path = entry.unwrap().path();
        let mut bytes = std::fs::read(&path).unwrap();
        bytes[..200].fill(0xff);
        bytes[2048..2248].fill(0xff);
        std::fs::write(&path, &bytes).unwrap();
    }
    assert!(salvage(place.source(), place.dest()).is_err());
    assert!(!Path::exists(&place.dest()), "nothing is begun");
}

#[test]
fn an_item_stays_when_a_piece_of_a_long_field_is_lost() {
    let place = Place { dir: tempfile::tempdir().unwrap() };
    let database = Holotype::create(place.source(), Options::default()).unwrap();
    let mut transaction = database.begin().unwrap();
    let long = "0123456789abcdef".repeat(600_000);
    let call = NewTrace::call("trip", "fetch", "a short text").key("t1").field("body", long.as_str());
    transaction.record(call).unwrap();
    transaction.record(NewTrace::turn("trip", "the end").key("t2")).unwrap();
    transaction.commit(Durability::Sync).unwrap();
    database.close().unwrap();
    let (report, saved) = place.salvage();
    assert_eq!((report.items, texts(&report)), (2, Vec::new()));
    let body = saved.snapshot().get("t1").unwrap().unwrap();
    assert_eq!(body.content.field_text("body"), Some(long.as_str()));
    drop((body, saved));
    std::fs::remove_dir_all(place.dest()).unwrap();
    let holds_piece =
        |log: &u32| std::fs::read(place.log(*log)).is_ok_and(|bytes| bytes.windows(8).any(|it| it == b"01234567"));
    let piece = (1..30).rev().find(holds_piece);
    place.damage(piece.unwrap(), "01234567", |bytes, at| bytes[at] ^= 1);
    let (report, saved) = place.salvage();
    assert!(texts(&report).iter().any(|lost| lost.contains("long fields of the item")), "{:#?}", texts(&report));
    let item = saved.snapshot().get("t1").unwrap();
    assert_eq!(text_of(&saved, "t2").as_deref(), Some("the end"));
    assert!(item.is_some_and(|item| item.content.field_text("body").is_none()));
}
