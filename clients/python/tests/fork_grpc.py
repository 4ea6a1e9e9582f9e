"""A fork after gRPC was used."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import sys
import warnings

from prism_judge import AsyncClient, Client, PrismJudgeError


def ask_async() -> object:
    return asyncio.run(AsyncClient(sys.argv[1]).info())


warnings.simplefilter("ignore", DeprecationWarning)
client = Client(sys.argv[1])
client.info()
pid = os.fork()
if pid == 0:
    signal.alarm(60)
    told = 0
    for ask in (client.info, Client(sys.argv[1]).info, ask_async):
        try:
            ask()
        except PrismJudgeError as error:
            told += "forked" in str(error)
    client.close()
    del client
    gc.collect()
    os._exit(0 if told == 3 else 1)
assert os.waitpid(pid, 0)[1] == 0
client.info()
client.close()
print("the child was told, the parent goes on")
