//! Survives a mapped file that another program cuts.
//!
//! Reading a mapped page behind the end of its file, or one that its disk no longer gives, raises the signal `SIGBUS`,
//! which ends the process. The handler here puts a page of zeros in the place of that page, marks the mapping as cut
//! and returns, and the read goes on with zeros. Readers ask afterwards whether a file was cut ([`cut_count`],
//! [`cut_files`]) and discard what they found.
//!
//! 1. The handler takes no lock and allocates nothing. The slots that it searches stay where they are for ever.
//! 2. A mapping has its slot before anybody can read it, and until it is unmapped.
//! 3. A signal about any other address goes to the handler that was installed before, the standard library's in most
//!    programs. A handler that a program installs later comes first, and passes such signals on here.
//! 4. Bytes behind the end within the last page of a cut file are zeros without a signal: only verification and the
//!    next opening find those. Files that are overwritten in place are not noticed here either.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, Once, OnceLock, PoisonError};

use libc::{c_int, c_void, sigaction, siginfo_t};

/// The address range of a mapping; an end of 0 means none.
#[derive(Debug)]
struct Slot {
    start: AtomicUsize,
    end: AtomicUsize,
    is_used: AtomicBool,
    is_cut: AtomicBool,
}

const SLOTS: usize = 128;

/// Some slots, and the next ones once these are used up.
#[derive(Debug)]
struct Slots {
    slots: [Slot; SLOTS],
    next: OnceLock<Box<Slots>>,
}

impl Slots {
    const fn new() -> Self {
        const FREE: Slot = Slot {
            start: AtomicUsize::new(0),
            end: AtomicUsize::new(0),
            is_used: AtomicBool::new(false),
            is_cut: AtomicBool::new(false),
        };
        Self { slots: [FREE; SLOTS], next: OnceLock::new() }
    }
}

static FIRST: Slots = Slots::new();
/// Pages replaced by zeros so far.
static COUNT: AtomicU64 = AtomicU64::new(0);
static PAGE_LEN: AtomicUsize = AtomicUsize::new(0);
static BEFORE: OnceLock<sigaction> = OnceLock::new();
/// The paths of the mappings in use.
static PATHS: Mutex<Vec<(&'static Slot, PathBuf)>> = Mutex::new(Vec::new());

/// A mapping that the handler knows, until this is dropped.
#[derive(Debug)]
pub(super) struct Watched {
    slot: &'static Slot,
}

impl Watched {
    /// Makes the mapping of `path` at these addresses known to the handler.
    pub(super) fn new(path: &Path, start: usize, len: usize) -> Self {
        install();
        let slot = free_slot();
        slot.is_cut.store(false, Ordering::Relaxed);
        slot.start.store(start, Ordering::Relaxed);
        slot.end.store(start + len, Ordering::Release);
        PATHS.lock().unwrap_or_else(PoisonError::into_inner).push((slot, path.to_owned()));
        Self { slot }
    }

    /// True if bytes of the mapping were replaced by zeros.
    pub(super) fn is_cut(&self) -> bool {
        self.slot.is_cut.load(Ordering::Acquire)
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        PATHS.lock().unwrap_or_else(PoisonError::into_inner).retain(|(slot, _)| !std::ptr::eq(*slot, self.slot));
        self.slot.end.store(0, Ordering::Release);
        self.slot.is_used.store(false, Ordering::Release);
    }
}

/// The number of pages of mapped files that could not be read in this process and count as zeros: a reader whose
/// answer must not come from those compares it before and after.
#[must_use]
pub fn cut_count() -> u64 {
    COUNT.load(Ordering::Acquire)
}

/// The mapped files of this process with such pages.
#[must_use]
pub fn cut_files() -> Vec<PathBuf> {
    let paths = PATHS.lock().unwrap_or_else(PoisonError::into_inner);
    paths.iter().filter(|(slot, _)| slot.is_cut.load(Ordering::Acquire)).map(|(_, path)| path.clone()).collect()
}

fn free_slot() -> &'static Slot {
    let mut slots = &FIRST;
    loop {
        let free = slots
            .slots
            .iter()
            .find(|slot| slot.is_used.compare_exchange(false, true, Ordering::AcqRel, Ordering::Relaxed).is_ok());
        match free {
            Some(slot) => return slot,
            None => slots = slots.next.get_or_init(|| Box::new(Slots::new())),
        }
    }
}

