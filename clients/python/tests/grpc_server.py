"""``Brain`` behind gRPC."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Callable, List, Optional, Tuple

import grpc
from brain import STATUSES, Brain, Fault, Json
from google.protobuf import json_format

from prism_judge._generated import judge_pb2, status_pb2

CODES = {code.value[0]: code for code in grpc.StatusCode}


@dataclass
class GrpcServer(grpc.GenericRpcHandler):
    brain: Brain = field(default_factory=Brain)
    credentials: Optional[grpc.ServerCredentials] = None
    max_workers: int = 16

    def __post_init__(self) -> None:
        self._threads = ThreadPoolExecutor(self.max_workers)
        self._server = grpc.server(self._threads, options=[("grpc.max_receive_message_length", 16 << 20)])
        self._server.add_generic_rpc_handlers((self,))
        if self.credentials is None:
            self.port = self._server.add_insecure_port("127.0.0.1:0")
        else:
            self.port = self._server.add_secure_port("127.0.0.1:0", self.credentials)
        self._server.start()

    @property
    def url(self) -> str:
        return f"grpc{'' if self.credentials is None else 's'}://127.0.0.1:{self.port}"

    def close(self) -> None:
        self._server.stop(None).wait()
        self._threads.shutdown()

    def service(self, details: Any) -> Any:
        method = details.method.rpartition("/")[2]
        return grpc.unary_unary_rpc_method_handler(
            self._handler(method),
            getattr(judge_pb2, f"{method}Request").FromString,
            getattr(judge_pb2, f"{method}Response").SerializeToString,
        )

    def _handler(self, method: str) -> Callable[[Any, grpc.ServicerContext], Any]:
        def handle(request: Any, context: grpc.ServicerContext) -> Any:
            message = json_format.MessageToDict(request, preserving_proto_field_name=True)
            headers: Json = {str(key): value for key, value in context.invocation_metadata()}
            headers["grpc-timeout"] = context.time_remaining()
            try:
                reply = self.brain.answer(method, message, headers)
            except Fault as fault:
                context.set_trailing_metadata(_trailers(fault))
                context.abort(CODES[STATUSES[fault.code][0]], fault.message)
            answer = getattr(judge_pb2, f"{method}Response")()
            return json_format.ParseDict(_quoted(reply), answer)

        return handle


def _quoted(value: Any) -> Any:
    """The JSON mapping has NaN and infinities as texts."""
    if isinstance(value, dict):
        return {name: _quoted(one) for name, one in value.items()}
    if isinstance(value, list):
        return [_quoted(one) for one in value]
    names = {"nan": "NaN", "inf": "Infinity"}
    return names.get(str(value), value) if isinstance(value, float) else value


def _trailers(fault: Fault) -> Any:
    """As the server sends them."""
    status = status_pb2.Status(code=STATUSES[fault.code][0], message=fault.message)
    if fault.fields:
        bad = status_pb2.BadRequest()
        for name, what in fault.fields:
            bad.field_violations.add(field=name, description=what)
        status.details.add(type_url="type.googleapis.com/google.rpc.BadRequest", value=bad.SerializeToString())
    if fault.reason:
        info = status_pb2.ErrorInfo(reason=fault.reason, domain="prism-judge")
        status.details.add(type_url="type.googleapis.com/google.rpc.ErrorInfo", value=info.SerializeToString())
    trailers: List[Tuple[str, Any]] = [("grpc-status-details-bin", status.SerializeToString())]
    if fault.retry_after_ms is not None:
        trailers.append(("grpc-retry-pushback-ms", str(fault.retry_after_ms)))
    return tuple(trailers)
