"""What can go wrong with a call. Everything derives from ``PrismJudgeError``.

A response of a group that cannot be judged raises nothing: its place in the results holds an ``ItemError``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Dict, Optional, Sequence, Tuple, Type

if TYPE_CHECKING:
    from .types import ItemError


class PrismJudgeError(Exception):
    """The base of all errors of this package."""


class InvalidInputError(PrismJudgeError, ValueError):
    """An argument is wrong; nothing was sent. ``field`` names it, for example ``candidates[3].response``."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(field, message)
        self.field = field
        self.message = message

    def __str__(self) -> str:
        return f"{self.field}: {self.message}"


class ProtocolError(PrismJudgeError):
    """The answer is not one to this request: a wrong count, order or id, or it cannot be read."""


class ApiError(PrismJudgeError):
    """The call failed as a whole. The subclass says how; ``code`` is the name of the gRPC status on every transport."""

    code = "UNKNOWN"

    def __init__(
        self,
        message: str,
        *,
        code: Optional[str] = None,
        fields: Sequence[Tuple[str, str]] = (),
        reason: str = "",
        retry_after_ms: Optional[int] = None,
        retryable: Optional[bool] = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        if code is not None:
            self.code = code
        self.fields = tuple(fields)
        """Wrong fields: pairs of a name and what is wrong with it."""
        self.reason = reason
        """One word for it: the server's, for example ``LOADING``, or the client's ``NO_CONNECTION`` and ``TLS``."""
        self.retry_after_ms = retry_after_ms
        """When the server wants to be asked again."""
        self.retryable = self.code in ("RESOURCE_EXHAUSTED", "UNAVAILABLE") if retryable is None else retryable
        """Whether the same call may succeed later. The client tries such calls again by itself until the deadline."""
        self.attempts = 1
        """How often the call was tried."""
        self.request_id = ""

    def __str__(self) -> str:
        tries = f" (after {self.attempts} tries)" if self.attempts > 1 else ""
        return f"{self.code}: {self.message}{tries}"

    def __reduce__(self) -> Tuple[object, ...]:
        return (_rebuild, (type(self), dict(self.__dict__)))


class InvalidArgumentError(ApiError):
    """The server refuses a field; ``fields`` names each one."""

    code = "INVALID_ARGUMENT"


class UnauthenticatedError(ApiError):
    """No key, or one that the server does not know."""

    code = "UNAUTHENTICATED"


class PermissionDeniedError(ApiError):
    """The key does not open this lane."""

    code = "PERMISSION_DENIED"


class NotFoundError(ApiError):
    """The server knows no persona or policy of that name."""

    code = "NOT_FOUND"


class RequestTooLargeError(ApiError):
    """The request is larger than the server takes."""

    code = "OUT_OF_RANGE"


class ResourceExhaustedError(ApiError):
    """The lane is full or the quota used up, and still was when the deadline came near."""

    code = "RESOURCE_EXHAUSTED"


class UnavailableError(ApiError):
    """No connection, or the server is loading or stopping."""

    code = "UNAVAILABLE"


class DeadlineExceededError(ApiError, TimeoutError):
    """The call's timeout passed."""

    code = "DEADLINE_EXCEEDED"


class InternalError(ApiError):
    """The model failed, or gave a value that is not finite (``reason`` tells)."""

    code = "INTERNAL"


class JudgementError(PrismJudgeError):
    """Raised by ``rewards(..., on_error="raise")``: some responses have no verdict."""

    def __init__(self, errors: Sequence[ItemError]) -> None:
        super().__init__(tuple(errors))
        self.errors = tuple(errors)
        """Their errors, in order; each knows its ``index``."""

    def __str__(self) -> str:
        first = self.errors[0]
        more = len(self.errors) - 1
        rest = f" (and {more} more)" if more else ""
        return f"response {first.index} could not be judged: {first.code}: {first.message}{rest}"


BY_CODE: Dict[str, Type[ApiError]] = {
    kind.code: kind
    for kind in (
        InvalidArgumentError,
        UnauthenticatedError,
        PermissionDeniedError,
        NotFoundError,
        RequestTooLargeError,
        ResourceExhaustedError,
        UnavailableError,
        DeadlineExceededError,
        InternalError,
    )
}
"""The subclass of each status; others are a plain ``ApiError``."""


def _rebuild(kind: Type[ApiError], state: Dict[str, object]) -> ApiError:
    error = kind(str(state["message"]))
    error.__dict__.update(state)
    return error
