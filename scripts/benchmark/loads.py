"""The loads behind the promises: a guard under bursts, overload, deadlines, memory."""

from __future__ import annotations

import itertools
from argparse import Namespace
from pathlib import Path

from . import report, tiny
from .programs import Json, Server, Turns, run_json, tell
from .report import Target

GUARD = "context=20,reply=10,lane=guard"
# How long half of the peak is sent before and after an overload, and when all must be normal again.
CALM_S, RECOVERY_S = 30, 2
TRAIN = "context=20,reply=4,lane=train"


def serve(args: Namespace, name: str, model: Path | None = None, *flags: str) -> Server:
    """A server for the load `name`."""
    log = report.RESULTS / f"{name}.log"
    # The client stands for another machine: it goes first, so that its own waiting is not taken for the server's.
    return Server(
        ["nice", str(args.binary)], log, "--model", str(model or args.model), "--threads", str(args.threads), *flags
    )


# Every run of the load client sends other texts than those before it, which the server may remember.
SEEDS = itertools.count(2)


def send(
    args: Namespace, server: Server, seconds: float, *streams: str, grace: float = 60, seed: int | None = None
) -> Json:
    """Run the load client; its summary, with the streams by name. The same `seed` gives the same texts."""
    command = [str(args.load), "--address", server.address, "--pid", str(server.pid), "--json", "--grace", str(grace)]
    command += ["--seed", str(next(SEEDS) if seed is None else seed)]
    summary = run_json("load", [*command, "--seconds", str(seconds), *streams], seconds + grace + 30)
    summary["streams"] = {stream["name"]: stream for stream in summary["streams"]}
    return summary


def ms(value: float | None) -> str:
    """Milliseconds for a table."""
    return "-" if value is None else report.number(value)


def row(name: str, stream: Json) -> list[str]:
    """One stream as a row."""
    codes = ", ".join(f"{code} {count:,}" for code, count in stream["codes"].items())
    times = [ms(stream["ok_ms"][key]) for key in ("p50", "p90", "p99", "max")]
    return [name, f"{stream['calls']:,}", *times, report.number(stream["judged_per_second"]), codes]


HEAD = ["", "calls", "p50 ms", "p90", "p99", "max", "candidates/s", "status codes"]


def chunk_ms(args: Namespace) -> float:
    """How long one chunk of the default size takes on this machine."""
    size = str(args.chunk)
    command = [str(args.binary), "debug-prefill", "--model", str(args.model), "--tokens", size, "--chunk", size]
    with Turns("chunk", [*command, "--threads", str(args.threads)]) as prefill:
        prefill.ask()
        return 1e3 * report.median([prefill.ask()["seconds"] for _ in range(9)])


def guard(args: Namespace) -> list[Target]:
    """Guard calls alone, then beside bursts of 4,096 candidates."""
    busy, seconds = report.load(), args.seconds or 150
    chunk = chunk_ms(args)
    calls = f"name=guard,{GUARD},rate={args.guard_rate}"
    bursts = f"name=bursts,{TRAIN},candidates=64,rate=max,connections=4,in_flight=16"
    with serve(args, "guard") as server:
        send(args, server, 5, f"name=warm-up,{GUARD},rate=2")
        tell("guard: alone")
        idle = send(args, server, seconds, calls)["streams"]["guard"]
        tell("guard: beside bursts")
        loaded = send(args, server, seconds, calls, bursts, grace=30)["streams"]
    bound = 1.5 * idle["ok_ms"]["p99"] + chunk
    shed = loaded["guard"]["codes"].get("ResourceExhausted", 0)
    what = "guard p99 beside bursts, against 1.5 times its idle p99 and one chunk"
    targets = [
        Target(what, loaded["guard"]["ok_ms"]["p99"], bound, False, " ms"),
        Target("guard calls refused", shed, 0, False),
    ]
    rows = [row("guard, alone", idle), row("guard, beside bursts", loaded["guard"]), row("bursts", loaded["bursts"])]
    text = (
        f"Open loop, {args.guard_rate} guard calls a second for {seconds} s each; the bursts keep 64 calls of 64 candidates "
        f"(4,096) waiting in the train lane all the time. One chunk of {args.chunk} tokens takes {report.number(chunk)} ms.\n\n"
        f"{report.table(HEAD, rows)}\n\n{report.targets_table(targets)}"
    )
    report.publish(
        "guard", "make load-guard", {"load_before": busy, "chunk_ms": chunk, "idle": idle, "loaded": loaded}, text
    )
    return targets


