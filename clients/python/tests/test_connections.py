"""Connections over HTTP: kept, never shared, never used after something odd."""

from __future__ import annotations

import asyncio
import gc
import pickle
import socket
import threading
import warnings
from typing import Any, Iterator, List

import pytest
from brain import Fault, s_prism
from conftest import Judge
from http_server import HttpServer, encoded, response

from prism_judge import (
    AsyncClient,
    Client,
    DeadlineExceededError,
    NotFoundError,
    ProtocolError,
    RequestTooLargeError,
    UnavailableError,
    rewards,
)

ABOUT = {"persona_id": "host"}


@pytest.fixture(params=["blocking", "async"])
def web(request: pytest.FixtureRequest, http: HttpServer) -> Iterator[Judge]:
    loop = asyncio.new_event_loop()
    kind: Any = Client if request.param == "blocking" else AsyncClient
    judge = Judge(kind(http.url), http.brain, loop, http, "http")
    yield judge
    judge.close()
    loop.run_until_complete(loop.shutdown_asyncgens())
    loop.close()


def check(judge: Judge, text: str = "x") -> None:
    assert judge.score(text, persona_id="host").s_prism == s_prism(ABOUT, text)


def test_a_connection_carries_many_calls(web: Judge) -> None:
    for index in range(20):
        check(web, str(index))
    assert web.server.connections == 1


def test_a_connection_that_the_server_closed_is_replaced(web: Judge) -> None:
    def leave(connection: socket.socket) -> bool:
        connection.sendall(response(200, encoded(web.brain.answer("ListPersonas", {}, {}))))
        return False

    web.server.acts.append(leave)
    web.personas()
    web.server.wait_open(0)
    check(web)
    assert web.server.connections == 2


def test_a_connection_that_closes_under_a_request_is_replaced_once(web: Judge) -> None:
    check(web)
    web.server.acts.append(b"")
    check(web)
    assert web.server.connections == 2
    # A new connection that closes too is no accident: it is a failed try.
    web.server.acts.extend([b"", b"", None])
    check(web)


def test_an_answer_that_breaks_off_is_tried_again(web: Judge) -> None:
    whole = response(200, encoded({"request_id": "?", "verdict": {}}))
    web.server.acts.extend([whole[:-5], whole[:20]])
    check(web)
    assert web.server.connections == 3


def test_bytes_that_nobody_asked_for_are_never_an_answer(web: Judge) -> None:
    sent = threading.Event()

    def twice(connection: socket.socket) -> bool:
        one = response(200, encoded({"personas": []}))
        connection.sendall(one)
        connection.sendall(response(408, b""))
        sent.set()
        return True

    web.server.acts.append(twice)
    assert web.personas() == []
    assert sent.wait(30)
    check(web)
    assert web.server.connections == 2


def test_a_late_answer_reaches_nobody(web: Judge) -> None:
    web.brain.gate = threading.Event()
    with pytest.raises(DeadlineExceededError):
        web.score("slow", persona_id="host", timeout=0.2)
    web.brain.gate.set()
    for index in range(5):
        check(web, str(index))
    assert web.server.connections == 2


def test_an_answer_that_drips_is_cut_off_by_the_deadline(web: Judge) -> None:
    over = threading.Event()

    def drip(connection: socket.socket) -> bool:
        for byte in response(200, encoded({"personas": []}), more="x: y\r\n" * 500):
            connection.sendall(bytes([byte]))
            if over.wait(0.02):
                break
        return False

    web.server.acts.append(drip)
    with pytest.raises(DeadlineExceededError):
        web.personas(timeout=0.5)
    over.set()


def test_an_early_refusal_of_a_large_request_is_read(http: HttpServer) -> None:
    """The server answers 413 from the head alone and closes, while the client still sends."""
    reply = response(
        413, encoded({"error": {"code": "OUT_OF_RANGE", "message": "too large"}}), more="connection: close\r\n"
    )

    def serve() -> None:
        connection, _ = listener.accept()
        with connection:
            connection.recv(1000)
            connection.sendall(reply)
            connection.shutdown(socket.SHUT_WR)
            while connection.recv(1 << 20):
                pass

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve)
        thread.start()
        judge = Client(f"http://127.0.0.1:{listener.getsockname()[1]}")
        with pytest.raises(RequestTooLargeError):
            judge.score("x" * (8 << 20), persona_id="host")
        thread.join()


def test_the_server_is_told_what_remains(web: Judge) -> None:
    web.brain.faults.append(Fault("RESOURCE_EXHAUSTED", retry_after_ms=100))
    web.score("x", persona_id="host", timeout=20)
    first, second = (int(headers["x-timeout-ms"]) for _, _, headers in web.brain.requests)
    assert 20_000 >= first >= second + 100


