//! The server's resident memory over time.

use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

const INTERVAL: Duration = Duration::from_millis(500);

/// Seconds of the run and MiB.
pub type Sample = [f64; 2];

/// Samples on a thread of its own until it is asked to finish.
pub struct Sampler(Option<Running>);

struct Running {
    stop: Sender<()>,
    thread: JoinHandle<Vec<Sample>>,
}

impl Sampler {
    pub fn start(pid: Option<u32>, start: Instant) -> Self {
        Self(pid.map(|pid| {
            let (stop, stopped) = channel::<()>();
            let sample = move || {
                let mut samples = Vec::new();
                loop {
                    samples.extend(resident(pid).map(|mib| [start.elapsed().as_secs_f64(), mib]));
                    if stopped.recv_timeout(INTERVAL) != Err(std::sync::mpsc::RecvTimeoutError::Timeout) {
                        return samples;
                    }
                }
            };
            Running { stop, thread: std::thread::spawn(sample) }
        }))
    }

    pub fn finish(self) -> Vec<Sample> {
        let samples = self.0.map(|Running { stop, thread }| {
            drop(stop);
            thread.join().unwrap_or_default()
        });
        samples.unwrap_or_default()
    }
}

/// In MiB.
fn resident(pid: u32) -> Option<f64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    Some(line.trim().strip_suffix("kB")?.trim().parse::<f64>().ok()? / 1024.0)
}
