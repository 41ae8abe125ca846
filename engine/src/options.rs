//! Options of creating and opening a database.

use crate::model::embed::{self, Embedder};
use crate::model::quarantine::{Detector, InstructionDetector};
use crate::model::space::Space;
use crate::model::time::Clock;
use holotype_cuda::DeviceUse;
use holotype_index::scorer::{BatchScorer, CpuScorer};
use holotype_index::segment::LINK_BYTES;
use holotype_storage::catalog::CatalogOptions;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// The durability of a commit before it is acknowledged and seen by readers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Durability {
    /// On the disk: survives power loss (fsync).
    #[default]
    Sync,
    /// With the operating system: survives a crash of this process.
    Flush,
    /// With those that follow, whenever it suits: a crash of this process may lose the last of them.
    None,
}

impl std::str::FromStr for Durability {
    type Err = crate::Error;

    fn from_str(text: &str) -> crate::Result<Self> {
        match text {
            "sync" => Ok(Durability::Sync),
            "flush" => Ok(Durability::Flush),
            "none" => Ok(Durability::None),
            _ => Err(crate::Error::Invalid(format!("durability {text:?}: sync, flush or none is expected"))),
        }
    }
}

/// The device that batches of searches by vector run on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Accelerator {
    /// On a GPU where one is there and expected to be faster, else on the CPU.
    #[default]
    Auto,
    /// On the CPU.
    Cpu,
    /// On an NVIDIA GPU wherever possible, else on the CPU; [`Stats::accelerator`](crate::Stats::accelerator) says why.
    Cuda,
}

impl std::str::FromStr for Accelerator {
    type Err = crate::Error;

    fn from_str(text: &str) -> crate::Result<Self> {
        match text {
            "auto" => Ok(Accelerator::Auto),
            "cpu" => Ok(Accelerator::Cpu),
            "cuda" => Ok(Accelerator::Cuda),
            _ => Err(crate::Error::Invalid(format!("accelerator {text:?}: auto, cpu or cuda is expected"))),
        }
    }
}

impl Accelerator {
    /// The scorer of an open database.
    pub(crate) fn scorer(self) -> Arc<dyn BatchScorer> {
        match self {
            Accelerator::Cpu => Arc::new(CpuScorer),
            Accelerator::Auto => holotype_cuda::scorer(DeviceUse::WhereFaster),
            Accelerator::Cuda => holotype_cuda::scorer(DeviceUse::WherePossible),
        }
    }
}

/// Graphs may have this many vectors with however little memory: many small ones would make questions slow.
const LEAST_IN_GRAPH: usize = 8 << 10;

/// A handle that only appends writes a checkpoint once this many records are in none.
const APPENDED_RECORDS: u64 = 1_000;

