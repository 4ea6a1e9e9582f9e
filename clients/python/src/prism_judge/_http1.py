"""HTTP/1.1 without input and output: bytes of requests, a parser of responses, and what statuses mean.

The blocking and the asyncio transport share it, so that both read alike and one deadline bounds every byte of either
(``http.client`` restarts its timeout at every read, and cannot be used with asyncio).
"""

from __future__ import annotations

import base64
import email.utils
import math
import re
import ssl
import time
from typing import Dict, List, Optional, Tuple

from ._codec import read_json
from ._config import Config, Proxy
from ._retry import NO_CONNECTION
from .errors import BY_CODE, ApiError, DeadlineExceededError, ProtocolError, UnavailableError

_HEAD_BYTES = 64 << 10
_BODY_BYTES = 256 << 20
_ROUTES = {
    "Score": "POST /v1/score",
    "ScoreGroup": "POST /v1/score_group",
    "ScoreDialogue": "POST /v1/score_dialogue",
    "Check": "POST /v1/check",
    "Rank": "POST /v1/rank",
    "GetJudgeInfo": "GET /v1/info",
    "ListPersonas": "GET /v1/personas",
}
_CODES = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    413: "OUT_OF_RANGE",
    429: "RESOURCE_EXHAUSTED",
    500: "INTERNAL",
    503: "UNAVAILABLE",
    504: "DEADLINE_EXCEEDED",
}


class Requests:
    """Makes the bytes of requests to one server."""

    def __init__(self, config: Config, proxy: Optional[Proxy]) -> None:
        # Through a proxy, plain HTTP names the whole URL; TLS goes through a tunnel and does not.
        through = proxy is not None and not config.tls
        self._before = f"http://{config.authority}{config.path}" if through else config.path
        self._authority = config.authority
        headers = [f"host: {config.authority}", "accept: application/json", "user-agent: prism-judge-python"]
        if config.api_key is not None:
            headers.append(f"authorization: Bearer {config.api_key}")
        self._proxy = _proxy_headers(proxy) if proxy is not None else []
        self._headers = "\r\n".join(headers + (self._proxy if through else []))

    def make(self, method: str, body: bytes, remaining: float) -> bytes:
        """A whole request for an RPC. The server is told how many seconds remain."""
        verb, path = _ROUTES[method].split(" ")
        lines = [f"{verb} {self._before}{path} HTTP/1.1", self._headers]
        lines.append(f"x-timeout-ms: {max(1, math.floor(remaining * 1000))}")
        if verb == "POST":
            lines += ["content-type: application/json", f"content-length: {len(body)}"]
        head = "\r\n".join(lines).encode() + b"\r\n\r\n"
        return head + body if verb == "POST" else head

    def connect(self) -> bytes:
        """Asks a proxy for a tunnel."""
        lines = [f"CONNECT {self._authority} HTTP/1.1", f"host: {self._authority}", *self._proxy]
        return "\r\n".join(lines).encode() + b"\r\n\r\n"


def _proxy_headers(proxy: Proxy) -> List[str]:
    if proxy.login is None:
        return []
    return ["proxy-authorization: Basic " + base64.b64encode(":".join(proxy.login).encode()).decode()]


