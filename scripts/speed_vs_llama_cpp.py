#!/usr/bin/env python3
"""Compare the prefill speed of prism-judge with that of llama.cpp, taking turns on the same machine.

Both programs are started once, warmed up, and then asked for one prefill each a round over their stdin:
a line in, one JSON line `{"tokens": N, "seconds": s}` out. The order swaps every round, so that a slow drift
of the machine (heat, a neighbour) falls on both. The ratio is our median speed over llama.cpp's.

Run `npm ci` in scripts/peers/llama_cpp and `cargo build --release` first. With `--peer f32` the peer is prism-judge in
f32 instead, which needs no npm: that is how `--numerics int8` is compared.

Exit status: 0 if the ratio reaches --min-ratio, 1 if it does not, 2 if the measurement failed.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
from pathlib import Path

from benchmark.programs import PEER, ROOT, MeasurementError, Turns


def prefill(peer: Turns, tokens: int) -> float:
    """Run one prefill and return its speed in tokens per second."""
    reply = peer.ask()
    if reply["tokens"] != tokens:
        raise MeasurementError(f"{peer.name}: asked for {tokens} tokens, got {reply}")
    return tokens / float(reply["seconds"])


def arguments() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--model", type=Path, required=True, help="a GGUF file that both programs load")
    parser.add_argument("--binary", type=Path, default=ROOT / "target" / "release" / "prism-judge")
    parser.add_argument("--node", default="node", help="the node program (20 or later)")
    parser.add_argument("--tokens", type=int, default=512)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--numerics", default="f32", choices=["f32", "int8"], help="arithmetic of prism-judge")
    parser.add_argument("--peer", default="llama.cpp", choices=["llama.cpp", "f32"], help="what to compare with")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--min-ratio", type=float, default=1.6)
    parser.add_argument("--json", action="store_true", help="print one JSON line after the table")
    return parser.parse_args()


def measure(args: argparse.Namespace) -> dict[str, list[float]]:
    """Tokens per second of every round, by the peer's name."""
    size, threads = str(args.tokens), str(args.threads)
    ours = [str(args.binary), "debug-prefill", "--model", str(args.model), "--tokens", size, "--threads", threads]
    theirs = [args.node, str(PEER / "speed.mjs"), str(args.model), size, "0", threads]
    if args.peer == "f32":
        theirs = [*ours, "--numerics", "f32"]
    ours += ["--numerics", args.numerics]
    with Turns("prism-judge", ours) as judge, Turns(args.peer, theirs) as other:
        peers = [judge, other]
        for peer in peers:
            prefill(peer, args.tokens)  # waits for the load and any warm-up; not counted
        speeds: dict[str, list[float]] = {peer.name: [] for peer in peers}
        for _ in range(args.rounds):
            for peer in peers:
                speeds[peer.name].append(prefill(peer, args.tokens))
            peers.reverse()
        return speeds


def main() -> int:
    """Measure, print and judge."""
    args = arguments()
    busy = os.getloadavg()[0]
    try:
        speeds = measure(args)
    except MeasurementError as error:
        print(f"speed_vs_llama_cpp: {error}", file=sys.stderr)
        return 2

    print(f"prefill of {args.tokens} tokens, {args.threads} threads, {args.rounds} rounds; load before: {busy:.2f}")
    print(f"{'tokens/s':<14}{'median':>10}{'min':>10}{'max':>10}")
    for name, values in speeds.items():
        print(f"{name:<14}{statistics.median(values):>10.1f}{min(values):>10.1f}{max(values):>10.1f}")

    paired = [a / b for a, b in zip(speeds["prism-judge"], speeds[args.peer], strict=True)]
    ratio = statistics.median(speeds["prism-judge"]) / statistics.median(speeds[args.peer])
    passed = ratio >= args.min_ratio
    print(f"{'ratio':<14}{ratio:>10.2f}{min(paired):>10.2f}{max(paired):>10.2f}   (min and max by round)")
    print(f"{'pass' if passed else 'FAIL'}: at least {args.min_ratio:.2f} wanted")
    if args.json:
        print(
            json.dumps(
                {
                    "tokens": args.tokens,
                    "threads": args.threads,
                    "load_before": round(busy, 2),
                    "tokens_per_second": {name: [round(v, 1) for v in values] for name, values in speeds.items()},
                    "ratio": round(ratio, 4),
                    "ratio_by_round": [round(r, 4) for r in paired],
                    "min_ratio": args.min_ratio,
                    "passed": passed,
                }
            )
        )
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
