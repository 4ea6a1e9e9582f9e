#!/usr/bin/env python3
"""Prints N groups of a JSONL file after skipping SKIP, in the order of a hash of their ids.

    bench_split.py FILE SKIP N

The order is the same in every file that names its groups alike, so that groups used for tuning can be left out.
"""

import hashlib
import json
import sys


def order(line: str) -> str:
    name = json.loads(line)["group_id"].split("/")[-1]
    return hashlib.sha256(f"q{name}".encode()).hexdigest()


def main() -> None:
    path, skip, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    with open(path, encoding="utf-8") as file:
        lines = sorted((line for line in file if line.strip()), key=order)
    sys.stdout.writelines(lines[skip : skip + count])


if __name__ == "__main__":
    main()