/// The slot of the mapping that holds an address.
fn slot_at(address: usize) -> Option<&'static Slot> {
    let holds =
        |slot: &&Slot| address < slot.end.load(Ordering::Acquire) && address >= slot.start.load(Ordering::Relaxed);
    let mut slots = &FIRST;
    loop {
        if let Some(slot) = slots.slots.iter().find(holds) {
            return Some(slot);
        }
        slots = slots.next.get()?;
    }
}

fn install() {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| {
        // SAFETY: sysconf only returns a number. All-zero bytes are a valid `sigaction` (no handler, no flags, an empty
        // set), and both calls get pointers to live values. The handler is installed only once what it reads is set.
        unsafe {
            PAGE_LEN.store(usize::try_from(libc::sysconf(libc::_SC_PAGESIZE)).unwrap_or(4096), Ordering::Relaxed);
            let mut before: sigaction = std::mem::zeroed();
            if libc::sigaction(libc::SIGBUS, std::ptr::null(), &raw mut before) != 0 {
                return;
            }
            let _ = BEFORE.set(before);
            let mut own: sigaction = std::mem::zeroed();
            own.sa_sigaction = on_bus_error as extern "C" fn(c_int, *mut siginfo_t, *mut c_void) as usize;
            own.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_RESTART;
            libc::sigaction(libc::SIGBUS, &raw const own, std::ptr::null_mut());
        }
    });
}

extern "C" fn on_bus_error(signal: c_int, info: *mut siginfo_t, context: *mut c_void) {
    // SAFETY: the system passes a valid `info` to a handler with SA_SIGINFO, and `si_addr` is set for SIGBUS.
    let address = unsafe { (*info).si_addr() } as usize;
    match slot_at(address) {
        Some(slot) if put_zeros(address) => {
            slot.is_cut.store(true, Ordering::Release);
            COUNT.fetch_add(1, Ordering::AcqRel);
        }
        _ => pass_on(signal, info, context),
    }
}

/// Puts a page of zeros in the place of the page at `address`.
fn put_zeros(address: usize) -> bool {
    let len = PAGE_LEN.load(Ordering::Relaxed);
    let start = (address & !(len - 1)) as *mut c_void;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED;
    // SAFETY: the page belongs to a read-only mapping of this module, whose reader waits in this handler; reading it
    // failed, so nobody has seen other bytes there. Unmapping the whole range later covers the new page too.
    let mapped = unsafe { libc::mmap(start, len, libc::PROT_READ, flags, -1, 0) };
    mapped != libc::MAP_FAILED
}

/// Does what would have been done without this module.
fn pass_on(signal: c_int, info: *mut siginfo_t, context: *mut c_void) {
    let Some(before) = BEFORE.get() else { return };
    match before.sa_sigaction {
        // The instruction is tried again, and the signal then ends the process.
        libc::SIG_DFL | libc::SIG_IGN => {
            // SAFETY: all-zero bytes are the default action, and the pointer is to a live value.
            unsafe {
                let default: sigaction = std::mem::zeroed();
                libc::sigaction(signal, &raw const default, std::ptr::null_mut());
            }
        }
        handler if before.sa_flags & libc::SA_SIGINFO != 0 => {
            // SAFETY: with SA_SIGINFO the value is a handler of three arguments, which are those of this one.
            let handler: extern "C" fn(c_int, *mut siginfo_t, *mut c_void) = unsafe { std::mem::transmute(handler) };
            handler(signal, info, context);
        }
        handler => {
            // SAFETY: without SA_SIGINFO the value is a handler of one argument.
            let handler: extern "C" fn(c_int) = unsafe { std::mem::transmute(handler) };
            handler(signal);
        }
    }
}
