//! Makes the golden database of the present format: one small database with something of everything in it, what it says
//! as text, and a twin with one bit changed in what was acknowledged. Tests open them for ever
//! (`engine/tests/it/golden/mod.rs`).
//!
//! ```text
//! cargo run -p holotype --example golden -- engine/tests/it/golden format-1
//! ```

#[path = "../tests/it/golden/story.rs"]
mod story;

#[path = "../tests/it/golden/golden_file.rs"]
mod golden_file;

use holotype::query::Params;
use holotype::{Durability, Encoding, Holotype, Kind, NewRecall, NewTrace, Options, Pointer, Space, Target};
use std::path::{Path, PathBuf};
use std::{env, fs, io};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = env::args().skip(1);
    let folder = PathBuf::from(arguments.next().unwrap_or_else(|| ".".to_owned()));
    let name = arguments.next().unwrap_or_else(|| "format-1".to_owned());
    let path = env::temp_dir().join(format!("holotype-golden-{}", std::process::id()));
    write(&path)?;
    let told = story::tell(&Holotype::open(&path, Options::read_only())?.snapshot())?;
    let mut files = Vec::new();
    collect(&path, &path, &mut files)?;
    fs::remove_dir_all(&path)?;
    let packed = golden_file::pack(&files);
    // The text of the first trace, in the middle of a log that was closed.
    let log = files.iter_mut().find(|(name, _)| name == "log/0000000001.log").ok_or("there is a log")?;
    let at = log.1.windows(5).position(|bytes| bytes == b"UA123").ok_or("the trace stands in the log")?;
    log.1[at] ^= 1;
    fs::create_dir_all(&folder)?;
    fs::write(folder.join(format!("{name}.gold")), packed)?;
    fs::write(folder.join(format!("{name}.damaged.gold")), golden_file::pack(&files))?;
    fs::write(folder.join(format!("{name}.txt")), told)?;
    println!("wrote {name} to {}", folder.display());
    Ok(())
}

/// Episodes, a page, items of several kinds with vectors, pointers, links, marks, something forgotten; a checkpoint in
/// the midst and a clean end.
fn write(path: &Path) -> holotype::Result<()> {
    let space = Space::new("golden", 2).encoding(Encoding::F16);
    let options = Options { page_size: 4096, ..Options::with_space(space) };
    let database = Holotype::create(path, options)?;
    let mut transaction = database.begin()?;
    transaction.record(
        NewTrace::call("trip-42", "search_flights", "UA123 to Lisbon: price=$450").key("t1").vector(vec![1.0, 0.5]),
    )?;
    transaction.record(NewTrace::turn("trip-42", "is that with a bag?").key("t2").vector(vec![0.0, 1.0]))?;
    let fact = NewRecall::fact("UA123 costs $450").key("r1").vector(vec![1.0, 0.25]);
    transaction.remember(fact.from(Pointer::to_key("t1").quoting("price=$450")))?;
    transaction.commit(Durability::Sync)?;
    let run = |script: &str| database.query(script, &Params::new()).map(drop);
    run("close episode 'trip-42'; mark 't1' failed because 'HTTP 504'")?;
    database.checkpoint()?;
    run("record turn 'my name is Mara' in episode 'secret' with key = 't3'")?;
    let mut transaction = database.begin()?;
    let whole = NewRecall::new(Kind::Summary, "a trip to Lisbon").key("s1").from(Pointer::to_page("trip-42/p1"));
    let whole = transaction.remember(whole)?;
    let fact = transaction.find(&Target::Key("r1".to_owned()))?;
    transaction.claim(fact, "UA123.price", "450", false, &[])?;
    transaction.claim(whole, "UA123.price", "500", false, &[Pointer::to_item(fact)])?;
    transaction.cite(whole, &Pointer::to_item(fact))?;
    transaction.commit(Durability::Sync)?;
    run("recall 'UA123' limit 2 with receipt")?;
    run("link 's1' sibling 'r1'; set recency.half-life = 2d; forget 't3' because 'asked to'")?;
    database.close()
}

/// The files below a directory, by their names from its top.
fn collect(top: &Path, dir: &Path, files: &mut Vec<(String, Vec<u8>)>) -> io::Result<()> {
    let mut paths = fs::read_dir(dir)?.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<_>>>()?;
    paths.sort();
    for path in paths {
        if path.is_dir() {
            collect(top, &path, files)?;
        } else {
            let name = path.strip_prefix(top).unwrap_or(&path).to_string_lossy().replace('\\', "/");
            files.push((name, fs::read(&path)?));
        }
    }
    Ok(())
}
