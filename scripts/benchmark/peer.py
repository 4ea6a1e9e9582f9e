"""(b) Judgements per second against llama.cpp on the same prompts, and against nine full passes of our own engine."""

from __future__ import annotations

import math
import shutil
from argparse import Namespace
from pathlib import Path
from typing import Any

from . import report, workloads
from .programs import PEER, Json, MeasurementError, Turns, tell
from .report import Target
from .tokens import PASSES, RELEASED
from .workloads import Group, Shape

SHAPE = Shape(candidates=8, prefix=300, reply=80)
# Reading all of llama.cpp's log-probabilities is slow: a small group shows the agreement.
READ = Shape(candidates=2, prefix=300, reply=80)
DIMENSIONS = ["task_framing", "interpersonal_stance", "linguistic_style"]
ESTIMATORS = ["likelihood", "label_slot"]
COMPARED = [
    ("prism-judge", "llama.cpp", 2.5),
    ("prism-judge int8", "llama.cpp", 2.5),
    ("prism-judge", "nine passes", 15.0),
]
# llama.cpp puts the logits in order when they are first read, and node-llama-cpp reads for all sequences at once: with
# more than one thread it returns garbage.
ONE_READER = {"UV_THREADPOOL_SIZE": "1"}
# The scale that ours is given, so that its verdicts can be turned back into log-probabilities.
LIKELIHOOD_T = 0.4


def rates(replies: list[Json]) -> list[float]:
    """Judgements per second of every round."""
    return [reply["judgements"] / reply["seconds"] for reply in replies]


def our_differences(verdicts: list[Json]) -> list[float]:
    """Differences of log-probabilities, recovered from our verdicts: aligned minus each other label that is read."""
    found = []
    for verdict in verdicts:
        for name in DIMENSIONS:
            posterior = verdict["dimensions"][name]
            aligned = math.log(posterior["aligned"])
            if verdict["judge"]["evidence"] == "likelihood":
                found.append((aligned - math.log(posterior["contradictory"])) / LIKELIHOOD_T)
            else:
                found += [aligned - math.log(posterior[label]) for label in ("indeterminate", "contradictory")]
    return found


