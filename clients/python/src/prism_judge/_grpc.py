"""gRPC, with the extra ``[grpc]``. Messages go through the JSON form that HTTP has, so that both give the same results.

gRPC does not survive a fork: its threads are gone in the child, and a call there hangs even on a new channel (seen with
grpcio 1.62, 1.76, 1.78 and 1.85). A child of a process that has used gRPC is told so at once.
"""

from __future__ import annotations

import os
import time
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple, Type

import grpc
import grpc.aio
from google.protobuf import json_format
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import DecodeError, Message

from ._codec import MESSAGE_BYTES
from ._config import Config, is_loopback
from ._generated import judge_pb2, status_pb2
from ._inputs import Json
from ._loops import PerLoop
from ._retry import NO_CONNECTION
from .errors import BY_CODE, ApiError, PrismJudgeError, ProtocolError
from .types import Candidate

_SERVICE = "/prism.judge.v1.JudgeService/"
_REPLY_BYTES = 64 << 20


class ProtoCodec:
    """Serialized protobuf messages."""

    def piece(self, method: str, candidate: Candidate) -> bytes:
        # Serialized messages that stand behind one another are one message: their lists are joined.
        message = judge_pb2.Candidate(id=candidate.id, response=candidate.response)
        return _type(method, "Request")(candidates=[message]).SerializeToString()

    def request(self, method: str, head: Json, pieces: Optional[Sequence[bytes]] = None) -> bytes:
        message = _type(method, "Request")()
        json_format.ParseDict(head, message)
        return b"".join([message.SerializeToString(), *(pieces or ())])

    def reply(self, method: str, body: bytes) -> Json:
        message = _type(method, "Response")()
        try:
            message.ParseFromString(body)
        except DecodeError as error:
            raise ProtocolError(f"the answer is not a {type(message).__name__}: {error}") from None
        return to_json(message)


class GrpcTransport:
    """Calls over one channel."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._channel: Optional[grpc.Channel] = None

    def call(self, method: str, body: bytes, deadline: float) -> bytes:
        """One try of one call. Raises an ``ApiError``."""
        _refuse_after_fork()
        channel = self._channel
        if channel is None:
            # Two threads may both open one here: a channel that nobody keeps closes by itself.
            channel = self._channel = _open(self._config, grpc.insecure_channel, grpc.secure_channel)
        try:
            call = channel.unary_unary(_SERVICE + method, bytes, bytes)
            return call(body, timeout=max(0.001, deadline - time.monotonic()), metadata=_metadata(self._config))
        except grpc.RpcError as error:
            raise _failure(error, self._config.url) from None

    def close(self) -> None:
        if self._channel is not None and not _forked():
            self._channel.close()
        self._channel = None


class AsyncGrpcTransport:
    """The same for asyncio, with a channel for each event loop."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._channels: PerLoop[grpc.aio.Channel] = PerLoop(self._make, _close)

    async def call(self, method: str, body: bytes, deadline: float) -> bytes:
        """One try of one call. Raises an ``ApiError``."""
        _refuse_after_fork()
        try:
            call = self._channels.get().unary_unary(_SERVICE + method, bytes, bytes)
            return await call(body, timeout=max(0.001, deadline - time.monotonic()), metadata=_metadata(self._config))
        except grpc.aio.AioRpcError as error:
            raise _failure(error, self._config.url) from None

    async def close(self) -> None:
        await self._channels.close()

    def _make(self) -> grpc.aio.Channel:
        channel: grpc.aio.Channel = _open(self._config, grpc.aio.insecure_channel, grpc.aio.secure_channel)
        return channel


async def _close(channel: grpc.aio.Channel) -> None:
    if not _forked():
        await channel.close()


_user: Optional[int] = None
"""The process that uses gRPC."""


def _forked() -> bool:
    return _user is not None and _user != os.getpid()


def _refuse_after_fork() -> None:
    global _user
    if _forked():
        raise PrismJudgeError(
            "this process was forked from one that had used gRPC, which would hang here: "
            "use http:// or start processes by spawn"
        )
    _user = os.getpid()


