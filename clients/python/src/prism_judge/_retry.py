"""When a failed call is tried again, all inside the deadline of the method.

Again: RESOURCE_EXHAUSTED and UNAVAILABLE, after the pause that the server asks for. A server that cannot be reached is
tried a few times only: a wrong address should not take the whole timeout to show itself.
"""

from __future__ import annotations

import random
import time

from .errors import ApiError

NO_CONNECTION = "NO_CONNECTION"
"""``ApiError.reason`` of a server that cannot be reached."""

_ATTEMPTS_TO_CONNECT = 6
_FIRST_PAUSE = 0.1
_LONGEST_PAUSE = 5.0


class Retry:
    """The tries of one call until ``deadline`` (of ``time.monotonic``)."""

    def __init__(self, deadline: float, *, patient: bool = False) -> None:
        self._deadline = deadline
        self._patient = patient
        """Whether to wait for a server that is not there yet, and to look often."""
        self._failures = 0
        self._unreached = 0

    def pause(self, error: ApiError) -> float:
        """Seconds to wait before the next try. Raises ``error`` if there is none."""
        self._failures += 1
        error.attempts = self._failures
        if not self._again(error):
            raise error
        if error.retry_after_ms is not None:
            # Never earlier than asked for, and not all callers at the same moment.
            pause = error.retry_after_ms / 1000 * random.uniform(1.0, 1.25)
        else:
            # A large power of two would overflow a float.
            longest = min(_FIRST_PAUSE * 2 ** min(self._failures - 1, 10), _LONGEST_PAUSE)
            pause = longest * random.uniform(0.5, 1.0)
        if self._patient:
            pause = min(pause, 1.0)
        if time.monotonic() + pause >= self._deadline:
            raise error
        return pause

    def _again(self, error: ApiError) -> bool:
        if not error.retryable or error.reason != NO_CONNECTION or self._patient:
            return error.retryable
        self._unreached += 1
        return self._unreached < _ATTEMPTS_TO_CONNECT
