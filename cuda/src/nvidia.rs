//! The first NVIDIA GPU, through the driver that is loaded at run time.
//!
//! Two streams: one copies to the device, from a ring of pinned buffers, and one runs kernels and copies back. Steps
//! of a stream are numbered, and each leaves an event in a ring. A buffer knows the last copy into it and the last
//! launch that used it; a launch waits for the copies into its buffers, and a copy into a buffer for the launches
//! that use it, unless a wait for the same step or a later one went before. So copies into other buffers go on
//! meanwhile, and a batch whose buffers are filled costs few calls of the driver.
//!
//! Functions of cudarc panic when the driver's library or a symbol of it is missing. So the library is looked for
//! first, then its version, by a symbol that every driver has.
#![allow(unsafe_code)]

use crate::driver::{Driver, Fault, NEEDED, Scan};
use cudarc::driver::{CudaContext, DriverError, result, sys};
use std::collections::{BTreeMap, HashMap};
use std::ffi::{CString, c_void};
use std::sync::Arc;

/// The version of the driver that reads the kernels, as the driver tells it: 1000 * major + 10 * minor.
const NEEDED_VERSION: i32 = 13_000;

/// Pinned buffers, and bytes of each. A batch writes to fewer buffers than there are.
const STAGES: usize = 8;
const STAGE_LEN: usize = 1 << 20;

/// Steps of a stream whose events are kept. A wait for an older one is a wait for the oldest of these.
const STEPS: u64 = 64;

/// Threads of a block, in every kernel.
const THREADS: u32 = 256;

/// The kernels, by the least compute capability that each file is for, largest first.
const PTX: [((i32, i32), &str); 2] =
    [((8, 0), include_str!("../ptx/sm_80.ptx")), ((7, 5), include_str!("../ptx/sm_75.ptx"))];

/// The first GPU with the kernels loaded.
pub(crate) fn open() -> Result<Box<dyn Driver>, Fault> {
    // SAFETY: loading a library runs its initialisers; the names asked for are those of NVIDIA's driver, which the
    // system's loader resolves and which may be loaded at any time from any thread.
    if !unsafe { sys::is_culib_present() } {
        return Err(Fault::NoDriver);
    }
    let mut version = 0;
    // SAFETY: the library is there, every version of it has this function, and it writes one number.
    unsafe { sys::cuDriverGetVersion(&mut version) }.result().map_err(failed)?;
    if version < NEEDED_VERSION {
        return Err(Fault::OldDriver { found: format!("{}.{}", version / 1000, version % 1000 / 10) });
    }
    if CudaContext::device_count().map_err(failed)? < 1 {
        return Err(Fault::NoDevice);
    }
    let context = CudaContext::new(0).map_err(failed)?;
    let name = context.name().map_err(failed)?;
    let capability = context.compute_capability().map_err(failed)?;
    let Some((_, ptx)) = PTX.iter().find(|(least, _)| capability >= *least) else {
        return Err(Fault::OldDevice { device: name, found: format!("{}.{}", capability.0, capability.1) });
    };
    Ok(Box::new(Gpu::new(context, name, ptx)?))
}

/// Bytes of each of the two buffers of [`copy_rate`], and copies that are timed together.
const COPIED_LEN: usize = 1 << 30;
const COPIES: usize = 10;

/// Bytes that the first GPU moves in a second when it copies within its memory: each is read once and written once.
pub(crate) fn copy_rate() -> Result<f64, Fault> {
    let mut driver = open()?;
    let (from, to) = (driver.allocate(COPIED_LEN)?, driver.allocate(COPIED_LEN)?);
    let copy = |count: usize| -> Result<f64, Fault> {
        let made = || result::event::create(sys::CUevent_flags::CU_EVENT_DEFAULT).map(Event).map_err(failed);
        let (started, ended) = (made()?, made()?);
        started.record(result::stream::null())?;
        for _ in 0..count {
            // SAFETY: both buffers are of this length, and live until the driver is dropped, after the copies.
            unsafe { result::memcpy_dtod_async(to, from, COPIED_LEN, result::stream::null()) }.map_err(failed)?;
        }
        ended.record(result::stream::null())?;
        ended.wait()?;
        // SAFETY: both events have happened.
        unsafe { result::event::elapsed(started.0, ended.0) }.map(|ms| f64::from(ms) / 1e3).map_err(failed)
    };
    copy(1)?;
    Ok((2 * COPIED_LEN * COPIES) as f64 / copy(COPIES)?)
}