def test_what_is_not_json_is_refused(web: Judge) -> None:
    for body in (b"", b"[]", b"{", b'{"request_id": NaN}', b"\xff", b'"text"'):
        web.server.acts.append(response(200, body))
        with pytest.raises(ProtocolError):
            web.score("x", persona_id="host")


def test_another_server_is_recognised(web: Judge) -> None:
    web.server.acts.append(response(404, b"<html>", "text/html"))
    with pytest.raises(NotFoundError, match="is it a prism-judge"):
        web.info()
    web.server.acts.append(b"\x00\x00\x18\x04\x00\x00\x00\x00\x00")
    with pytest.raises(ProtocolError, match="grpc://"):
        web.info()


def test_threads_share_a_client(http: HttpServer) -> None:
    failures: List[str] = []

    def work(name: int) -> None:
        for index in range(50):
            text = f"{name} {index}"
            if client.score(text, persona_id="host").s_prism != s_prism(ABOUT, text):
                failures.append(text)

    with Client(http.url) as client:
        threads = [threading.Thread(target=work, args=(name,)) for name in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert failures == []
    assert http.connections <= 8


def test_a_client_goes_through_pickle(web: Judge) -> None:
    web.close()
    web.client = pickle.loads(pickle.dumps(web.client))
    check(web)


def test_a_closed_client_opens_new_connections(web: Judge) -> None:
    check(web)
    web.close()
    web.server.wait_open(0)
    check(web)


def test_a_forgotten_client_leaves_no_connection(http: HttpServer) -> None:
    client = Client(http.url)
    client.info()
    del client
    gc.collect()
    http.wait_open(0)


def test_a_loop_for_each_step_leaves_no_connection(http: HttpServer) -> None:
    client = AsyncClient(http.url)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for index in range(20):
            verdict = asyncio.run(client.score(str(index), persona_id="host"))
            assert verdict.s_prism == s_prism(ABOUT, str(index))
        gc.collect()
    http.wait_open(0)
    assert http.connections == 20


def test_a_thousand_tasks_share_the_connections(http: HttpServer) -> None:
    texts = [str(index) for index in range(1000)]

    async def run() -> None:
        async with AsyncClient(http.url, concurrency=32) as client:
            verdicts = await asyncio.gather(*(client.score(text, persona_id="host") for text in texts))
        assert rewards(verdicts) == [s_prism(ABOUT, text) for text in texts]

    asyncio.run(run())
    assert http.connections <= 32


def test_a_cancelled_task_closes_its_connection(http: HttpServer) -> None:
    http.brain.gate = threading.Event()

    async def run() -> None:
        async with AsyncClient(http.url) as client:
            task = asyncio.ensure_future(client.score("slow", persona_id="host"))
            await asyncio.get_running_loop().run_in_executor(None, http.brain.arrived.acquire)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert http.brain.gate is not None
            http.brain.gate.set()
            assert (await client.score("x", persona_id="host")).s_prism == s_prism(ABOUT, "x")

    asyncio.run(run())
    assert http.connections == 2


def test_waiting_for_a_connection_counts_against_the_deadline(http: HttpServer) -> None:
    http.brain.gate = threading.Event()

    async def run() -> None:
        async with AsyncClient(http.url, concurrency=1) as client:
            first = asyncio.ensure_future(client.score("slow", persona_id="host"))
            await asyncio.get_running_loop().run_in_executor(None, http.brain.arrived.acquire)
            with pytest.raises(DeadlineExceededError):
                await client.score("x", persona_id="host", timeout=0.2)
            assert http.brain.gate is not None
            http.brain.gate.set()
            assert (await first).s_prism == s_prism(ABOUT, "slow")

    asyncio.run(run())


def test_loopback_ignores_the_proxy(web: Judge, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "https_proxy", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    check(web.remake())


def test_other_hosts_go_through_the_proxy(web: Judge, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("no_proxy", "NO_PROXY", "HTTP_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("http_proxy", f"http://user:p%40ss@127.0.0.1:{web.server.port}")
    web.close()
    web.client = type(web.client)("http://judge.example:1234")
    check(web)
    assert web.server.heads == ["POST http://judge.example:1234/v1/score HTTP/1.1"]
    ((_, _, headers),) = web.brain.requests
    assert headers["host"] == "judge.example:1234"
    # "user:p@ss"
    assert headers["proxy-authorization"] == "Basic dXNlcjpwQHNz"


def test_a_proxy_that_refuses_is_not_asked_again(web: Judge, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("no_proxy", "NO_PROXY", "HTTPS_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("https_proxy", f"http://127.0.0.1:{web.server.port}")
    web.close()
    web.client = type(web.client)("https://judge.example")
    web.server.acts.append(response(407, b""))
    with pytest.raises(UnavailableError, match="status 407"):
        web.info()
    assert web.server.heads == ["CONNECT judge.example:443 HTTP/1.1"]
