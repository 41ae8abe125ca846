//! The batch scorer: a device where it pays, the CPU otherwise and whenever the device fails.

use crate::cost::Work;
use crate::driver::{Driver, Fault};
use crate::encode;
use crate::executor::{Candidates, Executor, MOST_K, Task};
use crate::nvidia;
use crate::waiting::Waiting;
use holotype_index::hit::TopHits;
use holotype_index::scorer::{Batch, BatchScorer, CpuScorer, ScorerUsage};
use holotype_index::{Result, VectorSpec};
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};

/// The queries and the hits of the batches that a build asks for neighbour lists with.
const LISTED: usize = 512;
const LIST_LEN: usize = 65;

/// When a device is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeviceUse {
    /// On the device if it is expected to be faster.
    WhereFaster,
    /// Wherever it can be.
    WherePossible,
}

/// Opens the device.
type Open = Box<dyn Fn() -> std::result::Result<Box<dyn Driver>, Fault> + Send + Sync>;

/// Scores batches on the first NVIDIA GPU. The GPU is opened by the first batch that may use it.
///
/// A fault of the device, whatever it is and whenever it comes, is answered by the CPU with the same rows. The first is
/// kept in [`ScorerUsage::fault`] for the caller's one line of log. A device that is lost is not asked again.
///
/// One thread at a time has the device. Those that wait for it with queries for the same vectors share its next pass.
pub(crate) struct CudaScorer {
    device_use: DeviceUse,
    open: Open,
    state: Mutex<State>,
    /// One of [`UNOPENED`], [`OPEN`] and [`CLOSED`], to be read while the device is busy.
    standing: AtomicU8,
    waiting: Waiting,
    on_device: AtomicU64,
    on_cpu: AtomicU64,
}

/// Values of [`CudaScorer::standing`].
const UNOPENED: u8 = 0;
const OPEN: u8 = 1;
const CLOSED: u8 = 2;

#[derive(Debug)]
struct State {
    device: Device,
    fault: Option<Fault>,
}

#[derive(Debug)]
enum Device {
    Unopened,
    Open(Executor),
    /// There is none, or it is lost.
    Closed,
}

/// A scorer that uses the first GPU of this machine so.
pub fn scorer(device_use: DeviceUse) -> Arc<dyn BatchScorer> {
    Arc::new(CudaScorer::new(device_use, Box::new(nvidia::open)))
}

impl std::fmt::Debug for CudaScorer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CudaScorer").field("device_use", &self.device_use).finish_non_exhaustive()
    }
}

impl CudaScorer {
    pub(crate) fn new(device_use: DeviceUse, open: Open) -> Self {
        let state = Mutex::new(State { device: Device::Unopened, fault: None });
        let (on_device, on_cpu) = (AtomicU64::new(0), AtomicU64::new(0));
        Self {
            device_use,
            open,
            state,
            standing: AtomicU8::new(UNOPENED),
            waiting: Waiting::default(),
            on_device,
            on_cpu,
        }
    }

    /// Requests that wait for the device.
    #[cfg(test)]
    pub(crate) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|poisoned| self.give_up_poisoned(poisoned))
    }

    /// A panic while the lock is held leaves books that no longer match the device, so the device is given up.
    fn give_up_poisoned<'a>(&self, poisoned: PoisonError<MutexGuard<'a, State>>) -> MutexGuard<'a, State> {
        let mut state = poisoned.into_inner();
        state.device = Device::Closed;
        self.standing.store(CLOSED, Ordering::Release);
        state
    }

    /// The candidates of a batch by the device; `None` for the CPU.
    fn candidates(&self, batch: &Batch<'_>) -> Option<Candidates> {
        if batch.is_empty() || batch.k() == 0 || batch.k() > MOST_K || batch.query_count() == 0 {
            return None;
        }
        match self.state.try_lock() {
            Ok(state) => self.candidates_by(state, batch),
            Err(TryLockError::Poisoned(poisoned)) => self.candidates_by(self.give_up_poisoned(poisoned), batch),
            Err(TryLockError::WouldBlock) => {
                let turn = self.waiting.join(batch);
                let state = self.lock();
                turn.end().or_else(|| self.candidates_by(state, batch))
            }
        }
    }

    /// The candidates of a batch, found together with those that wait for the same pass.
    fn candidates_by(&self, mut state: MutexGuard<'_, State>, batch: &Batch<'_>) -> Option<Candidates> {
        let State { device, fault } = &mut *state;
        if matches!(device, Device::Closed) || !self.is_worth_asking(device, batch) {
            return None;
        }
        let done = self.opened(device).and_then(|executor| {
            let company = self.waiting.take_along(batch);
            let own = (0..batch.query_count()).map(|query| batch.query(query));
            let joined = company.iter().flat_map(|request| &request.queries).map(Vec::as_slice);
            let mut task = Task {
                spec: batch.spec(),
                part: batch.part(),
                count: batch.len(),
                batch,
                matching: batch.matching(),
                queries: own.chain(joined).collect(),
                k: company.iter().map(|request| request.k).fold(batch.k(), usize::max),
            };
            let mut found = executor.candidates(&task)?;
            if found.is_none() && !company.is_empty() {
                // The queries of another thread may be why.
                (task.k, task.queries) =
                    (batch.k(), (0..batch.query_count()).map(|query| batch.query(query)).collect());
                return executor.candidates(&task);
            }
            if let Some(found) = &mut found {
                let mut others = found.split_off(batch.query_count()).into_iter();
                company
                    .iter()
                    .for_each(|request| request.answer(others.by_ref().take(request.queries.len()).collect()));
            }
            Ok(found)
        });
        done.unwrap_or_else(|failed| {
            self.give_up(device, fault, failed);
            None
        })
    }

    /// Notes a fault. A device that is merely full is asked again.
    fn give_up(&self, device: &mut Device, fault: &mut Option<Fault>, failed: Fault) {
        if failed != Fault::OutOfMemory {
            *device = Device::Closed;
            self.standing.store(CLOSED, Ordering::Release);
        }
        let is_news = self.device_use == DeviceUse::WherePossible || !failed.is_absence();
        if is_news {
            fault.get_or_insert(failed);
        }
    }

    fn opened<'d>(&self, device: &'d mut Device) -> std::result::Result<&'d mut Executor, Fault> {
        if matches!(device, Device::Unopened) {
            *device = Device::Open(Executor::new((self.open)()?)?);
            self.standing.store(OPEN, Ordering::Release);
        }
        match device {
            Device::Open(executor) => Ok(executor),
            Device::Unopened | Device::Closed => Err(Fault::NoDevice),
        }
    }

    /// True if the device is to be used for a batch, should there be one.
    fn is_worth_asking(&self, device: &Device, batch: &Batch<'_>) -> bool {
        let resident = matches!(device, Device::Open(executor) if executor.holds(batch.part()));
        let spec = batch.spec();
        let work = || Work {
            count: batch.len(),
            matching: batch.matching_count(),
            dim: spec.dim,
            stride: encode::stride(&spec),
            queries: batch.query_count() + self.waiting.query_count(batch),
            k: batch.k(),
            resident,
        };
        self.device_use == DeviceUse::WherePossible || work().favours_device()
    }
}

