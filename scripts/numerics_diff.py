#!/usr/bin/env python3
"""Compare the scores of two runs of `prism-judge bench --scores`, for example f32 and int8.

    numerics_diff.py REFERENCE OTHER

For S and each dimension: the absolute difference (mean, p50, p99, max), P-AUC and G-Acc of both runs, and the share of
pairs (a positive and a negative of one group) whose order differs. Percentiles are nearest rank. One table a file that
was judged, and one over all of them. A response with a score in one run only is a failure: exit status 1.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

NAMES = ["s_prism", "task_framing", "interpersonal_stance", "linguistic_style"]
Key = tuple[str, int, str]
Run = dict[Key, dict[str, Any]]


@dataclass
class Group:
    """Scores of one group's positives and negatives, each as (reference, other)."""

    positives: list[tuple[float, float]] = field(default_factory=list)
    negatives: list[tuple[float, float]] = field(default_factory=list)


def load(path: str) -> Run:
    """The lines of one run by file, line and id."""
    with open(path, encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines if line.strip()]
    return {(row["file"], row["line"], row.get("id", "")): row for row in rows}


def percentile(values: list[float], share: float) -> float:
    """Nearest rank: the smallest value that `share` of them do not exceed."""
    return sorted(values)[max(0, math.ceil(share * len(values)) - 1)]


def rank(positive: float, negative: float) -> float:
    """1 if the positive is above, 0 if below, one half for a tie."""
    return 0.5 * ((positive > negative) + (positive >= negative))


def pairs(groups: list[Group]) -> Iterator[tuple[float, float]]:
    """The rank of every pair in both runs."""
    for group in groups:
        if group.positives:
            # As `bench` counts them: a group with several positives stands for its best one.
            best = [max(positive[run] for positive in group.positives) for run in (0, 1)]
            for negative in group.negatives:
                yield rank(best[0], negative[0]), rank(best[1], negative[1])


def wins(groups: list[Group], run: int) -> float:
    """The share of groups whose every positive is above every negative (G-Acc)."""
    scored = [group for group in groups if group.positives and group.negatives]
    won = [min(p[run] for p in g.positives) > max(n[run] for n in g.negatives) for g in scored]
    return sum(won) / len(won) if won else math.nan


def table(title: str, keys: list[Key], runs: tuple[Run, Run]) -> None:
    """Print what differs between the two runs over `keys`."""
    print(f"{title}: {len(keys)} responses")
    print(f"  {'':<22}{'mean':>9}{'p50':>9}{'p99':>9}{'max':>9}{'P-AUC':>15}{'G-Acc':>15}{'flips':>8}")
    for name in NAMES:
        groups: dict[tuple[str, str], Group] = {}
        differences = []
        for key in keys:
            scores = (runs[0][key][name], runs[1][key][name])
            differences.append(abs(scores[1] - scores[0]))
            group = groups.setdefault((key[0], runs[0][key]["group"]), Group())
            role = runs[0][key]["role"]
            if role != "single":
                (group.positives if role == "positive" else group.negatives).append(scores)
        ranks = list(pairs(list(groups.values())))
        cells = [sum(differences) / len(differences), percentile(differences, 0.5), percentile(differences, 0.99)]
        text = "".join(f"{value:>9.5f}" for value in [*cells, max(differences)])
        if ranks:
            auc = [100 * sum(pair[run] for pair in ranks) / len(ranks) for run in (0, 1)]
            won = [100 * wins(list(groups.values()), run) for run in (0, 1)]
            flips = 100 * sum(a != b for a, b in ranks) / len(ranks)
            text += f"{auc[0]:>8.1f}/{auc[1]:<6.1f}{won[0]:>8.1f}/{won[1]:<6.1f}{flips:>6.1f} %"
        print(f"  {name:<22}{text}")
    print()


def main() -> int:
    """Read both runs, print the tables."""
    if len(sys.argv) != 3:
        print(__doc__, file=sys.stderr)
        return 64
    runs = (load(sys.argv[1]), load(sys.argv[2]))
    scored = tuple({key for key, row in run.items() if "s_prism" in row} for run in runs)
    if scored[0] != scored[1]:
        lone = sorted(scored[0] ^ scored[1])
        print(f"numerics_diff: {len(lone)} responses have a score in one run only, first {lone[0]}", file=sys.stderr)
        return 1
    if not scored[0]:
        print("numerics_diff: there are no scores to compare", file=sys.stderr)
        return 1
    files = sorted({key[0] for key in scored[0]})
    for file in files:
        table(file, sorted(key for key in scored[0] if key[0] == file), runs)
    if len(files) > 1:
        table("all files", sorted(scored[0]), runs)
    return 0


if __name__ == "__main__":
    sys.exit(main())
