"""Programs that the benchmarks start, ask and end."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import threading
from pathlib import Path
from types import TracebackType
from typing import Any, Self

ROOT = Path(__file__).resolve().parent.parent.parent
# An object of a program's output.
Json = dict[str, Any]
PEER = ROOT / "scripts" / "peers" / "llama_cpp"
REPLY_TIMEOUT_S = 240.0
START_TIMEOUT_S = 60.0
STOP_TIMEOUT_S = 15.0


class MeasurementError(Exception):
    """A program could not be started or did not answer as agreed."""


class Turns:
    """A program that does one piece of work and prints one JSON line for every line it is sent.

    Programs that are to be compared are started together and asked in turn, so that a slow drift of the machine (heat,
    a neighbour) falls on both.
    """

    def __init__(
        self, name: str, command: list[str], cwd: Path | None = None, env: dict[str, str] | None = None
    ) -> None:
        self.name = name
        self.command = command
        try:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                bufsize=1,
                cwd=cwd,
                env=os.environ | (env or {}),
            )
        except OSError as error:
            raise MeasurementError(f"{name}: cannot start {shlex.join(command)}: {error}") from error

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()  # the end of stdin asks the program to finish
        try:
            self._process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def ask(self, line: str = "") -> Json:
        """Send one line and return the reply."""
        assert self._process.stdin is not None and self._process.stdout is not None
        watchdog = threading.Timer(REPLY_TIMEOUT_S, self._process.kill)
        watchdog.start()
        try:
            self._process.stdin.write(f"{line}\n")
            self._process.stdin.flush()
            answer = self._process.stdout.readline()
        except BrokenPipeError:
            answer = ""
        finally:
            watchdog.cancel()
        try:
            reply: Json = json.loads(answer)
            if not float(reply["seconds"]) > 0:
                raise ValueError("no time passed")
        except (ValueError, KeyError, TypeError) as error:
            raise MeasurementError(
                f"{self.name}: expected one JSON line with seconds, got {answer[:200]!r} from {shlex.join(self.command)}"
            ) from error
        return reply


class Server:
    """`prism-judge serve` on a free port of the loopback; its log goes to `log`."""

    def __init__(self, binary: list[str], log: Path, *flags: str) -> None:
        ports = ["--listen", "127.0.0.1:0", "--http-listen", "off", "--admin-listen", "127.0.0.1:0"]
        self.command = [*binary, "serve", *ports, *flags]
        self.log = log
        self.address = ""
        self._process: subprocess.Popen[str] | None = None

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(self.command, stderr=subprocess.PIPE, text=True)
        ready, found = threading.Event(), self._process
        self.log.parent.mkdir(parents=True, exist_ok=True)

        def read() -> None:
            with self.log.open("w", encoding="utf-8") as log:
                for line in found.stderr or []:
                    log.write(line)
                    log.flush()
                    if match := re.search(r"listening on (\S+?),", line):
                        self.address = match[1]
                    if "the model is loaded" in line:
                        ready.set()
            ready.set()

        threading.Thread(target=read, daemon=True).start()
        if not ready.wait(START_TIMEOUT_S) or self._process.poll() is not None:
            self.__exit__(None, None, None)
            raise MeasurementError(f"the server did not start: {shlex.join(self.command)}; see {self.log}")
        return self

    @property
    def pid(self) -> int:
        """Its process id."""
        assert self._process is not None
        return self._process.pid

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(timeout=STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def run_json(name: str, command: list[str], timeout_s: float) -> Json:
    """Run a program that prints one JSON object; its progress goes to our standard error."""
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=timeout_s, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise MeasurementError(f"{name}: {error}") from error
    if done.returncode != 0:
        raise MeasurementError(f"{name}: exit status {done.returncode} of {shlex.join(command)}")
    try:
        result: Json = json.loads(done.stdout)
        return result
    except ValueError as error:
        raise MeasurementError(f"{name}: expected one JSON object, got {done.stdout[:200]!r}") from error


def tell(text: str) -> None:
    """Say what is going on."""
    print(text, file=sys.stderr, flush=True)
