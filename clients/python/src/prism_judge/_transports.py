"""Which transport a URL asks for. gRPC is imported only when it is."""

from __future__ import annotations

from typing import Any, Protocol, Tuple

from ._codec import Codec, JsonCodec
from ._config import Config
from ._http_async import AsyncHttpTransport
from ._http_sync import HttpTransport


class Transport(Protocol):
    def call(self, method: str, body: bytes, deadline: float) -> bytes: ...
    def close(self) -> None: ...


class AsyncTransport(Protocol):
    async def call(self, method: str, body: bytes, deadline: float) -> bytes: ...
    async def close(self) -> None: ...


def blocking(config: Config) -> Tuple[Codec, Transport]:
    """For threads."""
    if not config.grpc:
        return JsonCodec(), HttpTransport(config)
    grpc = _grpc_module()
    return grpc.ProtoCodec(), grpc.GrpcTransport(config)


def asynchronous(config: Config) -> Tuple[Codec, AsyncTransport]:
    """For asyncio."""
    if not config.grpc:
        return JsonCodec(), AsyncHttpTransport(config)
    grpc = _grpc_module()
    return grpc.ProtoCodec(), grpc.AsyncGrpcTransport(config)


def _grpc_module() -> Any:
    try:
        from . import _grpc
    except ImportError as error:
        raise ImportError(f'grpc:// needs the extra: pip install "prism-judge[grpc]" ({error})') from error
    return _grpc
