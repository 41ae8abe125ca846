//! The driver: what the scorer asks of a GPU.
//!
//! Calls take effect in order. A launch sees all writes before it, and a write to a buffer waits for the launches
//! before it that use the buffer; an implementation may otherwise copy while kernels run.

/// Why a GPU does not score.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// This build has no CUDA.
    #[error("no device: built without the feature `cuda`; build with `--features cuda` to use a GPU")]
    NotCompiled,
    /// The driver's library is not installed.
    #[error("no device: the NVIDIA driver (libcuda) is not installed on this machine")]
    NoDriver,
    /// The driver cannot read the kernels.
    #[error("no device: the NVIDIA driver supports CUDA {found}, and the kernels need {NEEDED}; update the driver")]
    OldDriver {
        /// The newest version of CUDA that the driver supports, such as `12.4`.
        found: String,
    },
    /// There is a driver and nothing for it to drive.
    #[error("no device: the NVIDIA driver finds no GPU (see `nvidia-smi`, and CUDA_VISIBLE_DEVICES)")]
    NoDevice,
    /// The GPU is older than the kernels allow.
    #[error("no device: {device} has compute capability {found}, and the kernels need 7.5")]
    OldDevice {
        /// Its name.
        device: String,
        /// Its compute capability, such as `7.0`.
        found: String,
    },
    /// The memory of the GPU does not suffice.
    #[error("the GPU is out of memory")]
    OutOfMemory,
    /// The GPU or its driver failed, and is not asked again.
    #[error("the GPU failed: {0}")]
    Lost(String),
}

/// The version of CUDA of the compiler that made the kernels.
pub(crate) const NEEDED: &str = "13.0";

impl Fault {
    /// True if a machine simply has no GPU, which nobody needs to be told.
    pub(crate) fn is_absence(&self) -> bool {
        matches!(self, Fault::NotCompiled | Fault::NoDriver | Fault::NoDevice)
    }
}

/// The arguments of a launch, as `kernels/layout.cuh` lays them out: addresses, then numbers.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Scan {
    pub(crate) rows: u64,
    pub(crate) scales: u64,
    pub(crate) measures: u64,
    pub(crate) filter: u64,
    pub(crate) halves: u64,
    pub(crate) query_measures: u64,
    pub(crate) limits: u64,
    pub(crate) margins: u64,
    pub(crate) lists: u64,
    pub(crate) counts: u64,
    pub(crate) overflowed: u64,
    pub(crate) answers: u64,
    pub(crate) base: u32,
    pub(crate) first: u32,
    pub(crate) count: u32,
    pub(crate) stride: u32,
    pub(crate) dim: u32,
    pub(crate) query_count: u32,
    pub(crate) k: u32,
    pub(crate) capacity: u32,
    pub(crate) room: u32,
    pub(crate) blocks: u32,
}

const _: () = assert!(size_of::<Scan>() == 12 * 8 + 10 * 4);

impl Scan {
    /// The buffers that a launch uses.
    #[cfg_attr(not(any(test, feature = "cuda")), expect(dead_code, reason = "only drivers ask"))]
    pub(crate) fn addresses(&self) -> [u64; 12] {
        [
            self.rows,
            self.scales,
            self.measures,
            self.filter,
            self.halves,
            self.query_measures,
            self.limits,
            self.margins,
            self.lists,
            self.counts,
            self.overflowed,
            self.answers,
        ]
    }
}

/// A GPU with the kernels loaded.
pub(crate) trait Driver: Send + std::fmt::Debug {
    /// Its name, such as `NVIDIA H100 80GB HBM3`.
    fn device(&self) -> &str;

    /// The number of its multiprocessors.
    fn multiprocessors(&self) -> u32;

    /// Bytes of its memory that nobody uses.
    fn free_len(&mut self) -> Result<u64, Fault>;

    /// The address of a new buffer of `len` bytes, at least one.
    fn allocate(&mut self, len: usize) -> Result<u64, Fault>;

    /// Gives a buffer back once the launches that use it have ended.
    fn free(&mut self, address: u64) -> Result<(), Fault>;

    /// Copies `bytes` to an address within a buffer. The bytes may change after the call.
    fn write(&mut self, to: u64, bytes: &[u8]) -> Result<(), Fault>;

    /// Starts a kernel by its name on a grid of blocks.
    fn launch(&mut self, kernel: &str, grid: (u32, u32), scan: &Scan) -> Result<(), Fault>;

    /// Waits for everything before, and copies from an address within a buffer.
    fn read(&mut self, from: u64, bytes: &mut [u8]) -> Result<(), Fault>;
}
