//! A small database on a simulated disk, for targets that start from one. It is created once and copied for every use.

use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};

use holotype::time::FixedClock;
use holotype::{
    Durability, Edge, EpisodeChange, Holotype, ItemAttributes, ItemId, Mark, NewRecall, NewTrace, Options, Pointer,
    Snapshot, Source, Space, Status,
};
use holotype_index::segment::layout::VERSION_LOGGED;
use holotype_storage::vfs::{Crash, SimVfs};

/// The database's path on its disk.
pub(crate) const DATABASE: &str = "/db";

/// The options of every database here.
pub(crate) fn options() -> Options {
    Options {
        page_size: 4096,
        cache_bytes: 1 << 20,
        // No automatic checkpoints and no threads, so that runs are deterministic.
        checkpoint_bytes: u64::MAX,
        checkpoint_records: u64::MAX,
        background_threads: 1,
        clock: Arc::new(FixedClock(1_767_607_200_000_000)),
        ..Options::default()
    }
}

/// The story's disk, with everything synced but not closed, and a checkpoint in the middle of the log.
pub(crate) fn disk() -> SimVfs {
    STORY.disk.crash(Crash::Keep)
}

/// A database opened from a disk.
pub(crate) fn open(disk: &SimVfs) -> holotype::Result<Holotype> {
    Holotype::open_on(Arc::new(disk.clone()), DATABASE, options())
}

/// The items after each commit of the story; the first entry is before the first commit.
pub(crate) fn history() -> &'static [Vec<Seen>] {
    &STORY.history
}

/// The files with data of the story's database, ordered by name.
pub(crate) fn files(disk: &SimVfs) -> Vec<PathBuf> {
    disk.files().into_iter().filter(|path| path.starts_with(DATABASE)).collect()
}

/// For each segment of vectors, oldest first, whether it refers to the log for them.
pub(crate) fn are_logged(disk: &SimVfs) -> Vec<bool> {
    let vectors = files(disk).into_iter().filter(|path| path.extension().is_some_and(|end| end == "vseg"));
    let contents = vectors.filter_map(|path| disk.bytes(&path).ok());
    // The version of the content is behind magic, kind and version of the frame.
    contents.map(|bytes| bytes.get(12..16) == Some(&VERSION_LOGGED.to_le_bytes()[..])).collect()
}

/// A reader's view of an item.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Seen {
    pub(crate) key: String,
    pub(crate) text: String,
    pub(crate) attributes: ItemAttributes,
    pub(crate) linked: Vec<(Edge, ItemId)>,
    /// The spans that it cites, if their bytes are unchanged.
    pub(crate) cited: Vec<String>,
}

/// Reads a reader's view of the item with that number.
pub(crate) fn see(snapshot: &Snapshot, id: ItemId) -> holotype::Result<Seen> {
    let item = snapshot.item(id)?;
    let mut linked = Vec::new();
    for edge in Edge::ALL {
        linked.extend(snapshot.linked(id, *edge)?.into_iter().map(|to| (*edge, to)));
    }
    linked.sort();
    let cited = snapshot.citations(id)?.into_iter().filter_map(|citation| citation.text).collect();
    Ok(Seen { key: item.key, text: item.content.text().to_owned(), attributes: item.attributes, linked, cited })
}

/// Reads a reader's view of all items.
pub(crate) fn see_all(snapshot: &Snapshot) -> holotype::Result<Vec<Seen>> {
    (0..snapshot.len()).map(|number| see(snapshot, ItemId(number))).collect()
}

struct Story {
    disk: SimVfs,
    history: Vec<Vec<Seen>>,
}

static STORY: LazyLock<Story> = LazyLock::new(|| tell().expect("the story can be told"));

fn tell() -> holotype::Result<Story> {
    let disk = SimVfs::new();
    let options = Options { space: Some(Space::new("story", 3)), ..options() };
    let database = Holotype::create_on(Arc::new(disk.clone()), Path::new(DATABASE), options)?;
    let mut history = vec![Vec::new(); usize::try_from(database.head().commit.0).unwrap_or_default() + 1];
    let mut note = |database: &Holotype| -> holotype::Result<()> {
        history.push(see_all(&database.snapshot())?);
        Ok(())
    };

    let mut transaction = database.begin()?;
    let change =
        EpisodeChange { task: Some("book a flight".into()), version: Some("v2".into()), ..EpisodeChange::default() };
    transaction.episode("trip-42", change)?;
    let seen = NewTrace::call("trip-42", "search_flights", "UA123 price=$450, seats 2").key("t1").step(1);
    let call = transaction.record(seen.status(Status::Success).vector(vec![1.0, 0.0, 0.0]))?;
    let asked =
        NewTrace::turn("trip-42", "Is that the price with a bag?").key("t2").speaker("Ana").source(Source::User);
    transaction.record(asked.vector(vec![0.6, 0.8, 0.0]))?;
    let fact = NewRecall::fact("UA123 costs $450").key("r1").from(Pointer::to_key("t1").quoting("price=$450"));
    let fact = transaction.remember(fact.vector(vec![0.9, 0.1, 0.0]))?;
    transaction.remember(NewRecall::theme("flight prices").key("th1").child("r1"))?;
    transaction.claim(fact, "price of UA123", "$450", false, &[Pointer::to_key("t1")])?;
    transaction.commit(Durability::Sync)?;
    note(&database)?;
    database.checkpoint()?;

    let mut transaction = database.begin()?;
    let failed = NewTrace::call("trip-42", "search_flights", "HTTP 504").key("t3").status(Status::Failed);
    transaction.record(failed.field("url", "/flights?q=UA123").bytes_field("raw", vec![0, 0xff, 0xfe]))?;
    transaction.update("r1", NewRecall::fact("UA123 costs $450 without a bag").from(Pointer::to_key("t2")))?;
    transaction.commit(Durability::Sync)?;
    note(&database)?;

    let mut transaction = database.begin()?;
    let close = EpisodeChange { open: Some(false), ..EpisodeChange::default() };
    transaction.episode("trip-42", close)?;
    transaction.mark(call, Mark::Status(Status::Unknown), Some("the bag was not counted".into()))?;
    let other = NewRecall::fact("A bag is $35").key("r2").ungrounded().version("v3").utility(0.25);
    let other = transaction.remember(other.vector(vec![0.0, 0.0, 1.0]))?;
    transaction.link(other, Edge::Sibling, fact)?;
    transaction.commit(Durability::Sync)?;
    note(&database)?;

    let disk = disk.crash(Crash::Keep);
    Ok(Story { disk, history })
}
