"""The verdict cache in Redis: what it costs calls that no cache can answer, whatever becomes of it, and what it saves."""

from __future__ import annotations

import contextlib
import signal
import socket
import subprocess
import threading
import time
from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Self

from . import report, tiny
from .loads import GUARD, HEAD, row, send, serve
from .programs import Json, MeasurementError, Server, tell
from .report import Target

# Every call differs: both tiers miss.
MISS = f"{GUARD},evidence=label_slot,arrivals=fixed"
# Calls that are judged once, and again by a server that starts anew.
REPEATED = 500
# How long a flickering Redis is stopped, and how long it answers.
FLICKER_S = 1.0
RECOVERY_S = 5.0
IN_USE = "answers: verdicts are shared"


class Redis:
    """`redis-server` on a free port of the loopback."""

    def __init__(self) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self._process: subprocess.Popen[str] | None = None

    def start(self) -> None:
        """Start it, empty, and wait until it takes connections."""
        command = ["redis-server", "--bind", "127.0.0.1", "--port", str(self.port), "--save", "", "--appendonly", "no"]
        try:
            self._process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        except OSError as error:
            raise MeasurementError(f"redis-server cannot be started (apt-get install redis-server): {error}") from error
        lines = iter(self._process.stdout or [])
        if not any("eady to accept connections" in line for line in lines):
            raise MeasurementError("redis-server ended before it took connections")
        # A full pipe would stop it.
        threading.Thread(target=lambda: [None for _ in lines], daemon=True).start()

    def signal(self, number: signal.Signals) -> None:
        """Send it a signal."""
        assert self._process is not None
        self._process.send_signal(number)

    def kill(self) -> None:
        """SIGKILL, which ends a stopped process as well."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()

    @contextlib.contextmanager
    def flickering(self) -> Iterator[None]:
        """Stopped and resumed in turns meanwhile; it answers at the end."""
        done = threading.Event()

        def flicker() -> None:
            while not done.wait(FLICKER_S):
                self.signal(signal.SIGSTOP)
                done.wait(FLICKER_S)
                self.signal(signal.SIGCONT)

        thread = threading.Thread(target=flicker)
        thread.start()
        try:
            yield
        finally:
            done.set()
            thread.join()


def in_use(log: Path) -> int:
    """How often a server has said so far that it uses Redis."""
    return log.read_text(encoding="utf-8").count(IN_USE)


def recovery(log: Path, before: int) -> float:
    """Seconds until a server says once more that it uses Redis."""
    start = time.monotonic()
    while in_use(log) <= before:
        if time.monotonic() - start > 4 * RECOVERY_S:
            raise MeasurementError(f"Redis was not used again within {4 * RECOVERY_S:.0f} s; see {log}")
        time.sleep(0.01)
    return time.monotonic() - start


def run(args: Namespace) -> list[Target]:
    """Measure and publish."""
    busy, seconds = report.load(), args.seconds or 40
    model = tiny.write(args.model, report.RESULTS / "tiny.gguf")
    secret = report.RESULTS / "redis-secret"
    secret.write_text("a secret of the benchmark\n", encoding="utf-8")
    log = report.RESULTS / "redis.log"
    phases: dict[str, Json] = {}
    recoveries: dict[str, float] = {}

    def calls(server: Server, name: str, stream: str, seed: int | None = None) -> Json:
        tell(f"redis: {name}")
        measured: Json = send(args, server, seconds, f"name={name},{stream}", seed=seed)["streams"][name]
        return measured

    with Redis() as redis:
        flags = ["--redis-url", f"redis://127.0.0.1:{redis.port}", "--redis-secret-file", str(secret)]
        with serve(args, "redis-without", model) as server:
            peak = send(args, server, 5, f"name=peak,{MISS},rate=max,connections=4")["streams"]["peak"]
            rate = min(peak["calls_per_second"] / 3, 100)
            miss = f"{MISS},rate={rate},connections=4"
            phases["without Redis"] = calls(server, "without Redis", miss)
        with serve(args, "redis", model, *flags) as server:
            phases["up"] = calls(server, "up", miss)
            before = in_use(log)
            redis.signal(signal.SIGSTOP)
            phases["stopped"] = calls(server, "stopped", miss)
            redis.signal(signal.SIGCONT)
            recoveries["SIGCONT"] = recovery(log, before)
            with redis.flickering():
                phases["stopped every other second"] = calls(server, "stopped every other second", miss)
            redis.kill()
            phases["killed"] = calls(server, "killed", miss)
            before = in_use(log)
            redis.start()
            recoveries["restart"] = recovery(log, before)
            repeated = f"{MISS},rate=max,calls={REPEATED}"
            phases["judged once"] = calls(server, "judged once", repeated, seed=1)
        # The end of the server writes what waits.
        with serve(args, "redis", model, *flags) as server:
            phases["again after a restart"] = calls(server, "again after a restart", repeated, seed=1)
        with serve(args, "redis-without", model) as server:
            phases["again without Redis"] = calls(server, "again without Redis", miss)

    def p99(name: str) -> float:
        return float(phases[name]["ok_ms"]["p99"])

    # The machine drifts: the calmer of two runs would make every other look worse than it is.
    alone = max(p99("without Redis"), p99("again without Redis"))
    disturbed = ["up", "stopped", "stopped every other second", "killed"]
    failed = sum(stream["calls"] - stream["codes"].get("Ok", 0) for stream in phases.values())
    targets = [
        *(Target(f"p99 with Redis {name}, over that without", p99(name) - alone, 5, False, " ms") for name in disturbed),
        Target("calls that failed", failed, 0, False),
        *(Target(f"in use again after {what}", took, RECOVERY_S, False, " s") for what, took in recoveries.items()),
    ]
    text = (
        f"{report.number(rate)} calls a second, all different, for {seconds} s each, so that neither tier can answer any "
        f"of them; a tiny model, so that 5 ms show. The last rows are {REPEATED} calls in a closed loop, computed, and "
        f"then answered from Redis by a server that was started anew.\n\n"
        f"{report.table(HEAD, [row(name, stream) for name, stream in phases.items()])}\n\n{report.targets_table(targets)}"
    )
    result = {"load_before": busy, "rate": rate, "recoveries_s": recoveries, "phases": phases}
    report.publish("redis", "make load-redis", result, text)
    return targets