/// Candidates that one thread scores sooner than others are started.
const ALONE: usize = 2048;

/// Scores the candidates of all queries, by several threads where there are many.
fn offer(batch: &Batch<'_>, candidates: &Candidates, tops: &mut [TopHits]) {
    let count: usize = candidates.iter().map(Vec::len).sum();
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(count / ALONE).max(1);
    let share = candidates.len().div_ceil(threads).max(1);
    let shares = (0..).step_by(share).zip(candidates.chunks(share)).zip(tops.chunks_mut(share));
    let shares = Mutex::new(shares.collect::<Vec<_>>());
    let next = || shares.lock().unwrap_or_else(PoisonError::into_inner).pop();
    let work = || {
        while let Some(((first, candidates), tops)) = next() {
            for ((query, positions), top) in (first..).zip(candidates).zip(tops) {
                positions.iter().for_each(|position| batch.offer(query, *position, top));
            }
        }
    };
    std::thread::scope(|scope| {
        // If no more threads can be started, those that run do the work.
        let _ = (1..threads).try_for_each(|_| std::thread::Builder::new().spawn_scoped(scope, work).map(drop));
        work();
    });
}

impl BatchScorer for CudaScorer {
    fn name(&self) -> String {
        let state = self.lock();
        let cpu = CpuScorer.name();
        match (&state.device, &state.fault) {
            (Device::Open(executor), _) => format!("cuda ({}), {cpu}", executor.device()),
            (Device::Unopened, _) => format!("{cpu}, cuda when first needed"),
            (Device::Closed, Some(fault)) => format!("{cpu}; {fault}"),
            (Device::Closed, None) => cpu,
        }
    }

    fn scan(&self, batch: &Batch<'_>, tops: &mut [TopHits]) -> Result<bool> {
        let Some(candidates) = self.candidates(batch) else {
            self.on_cpu.fetch_add(1, Ordering::Relaxed);
            return CpuScorer.scan(batch, tops);
        };
        offer(batch, &candidates, tops);
        self.on_device.fetch_add(1, Ordering::Relaxed);
        Ok(true)
    }

    fn takes_single_queries(&self) -> bool {
        match self.standing.load(Ordering::Acquire) {
            UNOPENED => self.device_use == DeviceUse::WherePossible,
            standing => standing == OPEN,
        }
    }

    fn makes_neighbour_lists(&self, spec: VectorSpec, count: usize) -> bool {
        let stride = encode::stride(&spec);
        let work = Work { count, matching: count, dim: spec.dim, stride, queries: LISTED, k: LIST_LEN, resident: true };
        if self.device_use == DeviceUse::WhereFaster && !work.favours_lists() {
            return false;
        }
        // The CPU must never be asked instead, so the device is opened first.
        let mut state = self.lock();
        let State { device, fault } = &mut *state;
        if matches!(device, Device::Closed) {
            return false;
        }
        match self.opened(device) {
            Ok(_) => true,
            Err(failed) => {
                self.give_up(device, fault, failed);
                false
            }
        }
    }

    fn usage(&self) -> ScorerUsage {
        let state = self.lock();
        let resident_len = match &state.device {
            Device::Open(executor) => executor.resident_len(),
            Device::Unopened | Device::Closed => 0,
        };
        let mut usage = ScorerUsage::default();
        usage.on_device = self.on_device.load(Ordering::Relaxed);
        usage.on_cpu = self.on_cpu.load(Ordering::Relaxed);
        usage.resident_len = resident_len;
        usage.fault = state.fault.as_ref().map(ToString::to_string);
        usage
    }
}
