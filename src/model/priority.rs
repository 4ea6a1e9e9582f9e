//! How the model's threads stand beside those that answer calls.

/// Steps of niceness below the rest of the process: a third of the processor time of a thread that wants as much, and
/// never in the way of one that wakes for a moment, to tell a caller that its deadline has passed.
#[cfg(target_os = "linux")]
const STEPS: i32 = 5;

/// Makes the calling thread yield to the other threads of this process. A system that refuses is no reason not to run.
pub(crate) fn lower() {
    // On Linux niceness belongs to a thread, elsewhere to the process.
    #[cfg(target_os = "linux")]
    let _ = rustix::process::nice(STEPS);
}