/// A buffer on the device: its bytes, and the steps of both streams that used it last.
#[derive(Debug)]
struct Buffer {
    len: usize,
    copied: u64,
    launched: u64,
}

/// A pinned buffer, and the step that copies from it.
#[derive(Debug)]
struct Stage {
    bytes: *mut u8,
    copied: u64,
}

/// A stream whose steps are numbered from one.
#[derive(Debug)]
struct Steps {
    stream: sys::CUstream,
    last: u64,
    /// No step up to this one needs to be waited for by the other stream.
    seen: u64,
    events: Vec<Event>,
}

/// An event that was recorded or not; one that was not holds nobody up.
#[derive(Debug)]
struct Event(sys::CUevent);

#[derive(Debug)]
struct Gpu {
    name: String,
    multiprocessors: u32,
    module: sys::CUmodule,
    functions: HashMap<String, sys::CUfunction>,
    copies: Steps,
    launches: Steps,
    stages: Vec<Stage>,
    next_stage: usize,
    /// A pinned buffer for reads.
    landing: *mut u8,
    buffers: BTreeMap<u64, Buffer>,
    /// Dropped last: what is above belongs to it.
    context: Arc<CudaContext>,
}

// SAFETY: the handles are of one context, which any thread may use once it is bound to it; every method binds it first,
// and a `Gpu` is used by one thread at a time.
unsafe impl Send for Gpu {}

impl Event {
    fn new() -> Result<Self, Fault> {
        result::event::create(sys::CUevent_flags::CU_EVENT_DISABLE_TIMING).map(Event).map_err(failed)
    }

    fn record(&self, stream: sys::CUstream) -> Result<(), Fault> {
        // SAFETY: both were made by this `Gpu`, and are destroyed with it.
        unsafe { result::event::record(self.0, stream) }.map_err(failed)
    }

    /// Has `stream` wait for the event.
    fn hold_up(&self, stream: sys::CUstream) -> Result<(), Fault> {
        // SAFETY: as above.
        unsafe { result::stream::wait_event(stream, self.0, sys::CUevent_wait_flags::CU_EVENT_WAIT_DEFAULT) }
            .map_err(failed)
    }

    fn wait(&self) -> Result<(), Fault> {
        // SAFETY: as above.
        unsafe { result::event::synchronize(self.0) }.map_err(failed)
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        // SAFETY: it was made by `Event::new` and is destroyed once. A device that is lost refuses, which changes
        // nothing.
        let _ = unsafe { result::event::destroy(self.0) };
    }
}

impl Steps {
    fn new() -> Result<Self, Fault> {
        let mut steps = Steps { stream: result::stream::null(), last: 0, seen: 0, events: Vec::new() };
        for _ in 0..STEPS {
            steps.events.push(Event::new()?);
        }
        steps.stream = result::stream::create(result::stream::StreamKind::NonBlocking).map_err(failed)?;
        Ok(steps)
    }

    /// The step that what was given to the stream so far belongs to.
    fn end_step(&mut self) -> Result<u64, Fault> {
        self.last += 1;
        self.events[(self.last % STEPS) as usize].record(self.stream)?;
        Ok(self.last)
    }

    /// The oldest step from `step` on whose event is kept.
    fn kept(&self, step: u64) -> u64 {
        step.max((self.last + 1).saturating_sub(STEPS))
    }

    /// Has another stream wait for a step.
    fn hold_up(&mut self, other: sys::CUstream, step: u64) -> Result<(), Fault> {
        if step > self.seen {
            let step = self.kept(step);
            self.events[(step % STEPS) as usize].hold_up(other)?;
            self.seen = step;
        }
        Ok(())
    }

    /// Waits for a step; 0 is none.
    fn wait(&self, step: u64) -> Result<(), Fault> {
        match step {
            0 => Ok(()),
            _ => self.events[(self.kept(step) % STEPS) as usize].wait(),
        }
    }
}

