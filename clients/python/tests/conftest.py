"""The same tests for both clients over both transports."""

from __future__ import annotations

import asyncio
import inspect
from dataclasses import dataclass
from typing import Any, Iterator, Union

import pytest
from brain import Brain
from http_server import HttpServer

from prism_judge import AsyncClient, Client

KINDS = ("http-blocking", "http-async", "grpc-blocking", "grpc-async")


@dataclass
class Judge:
    """A client, blocking whatever it is, and the judge that it calls."""

    client: Union[Client, AsyncClient]
    brain: Brain
    loop: asyncio.AbstractEventLoop
    server: Any
    transport: str

    def __getattr__(self, name: str) -> Any:
        method = getattr(self.client, name)

        def call(*args: Any, **kwargs: Any) -> Any:
            result = method(*args, **kwargs)
            return self.loop.run_until_complete(result) if inspect.isawaitable(result) else result

        return call

    def remake(self, **settings: Any) -> Judge:
        """Another client with other settings."""
        self.close()
        self.client = type(self.client)(self.server.url, **settings)
        return self


@pytest.fixture(params=KINDS)
def judge(request: pytest.FixtureRequest) -> Iterator[Judge]:
    transport, kind = request.param.split("-")
    if transport == "grpc":
        pytest.importorskip("grpc")
        from grpc_server import GrpcServer

        server: Any = GrpcServer()
    else:
        server = HttpServer()
    loop = asyncio.new_event_loop()
    client = (Client if kind == "blocking" else AsyncClient)(server.url, timeout=30)
    found = Judge(client, server.brain, loop, server, transport)
    yield found
    found.close()
    loop.run_until_complete(loop.shutdown_asyncgens())
    loop.close()
    server.close()


@pytest.fixture
def http() -> Iterator[HttpServer]:
    server = HttpServer()
    yield server
    server.close()
