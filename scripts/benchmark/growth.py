"""(e) Cost as work grows: more candidates, more context; time per distinct token."""

from __future__ import annotations

from argparse import Namespace

from . import report, workloads
from .programs import Json, Turns, tell
from .report import Target
from .workloads import Group, Shape

CANDIDATES = [1, 4, 16, 64, 256, 1024, 4096]
CONTEXTS = [64, 128, 256, 512, 1024, 2048, 4096]
SHORT_PREFIX, SHORT_REPLY = 100, 6
LONG_REPLY = 80
# From so many candidates on nearly all tokens are read, and the time per token is compared: a token that is read also
# goes through the vocabulary, which costs a quarter more.
COMPARED_FROM = 16
REPEATS = 3
# A point with more tokens than this is long enough to be timed once.
TIMED_ONCE = 8192


def points(args: Namespace) -> list[tuple[str, int, Shape]]:
    """Series, size and shape of every point."""
    most = args.most_candidates
    return [("candidates", count, Shape(count, SHORT_PREFIX, SHORT_REPLY)) for count in CANDIDATES if count <= most] + [
        ("context", tokens, Shape(1, tokens, LONG_REPLY)) for tokens in CONTEXTS
    ]


def run(args: Namespace) -> list[Target]:
    """Measure and publish."""
    busy = report.load()
    # Other texts at every repeat, so that nothing is reused; the first group only warms up.
    groups = [Group("growth-warm-up", Shape(8, 300, 80))]
    for series, size, shape in points(args):
        repeats = 1 if shape.candidates * shape.reply * 6 > TIMED_ONCE else REPEATS
        groups += [Group(f"growth-{series}-{size}-{repeat}", shape) for repeat in range(repeats)]
    rows = workloads.write(report.RESULTS / "growth.jsonl", [group.line() for group in groups])
    command = [str(args.binary), "debug-score", str(rows), "--model", str(args.model), "--threads", str(args.threads)]
    measured: dict[tuple[str, int], list[Json]] = {}
    with Turns("prism-judge", command) as judge:
        judge.ask()
        for group in groups[1:]:
            reply = judge.ask()
            _, series, count, _ = group.key.split("-")
            reply.pop("verdicts")
            measured.setdefault((series, int(count)), []).append(reply)
            tell(f"{group.key}: {reply['computed_tokens']} tokens in {reply['seconds']:.2f} s")
    rows_out, compared = [], []
    for (series, size), replies in measured.items():
        each = report.median([1e6 * reply["seconds"] / reply["computed_tokens"] for reply in replies])
        tokens = report.median([reply["computed_tokens"] for reply in replies])
        seconds = report.median([reply["seconds"] for reply in replies])
        share = tokens / report.median([reply["prompt_tokens"] for reply in replies])
        rows_out.append(
            [f"{size:,} {series}", report.number(tokens), f"{100 * share:.0f} %", f"{seconds:.2f}", report.number(each)]
        )
        if series == "candidates" and size >= COMPARED_FROM:
            compared.append(each)
    ratio = max(compared) / min(compared)
    targets = [
        Target(f"slowest over fastest time per distinct token, {COMPARED_FROM} candidates and more", ratio, 1.25, False)
    ]
    head = ["work", "distinct tokens", "of all prompts' tokens", "seconds", "µs per distinct token"]
    text = (
        f"One request of the default wording, {args.threads} threads, median of {REPEATS} (the long ones once). Candidates: "
        f"about {SHORT_PREFIX} tokens before replies of about {SHORT_REPLY}. Context: tokens before one reply of about "
        f"{LONG_REPLY}. Attention is in these times; it is what grows with the context.\n\n"
        f"{report.table(head, rows_out)}\n\n{report.targets_table(targets)}"
    )
    result = {
        "load_before": busy,
        "points": [{"series": s, "size": n, "runs": runs} for (s, n), runs in measured.items()],
    }
    report.publish("growth", "make bench-growth", result, text)
    return targets
