//! The first NVIDIA GPU, through the driver that is loaded at run time.
//!
//! Two streams: one copies to the device, from a ring of pinned buffers, and one runs kernels and copies back. Each
//! buffer has two events, recorded after its last copy and after its last launch; a launch waits for the copies into
//! its buffers, and a copy into a buffer waits for the launches that use it. So copies into other buffers go on
//! meanwhile.
//!
//! Functions of cudarc panic when the driver's library or a symbol of it is missing. So the library is looked for
//! first, then its version, by a symbol that every driver has.
//!
//! No GPU has run this file yet.
#![allow(unsafe_code)]

use crate::driver::{Driver, Fault, NEEDED, Scan};
use cudarc::driver::{CudaContext, DriverError, result, sys};
use std::collections::{BTreeMap, HashMap};
use std::ffi::{CString, c_void};
use std::sync::Arc;

/// The version of the driver that reads the kernels, as the driver tells it: 1000 * major + 10 * minor.
const NEEDED_VERSION: i32 = 13_000;

/// Pinned buffers, and bytes of each.
const STAGES: usize = 2;
const STAGE_LEN: usize = 4 << 20;

/// Threads of a block, in every kernel.
const THREADS: u32 = 256;

/// The kernels, by the least compute capability that each file is for, largest first.
const PTX: [((i32, i32), &str); 3] = [
    ((9, 0), include_str!("../ptx/sm_90.ptx")),
    ((8, 0), include_str!("../ptx/sm_80.ptx")),
    ((7, 5), include_str!("../ptx/sm_75.ptx")),
];

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

/// A buffer on the device.
#[derive(Debug)]
struct Buffer {
    len: usize,
    copied: Event,
    launched: Event,
}

/// A pinned buffer, and when the copy from it has ended.
#[derive(Debug)]
struct Stage {
    bytes: *mut u8,
    copied: Event,
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
    copies: sys::CUstream,
    launches: sys::CUstream,
    stages: Vec<Stage>,
    next_stage: usize,
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
            copies: result::stream::null(),
            launches: result::stream::null(),
            stages: Vec::new(),
            next_stage: 0,
            buffers: BTreeMap::new(),
        };
        gpu.copies = result::stream::create(result::stream::StreamKind::NonBlocking).map_err(failed)?;
        gpu.launches = result::stream::create(result::stream::StreamKind::NonBlocking).map_err(failed)?;
        for _ in 0..STAGES {
            // SAFETY: the memory is written before it is read.
            let bytes = unsafe { result::malloc_host(STAGE_LEN, 0) }.map_err(failed)?.cast();
            gpu.stages.push(Stage { bytes, copied: Event::new()? });
        }
        Ok(gpu)
    }

    fn bind(&self) -> Result<(), Fault> {
        self.context.bind_to_thread().map_err(failed)
    }

    /// The buffer that `len` bytes from an address on lie in.
    fn buffer(&self, address: u64, len: usize) -> Result<&Buffer, Fault> {
        let found = self.buffers.range(..=address).next_back();
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
        let buffer = Buffer { len, copied: Event::new()?, launched: Event::new()? };
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
        buffer.copied.wait()?;
        buffer.launched.wait()?;
        // SAFETY: the address was allocated here, is removed from the list, and nothing uses it any more.
        unsafe { result::free_sync(address) }.map_err(failed)
    }

    fn write(&mut self, to: u64, bytes: &[u8]) -> Result<(), Fault> {
        self.bind()?;
        self.buffer(to, bytes.len())?.launched.hold_up(self.copies)?;
        for (piece, at) in bytes.chunks(STAGE_LEN).zip((to..).step_by(STAGE_LEN)) {
            let stage = &self.stages[self.next_stage];
            self.next_stage = (self.next_stage + 1) % STAGES;
            stage.copied.wait()?;
            // SAFETY: the last copy from the buffer has ended, and a piece is no longer than it. The copy to the device
            // lies within a buffer of ours, and the pinned bytes do not change before it has ended.
            unsafe {
                std::ptr::copy_nonoverlapping(piece.as_ptr(), stage.bytes, piece.len());
                let pinned = std::slice::from_raw_parts(stage.bytes, piece.len());
                result::memcpy_htod_async(at, pinned, self.copies).map_err(failed)?;
            }
            stage.copied.record(self.copies)?;
        }
        self.buffer(to, bytes.len())?.copied.record(self.copies)
    }

    fn launch(&mut self, kernel: &str, grid: (u32, u32), scan: &Scan) -> Result<(), Fault> {
        self.bind()?;
        let function = self.function(kernel)?;
        let used = || scan.addresses().into_iter().filter(|address| *address != 0);
        for address in used() {
            self.buffer(address, 0)?.copied.hold_up(self.launches)?;
        }
        let mut scan = *scan;
        let mut arguments = [(&raw mut scan).cast::<c_void>()];
        // SAFETY: the kernel takes one `Scan` by value, which is copied before this returns. Its addresses are
        // buffers of ours, and the executor gives them the lengths that the kernels' sources state.
        unsafe {
            result::launch_kernel(function, (grid.0, grid.1, 1), (THREADS, 1, 1), 0, self.launches, &mut arguments)
        }
        .map_err(failed)?;
        for address in used() {
            self.buffer(address, 0)?.launched.record(self.launches)?;
        }
        Ok(())
    }

    fn read(&mut self, from: u64, bytes: &mut [u8]) -> Result<(), Fault> {
        self.bind()?;
        self.buffer(from, bytes.len())?.copied.hold_up(self.launches)?;
        // SAFETY: the bytes are within a buffer of ours; the stream is waited for, so that both copies have ended when
        // this returns, with or without an error.
        let copied = unsafe { result::memcpy_dtoh_async(bytes, from, self.launches) }.map_err(failed);
        // SAFETY: the stream is ours.
        let waited = unsafe { result::stream::synchronize(self.launches) }.map_err(failed);
        copied.and(waited)
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
            for stream in [self.copies, self.launches].into_iter().filter(|stream| !stream.is_null()) {
                let _ = result::stream::synchronize(stream);
                let _ = result::stream::destroy(stream);
            }
            for address in std::mem::take(&mut self.buffers).into_keys() {
                let _ = result::free_sync(address);
            }
            for stage in &self.stages {
                let _ = result::free_host(stage.bytes.cast());
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