class Response:
    """One response, fed with bytes as they come."""

    def __init__(self, *, tunnel: bool = False) -> None:
        self._tunnel = tunnel
        self._buffer = bytearray()
        self._parts: List[bytes] = []
        self._size = 0
        self._left: Optional[int] = None
        """Bytes of the body, or of its current chunk, that are still to come; ``None``: until the end."""
        self._chunked = False
        self._reading = self._read_head
        self.status = 0
        self.headers: Dict[str, str] = {}
        self.started = False
        """Whether anything has come."""
        self.done = False
        self.reusable = False
        """Whether the connection can carry another request."""

    @property
    def body(self) -> bytes:
        return b"".join(self._parts)

    def feed(self, data: bytes) -> None:
        """Takes what has come. ``ProtocolError`` if it is no HTTP."""
        self.started = True
        if self._left is not None and not self._chunked and not self._buffer and len(data) <= self._left:
            # The bulk of a body: no copy through the buffer.
            self._take(data)
            self._left -= len(data)
            if self._left == 0:
                self.done = True
            return
        self._buffer += data
        while not self.done and self._reading():
            pass
        if self.done and self._buffer:
            # Bytes that nobody has asked for: whose they are cannot be known.
            self.reusable = False

    def end(self) -> None:
        """The peer closed the connection. ``UnavailableError`` if that is too early."""
        if not self.done and self._reading == self._read_body and self._left is None:
            self.done = True
        if not self.done:
            raise unreached("the server closed the connection before its answer was complete")
        self.reusable = False

    def _read_head(self) -> bool:
        end = self._buffer.find(b"\r\n\r\n")
        if end < 0 or end > _HEAD_BYTES:
            if len(self._buffer) > _HEAD_BYTES:
                raise ProtocolError(f"the head of the answer has more than {_HEAD_BYTES} bytes")
            if not b"HTTP/1.".startswith(bytes(self._buffer[:7])):
                raise ProtocolError("the answer is not HTTP/1.1: is this the server's HTTP port? gRPC needs grpc://")
            return False
        lines = self._buffer[:end].decode("latin-1").split("\r\n")
        del self._buffer[: end + 4]
        version, _, rest = lines[0].partition(" ")
        if version not in ("HTTP/1.1", "HTTP/1.0") or not (rest[:3].isascii() and rest[:3].isdigit()):
            raise ProtocolError("the answer is not HTTP/1.1: is this the server's HTTP port? gRPC needs grpc://")
        self.status = int(rest[:3])
        self.headers = {}
        for line in lines[1:]:
            name, colon, value = line.partition(":")
            name = name.lower()
            if not colon or (name in ("content-length", "transfer-encoding") and name in self.headers):
                raise ProtocolError("the answer has a header that is wrong or stands twice")
            self.headers[name] = value.strip()
        if 100 <= self.status < 200:
            return True
        self._start_body(version)
        return True

    def _start_body(self, version: str) -> None:
        connection = self.headers.get("connection", "").lower()
        self.reusable = version == "HTTP/1.1" and "close" not in connection
        length = self.headers.get("content-length")
        encoding = self.headers.get("transfer-encoding")
        if self.status in (204, 304) or (self._tunnel and self.status == 200):
            self._left, self.done = 0, True
        elif encoding is not None:
            if encoding.lower() != "chunked" or length is not None:
                raise ProtocolError("the answer has a transfer-encoding that is not understood")
            self._chunked, self._left, self._reading = True, 0, self._read_chunk
        elif length is not None:
            if not (length.isascii() and length.isdigit() and len(length) < 20):
                raise ProtocolError("the answer has a content-length that is no number")
            self._left, self._reading = int(length), self._read_body
            if self._left > _BODY_BYTES:
                raise ProtocolError(f"the answer has more than {_BODY_BYTES} bytes")
            self.done = self._left == 0
        else:
            self._reading, self.reusable = self._read_body, False

    def _read_body(self) -> bool:
        if not self._buffer:
            return False
        take = len(self._buffer) if self._left is None else min(self._left, len(self._buffer))
        self._take(bytes(self._buffer[:take]))
        del self._buffer[:take]
        if self._left is not None:
            self._left -= take
            if self._left == 0:
                self._body_ended()
        return True

    def _body_ended(self) -> None:
        if self._chunked:
            self._reading = self._read_chunk_end
        else:
            self.done = True

    def _read_chunk(self) -> bool:
        line = self._line()
        if line is None:
            return False
        digits = line.split(b";")[0].strip()
        if not re.fullmatch(rb"[0-9A-Fa-f]{1,8}", digits):
            raise ProtocolError("the answer has a chunk whose length is no number")
        self._left = int(digits, 16)
        self._reading = self._read_body if self._left else self._read_trailer
        return True

    def _read_chunk_end(self) -> bool:
        line = self._line()
        if line is None:
            return False
        if line:
            raise ProtocolError("the answer has a chunk that is longer than it says")
        self._reading = self._read_chunk
        return True

    def _read_trailer(self) -> bool:
        line = self._line()
        if line is None:
            return False
        self.done = not line
        return True

    def _line(self) -> Optional[bytes]:
        end = self._buffer.find(b"\r\n")
        if end < 0:
            if len(self._buffer) > _HEAD_BYTES:
                raise ProtocolError(f"the answer has a line of more than {_HEAD_BYTES} bytes")
            return None
        line = bytes(self._buffer[:end])
        del self._buffer[: end + 2]
        return line

    def _take(self, data: bytes) -> None:
        self._size += len(data)
        if self._size > _BODY_BYTES:
            raise ProtocolError(f"the answer has more than {_BODY_BYTES} bytes")
        self._parts.append(data)


