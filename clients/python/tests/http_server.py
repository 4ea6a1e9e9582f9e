"""``Brain`` behind HTTP/1.1, byte by byte: tests can put anything on the wire in place of an answer."""

from __future__ import annotations

import collections
import contextlib
import json
import socket
import ssl
import threading
from dataclasses import dataclass, field
from typing import BinaryIO, Callable, Deque, Dict, List, Optional, Union

from brain import STATUSES, Brain, Fault, Json

ROUTES = {
    "POST /v1/score": "Score",
    "POST /v1/score_group": "ScoreGroup",
    "POST /v1/score_dialogue": "ScoreDialogue",
    "POST /v1/check": "Check",
    "POST /v1/rank": "Rank",
    "GET /v1/info": "GetJudgeInfo",
    "GET /v1/personas": "ListPersonas",
}
Act = Callable[[socket.socket], bool]
"""Does something with a connection in place of an answer; says whether to keep it."""


@dataclass
class HttpServer:
    brain: Brain = field(default_factory=Brain)
    context: Optional[ssl.SSLContext] = None
    acts: Deque[Union[bytes, Act, None]] = field(default_factory=collections.deque)
    """What the next requests get in place of an answer: these bytes and then the end, or an act."""
    connections: int = 0
    heads: List[str] = field(default_factory=list)
    """The request line of every request."""
    open: int = 0
    changed: threading.Condition = field(default_factory=threading.Condition)

    def __post_init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=512)
        self.port: int = self._listener.getsockname()[1]
        self._sockets: List[socket.socket] = []
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http{'' if self.context is None else 's'}://127.0.0.1:{self.port}"

    def close(self) -> None:
        """Ends it; may be called again."""
        with contextlib.suppress(OSError):
            # `close` alone does not wake a thread that waits in `accept`.
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join()
        for one in self._sockets:
            one.close()

    def wait_open(self, count: int) -> None:
        """Waits until so many connections are open."""
        with self.changed:
            assert self.changed.wait_for(lambda: self.open == count, 30), self.open

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self._sockets.append(connection)
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with self.changed:
            self.connections += 1
            self.open += 1
            self.changed.notify_all()
        try:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if self.context is not None:
                connection = self.context.wrap_socket(connection, server_side=True)
                self._sockets.append(connection)
            with connection.makefile("rb") as reader:
                while self._request(connection, reader):
                    pass
        except OSError:
            pass
        finally:
            connection.close()
            with self.changed:
                self.open -= 1
                self.changed.notify_all()

    def _request(self, connection: socket.socket, reader: BinaryIO) -> bool:
        line = reader.readline().decode()
        if not line:
            return False
        self.heads.append(line.strip())
        headers: Dict[str, str] = {}
        while True:
            header = reader.readline().decode().strip()
            if not header:
                break
            name, _, value = header.partition(":")
            headers[name.lower()] = value.strip()
        body = reader.read(int(headers.get("content-length", 0)))
        act = self.acts.popleft() if self.acts else None
        if isinstance(act, bytes):
            connection.sendall(act)
            return False
        if act is not None:
            return act(connection)
        verb, target, _ = line.split(" ")
        method = ROUTES.get(f"{verb} {target[target.index('/v1/') :]}") if "/v1/" in target else None
        connection.sendall(self.respond(method, body, headers))
        return True

    def respond(self, method: Optional[str], body: bytes, headers: Dict[str, str]) -> bytes:
        if method is None:
            return response(404, b"no such page", "text/plain")
        try:
            message = json.loads(body) if body else {}
            return response(200, encoded(self.brain.answer(method, message, headers)))
        except Fault as fault:
            error: Json = {
                "code": fault.code,
                "message": fault.message,
                "fields": [{"field": name, "description": what} for name, what in fault.fields],
                "reason": fault.reason,
            }
            more = ""
            if fault.retry_after_ms is not None:
                error["retry_after_ms"] = fault.retry_after_ms
                more = f"retry-after: {-(-fault.retry_after_ms // 1000)}\r\n"
            return response(STATUSES[fault.code][1], encoded({"error": error}), more=more)


def encoded(value: object) -> bytes:
    return json.dumps(value).encode()


def response(status: int, body: bytes, kind: str = "application/json", more: str = "") -> bytes:
    head = f"HTTP/1.1 {status} So\r\ncontent-type: {kind}\r\ncontent-length: {len(body)}\r\n{more}\r\n"
    return head.encode() + body
