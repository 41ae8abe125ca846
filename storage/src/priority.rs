//! The priority of threads that nobody waits for.

/// Lets other threads go before the calling one, now and from now on; the threads it starts are alike. Only Linux has
/// priorities of single threads. Where it cannot be done, the thread goes on as it was.
pub fn lower_thread_priority() {
    #[cfg(target_os = "linux")]
    {
        /// The lowest there is.
        const LOWEST: i32 = 19;
        // On Linux "this process" means the calling thread.
        let _ = rustix::process::setpriority_process(None, LOWEST);
    }
}
