"""Forks 60 times while four threads score. Children score with the clients of their parent, and so do theirs."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
import warnings
from typing import List

from brain import s_prism

from prism_judge import AsyncClient, Client

# Python warns of forks with threads: they are what is tried here.
warnings.simplefilter("ignore", DeprecationWarning)
client, async_client = Client(sys.argv[1]), AsyncClient(sys.argv[1])
over = threading.Event()
wrong: List[Exception] = []
scored = [0] * 4


def score(text: str) -> None:
    found = client.score(text, persona_id="host").s_prism
    if found != s_prism({"persona_id": "host"}, text):
        raise AssertionError(f"{text} has the score of something else")


def work(name: int) -> None:
    while not over.is_set():
        try:
            score(f"thread {name} {scored[name]}")
        except Exception as error:
            wrong.append(error)
            return
        scored[name] += 1


def child(number: int) -> None:
    for index in range(5):
        score(f"child {number} {index}")
    text = f"child {number} asyncio"
    found = asyncio.run(async_client.score(text, persona_id="host")).s_prism
    assert found == s_prism({"persona_id": "host"}, text)
    # In the end a fork of the fork.
    if number % 10 == 0:
        inner = os.fork()
        if inner == 0:
            score(f"grandchild {number}")
            os._exit(0)
        assert os.waitpid(inner, 0)[1] == 0
    score(f"child {number} end")


score("before")
asyncio.run(async_client.score("before", persona_id="host"))
threads = [threading.Thread(target=work, args=(name,)) for name in range(4)]
for thread in threads:
    thread.start()
for number in range(60):
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            # A child that hangs is killed, which its parent sees.
            signal.alarm(60)
            child(number)
            status = 0
        finally:
            os._exit(status)
    status = os.waitpid(pid, 0)[1]
    assert status == 0, f"child {number} ended with {status}"
so_far = list(scored)
# All four threads still score after the last fork.
while any(now <= before for now, before in zip(scored, so_far)) and not wrong:
    score("between")
over.set()
for thread in threads:
    thread.join()
assert not wrong, wrong
print("60 children, all well")
