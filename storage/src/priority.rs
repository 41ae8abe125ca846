//! The priority of threads that writers seldom wait for.

/// Lets other threads go before the calling one, now and from now on; the threads it starts are alike. Only Linux has
/// priorities of single threads. Where it cannot be done, the thread goes on as it was.
pub fn lower_thread_priority() {
    /// A quarter of a contended core. The lowest priority would be a hundredth, and the thread would hold what it
    /// has locked for that much longer while writers wait.
    const LOWER: i32 = 5;
    set_thread_priority(LOWER);
}

/// The same with the lowest priority, for a thread that holds nothing that others wait for.
pub fn lowest_thread_priority() {
    const LOWEST: i32 = 19;
    set_thread_priority(LOWEST);
}

#[cfg(target_os = "linux")]
fn set_thread_priority(priority: i32) {
    // On Linux "this process" means the calling thread.
    let _ = rustix::process::setpriority_process(None, priority);
}

#[cfg(not(target_os = "linux"))]
fn set_thread_priority(_: i32) {}
