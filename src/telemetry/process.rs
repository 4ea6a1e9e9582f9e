//! What the operating system and the allocator know of this process. Linux; elsewhere the figures stay 0.

use std::fs;

use tikv_jemalloc_ctl::{epoch, stats};

use super::catalogue::{
    ALLOCATOR_BYTES, PROCESS_CPU_SECONDS, PROCESS_MAX_FDS, PROCESS_OPEN_FDS, PROCESS_RESIDENT_BYTES,
    PROCESS_START_SECONDS, PROCESS_THREADS, PROCESS_VIRTUAL_BYTES,
};

/// Clock ticks a second in /proc, the same on every Linux of today (`USER_HZ`, proc(5)).
const TICKS: u64 = 100;

/// Reads the figures anew.
pub fn observe() {
    if let Some(stat) = read("/proc/self/stat").as_deref().and_then(Stat::parse) {
        PROCESS_CPU_SECONDS.copy([], stat.cpu_ticks / TICKS);
        if let Some(boot) = read("/proc/stat").as_deref().and_then(|stat| field(stat, "btime ")) {
            PROCESS_START_SECONDS.set([], boot as f64 + stat.start_ticks as f64 / TICKS as f64);
        }
    }
    if let Some(status) = read("/proc/self/status").as_deref() {
        let bytes = |name| field(status, name).map(|kilobytes| (kilobytes * 1024) as f64);
        set(bytes("VmRSS:"), |value| PROCESS_RESIDENT_BYTES.set([], value));
        set(bytes("VmSize:"), |value| PROCESS_VIRTUAL_BYTES.set([], value));
        set(field(status, "Threads:").map(|count| count as f64), |value| PROCESS_THREADS.set([], value));
    }
    let most = read("/proc/self/limits").as_deref().and_then(|limits| field(limits, "Max open files"));
    set(most.map(|count| count as f64), |value| PROCESS_MAX_FDS.set([], value));
    // One of them is the listing's own.
    let open = fs::read_dir("/proc/self/fd").ok().map(|listing| listing.count().saturating_sub(1) as f64);
    set(open, |value| PROCESS_OPEN_FDS.set([], value));
    allocator();
}

fn allocator() {
    // Its figures are those of the last epoch.
    if epoch::advance().is_err() {
        return;
    }
    for (state, bytes) in [
        ("allocated", stats::allocated::read()),
        ("active", stats::active::read()),
        ("resident", stats::resident::read()),
        ("mapped", stats::mapped::read()),
        ("retained", stats::retained::read()),
    ] {
        set(bytes.ok().map(|bytes| bytes as f64), |value| ALLOCATOR_BYTES.set([state], value));
    }
}

fn set(value: Option<f64>, to: impl FnOnce(f64)) {
    if let Some(value) = value {
        to(value);
    }
}

fn read(path: &str) -> Option<String> {
    fs::read_to_string(path).ok()
}

/// The first number after `name` at the start of a line.
fn field(text: &str, name: &str) -> Option<u64> {
    let rest = text.lines().find_map(|line| line.strip_prefix(name))?;
    rest.split_whitespace().next()?.parse().ok()
}

/// Of /proc/self/stat.
#[derive(Debug, PartialEq, Eq)]
struct Stat {
    /// User and system.
    cpu_ticks: u64,
    /// From the boot of the machine.
    start_ticks: u64,
}

impl Stat {
    fn parse(text: &str) -> Option<Self> {
        // The name before it, in brackets, may hold anything.
        let after_name = &text[text.rfind(')')? + 1..];
        let fields: Vec<&str> = after_name.split_whitespace().collect();
        // proc(5) counts from 1 and the name is the second: utime is 14, stime 15, starttime 22.
        let field = |number: usize| fields.get(number - 3)?.parse::<u64>().ok();
        Some(Self { cpu_ticks: field(14)? + field(15)?, start_ticks: field(22)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_may_be_called_anything() {
        let line = "7 (a) b (c)) S 1 7 7 0 -1 4194560 100 0 0 0 250 50 0 0 20 0 4 0 12345 1000000 200 0";
        assert_eq!(Stat::parse(line), Some(Stat { cpu_ticks: 300, start_ticks: 12345 }));
        assert_eq!(Stat::parse("7 (a"), None);
        assert_eq!(Stat::parse("7 (a) S 1"), None);
    }

    #[test]
    fn a_field_is_the_number_behind_its_name() {
        let status = "Name:\tx\nVmRSS:\t  1234 kB\nThreads:\t9\n";
        assert_eq!(
            (field(status, "VmRSS:"), field(status, "Threads:"), field(status, "VmSize:")),
            (Some(1234), Some(9), None)
        );
        assert_eq!(
            field("Max open files            1024                 4096                 files", "Max open files"),
            Some(1024)
        );
    }
}
