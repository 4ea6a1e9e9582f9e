"""(a) Tokens through the model per judgement, against the published script's nine passes; the same on any machine."""

from __future__ import annotations

import json
import subprocess
from argparse import Namespace
from pathlib import Path

from . import report, workloads
from .programs import Json
from .report import Target
from .workloads import Group, Shape

PREFIX, REPLY = 300, 80
CHAT_TURNS, CHAT_WORDS = 12, 30
PASSES = 3  # one a label
RELEASED = ["--evidence", "label_slot", "--layout", "released", "--label-order", "released"]
ESTIMATORS = ["likelihood", "label_slot"]


def verdicts(judge: list[str], rows: Path, flags: list[str]) -> list[Json]:
    """Every verdict of a file."""
    command = [judge[0], "score", *judge[1:], str(rows), *flags]
    output = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, timeout=600).stdout
    return [json.loads(line) for line in output.splitlines()]


def cost(judge: list[str], rows: Path, flags: list[str]) -> float:
    """Tokens through the model per judgement."""
    tokens = [verdict["tokens"]["computed"] for verdict in verdicts(judge, rows, flags)]
    return float(sum(tokens) / len(tokens))


def nine_passes(judge: list[str], rows: Path) -> float:
    """Tokens per judgement of the published script: every prompt once a label, nothing shared."""
    lines = workloads.prompts(judge, rows, *RELEASED)
    candidates = {(line["group"], line["candidate"]) for line in lines}
    tokens: int = sum(len(line["ids"]) for line in lines)
    return PASSES * tokens / len(candidates)


def run(args: Namespace) -> list[Target]:
    """Measure and publish."""
    rows = {}
    for name, count in (("one candidate", 1), ("group of 8", 8), ("group of 64", 64)):
        path = report.RESULTS / f"tokens-{count}.jsonl"
        rows[name] = workloads.fitted(args.judge, path, [Group(f"tokens-{count}", Shape(count, PREFIX, REPLY))])
    chat = f"chat of {CHAT_TURNS} turns, each judged"
    rows[chat] = workloads.write(report.RESULTS / "tokens-chat.jsonl", workloads.chat("chat", CHAT_TURNS, CHAT_WORDS))
    result = {}
    for name, path in rows.items():
        spent = {kind: cost(args.judge, path, ["--evidence", kind]) for kind in ESTIMATORS}
        result[name] = {"published": nine_passes(args.judge, path), **spent}
    default = verdicts(args.judge, rows["one candidate"], [])[0]["judge"]["evidence"]
    table = report.table(
        ["workload", "published script", *(f"{kind}{' (default)' * (kind == default)}" for kind in ESTIMATORS)],
        [
            [name, report.number(spent["published"])]
            + [
                f"{report.number(spent[kind])} ({spent['published'] / spent[kind]:.1f} times fewer)"
                for kind in ESTIMATORS
            ]
            for name, spent in result.items()
        ],
    )
    eight = result["group of 8"]
    share = eight[default] / eight["published"]
    targets = [Target("group of 8, default wording: share of the published script's tokens", share, 0.1, False)]
    text = (
        f"Tokens through the model per judgement: {PREFIX} tokens before the reply (with the note of the dimension), "
        f"replies of {REPLY} tokens; in the chat every turn has {CHAT_WORDS} words. The published script runs three "
        f"prompts three times each.\n\n{table}\n\n{report.targets_table(targets)}"
    )
    report.publish("tokens", "make bench-tokens", {"tokens_per_judgement": result, "default": default}, text)
    return targets
