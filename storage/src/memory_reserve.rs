//! Memory kept for the moment when there is none left: a global allocator whose first failure is an error of a
//! statement, and whose last one ends the process with a message instead of an abort.
//!
//! A program installs it:
//!
//! ```
//! #[global_allocator]
//! static MEMORY: holotype_storage::MemoryReserve = holotype_storage::MemoryReserve::new();
//! # fn main() {}
//! ```
//!
//! 1. When the system has no memory, the reserve is given back to it and the allocation is tried again. From then on
//!    [`is_short`] is true: statements end with an error, and transactions do not begin.
//! 2. [`refill`] takes the reserve anew. The next statement calls it, and runs if that succeeds.
//! 3. When the reserve is used up, too, the process says so and exits with [`EXIT_STATUS`]. What was acknowledged is
//!    durable, as after any crash. Nothing unwinds: an allocator must not. An allocation that asks whether there is
//!    memory, as `Vec::try_reserve` does, ends the process as well.
//!
//! Without the allocator, [`is_short`] is never true and a failed allocation aborts the process.

// A global allocator is unsafe to write.
#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};

/// The exit status of a process without memory: that of a limit.
pub const EXIT_STATUS: i32 = 5;

/// Bytes of the reserve. They are mapped, and take no memory until they are given back.
const RESERVE: usize = 8 << 20;

/// Attempts to allocate while another thread gives the reserve back.
const ATTEMPTS: usize = 64;

static HELD: AtomicPtr<u8> = AtomicPtr::new(ptr::null_mut());
static SHORT: AtomicBool = AtomicBool::new(false);

const LAYOUT: Layout = Layout::new::<[u8; RESERVE]>();

/// True from the first allocation that only the reserve could serve until [`refill`].
pub fn is_short() -> bool {
    SHORT.load(Ordering::Relaxed)
}

/// Takes the reserve from the system, if a [`MemoryReserve`] is installed that gave it back. False if the system does
/// not have as much.
pub fn refill() -> bool {
    if !is_short() {
        return true;
    }
    if HELD.load(Ordering::Relaxed).is_null() && !take() {
        return false;
    }
    SHORT.store(false, Ordering::Relaxed);
    true
}

/// Takes the reserve; false if the system does not have as much.
fn take() -> bool {
    // SAFETY: the layout has a size.
    let bytes = unsafe { System.alloc(LAYOUT) };
    if bytes.is_null() {
        return false;
    }
    let swapped = HELD.compare_exchange(ptr::null_mut(), bytes, Ordering::AcqRel, Ordering::Relaxed);
    if swapped.is_err() {
        // SAFETY: another thread was first; nobody else knows these bytes, which `System` gave for this layout.
        unsafe { System.dealloc(bytes, LAYOUT) };
    }
    true
}

/// The system's allocator, with a reserve. [The module](self) says what it does.
#[derive(Debug)]
pub struct MemoryReserve(());

impl MemoryReserve {
    /// An allocator whose reserve is empty until [`MemoryReserve::fill`].
    pub const fn new() -> Self {
        Self(())
    }

    /// Takes the reserve: a program calls this once, first thing. False if the system does not have as much.
    pub fn fill(&self) -> bool {
        !HELD.load(Ordering::Relaxed).is_null() || take()
    }

    /// Calls `allocate` again after the system had no memory for `size` bytes.
    #[cold]
    fn without_memory(size: usize, mut allocate: impl FnMut() -> *mut u8) -> *mut u8 {
        for attempt in 0..ATTEMPTS {
            SHORT.store(true, Ordering::Relaxed);
            let held = HELD.swap(ptr::null_mut(), Ordering::AcqRel);
            if !held.is_null() {
                // SAFETY: `System` gave these bytes for this layout, and the swap made this thread their only owner.
                unsafe { System.dealloc(held, LAYOUT) };
            }
            let bytes = allocate();
            if !bytes.is_null() {
                return bytes;
            }
            if attempt > 0 {
                std::thread::yield_now();
            }
        }
        exit(size)
    }
}

impl Default for MemoryReserve {
    fn default() -> Self {
        Self::new()
    }
}

// SAFETY: every call goes to `System` with the arguments of the caller, who keeps the contract of `GlobalAlloc`.
unsafe impl GlobalAlloc for MemoryReserve {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let allocate = || unsafe { System.alloc(layout) };
        let bytes = allocate();
        if bytes.is_null() { Self::without_memory(layout.size(), allocate) } else { bytes }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        let allocate = || unsafe { System.alloc_zeroed(layout) };
        let bytes = allocate();
        if bytes.is_null() { Self::without_memory(layout.size(), allocate) } else { bytes }
    }

    unsafe fn realloc(&self, old: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        let allocate = || unsafe { System.realloc(old, layout, size) };
        let bytes = allocate();
        if bytes.is_null() { Self::without_memory(size, allocate) } else { bytes }
    }

    unsafe fn dealloc(&self, bytes: *mut u8, layout: Layout) {
        unsafe { System.dealloc(bytes, layout) }
    }
}

/// Ends the process with a message that needs no memory.
fn exit(size: usize) -> ! {
    let mut digits = [0; 20];
    let parts: [&[u8]; 3] = [
        b"error: out of memory: an allocation of ",
        decimal(size, &mut digits),
        b" bytes failed, and the reserve is used up; what was acknowledged is durable\n\
          hint: give the process more memory, or lower `memory_limit` and the size of what is asked\n",
    ];
    for part in parts {
        // SAFETY: the pointer and the length are those of a slice; a failed write changes nothing.
        let _ = unsafe { libc::write(libc::STDERR_FILENO, part.as_ptr().cast(), part.len()) };
    }
    // SAFETY: it ends the process and runs nothing of it, as a crash would.
    unsafe { libc::_exit(EXIT_STATUS) }
}

/// The digits of a number, written into `digits`.
fn decimal(mut number: usize, digits: &mut [u8; 20]) -> &[u8] {
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            return &digits[at..];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_without_memory() {
        for number in [0, 7, 10, 4_096, usize::MAX] {
            assert_eq!(decimal(number, &mut [0; 20]), number.to_string().as_bytes());
        }
    }

    /// The only test of the process that touches the reserve.
    #[test]
    fn the_reserve_serves_what_the_system_cannot_and_is_taken_anew() {
        assert!(!is_short() && refill());
        assert!(MemoryReserve::new().fill() && !HELD.load(Ordering::Relaxed).is_null());
        let mut left = [0; 8];
        let (mut calls, place) = (0, left.as_mut_ptr());
        let bytes = MemoryReserve::without_memory(8, || {
            calls += 1;
            if calls == 3 { place } else { ptr::null_mut() }
        });
        assert_eq!((bytes, calls), (place, 3));
        assert!(is_short() && HELD.load(Ordering::Relaxed).is_null());
        assert!(refill() && !is_short());
        assert!(!HELD.load(Ordering::Relaxed).is_null());
    }
}