def unwrap(response: Response, url: str) -> bytes:
    """The body of a good response; an ``ApiError`` for any other."""
    if response.status == 200:
        return response.body
    if 300 <= response.status < 400:
        raise ProtocolError(f"{url} answers with a redirect ({response.status}), which is not followed")
    try:
        error = read_json(response.body).get("error")
    except ProtocolError:
        error = None
    told = error if isinstance(error, dict) else {}
    code = told.get("code")
    if not isinstance(code, str) or not code:
        code = _CODES.get(response.status, "UNKNOWN")
    message = told.get("message")
    if not isinstance(message, str) or not message:
        message = f"{url} answers with status {response.status} and not in the judge's own form: is it a prism-judge?"
    retry = _milliseconds(told.get("retry_after_ms"))
    raise BY_CODE.get(code, ApiError)(
        message,
        code=code,
        fields=_fields(told.get("fields")),
        reason=str(told.get("reason") or ""),
        retry_after_ms=_retry_after(response.headers.get("retry-after")) if retry is None else retry,
        retryable=response.status in (429, 503),
    )


def unreached(message: str) -> UnavailableError:
    """No connection, or one that broke."""
    return UnavailableError(message, reason=NO_CONNECTION)


def broken(error: OSError, deadline: float, what: str) -> ApiError:
    """What a failure of the network means for the call."""
    if isinstance(error, ApiError):
        return error
    if time.monotonic() >= deadline:
        return DeadlineExceededError(f"the timeout of the call passed: {what}")
    if isinstance(error, ssl.SSLError) and not isinstance(error, ssl.SSLEOFError):
        # A refused certificate will be refused again.
        return UnavailableError(f"{what}: {error}", reason="TLS", retryable=False)
    return unreached(f"{what}: {error}")


def check_tunnel(response: Response) -> None:
    """The proxy's answer to ``Requests.connect``."""
    if response.status != 200:
        raise UnavailableError(f"the proxy answers with status {response.status}", reason="PROXY", retryable=False)


def _fields(value: object) -> List[Tuple[str, str]]:
    listed = value if isinstance(value, list) else []
    return [(str(one.get("field", "")), str(one.get("description", ""))) for one in listed if isinstance(one, dict)]


def _milliseconds(value: object) -> Optional[int]:
    """A whole number of milliseconds; 64-bit ones may come as text."""
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 16:
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def _retry_after(value: Optional[str]) -> Optional[int]:
    """The header, in milliseconds: seconds or a date."""
    if value is None:
        return None
    if value.isascii() and value.isdigit() and len(value) < 12:
        return int(value) * 1000
    try:
        return max(0, round((email.utils.parsedate_to_datetime(value).timestamp() - time.time()) * 1000))
    except (ValueError, TypeError, OverflowError):
        return None
