"""Bytes of requests and replies. Both transports carry bytes, and both replies are read from one JSON form.

The list of candidates is what is large in a request. Each is encoded once, so that its size is known where a group is
cut into messages, and the pieces are then joined.
"""

from __future__ import annotations

import json
from typing import Optional, Protocol, Sequence

from ._inputs import Json
from .errors import ProtocolError
from .types import Candidate

MESSAGE_BYTES = 16 << 20
"""What the server takes at most in one message."""


class Codec(Protocol):
    """How messages of one transport look. ``method`` is the name of the RPC."""

    def piece(self, method: str, candidate: Candidate) -> bytes:
        """One candidate, as it stands in the list of ``method``'s request."""

    def request(self, method: str, head: Json, pieces: Optional[Sequence[bytes]] = None) -> bytes:
        """A request: its fields, and its list of candidates if ``method`` has one."""

    def reply(self, method: str, body: bytes) -> Json:
        """A reply in its JSON form; ``ProtocolError`` if it is none."""


class JsonCodec:
    """The JSON mapping of the protobuf messages."""

    def piece(self, method: str, candidate: Candidate) -> bytes:
        return _encode({"id": candidate.id, "response": candidate.response}).encode()

    def request(self, method: str, head: Json, pieces: Optional[Sequence[bytes]] = None) -> bytes:
        body = _encode(head).encode()
        if pieces is None:
            return body
        return b'%b%b"candidates":[%b]}' % (body[:-1], b"," if head else b"", b",".join(pieces))

    def reply(self, method: str, body: bytes) -> Json:
        return read_json(body)


def read_json(body: bytes) -> Json:
    """A JSON object. NaN and infinities, which Python would take, are none."""
    try:
        value = json.loads(body, parse_constant=_no_number)
    except (ValueError, RecursionError) as error:
        raise ProtocolError(f"the answer is not JSON: {error}") from None
    if not isinstance(value, dict):
        raise ProtocolError(f"the answer is not a JSON object but a {type(value).__name__}")
    return value


def _no_number(name: str) -> float:
    raise ValueError(f"{name} is not a number")


_encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode
