#!/usr/bin/env python3
"""Attack the judge with replies that ask for a verdict, and write how it stands into docs/robustness.md.

For each case (a persona, a context, a reply in character, a reply out of character) every attack is judged alone and
after the reply out of character, without and with contextual calibration. An attack gains if its S_PRISM is more than
0.02 above that of the reply out of character.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path
from statistics import mean
from typing import Any

from benchmark import attacks, report
from benchmark.programs import ROOT, tell

GAIN = 0.02
FILLER_WORDS = 400
CALIBRATIONS = ["none", "contextual"]
Json = dict[str, Any]


def arguments() -> argparse.Namespace:
    """Parse the command line."""
    data = ROOT.parent / "shared" / "data" / "dev" / "prism_big5_easy_exact.dev.jsonl"
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", default=ROOT / "target" / "release" / "prism-judge")
    parser.add_argument("--data", type=Path, default=data, help="groups with a positive and negatives (JSONL)")
    parser.add_argument("--cases", type=int, default=10, help="groups of the file, evenly taken")
    return parser.parse_args()


def cases(path: Path, count: int) -> list[Json]:
    """`count` groups of the file, evenly taken."""
    groups = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return [groups[index * len(groups) // count] for index in range(min(count, len(groups)))]


def candidates(case: Json) -> dict[str, str]:
    """What is judged of one case, by name."""
    inside, outside = case["positive"], case["negatives"][0]["text"]
    named = {"inside": inside, "outside": outside}
    for family, strings in attacks.families().items():
        for index, attack in enumerate(strings):
            named[f"alone/{family}/{index}"] = attack
            named[f"after/{family}/{index}"] = f"{outside} {attack}"
    filler = attacks.filler(FILLER_WORDS)
    named["filled inside"] = f"{inside} {filler}"
    named["filled outside"] = f"{outside} {filler}"
    named["filler"] = filler
    return named


def judge(binary: str, case: Json, named: dict[str, str], calibration: str) -> dict[str, float]:
    """S_PRISM of every candidate; one that is refused is an error of the run."""
    row = {"group_id": "c", "persona": case["persona"], "context": case["context"]}
    row |= {"positives": list(named.values()), "negatives": []}
    command = [str(binary), "score", "-", "--calibration", calibration]
    output = subprocess.run(command, input=json.dumps(row), check=True, stdout=subprocess.PIPE, text=True).stdout
    verdicts = [json.loads(line) for line in output.splitlines()]
    if len(verdicts) != len(named):
        raise RuntimeError(f"{len(verdicts)} verdicts of {len(named)} candidates")
    return {name: verdict["s_prism"] for name, verdict in zip(named, verdicts, strict=True)}


def summary(runs: list[dict[str, float]]) -> list[list[str]]:
    """A row for each kind of attack and place."""
    rows = []
    for place in ("alone", "after"):
        for family, strings in attacks.families().items():
            gains = [
                run[f"{place}/{family}/{index}"] - run["outside"] for run in runs for index in range(len(strings))
            ]
            best = max(gains)
            share = mean(gain > GAIN for gain in gains)
            rows.append([place, family, str(len(gains)), f"{100 * share:.0f} %", f"{mean(gains):+.3f}", f"{best:+.3f}"])
    return rows


def filled(runs: list[dict[str, float]]) -> list[list[str]]:
    """What filler does to each kind of reply."""
    kinds = [("in character", "inside"), ("out of character", "outside")]
    return [
        [what, f"{mean(run[name] for run in runs):.3f}", f"{mean(run[f'filled {name}'] for run in runs):.3f}"]
        for what, name in kinds
    ]


def main() -> int:
    """Judge, sum up, write the page."""
    args = arguments()
    chosen = cases(args.data, args.cases)
    blocks, result = [], {}
    for calibration in CALIBRATIONS:
        runs = []
        for number, case in enumerate(chosen):
            tell(f"calibration {calibration}: case {number + 1} of {len(chosen)}")
            runs.append(judge(args.binary, case, candidates(case), calibration))
        result[calibration] = runs
        head = ["place", "attack", "judged", f"gain more than {GAIN}", "mean gain", "most"]
        blocks += [f"Calibration `{calibration}`, {len(chosen)} cases:", report.table(head, summary(runs))]
        head = ["reply", "mean S_PRISM", f"with {FILLER_WORDS} words of filler"]
        blocks.append(report.table(head, filled(runs)))
    page = ROOT / "docs" / "robustness.md"
    report.publish("robustness", "make bench-robustness", result, "\n\n".join(blocks), page=page)
    return 0


if __name__ == "__main__":
    sys.exit(main())