def _open(config: Config, insecure: Callable[..., object], secure: Callable[..., object]) -> Any:
    options = [
        ("grpc.max_send_message_length", MESSAGE_BYTES),
        ("grpc.max_receive_message_length", _REPLY_BYTES),
        # The client retries by itself, in the deadline of the whole call.
        ("grpc.enable_retries", 0),
        ("grpc.keepalive_time_ms", 60_000),
        ("grpc.keepalive_timeout_ms", 20_000),
        # A server that comes back is found soon.
        ("grpc.initial_reconnect_backoff_ms", 100),
        ("grpc.min_reconnect_backoff_ms", 1_000),
        ("grpc.max_reconnect_backoff_ms", 2_000),
        ("grpc.primary_user_agent", "prism-judge-python"),
    ]
    if is_loopback(config.host):
        options.append(("grpc.enable_http_proxy", 0))
    if not config.tls:
        return insecure(config.authority, options=options)
    files = (config.ca_file, config.key_file or config.cert_file, config.cert_file)
    ca, key, chain = (_content(file) for file in files)
    return secure(config.authority, grpc.ssl_channel_credentials(ca, key, chain), options=options)


def _content(file: Optional[str]) -> Optional[bytes]:
    if file is None:
        return None
    with open(file, "rb") as opened:
        return opened.read()


def _metadata(config: Config) -> Tuple[Tuple[str, str], ...]:
    return () if config.api_key is None else (("authorization", f"Bearer {config.api_key}"),)


def _failure(error: Any, url: str) -> ApiError:
    """What a status says, with its details."""
    code = error.code().name
    trailers = {str(key): value for key, value in error.trailing_metadata() or ()}
    status = status_pb2.Status()
    details = trailers.get("grpc-status-details-bin", b"")
    try:
        status.ParseFromString(details if isinstance(details, bytes) else b"")
    except DecodeError:
        status.Clear()
    fields: List[Tuple[str, str]] = []
    reason = ""
    for detail in status.details:
        kind = detail.type_url.rpartition("/")[2]
        if kind == "google.rpc.BadRequest":
            bad = status_pb2.BadRequest.FromString(detail.value)
            fields = [(one.field, one.description) for one in bad.field_violations]
        elif kind == "google.rpc.ErrorInfo":
            reason = status_pb2.ErrorInfo.FromString(detail.value).reason
    pushback = trailers.get("grpc-retry-pushback-ms")
    refused = pushback is not None and not str(pushback).isdigit()
    message = error.details() or "no details"
    if code == "UNAVAILABLE" and not reason:
        # No word from a judge: gRPC itself, or something between, could not reach one.
        reason, message = NO_CONNECTION, f"no connection to {url}: {message}"
    return BY_CODE.get(code, ApiError)(
        message,
        code=code,
        fields=fields,
        reason=reason,
        retry_after_ms=int(str(pushback)) if pushback is not None and not refused else None,
        # A pause that is no number says: not again (gRFC A6).
        retryable=False if refused else None,
    )


def _type(method: str, end: str) -> Type[Message]:
    kind: Type[Message] = getattr(judge_pb2, method + end)
    return kind


_Reader = Callable[[object], object]
_Fields = List[Tuple[str, bool, bool, _Reader]]
_FIELDS: Dict[str, _Fields] = {}


def to_json(message: Message) -> Json:
    """A message in its JSON form, every field emitted. (``json_format`` takes several times as long, and its switch for
    this has a different name in each version of protobuf.)"""
    found: Json = {}
    for name, repeated, presence, read in _fields(message.DESCRIPTOR):
        if repeated:
            found[name] = [read(value) for value in getattr(message, name)]
        elif not presence or message.HasField(name):
            found[name] = read(getattr(message, name))
    return found


def _fields(kind: Any) -> _Fields:
    """Name, whether it is a list, whether it may be missing, and how it is read, for each field of a message."""
    fields = _FIELDS.get(kind.full_name)
    if fields is None:
        fields = [(one.name, _repeated(one), one.has_presence, _reader(one)) for one in kind.fields]
        _FIELDS[kind.full_name] = fields
    return fields


def _repeated(field: FieldDescriptor) -> bool:
    # protobuf 4 and 5 have no `is_repeated`, protobuf 7 has nothing else.
    repeated = getattr(field, "is_repeated", None)
    return bool(getattr(field, "label", None) == FieldDescriptor.LABEL_REPEATED if repeated is None else repeated)


def _reader(field: FieldDescriptor) -> _Reader:
    if field.message_type is not None:
        return to_json  # type: ignore[return-value]
    if field.enum_type is not None:
        names = {number: one.name for number, one in field.enum_type.values_by_number.items()}
        # A value that only a newer server knows has no name here.
        return lambda number: names.get(number, str(number))  # type: ignore[call-overload]
    return lambda value: value