impl Gpu {
    fn new(context: Arc<CudaContext>, name: String, ptx: &str) -> Result<Self, Fault> {
        let count = sys::CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT;
        let multiprocessors = context.attribute(count).map_err(failed)?.unsigned_abs();
        let image = CString::new(ptx).map_err(|_| Fault::Lost("its kernels contain a zero byte".to_owned()))?;
        // SAFETY: the image is a text of PTX that ends with a zero byte.
        let module = unsafe { result::module::load_data(image.as_ptr().cast()) }.map_err(failed)?;
        let mut gpu = Gpu {
            context,
            name,
            multiprocessors,
            module,
            functions: HashMap::new(),
            copies: Steps::new()?,
            launches: Steps::new()?,
            stages: Vec::new(),
            next_stage: 0,
            landing: std::ptr::null_mut(),
            buffers: BTreeMap::new(),
        };
        // SAFETY: the memory is written before it is read, here and below.
        let pinned = || unsafe { result::malloc_host(STAGE_LEN, 0) }.map_err(failed).map(<*mut c_void>::cast);
        gpu.landing = pinned()?;
        for _ in 0..STAGES {
            gpu.stages.push(Stage { bytes: pinned()?, copied: 0 });
        }
        Ok(gpu)
    }

    fn bind(&self) -> Result<(), Fault> {
        self.context.bind_to_thread().map_err(failed)
    }

    /// The buffer that `len` bytes from an address on lie in.
    fn buffer(&mut self, address: u64, len: usize) -> Result<&mut Buffer, Fault> {
        let found = self.buffers.range_mut(..=address).next_back();
        found
            .filter(|(base, buffer)| address - **base + len as u64 <= buffer.len as u64)
            .map(|(_, buffer)| buffer)
            .ok_or_else(|| Fault::Lost(format!("{len} bytes at {address:#x} are in no buffer")))
    }

    fn function(&mut self, kernel: &str) -> Result<sys::CUfunction, Fault> {
        if let Some(function) = self.functions.get(kernel) {
            return Ok(*function);
        }
        let name = CString::new(kernel).map_err(|_| Fault::Lost(format!("no kernel {kernel:?}")))?;
        // SAFETY: the module is loaded, and unloaded only when this is dropped.
        let function = unsafe { result::module::get_function(self.module, name) }.map_err(failed)?;
        self.functions.insert(kernel.to_owned(), function);
        Ok(function)
    }
}

impl Driver for Gpu {
    fn device(&self) -> &str {
        &self.name
    }

    fn multiprocessors(&self) -> u32 {
        self.multiprocessors
    }

    fn free_len(&mut self) -> Result<u64, Fault> {
        Ok(self.context.mem_get_info().map_err(failed)?.0 as u64)
    }

    fn allocate(&mut self, len: usize) -> Result<u64, Fault> {
        self.bind()?;
        let buffer = Buffer { len, copied: 0, launched: 0 };
        // SAFETY: kernels and copies write the memory before anything reads it.
        let address = unsafe { result::malloc_sync(len) }.map_err(failed)?;
        self.buffers.insert(address, buffer);
        Ok(address)
    }

    fn free(&mut self, address: u64) -> Result<(), Fault> {
        self.bind()?;
        let Some(buffer) = self.buffers.remove(&address) else {
            return Err(Fault::Lost(format!("no buffer at {address:#x}")));
        };
        self.copies.wait(buffer.copied)?;
        self.launches.wait(buffer.launched)?;
        // SAFETY: the address was allocated here, is removed from the list, and nothing uses it any more.
        unsafe { result::free_sync(address) }.map_err(failed)
    }

    fn write(&mut self, to: u64, bytes: &[u8]) -> Result<(), Fault> {
        self.bind()?;
        let launched = self.buffer(to, bytes.len())?.launched;
        self.launches.hold_up(self.copies.stream, launched)?;
        for (piece, at) in bytes.chunks(STAGE_LEN).zip((to..).step_by(STAGE_LEN)) {
            let stage = &mut self.stages[self.next_stage];
            self.next_stage = (self.next_stage + 1) % STAGES;
            self.copies.wait(stage.copied)?;
            // SAFETY: the last copy from the buffer has ended, and a piece is no longer than it. The copy to the device
            // lies within a buffer of ours, and the pinned bytes do not change before it has ended.
            unsafe {
                std::ptr::copy_nonoverlapping(piece.as_ptr(), stage.bytes, piece.len());
                let pinned = std::slice::from_raw_parts(stage.bytes, piece.len());
                result::memcpy_htod_async(at, pinned, self.copies.stream).map_err(failed)?;
            }
            stage.copied = self.copies.end_step()?;
        }
        self.buffer(to, bytes.len())?.copied = self.copies.last;
        Ok(())
    }

