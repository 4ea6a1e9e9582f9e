"""What guardrails share: a check by a policy, and what to say when it could not be made."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Any, Dict, Optional, Sequence, Union

from ..errors import (
    ApiError,
    DeadlineExceededError,
    InternalError,
    InvalidArgumentError,
    InvalidInputError,
    RequestTooLargeError,
    ResourceExhaustedError,
    UnavailableError,
)
from ..types import DIMENSIONS, CheckResult, ItemError, OnError, Policy, Turn
from . import _texts
from ._settings import GUARD_TIMEOUT, PERSONA, Settings, Who

PolicyLike = Union[Policy, str, None]
"""A policy, the name of one that the judge has, or ``None`` for the judge's ``default``."""

_NOTHING_TO_JUDGE = CheckResult("abstain", "the response has no text", "", None, None, "")
_PASSING = (DeadlineExceededError, InternalError, RequestTooLargeError, ResourceExhaustedError, UnavailableError)

log = logging.getLogger("prism_judge")


@dataclass(frozen=True)
class Guard:
    """Checks replies. What goes wrong with one call is decided by ``on_error``; what would go wrong with every call,
    such as a wrong key or an unknown persona, is raised: a guardrail that cannot work must not look as if it did."""

    settings: Settings
    policy: PolicyLike = None
    on_error: Optional[OnError] = None
    """What to decide when there is no answer: ``allow`` or ``block``. Default: as ``policy`` says, else ``allow``."""

    def __post_init__(self) -> None:
        if self.on_error not in (None, "allow", "block"):
            raise InvalidInputError("on_error", f'it must be "allow" or "block", not {self.on_error!r}')

    def check(self, response: str, context: Sequence[Turn], who: Optional[Who] = None) -> CheckResult:
        """Whether a reply may be shown; ``who`` goes before the persona of the settings."""
        settings = self.settings.resolved(GUARD_TIMEOUT)
        arguments = self._arguments(settings, response, context, who)
        if arguments is None:
            return _NOTHING_TO_JUDGE
        try:
            return settings.client().check(**arguments)
        except ApiError as error:
            return self._not_judged(error)

    async def acheck(self, response: str, context: Sequence[Turn], who: Optional[Who] = None) -> CheckResult:
        """The same for asyncio."""
        settings = self.settings.resolved(GUARD_TIMEOUT)
        arguments = self._arguments(settings, response, context, who)
        if arguments is None:
            return _NOTHING_TO_JUDGE
        try:
            return await settings.async_client().check(**arguments)
        except ApiError as error:
            return self._not_judged(error)

    def _arguments(
        self, settings: Settings, response: str, context: Sequence[Turn], who: Optional[Who]
    ) -> Optional[Dict[str, Any]]:
        who = who or settings.who()
        if who is None:
            raise InvalidInputError("persona_id", f"there is no persona: give persona_id or persona, or set {PERSONA}")
        text = response if settings.thinking == "keep" else _texts.aloud(response)
        if not text.strip():
            return None
        return {
            "response": _sendable(text),
            "persona": who.persona,
            "persona_id": who.persona_id,
            "context": [Turn(_sendable(turn.speaker), _sendable(turn.text)) for turn in context],
            "policy": self.policy if isinstance(self.policy, Policy) else None,
            "policy_name": self.policy if isinstance(self.policy, str) else None,
            "options": settings.options,
            "timeout": settings.timeout,
        }

    def _not_judged(self, error: ApiError) -> CheckResult:
        about_the_texts = isinstance(error, InvalidArgumentError) and all(
            field.startswith(("candidate", "context")) for field, _ in error.fields or [("", "")]
        )
        if not about_the_texts and not isinstance(error, _PASSING):
            raise error
        decision = self.on_error or (self.policy.on_error if isinstance(self.policy, Policy) else "allow")
        log.warning("a response was not judged and on_error decides %s: %s", decision, error.code)
        return CheckResult(
            decision,
            f"the response could not be judged: {error.message}",
            "",
            None,
            ItemError(error.code.lower(), error.message, retry_after_ms=error.retry_after_ms),
            "",
        )


def _sendable(text: str) -> str:
    """Half of a surrogate pair cannot be sent. A question mark in its place keeps the rest under the guardrail."""
    return text.encode("utf-8", "replace").decode("utf-8")


def report(check: CheckResult) -> Dict[str, Any]:
    """A check as plain values, for what hosts keep beside a reply: the same keys each time, ``None`` for what there is
    not.

    ``status`` is the decision, or ``error`` for one that only says what to do about a failure.
    """
    verdict, error = check.verdict, check.error
    found: Dict[str, Any] = {
        "status": check.decision if error is None else "error",
        "decision": check.decision,
        "reason": check.reason,
        "failed": check.failed,
        "policy": check.policy_name,
        "s_prism": None if verdict is None else verdict.s_prism,
    }
    for dimension in DIMENSIONS:
        found[dimension] = None if verdict is None else getattr(verdict.dimensions, dimension).evidence
    found["error"] = None if error is None else error.code
    return found