/// Options of a database.
#[derive(Debug, Clone)]
pub struct Options {
    /// The embedding space, if it is known at creation.
    pub space: Option<Space>,
    /// The score profile statements use when they name none: `default`, `helm`, `archive` or `agent`.
    pub profile: Option<String>,
    /// The fields that a new database declares, each with its type: `text`, `number` or `bool`. Filters on a declared
    /// field read a column instead of each item.
    pub fields: Vec<(String, String)>,
    /// The size of a log page in bytes, a power of two from 4 KiB to 1 MiB; fixed at creation.
    pub page_size: u32,
    /// Open for reading only: nothing on disk is changed.
    pub read_only: bool,
    /// Keep the turn to write for as long as the database is open: no other handle, in this or another process, may
    /// have it open for writing meanwhile. Without it ([`Options::shared`]) any number of handles write, and each takes
    /// the turn for a transaction.
    pub exclusive: bool,
    /// Open for appending little and closing at once ([`Options::append_only`]): closing writes no checkpoint and no
    /// clean end of the log, so that the cost does not depend on the size of the database. An opening that would have
    /// to rebuild derived files is refused with [`Error::OpenFully`](crate::Error::OpenFully).
    pub append_only: bool,
    /// Write although the log is known to be damaged. Without it, writes are refused with
    /// [`Error::WritesRefused`](crate::Error::WritesRefused) once damage is found.
    pub accept_damage: bool,
    /// The file outside the database that holds its newest durable head, signed. Opening refuses a database that was
    /// rolled back behind it or written anew, with [`Error::RolledBack`](crate::Error::RolledBack) or
    /// [`Error::Forged`](crate::Error::Forged). Each durable commit writes it, which costs a second sync. The key is
    /// in a file of the same name with `.key` appended. Without a path there is no witness.
    pub witness: Option<PathBuf>,
    /// Take the database as it is if the witness file is missing, and begin a new witness.
    pub accept_witness: bool,
    /// The most bytes one transaction may hold.
    pub max_transaction_bytes: u64,
    /// A checkpoint is due after this many bytes of log.
    pub checkpoint_bytes: u64,
    /// A checkpoint is due after this many records.
    pub checkpoint_records: u64,
    /// The memory the catalog may use as its cache, in bytes; at most three sixteenths of `memory_limit`.
    pub cache_bytes: usize,
    /// The memory of this database in bytes: the catalog's cache, edges and texts that are kept for questions,
    /// merges of segments, and what no checkpoint holds yet. 64 MiB suffice; more is faster. [`Stats`](crate::Stats)
    /// tells what each part takes. Mapped files are the system's and do not count.
    pub memory_limit: u64,
    /// The most bytes of log that no checkpoint holds: what an opening after a crash reads.
    pub max_tail_bytes: u64,
    /// The most vectors that are in no segment yet.
    pub max_unsealed_vectors: u64,
    /// The most segments of vectors or words a layer may have, besides those that are as large as memory permits.
    pub max_live_segments: u64,
    /// The greatest age of a snapshot that is held; nothing lets them grow as old as they like.
    pub snapshot_max_age: Option<Duration>,
    /// The time for which a transaction waits to begin while one of the four limits above is reached or a snapshot is
    /// too old; then it is refused with [`Error::Busy`](crate::Error::Busy). Also the time for which it waits for its
    /// turn while other processes write; then it is refused with an error that names the process.
    pub write_timeout: Duration,
    /// Threads that may build segments in the background. A rebuild, which somebody waits for, takes as many as the
    /// machine has.
    pub background_threads: usize,
    /// The device that batches of searches by vector run on. Rows are the same on each.
    pub accelerator: Accelerator,
    /// The source of the present time.
    pub clock: Arc<dyn Clock>,
    /// Tells which items are quarantined. The built-in one has fixed rules.
    pub detector: Arc<dyn Detector>,
    /// Makes the vectors of items and questions that come without one ([`Options::embedder`]). Without it, the
    /// statements of the language embed where the space is that of the built-in
    /// [`HashingEmbedder`](crate::embed::HashingEmbedder), and nothing else does.
    pub embedder: Option<Arc<dyn Embedder>>,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            space: None,
            profile: None,
            fields: Vec::new(),
            page_size: 32 << 10,
            read_only: false,
            exclusive: true,
            append_only: false,
            accept_damage: false,
            witness: None,
            accept_witness: false,
            max_transaction_bytes: 64 << 20,
            checkpoint_bytes: 6 << 20,
            checkpoint_records: 10_000,
            cache_bytes: 32 << 20,
            memory_limit: 256 << 20,
            max_tail_bytes: 12 << 20,
            max_unsealed_vectors: 100_000,
            max_live_segments: 32,
            snapshot_max_age: None,
            write_timeout: Duration::from_secs(30),
            background_threads: 2,
            accelerator: Accelerator::Auto,
            clock: Arc::new(crate::model::time::SystemClock),
            detector: Arc::new(InstructionDetector),
            embedder: None,
        }
    }
}

impl Options {
    /// Options with the given embedding space.
    pub fn with_space(space: Space) -> Self {
        Options { space: Some(space), ..Options::default() }
    }

