//! Memory that the allocator holds for later although it was freed.
//!
//! The GNU C library keeps what a thread freed for that thread, and seldom gives it back. Work that takes much memory
//! for a short time leaves it to nobody.

/// Gives freed memory back to the system, where the allocator keeps it. Takes up to some milliseconds.
pub fn return_freed_memory() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: `malloc_trim` has no preconditions: it takes the allocator's own locks and releases unused pages only.
    unsafe {
        libc::malloc_trim(0);
    }
}

/// Has the whole process map each allocation of 128 KiB or more by itself, so that freeing it gives it back to the
/// system. The GNU C library begins so, but raises that size, up to 32 MiB, whenever a larger one is freed.
pub fn map_large_allocations() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: `mallopt` takes the allocator's own locks. Allocations that exist stay as they are.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, 128 << 10);
    }
}
