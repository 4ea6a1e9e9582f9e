"""What belongs to an event loop: one of it for each loop, closed with the loop."""

from __future__ import annotations

import asyncio
import contextlib
from typing import AsyncGenerator, Awaitable, Callable, Dict, Generic, Tuple, TypeVar

T = TypeVar("T")


class PerLoop(Generic[T]):
    """A program that makes a new loop for each step leaves nothing behind."""

    def __init__(self, make: Callable[[], T], close: Callable[[T], Awaitable[None]]) -> None:
        self._make = make
        self._close = close
        self._kept: Dict[asyncio.AbstractEventLoop, Tuple[T, AsyncGenerator[None, None]]] = {}

    def get(self) -> T:
        """The running loop's; made if it has none."""
        loop = asyncio.get_running_loop()
        if loop not in self._kept:
            self._kept = {other: kept for other, kept in self._kept.items() if not other.is_closed()}
            one = self._make()
            self._kept[loop] = one, self._until_the_end(one)
            # Starts the generator without a suspension.
            with contextlib.suppress(StopIteration):
                self._kept[loop][1].asend(None).send(None)
        return self._kept[loop][0]

    async def close(self) -> None:
        """Closes the running loop's; a later ``get`` makes a new one."""
        kept = self._kept.pop(asyncio.get_running_loop(), None)
        if kept is not None:
            await kept[1].aclose()

    async def _until_the_end(self, one: T) -> AsyncGenerator[None, None]:
        # An event loop closes its generators before it ends.
        try:
            yield
        finally:
            await self._close(one)
