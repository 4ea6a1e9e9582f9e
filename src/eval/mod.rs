//! Benchmark data and ranking metrics. Knows `service`.