    /// The same options with an embedder, which makes the vector of each item and question that comes without one. A
    /// new database takes the embedder's space and records its fingerprint; one without a space takes them with its
    /// first vector. Items that a process without the embedder writes are pending, until
    /// [`Holotype::embed_pending`](crate::Holotype::embed_pending) makes their vectors.
    ///
    /// ```
    /// use holotype::embed::HashingEmbedder;
    /// use holotype::{Durability, Holotype, NewTrace, Options};
    ///
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let path = dir.path().join("memory.holo");
    /// let database = Holotype::create(&path, Options::default().embedder(HashingEmbedder::default()))?;
    /// let mut transaction = database.begin()?;
    /// let id = transaction.record(NewTrace::turn("trip-42", "the night train costs 89 euros"))?;
    /// transaction.commit(Durability::Sync)?;
    /// assert_eq!(database.snapshot().vector(id)?.map(|vector| vector.len()), Some(256));
    /// # Ok::<(), holotype::Error>(())
    /// ```
    pub fn embedder(self, embedder: impl Embedder + 'static) -> Self {
        Options { embedder: Some(Arc::new(embedder)), ..self }
    }

    /// Refuses a space that the embedder makes no vectors for.
    pub(crate) fn check_space(&self, space: &Space) -> crate::Result<()> {
        match &self.embedder {
            Some(embedder) => embed::check_space(space, embedder.as_ref()),
            None => Ok(()),
        }
    }

    /// The options of the catalog that follow from these.
    pub(crate) fn catalog(&self) -> CatalogOptions {
        // Each block is checked when it is read; a handle that only appends reads few.
        let check_len = if self.append_only { 0 } else { CatalogOptions::default().check_len };
        CatalogOptions { cache_len: self.cache_len(), derived_len: self.edge_bytes(), check_len }
    }

    /// The most bytes of edges that are kept for questions.
    pub(crate) fn edge_bytes(&self) -> u64 {
        (self.memory_limit / 8).min(64 << 20)
    }

    /// The bytes that linking vectors into a graph may take.
    pub(crate) fn merge_bytes(&self) -> u64 {
        self.memory_limit / 16 * 5
    }

    /// About the most vectors of a graph, so that linking them stays within its memory.
    pub(crate) fn most_in_graph(&self) -> usize {
        usize::try_from(self.merge_bytes() / LINK_BYTES).unwrap_or(usize::MAX).max(LEAST_IN_GRAPH)
    }

    /// The size of the catalog's cache in bytes.
    pub(crate) fn cache_len(&self) -> usize {
        self.cache_bytes.min(usize::try_from(self.memory_limit / 16 * 3).unwrap_or(usize::MAX))
    }

    /// Options for writing beside other handles, in any processes: each takes its turn for a transaction, and waits 5
    /// seconds for it.
    pub fn shared() -> Self {
        Options { exclusive: false, write_timeout: Duration::from_secs(5), ..Options::default() }
    }

    /// Options of a process that records a few items beside other handles and ends: opening reads the end of the log,
    /// and closing leaves derived files to the next handle that is opened without [`Options::append_only`], or to the
    /// one that finds 1,000 records in no checkpoint. Segments are not merged.
    ///
    /// ```
    /// use holotype::{Durability, Holotype, NewTrace, Options};
    ///
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let path = dir.path().join("memory.holo");
    /// Holotype::create(&path, Options::default())?.close()?;
    /// for text in ["the north bed floods", "the south bed is dry"] {
    ///     let database = Holotype::open(&path, Options::append_only())?;
    ///     let mut transaction = database.begin()?;
    ///     transaction.record(NewTrace::turn("garden", text))?;
    ///     transaction.commit(Durability::Sync)?;
    ///     database.close()?;
    /// }
    /// assert_eq!(Holotype::open(&path, Options::read_only())?.snapshot().len(), 2);
    /// # Ok::<(), holotype::Error>(())
    /// ```
    pub fn append_only() -> Self {
        Options::shared().appending()
    }

    /// The same options for appending little ([`Options::append_only`]).
    pub fn appending(self) -> Self {
        Options {
            exclusive: false,
            append_only: true,
            checkpoint_records: APPENDED_RECORDS,
            max_live_segments: u64::MAX,
            accelerator: Accelerator::Cpu,
            ..self
        }
    }

    /// True if a handle with these options writes in turns with others.
    pub(crate) fn takes_turns(&self) -> bool {
        !self.exclusive && !self.read_only
    }

    /// Options for reading only.
    pub fn read_only() -> Self {
        Options { read_only: true, ..Options::default() }
    }
}
