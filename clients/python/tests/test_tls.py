"""TLS over both transports, with certificates made here."""

from __future__ import annotations

import asyncio
import socket
import ssl
import threading
from pathlib import Path
from typing import Any, Iterator, List

import pytest
import trustme
from conftest import KINDS, Judge
from http_server import HttpServer

from prism_judge import AsyncClient, Client, UnavailableError

AUTHORITY = trustme.CA()
SERVER = AUTHORITY.issue_cert("127.0.0.1", "judge.example")


@pytest.fixture(params=KINDS)
def secure(request: pytest.FixtureRequest) -> Iterator[Judge]:
    transport, kind = request.param.split("-")
    if transport == "grpc":
        grpc = pytest.importorskip("grpc")
        from grpc_server import GrpcServer

        pair = (SERVER.private_key_pem.bytes(), b"".join(one.bytes() for one in SERVER.cert_chain_pems))
        root = AUTHORITY.cert_pem.bytes()
        server: Any = GrpcServer(credentials=grpc.ssl_server_credentials([pair], root, True))
    else:
        server = HttpServer(context=server_context())
    loop = asyncio.new_event_loop()
    judge = Judge(None, server.brain, loop, server, transport)  # type: ignore[arg-type]
    judge.kind = Client if kind == "blocking" else AsyncClient  # type: ignore[attr-defined]
    yield judge
    if judge.client is not None:
        judge.close()
    loop.run_until_complete(loop.shutdown_asyncgens())
    loop.close()
    server.close()


def server_context() -> ssl.SSLContext:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.verify_mode = ssl.CERT_REQUIRED
    AUTHORITY.configure_trust(context)
    SERVER.configure_cert(context)
    return context


@pytest.fixture
def files(tmp_path: Path) -> Any:
    """Paths of the authority and of a client's certificate and key."""
    client = AUTHORITY.issue_cert("client")
    AUTHORITY.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    client.private_key_pem.write_to_path(str(tmp_path / "key.pem"))
    for one in client.cert_chain_pems:
        one.write_to_path(str(tmp_path / "cert.pem"), append=True)
    return {f"{name}_file": str(tmp_path / f"{name}.pem") for name in ("ca", "cert", "key")}


def test_a_certificate_of_a_private_authority_is_trusted_when_told(secure: Judge, files: Any) -> None:
    secure.client = secure.kind(secure.server.url, **files)
    for _ in range(3):
        assert secure.info().model == "hashes"


def test_a_certificate_that_nobody_vouches_for_is_refused(secure: Judge, files: Any, tmp_path: Path) -> None:
    other = trustme.CA()
    other.cert_pem.write_to_path(str(tmp_path / "other.pem"))
    secure.client = secure.kind(secure.server.url, **{**files, "ca_file": str(tmp_path / "other.pem")})
    with pytest.raises(UnavailableError) as caught:
        secure.info(timeout=20)
    if secure.transport == "http":
        assert (caught.value.reason, caught.value.attempts, caught.value.retryable) == ("TLS", 1, False)
    assert secure.brain.requests == []


@pytest.mark.parametrize("kind", [Client, AsyncClient])
def test_tls_goes_through_the_tunnel_of_a_proxy(kind: Any, files: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("no_proxy", "NO_PROXY", "HTTPS_PROXY"):
        monkeypatch.delenv(name, raising=False)
    server = HttpServer(context=server_context())
    asked: List[bytes] = []

    def tunnel() -> None:
        connection, _ = proxy.accept()
        with (
            connection,
            connection.makefile("rb") as reader,
            socket.create_connection(("127.0.0.1", server.port)) as far,
        ):
            asked.append(reader.readline())
            while reader.readline().strip():
                pass
            connection.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
            back = threading.Thread(target=pump, args=(far, connection))
            back.start()
            pump(connection, far)
            back.join()

    with socket.create_server(("127.0.0.1", 0)) as proxy:
        monkeypatch.setenv("https_proxy", f"http://127.0.0.1:{proxy.getsockname()[1]}")
        thread = threading.Thread(target=tunnel)
        thread.start()

        async def ask() -> None:
            async with AsyncClient("https://judge.example", **files) as client:
                assert (await client.info()).model == "hashes"

        if kind is AsyncClient:
            asyncio.run(ask())
        else:
            with Client("https://judge.example", **files) as client:
                assert client.info().model == "hashes"
        thread.join()
    assert asked == [b"CONNECT judge.example:443 HTTP/1.1\r\n"]
    server.close()


def pump(source: socket.socket, target: socket.socket) -> None:
    try:
        while True:
            data = source.recv(1 << 16)
            if not data:
                break
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)
    except OSError:
        pass
