"""HTTP for threads.

A connection is used by one call at a time and lies in the pool of its process between calls. After a fork the child
closes its copies of all connections, also those of calls under way in other threads, and starts with an empty pool: no
connection is ever used by two processes, so that no answer can reach the wrong one.
"""

from __future__ import annotations

import collections
import contextlib
import os
import select
import socket
import ssl
import time
import weakref
from typing import Deque, Optional, Set

from ._config import Config
from ._http1 import Requests, Response, broken, check_tunnel, unwrap

_RECEIVE_BYTES = 1 << 18


class HttpTransport:
    """Calls over HTTP/1.1 with keep-alive."""

    def __init__(self, config: Config) -> None:
        # Appending and popping are atomic: there is no lock that a fork could leave locked.
        self._idle: Deque[_Connection] = collections.deque()
        self._open: Set[_Connection] = set()
        self._config = config
        self._proxy = config.proxy()
        self._requests = Requests(config, self._proxy)
        self._context = config.ssl_context() if config.tls else None
        _TRANSPORTS.add(self)

    def call(self, method: str, body: bytes, deadline: float) -> bytes:
        """One try of one call. Raises an ``ApiError`` or a ``ProtocolError``."""
        while True:
            connection = self._take()
            used = connection is not None
            if connection is None:
                connection = self._connect(deadline)
            request = self._requests.make(method, body, deadline - time.monotonic())
            response = Response()
            try:
                connection.exchange(request, response, deadline)
            except OSError as error:
                # The server may close an idle connection at the moment at which it is used again.
                if used and not response.started and time.monotonic() < deadline:
                    continue
                raise broken(error, deadline, f"the connection to {self._config.url} broke") from None
            finally:
                if response.done and response.reusable:
                    self._idle.append(connection)
                else:
                    self._discard(connection)
            return unwrap(response, self._config.url)

    def close(self) -> None:
        with contextlib.suppress(IndexError):
            while True:
                self._discard(self._idle.pop())

    def __del__(self) -> None:
        self.close()

    def _take(self) -> Optional[_Connection]:
        while True:
            try:
                connection = self._idle.pop()
            except IndexError:
                return None
            if connection.silent():
                return connection
            self._discard(connection)

    def _discard(self, connection: _Connection) -> None:
        self._open.discard(connection)
        connection.close()

    def _forget(self) -> None:
        """In the child of a fork."""
        for connection in self._open:
            connection.close()
        self._open.clear()
        self._idle.clear()

    def _connect(self, deadline: float) -> _Connection:
        """A new connection, through the proxy if there is one."""
        config = self._config
        host, port = (config.host, config.port) if self._proxy is None else (self._proxy.host, self._proxy.port)
        connection = None
        try:
            connection = _Connection(_socket(host, port, deadline))
            self._open.add(connection)
            if self._context is not None:
                if self._proxy is not None:
                    tunnel = Response(tunnel=True)
                    connection.exchange(self._requests.connect(), tunnel, deadline)
                    check_tunnel(tunnel)
                connection.handshake(self._context, config.host, deadline)
        except BaseException as error:
            if connection is not None:
                self._discard(connection)
            if isinstance(error, OSError):
                raise broken(error, deadline, f"no connection to {config.url}") from None
            raise
        return connection


class _Connection:
    """A socket and what is done with it."""

    def __init__(self, sock: socket.socket) -> None:
        self._socket = sock

    def handshake(self, context: ssl.SSLContext, host: str, deadline: float) -> None:
        self._socket.settimeout(_remaining(deadline))
        self._socket = context.wrap_socket(self._socket, server_hostname=host)

    def exchange(self, request: bytes, response: Response, deadline: float) -> None:
        """Sends a request and reads the response to it."""
        refused = self._send(request, deadline)
        while not response.done:
            self._socket.settimeout(_remaining(deadline))
            try:
                data = self._socket.recv(_RECEIVE_BYTES)
            except (ConnectionError, ssl.SSLError) as error:
                raise refused or error from None
            if data:
                response.feed(data)
            elif response.started:
                response.end()
            else:
                raise refused or ConnectionResetError("the server closed it without an answer")
        if refused is not None:
            response.reusable = False

    def _send(self, request: bytes, deadline: float) -> Optional[OSError]:
        """Sends it. A server may answer and close before it has read everything: the answer is read all the same."""
        rest = memoryview(request)
        while rest:
            self._socket.settimeout(_remaining(deadline))
            try:
                rest = rest[self._socket.send(rest) :]
            except (ConnectionError, ssl.SSLError) as error:
                return error
        return None

    def silent(self) -> bool:
        """Whether nothing has come since the last response: neither the end nor bytes that nobody asked for."""
        poll = getattr(select, "poll", None)
        if poll is None:  # Windows
            return not select.select([self._socket], [], [], 0)[0]
        poller = poll()
        poller.register(self._socket, select.POLLIN)
        return not poller.poll(0)

    def close(self) -> None:
        self._socket.close()


def _socket(host: str, port: int, deadline: float) -> socket.socket:
    """The first address of the host that answers, all inside the deadline."""
    failure: OSError = OSError(f"{host} has no address")
    for family, kind, protocol, _, address in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM):
        sock = socket.socket(family, kind, protocol)
        try:
            sock.settimeout(_remaining(deadline))
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            # A long judgement is silent: whatever lies between must not take the connection for dead.
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            sock.connect(address)
            return sock
        except OSError as error:
            sock.close()
            failure = error
    raise failure


def _remaining(deadline: float) -> float:
    remaining = deadline - time.monotonic()
    if remaining <= 0:
        raise socket.timeout("timed out")
    return remaining


_TRANSPORTS: weakref.WeakSet[HttpTransport] = weakref.WeakSet()


def _after_fork() -> None:
    for transport in list(_TRANSPORTS):
        transport._forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