def their_differences(log_probs: list[Any], verdicts: list[Json]) -> list[float]:
    """The same differences from llama.cpp's log-probabilities."""
    found = []
    if verdicts[0]["judge"]["evidence"] == "likelihood":
        return [aligned - other for aligned, other in zip(log_probs[::2], log_probs[1::2], strict=True)]
    for index, scores in enumerate(log_probs):
        dimension = verdicts[index // 3]["dimensions"][DIMENSIONS[index % 3]]
        [order] = dimension["label_order"]
        by_label = dict(zip(order, scores, strict=True))
        found += [by_label["aligned"] - by_label[label] for label in ("indeterminate", "contradictory")]
    return found


def distance(verdicts: list[Json], log_probs: list[Any]) -> Json:
    """How far our differences of log-probabilities are from llama.cpp's, in nats."""
    theirs = their_differences(log_probs, verdicts)
    gaps = [a - b for a, b in zip(our_differences(verdicts), theirs, strict=True)]
    return {
        "count": len(gaps),
        "mean": sum(gaps) / len(gaps),
        "rms": root_mean_square(gaps),
        "worst": max(abs(gap) for gap in gaps),
        "their_rms": root_mean_square(theirs),
    }


def root_mean_square(values: list[float]) -> float:
    """The root of the mean square."""
    return math.sqrt(sum(value * value for value in values) / len(values))


def measure(args: Namespace, estimator: str, rows: Path) -> Json:
    """Ours, llama.cpp and nine full passes, one group each in turn."""
    flags = ["--evidence", estimator]
    prompts = workloads.save_prompts(
        rows.with_suffix(f".{estimator}.prompts"), workloads.prompts(args.judge, rows, *flags)
    )
    released = workloads.save_prompts(
        rows.with_suffix(".released.prompts"), workloads.prompts(args.judge, rows, *RELEASED)
    )
    threads = str(args.threads)
    model = str(args.model)
    ours = [str(args.binary), "debug-score", str(rows), "--model", model, "--threads", threads, *flags]
    ours += ["--likelihood-t", str(LIKELIHOOD_T)]
    theirs = [args.node, "judge.mjs", model, str(prompts), threads]
    passes = [str(args.binary), "debug-passes", str(released), "--model", model, "--threads", threads]
    with (
        Turns("prism-judge", ours) as judge,
        Turns("prism-judge int8", [*ours, "--numerics", "int8"]) as int8,
        Turns("llama.cpp", theirs, cwd=PEER, env=ONE_READER) as llama,
        Turns("nine passes", [*passes, "--passes", str(PASSES)]) as nine,
    ):
        tell(f"{estimator}: warming up, and reading llama.cpp's log-probabilities")
        read = llama.ask("read")
        gaps = {}
        for ours_is in (judge, int8):
            verdict = ours_is.ask()
            if verdict["group"] != read["group"]:
                raise MeasurementError(f"{ours_is.name} judges {verdict['group']}, llama.cpp {read['group']}")
            gaps[ours_is.name] = distance(verdict["verdicts"], read["log_probs"])
        peers = [judge, int8, llama, nine]
        for peer in peers:
            peer.ask("time")
        replies: dict[str, list[Json]] = {peer.name: [] for peer in peers}
        for round_ in range(args.rounds):
            for peer in peers:
                replies[peer.name].append(peer.ask("time"))
            peers.reverse()
            tell(f"{estimator}: round {round_ + 1} of {args.rounds}")
    counted = {"llama.cpp": "evaluated", "nine passes": "tokens"}
    tokens = {
        name: sum(reply[counted.get(name, "computed_tokens")] for reply in all_)
        / sum(reply["judgements"] for reply in all_)
        for name, all_ in replies.items()
    }
    return {
        "judgements_per_second": {name: rates(all_) for name, all_ in replies.items()},
        "tokens_per_judgement": tokens,
        "difference_nats": gaps,
    }


def run(args: Namespace) -> list[Target]:
    """Measure and publish."""
    if shutil.which(args.node) is None or not (PEER / "node_modules").is_dir():
        raise MeasurementError("llama.cpp is missing: it needs Node 20 and `npm ci` in scripts/peers/llama_cpp")
    busy = report.load()
    groups = [Group("peer-read", READ)] + [Group(f"peer-{index}", SHAPE) for index in range(args.rounds + 1)]
    rows = workloads.fitted(args.judge, report.RESULTS / "peer.jsonl", groups)
    results = {estimator: measure(args, estimator, rows) for estimator in ESTIMATORS}
    return publish(results, busy, args)


def publish(results: dict[str, Json], busy: float, args: Namespace) -> list[Target]:
    """Write what was measured."""
    lines, targets = [], []
    for estimator, result in results.items():
        speed, tokens = result["judgements_per_second"], result["tokens_per_judgement"]
        for name, values in speed.items():
            lines.append(
                [
                    estimator,
                    name,
                    report.number(tokens[name]),
                    report.number(report.median(values)),
                    report.spread(values),
                ]
            )
        # llama.cpp computes in 8-bit integers: int8 is its like, f32 our default.
        for ours, name, bound in COMPARED:
            paired = [a / b for a, b in zip(speed[ours], speed[name], strict=True)]
            what = f"{estimator}: {ours}, times {name} ({report.spread(paired)} by round)"
            targets.append(Target(what, report.median(paired), bound, True))
    gaps = report.table(
        ["estimator", "ours", "differences", "mean", "root mean square", "worst", "size of theirs (rms)"],
        [
            [estimator, name, str(gap["count"]), *(f"{gap[key]:.3f}" for key in ("mean", "rms", "worst", "their_rms"))]
            for estimator, result in results.items()
            for name, gap in result["difference_nats"].items()
        ],
    )
    table = report.table(["estimator", "program", "tokens per judgement", "judgements/s", "by round"], lines)
    text = (
        f"Groups of {SHAPE.candidates}, {SHAPE.prefix} tokens before the reply, replies of {SHAPE.reply} tokens, another "
        f"group every round, {args.threads} threads, the programs in turns, {args.rounds} rounds.\n\n{table}\n\n"
        f"{report.targets_table(targets)}\n\nAgreement in the same run, in nats: log-probability of the aligned reading "
        f"minus the others, ours minus llama.cpp's (which rounds activations to 8 bits, see "
        f"[correctness](correctness.md)).\n\n{gaps}"
    )
    report.publish("peer", "make bench-peer", {"load_before": busy, "rounds": args.rounds, "results": results}, text)
    return targets
