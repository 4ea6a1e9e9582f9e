"""(c) Forward efficiency: what `cargo bench --bench forward` prints, on the page."""

from __future__ import annotations

from argparse import Namespace

from . import report
from .programs import ROOT, MeasurementError, run_json
from .report import Target

ROUNDS = 3
# The share of the peak is asked for from so many packed tokens on.
FROM_TOKENS = 256
UP_TO_TOKENS = 4096


def run(args: Namespace) -> list[Target]:
    """Measure and publish."""
    if not (ROOT / "benches" / "forward.rs").exists():
        raise MeasurementError("benches/forward.rs is missing")
    busy = report.load()
    command = [args.cargo, "bench", "--locked", "--quiet", "--bench", "forward", "--", "--rounds", str(ROUNDS)]
    result = run_json("forward", [*command, "--threads", str(args.threads)], 900)
    cases = result["cases"]
    packed = [case for case in cases if case["distinct_tokens"] >= FROM_TOKENS and case["chunk_tokens"] >= FROM_TOKENS]
    single = [case for case in packed if case["name"].startswith("single") and case["distinct_tokens"] <= UP_TO_TOKENS]
    each = [case["microseconds_per_token_without_attention"] for case in single]
    whole = min(case["share_of_peak"] for case in packed)
    aside = min(case["share_of_peak_without_attention"] for case in packed)
    ratio = max(each) / min(each)
    targets = [
        Target("share of the peak, lowest of 256 packed tokens and more", whole, 0.75, True),
        Target("the same, attention aside", aside, 0.75, True),
        Target("slowest over fastest time per token, attention aside, 256 to 4,096 tokens", ratio, 1.25, False),
    ]
    rows = [
        [
            case["name"],
            report.number(case["distinct_tokens"]),
            report.number(case["tokens_per_second"]),
            f"{100 * case['share_of_peak']:.0f} %",
            f"{100 * case['share_of_peak_without_attention']:.0f} %",
            report.number(case["microseconds_per_token_without_attention"]),
        ]
        for case in cases
    ]
    head = ["work", "distinct tokens", "tokens/s", "of the peak", "attention aside", "µs a token, attention aside"]
    text = (
        f"Peak: {result['peak_gflops']:.0f} GFLOP/s, the best f32 product of the same run; {args.threads} threads, median of "
        f"{ROUNDS} rounds.\n\n{report.table(head, rows)}\n\n{report.targets_table(targets)}"
    )
    report.publish("forward", "make bench-forward", {"load_before": busy, "forward": result}, text)
    return targets