def overload(args: Namespace) -> list[Target]:
    """Half of what the server can do, five times as much, and half of it again."""
    busy, seconds = report.load(), args.seconds or 60
    call = f"{TRAIN},evidence=label_slot"
    with serve(args, "overload", None, "--queue-tokens-train", str(args.queue_tokens)) as server:
        tell("overload: what the server can do")
        peak = send(args, server, 20, f"name=peak,{call},rate=max,connections=2")
        most = peak["streams"]["peak"]["judged_per_second"]
        tell(f"overload: {most:.1f} candidates/s; half of it, then five times as much for {seconds} s, then half again")
        storm_ends = CALM_S + seconds
        # Evenly spaced: with a dozen calls in two seconds, chance arrivals would decide whether the queue is empty again.
        calm = f"{call},rate={most / 2},arrivals=fixed"
        calm_from = storm_ends + RECOVERY_S
        streams = [
            f"name=before,{call},rate={most / 2},end={CALM_S}",
            f"name=five times,{call},rate={5 * most},connections=16,start={CALM_S},end={storm_ends}",
            f"name=first {RECOVERY_S} s after,{calm},start={storm_ends},end={calm_from}",
            f"name=then,{calm},start={calm_from}",
        ]
        loaded = send(args, server, calm_from + CALM_S, *streams)
    by_name = loaded["streams"]
    before, storm, then = by_name["before"], by_name["five times"], by_name["then"]
    memory = [mib for _, mib in loaded["resident_mib"]]
    calm_memory = max(mib for at, mib in loaded["resident_mib"] if at <= CALM_S)
    targets = [
        Target("goodput under overload, share of the peak", storm["judged_per_second"] / most, 0.9, True),
        Target("p99 of refusals", storm["refused_ms"]["p99"] or 0.0, 10, False, " ms"),
        Target("refusals without a retry hint", storm["refused_without_hint"], 0, False),
        Target(
            f"calls that fail from {RECOVERY_S} s after it on", then["calls"] - then["codes"].get("Ok", 0), 0, False
        ),
        Target("their p90, in p90 of before (our bound)", then["ok_ms"]["p90"] / before["ok_ms"]["p90"], 1.5, False),
        Target("most resident memory over that of before", max(memory) / calm_memory - 1, 0.1, False),
    ]
    rows = [row("closed loop: the peak", peak["streams"]["peak"])] + [
        row(name, stream) for name, stream in by_name.items()
    ]
    text = (
        f"One candidate a call (label slot), all different: half of the peak for {CALM_S} s, five times the peak for "
        f"{seconds} s (Poisson arrivals), half of it again (evenly spaced). The train lane takes {args.queue_tokens:,} "
        f"tokens, a second or two of work: what waits when the overload ends still has to be done.\n\n{report.table(HEAD, rows)}\n\n"
        f"{report.targets_table(targets)}"
    )
    report.publish("overload", "make load-overload", {"load_before": busy, "peak": peak, "loaded": loaded}, text)
    return targets


def deadlines(args: Namespace) -> list[Target]:
    """10,000 calls with budgets of 5 to 200 ms at twice what the server can do."""
    busy, calls = report.load(), args.calls
    model = tiny.write(args.model, report.RESULTS / "tiny.gguf")
    call = f"{GUARD},evidence=label_slot"
    with serve(args, "deadlines", model) as server:
        peak = send(args, server, 10, f"name=peak,{call},rate=max,connections=4,in_flight=4")["streams"]["peak"]
        rate = 2 * peak["calls_per_second"]
        tell(f"deadlines: {calls} calls at {rate:.0f} a second")
        seconds = calls / rate * 1.5 + 5
        stream = f"name=budgets,{call},rate={rate},calls={calls},connections=16,deadline=5-200"
        budgets = send(args, server, seconds, stream)["streams"]["budgets"]
    allowed = ("Ok", "DeadlineExceeded", "ResourceExhausted")
    wrong = {code: count for code, count in budgets["codes"].items() if code not in allowed}
    targets = [
        Target("answers later than the deadline + 10 ms", budgets["later_than_deadline_by_10_ms"], 0, False),
        Target("other codes than OK, DEADLINE_EXCEEDED and RESOURCE_EXHAUSTED", sum(wrong.values()), 0, False),
    ]
    table = report.table(HEAD, [row("closed loop", peak), row("budgets", budgets)])
    text = (
        f"{budgets['calls']:,} calls, each with a budget drawn from 5 to 200 ms, at {report.number(rate)} a second: twice what "
        f"the server does in a closed loop. The model is tiny (the default model's tokenizer, two layers of 64), so that "
        f"calls succeed, wait and expire all within such budgets. Latest answer after its deadline: "
        f"{budgets['latest_after_deadline_ms']:.1f} ms.\n\n{table}\n\n{report.targets_table(targets)}"
    )
    report.publish("deadlines", "make load-deadlines", {"load_before": busy, "peak": peak, "budgets": budgets}, text)
    return targets


def slope(samples: list[list[float]]) -> float:
    """MiB per 10 minutes, by least squares."""
    count = len(samples)
    mean_t, mean_m = sum(t for t, _ in samples) / count, sum(m for _, m in samples) / count
    spread = sum((t - mean_t) ** 2 for t, _ in samples)
    return 600 * sum((t - mean_t) * (m - mean_m) for t, m in samples) / spread


def soak(args: Namespace) -> list[Target]:
    """Everything at once for ten minutes; resident memory after a warm-up."""
    busy, seconds = report.load(), args.seconds or 600
    warm_up = seconds * 0.4
    streams = [
        f"name=guard,{GUARD},rate=0.5",
        "name=groups,lane=train,context=60,reply=20,candidates=8,rate=0.05",
        "name=repeated,lane=train,context=20,reply=4,distinct=8,rate=20",
        f"name=deadlines,{GUARD},rate=2,deadline=5-200",
        "name=chats,lane=batch,context=200,reply=10,rate=0.05",
    ]
    with serve(args, "soak") as server:
        tell(f"soak: {seconds} s")
        summary = send(args, server, seconds, *streams)
    samples = summary["resident_mib"]
    after = [sample for sample in samples if warm_up <= sample[0] <= seconds]
    most = max(mib for _, mib in samples)
    targets = [
        Target("slope of resident memory after the warm-up, MiB in 10 minutes", slope(after), 1.0, False),
        Target("most resident memory against weights + budgets + 150 MB", most, args.memory_bound, False, " MiB"),
    ]
    rows = [row(name, stream) for name, stream in summary["streams"].items()]
    text = (
        f"{seconds} s of mixed load, the first {report.number(warm_up)} s as warm-up. Resident memory: "
        f"{samples[0][1]:.0f} MiB at first, {most:.0f} MiB at most, {samples[-1][1]:.0f} MiB at the end.\n\n"
        f"{report.table(HEAD, rows)}\n\n{report.targets_table(targets)}"
    )
    report.publish("soak", "make load-soak", {"load_before": busy, **summary}, text)
    return targets
