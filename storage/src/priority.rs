//! The priority of threads that writers seldom wait for.

/// Lets other threads go before the calling one, now and from now on; the threads it starts are alike. Only Linux has
/// priorities of single threads. Where it cannot be done, the thread goes on as it was.
pub fn lower_thread_priority() {
    #[cfg(target_os = "linux")]
    {
        /// A quarter of a contended core. The lowest priority would be a hundredth, and the thread would hold what it
        /// has locked for that much longer while writers wait.
        const LOWER: i32 = 5;
        // On Linux "this process" means the calling thread.
        let _ = rustix::process::setpriority_process(None, LOWER);
    }
}
