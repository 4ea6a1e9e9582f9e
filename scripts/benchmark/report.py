"""Where results go: target/bench/NAME.json, and the block NAME of a page, docs/performance.md if no other is named."""

from __future__ import annotations

import json
import os
import platform
import re
import statistics
import subprocess
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from .programs import ROOT, Json, MeasurementError

PAGE = ROOT / "docs" / "performance.md"
RESULTS = ROOT / "target" / "bench"


@dataclass
class Target:
    """A figure and the bound it is held to."""

    what: str
    value: float
    bound: float
    at_least: bool
    unit: str = ""

    @property
    def met(self) -> bool:
        """Whether the figure reaches its bound."""
        return self.value >= self.bound if self.at_least else self.value <= self.bound

    def row(self) -> list[str]:
        """The figure as a row of a table: what, measured, bound, verdict."""
        sign = ">=" if self.at_least else "<="
        bound = f"{sign} {number(self.bound)}{self.unit}"
        return [self.what, number(self.value) + self.unit, bound, "met" if self.met else "**missed**"]


def targets_table(targets: list[Target]) -> str:
    """All figures with their bounds."""
    return table(["target", "measured", "bound", ""], [target.row() for target in targets])


def number(value: float) -> str:
    """Three digits or so; whole numbers with a comma every three places."""
    if value == 0 or abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}" if abs(value) >= 0.1 else f"{value:.2g}"


def table(head: list[str], rows: list[list[str]]) -> str:
    """A Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def spread(values: list[float]) -> str:
    """Smallest to largest."""
    return f"{number(min(values))} to {number(max(values))}"


def median(values: list[float]) -> float:
    """The median."""
    return statistics.median(values)


def machine() -> str:
    """Processor and cores, as this process sees them."""
    name = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        found = re.search(r"^model name\s*:\s*(.+)$", cpuinfo.read_text(encoding="utf-8"), re.MULTILINE)
        name = found[1].strip() if found else name
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return f"{cores} cores of {name}"


def commit() -> str:
    """The commit that was measured; `+` if the tree holds changes besides the pages themselves."""
    git = ["git", "-C", str(ROOT)]
    short = subprocess.run([*git, "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)
    changed = [*git, "status", "--porcelain", "--untracked-files=no", "--", ".", ":!docs/performance.md", ":!docs/robustness.md"]
    dirty = subprocess.run(changed, capture_output=True, text=True, check=False).stdout.strip()
    return (short.stdout.strip() or "unknown") + ("+" if dirty else "")


def load() -> float:
    """How many threads wanted to run during the last minute."""
    return round(os.getloadavg()[0], 2)


def publish(name: str, command: str, result: Json, text: str, page: Path = PAGE) -> None:
    """Save `result` and replace the block `name` of the page by `text`, with when, what and where."""
    stamp = {"date": datetime.now(UTC).strftime("%Y-%m-%d"), "commit": commit(), "machine": machine()}
    RESULTS.mkdir(parents=True, exist_ok=True)
    whole = {"benchmark": name, "command": command, **stamp, **result}
    (RESULTS / f"{name}.json").write_text(json.dumps(whole, indent=1) + "\n", encoding="utf-8")
    foot = f"`{command}`, {stamp['date']}, commit {stamp['commit']}, {stamp['machine']}"
    if "load_before" in result:
        foot += f", load before {result['load_before']}"
    replace_block(page, name, f"{text.strip()}\n\n{foot}.")


def replace_block(path: Path, name: str, text: str) -> None:
    """Put `text` between the markers of block `name` of a page."""
    page = path.read_text(encoding="utf-8")
    start, end = f"<!-- bench:{name} -->", f"<!-- /bench:{name} -->"
    if page.count(start) != 1 or page.count(end) != 1 or page.index(start) > page.index(end):
        raise MeasurementError(f"{path.name} needs exactly one block {start} ... {end}")
    head, tail = page.split(start)[0], page.split(end)[1]
    path.write_text(f"{head}{start}\n{text}\n{end}{tail}", encoding="utf-8")