    fn launch(&mut self, kernel: &str, grid: (u32, u32), scan: &Scan) -> Result<(), Fault> {
        self.bind()?;
        let function = self.function(kernel)?;
        let used = || scan.addresses().into_iter().filter(|address| *address != 0);
        let mut copied = 0;
        for address in used() {
            copied = copied.max(self.buffer(address, 0)?.copied);
        }
        self.copies.hold_up(self.launches.stream, copied)?;
        let mut scan = *scan;
        let mut arguments = [(&raw mut scan).cast::<c_void>()];
        let (grid, block) = ((grid.0, grid.1, 1), (THREADS, 1, 1));
        // SAFETY: the kernel takes one `Scan` by value, which is copied before this returns. Its addresses are
        // buffers of ours, and the executor gives them the lengths that the kernels' sources state.
        unsafe { result::launch_kernel(function, grid, block, 0, self.launches.stream, &mut arguments) }
            .map_err(failed)?;
        let step = self.launches.end_step()?;
        for address in used() {
            self.buffer(address, 0)?.launched = step;
        }
        Ok(())
    }

    fn read(&mut self, from: u64, bytes: &mut [u8]) -> Result<(), Fault> {
        self.bind()?;
        let copied = self.buffer(from, bytes.len())?.copied;
        self.copies.hold_up(self.launches.stream, copied)?;
        for (piece, at) in bytes.chunks_mut(STAGE_LEN).zip((from..).step_by(STAGE_LEN)) {
            // SAFETY: the bytes are within a buffer of ours, and a piece is no longer than the pinned buffer; the
            // stream is waited for, so that the copy has ended, with or without an error, before the pinned bytes are
            // read.
            unsafe {
                let pinned = std::slice::from_raw_parts_mut(self.landing, piece.len());
                let copied = result::memcpy_dtoh_async(pinned, at, self.launches.stream).map_err(failed);
                let waited = result::stream::synchronize(self.launches.stream).map_err(failed);
                copied.and(waited)?;
                piece.copy_from_slice(pinned);
            }
        }
        self.launches.seen = self.launches.last;
        Ok(())
    }
}

impl Drop for Gpu {
    fn drop(&mut self) {
        // A device that is lost refuses all of this, which changes nothing: the driver frees what is left with the
        // process.
        if self.bind().is_err() {
            return;
        }
        // SAFETY: everything here was made by `Gpu::new` or by its methods and is given back once, after both streams
        // have ended.
        unsafe {
            for stream in [self.copies.stream, self.launches.stream].into_iter().filter(|stream| !stream.is_null()) {
                let _ = result::stream::synchronize(stream);
                let _ = result::stream::destroy(stream);
            }
            for address in std::mem::take(&mut self.buffers).into_keys() {
                let _ = result::free_sync(address);
            }
            for bytes in self.stages.iter().map(|stage| stage.bytes).chain([self.landing]) {
                let _ = result::free_host(bytes.cast());
            }
            let _ = result::module::unload(self.module);
        }
    }
}

fn failed(error: DriverError) -> Fault {
    match error.0 {
        sys::CUresult::CUDA_ERROR_NO_DEVICE => Fault::NoDevice,
        sys::CUresult::CUDA_ERROR_OUT_OF_MEMORY => Fault::OutOfMemory,
        sys::CUresult::CUDA_ERROR_UNSUPPORTED_PTX_VERSION => Fault::OldDriver { found: format!("less than {NEEDED}") },
        _ => Fault::Lost(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn opening_gives_a_device_or_a_reason_and_never_panics() {
        match open() {
            Ok(driver) => assert!(!driver.device().is_empty() && driver.multiprocessors() > 0),
            Err(fault) => assert!(fault.to_string().starts_with("no device: "), "{fault}"),
        }
    }

    #[test]
    fn faults_are_told_apart() {
        let of = |code| failed(DriverError(code));
        assert_eq!(of(sys::CUresult::CUDA_ERROR_NO_DEVICE), Fault::NoDevice);
        assert_eq!(of(sys::CUresult::CUDA_ERROR_OUT_OF_MEMORY), Fault::OutOfMemory);
        assert!(matches!(of(sys::CUresult::CUDA_ERROR_UNSUPPORTED_PTX_VERSION), Fault::OldDriver { .. }));
    }

    #[test]
    fn every_kernel_that_is_launched_is_in_every_file() {
        for ((major, minor), ptx) in PTX {
            for encoding in ["f32", "f16", "i8"] {
                for kernel in ["few_E_dot", "few_E_l2", "many_E_dot", "many_E_l2", "measure_E", "merge", "keep"] {
                    let entry = format!(".visible .entry {}(", kernel.replace('E', encoding));
                    assert!(ptx.contains(&entry), "sm_{major}{minor}: {entry}");
                }
            }
        }
    }
}
