#!/usr/bin/env python3
"""Run benchmarks and loads, and write what they measure into docs/performance.md.

    bench.py tokens peer ...     the named ones, in order
    bench.py all                 everything but the long soak

Each one writes target/bench/NAME.json and replaces its block of the page, missed targets included. `make bench` builds
what is needed first. Exit status: 0 if everything ran, 2 if something could not be measured.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from pathlib import Path

from benchmark import cached, forward, growth, loads, peer, redis, report, tokens
from benchmark.programs import ROOT, MeasurementError, tell

# Weights of the default model in f32 (513 MiB), its file while it loads, the default budgets of keys and values (512)
# and verdicts (64), and 150 MB.
MEMORY_BOUND_MIB = 513 + 512 + 64 + 143

BENCHMARKS = {
    "tokens": tokens.run,
    "peer": peer.run,
    "forward": forward.run,
    "cached": cached.run,
    "growth": growth.run,
    "guard": loads.guard,
    "overload": loads.overload,
    "deadlines": loads.deadlines,
    "redis": redis.run,
    "soak": loads.soak,
}


def arguments() -> argparse.Namespace:
    """Parse the command line."""
    release = ROOT / "target" / "release"
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "names", nargs="+", choices=[*BENCHMARKS, "all"], metavar="NAME", help=", ".join([*BENCHMARKS, "all"])
    )
    parser.add_argument("--model", type=Path, required=True, help="the GGUF file that judges")
    parser.add_argument("--binary", type=Path, default=release / "prism-judge")
    parser.add_argument("--load", type=Path, default=release / "examples" / "load", help="the load client")
    parser.add_argument("--cargo", default="cargo")
    parser.add_argument("--node", default="node", help="the node program (20 or later)")
    parser.add_argument("--threads", type=int, default=2, help="threads that run the model")
    parser.add_argument("--rounds", type=int, default=5, help="rounds of the peers")
    parser.add_argument("--most-candidates", type=int, default=4096, help="largest group of growth")
    parser.add_argument("--seconds", type=int, help="length of a load instead of its own")
    parser.add_argument("--guard-rate", type=float, default=1.0, help="guard calls a second")
    parser.add_argument("--chunk", type=int, default=256, help="tokens of one forward pass of the server")
    parser.add_argument("--queue-tokens", type=int, default=1_400, help="the train lane's queue under overload")
    parser.add_argument("--memory-bound", type=float, default=MEMORY_BOUND_MIB, help="MiB that the soak may take")
    parser.add_argument("--calls", type=int, default=10_000, help="calls with deadlines")
    args = parser.parse_args()
    args.model = args.model.resolve()
    args.judge = [str(args.binary), "--model", str(args.model)]
    return args


def main() -> int:
    """Run what was asked for and sum up."""
    args = arguments()
    names = [name for name in BENCHMARKS if name != "soak"] if "all" in args.names else args.names
    failed = False
    summary = []
    for name in names:
        start = time.monotonic()
        tell(f"== {name}")
        try:
            summary += [[name, *target.row()] for target in BENCHMARKS[name](args)]
        except (MeasurementError, subprocess.SubprocessError) as error:
            failed = True
            tell(f"bench: {name}: {error}")
            summary.append([name, "could not be measured", "", "", "**failed**"])
        tell(f"== {name}: {time.monotonic() - start:.0f} s")
    print(report.table(["benchmark", "target", "measured", "bound", ""], summary))
    return 2 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
