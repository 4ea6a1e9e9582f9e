"""HTTP for asyncio, without threads: a cancelled call closes its connection, so that the server stops.

Connections belong to an event loop; each loop has a pool of its own.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
import time
from typing import List, Optional, cast

from ._config import Config
from ._http1 import Requests, Response, broken, check_tunnel, unwrap
from ._loops import PerLoop
from .errors import DeadlineExceededError, PrismJudgeError


class AsyncHttpTransport:
    """Calls over HTTP/1.1 with keep-alive."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._proxy = config.proxy()
        self._requests = Requests(config, self._proxy)
        self._context = config.ssl_context() if config.tls else None
        self._pools = PerLoop(lambda: _Pool(config.concurrency), _Pool.close)

    async def call(self, method: str, body: bytes, deadline: float) -> bytes:
        """One try of one call. Raises an ``ApiError`` or a ``ProtocolError``."""
        exchange = self._exchange(self._pools.get(), method, body, deadline)
        try:
            response = await asyncio.wait_for(exchange, max(0.0, deadline - time.monotonic()))
        except PrismJudgeError:
            raise
        except asyncio.TimeoutError:
            raise DeadlineExceededError("the timeout of the call passed") from None
        return unwrap(response, self._config.url)

    async def close(self) -> None:
        await self._pools.close()

    async def _exchange(self, pool: _Pool, method: str, body: bytes, deadline: float) -> Response:
        async with pool.places:
            while True:
                connection = pool.take()
                used = connection is not None
                if connection is None:
                    connection = await self._connect(deadline)
                response = Response()
                try:
                    request = self._requests.make(method, body, deadline - time.monotonic())
                    await connection.exchange(request, response)
                except OSError as error:
                    # The server may close an idle connection at the moment at which it is used again.
                    if used and not response.started:
                        continue
                    raise broken(error, deadline, f"the connection to {self._config.url} broke") from None
                finally:
                    if response.done and response.reusable and connection.open:
                        pool.idle.append(connection)
                    else:
                        connection.abort()
                return response

    async def _connect(self, deadline: float) -> _Connection:
        """A new connection, through the proxy if there is one."""
        config, loop = self._config, asyncio.get_running_loop()
        host, port = (config.host, config.port) if self._proxy is None else (self._proxy.host, self._proxy.port)
        tunnel = self._context is not None and self._proxy is not None
        connection = None
        try:
            direct = None if tunnel else self._context
            _, connection = await loop.create_connection(_Connection, host, port, ssl=direct)
            if tunnel and self._context is not None:
                response = Response(tunnel=True)
                await connection.exchange(self._requests.connect(), response)
                check_tunnel(response)
                await connection.handshake(self._context, config.host)
        except BaseException as error:
            if connection is not None:
                connection.abort()
            if isinstance(error, OSError):
                raise broken(error, deadline, f"no connection to {config.url}") from None
            raise
        return connection


class _Pool:
    """The connections of one event loop."""

    def __init__(self, limit: int) -> None:
        self.idle: List[_Connection] = []
        self.places = asyncio.Semaphore(limit)

    def take(self) -> Optional[_Connection]:
        while self.idle:
            connection = self.idle.pop()
            if connection.open:
                return connection
        return None

    async def close(self) -> None:
        while self.idle:
            self.idle.pop().abort()


class _Connection(asyncio.Protocol):
    """One connection, which carries one exchange at a time."""

    def __init__(self) -> None:
        self.open = False
        self._transport: Optional[asyncio.Transport] = None
        self._response: Optional[Response] = None
        self._waiter: Optional[asyncio.Future[None]] = None

    async def exchange(self, request: bytes, response: Response) -> None:
        """Sends a request and waits for the response to it."""
        if self._transport is None or not self.open:
            raise ConnectionResetError("it is closed")
        self._response, self._waiter = response, asyncio.get_running_loop().create_future()
        try:
            self._transport.write(request)
            await self._waiter
        finally:
            self._response = self._waiter = None

    async def handshake(self, context: ssl.SSLContext, host: str) -> None:
        """TLS over a connection that is there."""
        loop = asyncio.get_running_loop()
        assert self._transport is not None
        transport = await loop.start_tls(self._transport, self, context, server_hostname=host)
        self._transport = cast(asyncio.Transport, transport)

    def abort(self) -> None:
        self.open = False
        if self._transport is not None:
            self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport, self.open = cast(asyncio.Transport, transport), True
        sock = transport.get_extra_info("socket")
        if sock is not None:
            # A long judgement is silent: whatever lies between must not take the connection for dead.
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)

    def data_received(self, data: bytes) -> None:
        if self._response is None or self._response.done:
            # Nobody asked for this: whose it is cannot be known.
            self.abort()
            return
        try:
            self._response.feed(data)
        except PrismJudgeError as error:
            self._finish(error)
        if self._response is not None and self._response.done:
            self._finish(None)

    def connection_lost(self, error: Optional[Exception]) -> None:
        self.open = False
        if self._response is None or self._response.done:
            return
        if error is not None or not self._response.started:
            self._finish(error or ConnectionResetError("the server closed it without an answer"))
            return
        try:
            self._response.end()
            self._finish(None)
        except PrismJudgeError as early:
            self._finish(early)

    def _finish(self, error: Optional[Exception]) -> None:
        if self._waiter is None or self._waiter.done():
            return
        if error is None:
            self._waiter.set_result(None)
        else:
            self._waiter.set_exception(error)
