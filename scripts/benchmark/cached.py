"""(d) Calls that the verdict cache answers, over gRPC."""

from __future__ import annotations

from argparse import Namespace

from . import report
from .programs import Json, Server, run_json, tell
from .report import Target

CONNECTIONS = [1, 8, 64]
DISTINCT = 16
SECONDS = 8
SIZES = [1, 8]


def run(args: Namespace) -> list[Target]:
    """Measure and publish."""
    busy = report.load()
    results: dict[tuple[int, int], Json] = {}
    with Server(
        [str(args.binary)], report.RESULTS / "cached.log", "--model", str(args.model), "--threads", str(args.threads)
    ) as server:
        for size in SIZES:
            content = f"rate=max,distinct={DISTINCT},candidates={size},context=40,reply=10"
            load = [str(args.load), "--address", server.address, "--json"]
            tell(f"cached, {size} candidates a call: filling the cache")
            run_json("load", [*load, "--seconds", "120", f"{content},calls={DISTINCT}"], 240)
            for connections in CONNECTIONS:
                seconds = str(SECONDS)
                summary = run_json("load", [*load, "--seconds", seconds, f"{content},connections={connections}"], 120)
                results[size, connections] = summary["streams"][0]
    lines = []
    for (size, connections), stream in results.items():
        ms = stream["ok_ms"]
        times = [f"{ms[key]:.2f}" if ms[key] is not None else "-" for key in ("p50", "p90", "p99", "p99.9", "max")]
        rates = [report.number(stream[key]) for key in ("calls_per_second", "judged_per_second")]
        lines.append([str(size), str(connections), *times, *rates])
    alone = results[1, 1]["ok_ms"]
    most = max(stream["judged_per_second"] for stream in results.values())
    targets = [
        Target("p50, one connection", alone["p50"], 0.3, False, " ms"),
        Target("p99, one connection", alone["p99"], 2.0, False, " ms"),
        Target("cached candidates/s, best row", most, 10_000, True),
    ]
    head = ["candidates a call", "connections", "p50 ms", "p90", "p99", "p99.9", "max", "calls/s", "candidates/s"]
    text = (
        f"{DISTINCT} different calls again and again, closed loop with one call at a time on each connection, {SECONDS} s "
        f"each; client and server share the machine.\n\n{report.table(head, lines)}\n\n{report.targets_table(targets)}"
    )
    rows = [{"candidates": size, "connections": n, **stream} for (size, n), stream in results.items()]
    report.publish("cached", "make bench-cached", {"load_before": busy, "rows": rows}, text)
    return targets
