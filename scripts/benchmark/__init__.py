"""The benchmarks of `make bench`: workloads, programs that take turns, and the page that they write."""
