"""What the client costs: the same candidates by one call, by one raw request, and by a thousand tasks.

usage: throughput.py [URL] [--candidates 512] [--tasks 1000] [--rounds 3]

URL is that of a running server (default: PRISM_JUDGE_URL, else http://127.0.0.1:8080). The raw request has the bytes of
the client's own, goes by http.client and its answer is not looked at: the server's own rate. The verdict cache is off.
"""

from __future__ import annotations

import argparse
import asyncio
import http.client
import random
import statistics
import time
import urllib.parse
from typing import Callable, List, Tuple

from prism_judge import AsyncClient, Client, Persona, TraitTarget, Turn, _inputs, rewards
from prism_judge._codec import JsonCodec
from prism_judge._plans import Plans

PERSONA = Persona(name="Ada", traits=[TraitTarget("extraversion", "high")])
CONTEXT = [Turn("User", "Are you coming to the party tonight? Everyone from the office will be there.")]
TEXT = "we could all go there together and talk about the garden or stay at home with a good book"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("url", nargs="?")
    parser.add_argument("--candidates", type=int, default=512)
    parser.add_argument("--tasks", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--timeout", type=float, default=3600)
    args = parser.parse_args()
    client = Client(args.url, timeout=args.timeout)
    print(f"model {client.wait_until_ready().model}")

    group = replies(args.candidates)
    raw, one = rounds(args.rounds, lambda: send_raw(client, group), lambda: score_group(client, group))
    print(f"{args.candidates} candidates: raw {raw:.3f} s, client {one:.3f} s, ratio {one / raw:.3f}")

    many = replies(args.tasks)
    whole, tasks = rounds(args.rounds, lambda: score_group(client, many), lambda: asyncio.run(score_tasks(args, many)))
    print(f"{args.tasks} one-item tasks: one call {whole:.3f} s, tasks {tasks:.3f} s, ratio {tasks / whole:.3f}")


def replies(count: int) -> List[str]:
    draw = random.Random(count)
    return [" ".join(draw.choices(TEXT.split(), k=20)) for _ in range(count)]


def rounds(count: int, first: Callable[[], None], second: Callable[[], None]) -> Tuple[float, float]:
    """Seconds of both, taking turns: the medians."""
    times: Tuple[List[float], List[float]] = ([], [])
    for _ in range(count):
        for work, seconds in zip((first, second), times):
            start = time.perf_counter()
            work()
            seconds.append(time.perf_counter() - start)
    return statistics.median(times[0]), statistics.median(times[1])


def score_group(client: Client, texts: List[str]) -> None:
    rewards(client.score_group(texts, persona=PERSONA, context=CONTEXT, cache="off"), on_error="raise")


async def score_tasks(args: argparse.Namespace, texts: List[str]) -> None:
    async with AsyncClient(args.url, timeout=args.timeout) as client:
        calls = (client.score(text, persona=PERSONA, context=CONTEXT, cache="off") for text in texts)
        rewards(await asyncio.gather(*calls), on_error="raise")


def send_raw(client: Client, texts: List[str]) -> None:
    head = _inputs.head(persona=PERSONA, persona_id=None, context=CONTEXT, cache="off")
    (call,) = Plans(JsonCodec(), 16 << 20).score_group(head, texts, None).calls
    parts = urllib.parse.urlsplit(client._config.url)
    connection = http.client.HTTPConnection(parts.netloc)
    connection.request("POST", f"{parts.path}/v1/score_group", call.body, {"content-type": "application/json"})
    answer = connection.getresponse()
    answer.read()
    connection.close()
    if answer.status != 200:
        raise SystemExit(f"the server answers {answer.status}")


if __name__ == "__main__":
    main()
