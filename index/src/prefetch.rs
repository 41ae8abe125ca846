//! Cache-line prefetch for memory that is read soon. A no-op on processors without such an instruction in stable Rust.

/// Asks the processor to load all cache lines of `memory`. Has no effect but on the cache.
#[inline(always)]
pub(crate) fn prefetch<T>(memory: &[T]) {
    #[cfg(target_arch = "x86_64")]
    #[allow(unsafe_code)]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        let start = memory.as_ptr().cast::<i8>();
        for offset in (0..size_of_val(memory)).step_by(64) {
            // SAFETY: the address is inside `memory`, and a prefetch affects the cache only.
            unsafe { _mm_prefetch::<_MM_HINT_T0>(start.add(offset)) };
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = memory;
}
