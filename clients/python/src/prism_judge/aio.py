"""The client for asyncio."""

from __future__ import annotations

import asyncio
import time
from typing import Iterable, List, Mapping, Optional, Sequence, TypeVar, Union

from . import _inputs
from ._config import Config, parse, seconds
from ._plans import Call, Plan, Plans
from ._retry import Retry
from ._transports import asynchronous
from .errors import ApiError
from .types import (
    Cache,
    CandidateLike,
    CheckResult,
    ContextLike,
    DialogueResult,
    Item,
    JudgeInfo,
    Lane,
    NamedPersona,
    Options,
    PersonaLike,
    Policy,
    Ranking,
    Result,
    Shaping,
    TurnLike,
    Verdict,
)

T = TypeVar("T")


class AsyncClient:
    """The calls of ``Client`` for asyncio, with the same arguments and results.

    A client may be used from any event loop, from one after another too. ``concurrency``: connections at a time over
    HTTP; further calls wait for one, inside their timeout. A cancelled call is cancelled on the server.
    """

    def __init__(
        self,
        url: Optional[str] = None,
        *,
        api_key: Optional[str] = None,
        timeout: float = 60.0,
        ca_file: Optional[str] = None,
        cert_file: Optional[str] = None,
        key_file: Optional[str] = None,
        concurrency: int = 128,
        chunk_bytes: int = 4 << 20,
    ) -> None:
        config = parse(
            url,
            api_key=api_key,
            timeout=timeout,
            ca_file=ca_file,
            cert_file=cert_file,
            key_file=key_file,
            concurrency=concurrency,
            chunk_bytes=chunk_bytes,
        )
        self._start(config)

    def _start(self, config: Config) -> None:
        self._config = config
        codec, self._transport = asynchronous(config)
        self._codec = codec
        self._plans = Plans(codec, config.chunk_bytes)

    def __getstate__(self) -> Config:
        return self._config

    def __setstate__(self, config: Config) -> None:
        self._start(config)

    def __repr__(self) -> str:
        return f"AsyncClient({self._config.url!r})"

    async def score(
        self,
        response: CandidateLike,
        *,
        persona: Optional[PersonaLike] = None,
        persona_id: Optional[str] = None,
        context: ContextLike = (),
        options: Optional[Options] = None,
        shaping: Optional[Shaping] = None,
        lane: Optional[Lane] = None,
        cache: Optional[Cache] = None,
        request_id: Optional[str] = None,
        timeout: Optional[float] = None,
    ) -> Verdict:
        """As ``Client.score``."""
        deadline = self._deadline(timeout)
        head = _inputs.head(
            persona=persona,
            persona_id=persona_id,
            context=context,
            options=options,
            shaping=shaping,
            lane=lane,
            cache=cache,
        )
        return await self._run(self._plans.score(head, response, request_id), deadline)

    async def score_group(
        self,
        responses: Sequence[CandidateLike],
        *,
        persona: Optional[PersonaLike] = None,
        persona_id: Optional[str] = None,
        context: ContextLike = (),
        options: Optional[Options] = None,
        shaping: Optional[Shaping] = None,
        lane: Optional[Lane] = None,
        cache: Optional[Cache] = None,
        request_id: Optional[str] = None,
        timeout: Optional[float] = None,
    ) -> List[Result]:
        """As ``Client.score_group``."""
        deadline = self._deadline(timeout)
        head = _inputs.head(
            persona=persona,
            persona_id=persona_id,
            context=context,
            options=options,
            shaping=shaping,
            lane=lane,
            cache=cache,
        )
        return await self._run(self._plans.score_group(head, responses, request_id), deadline)

    async def score_many(
        self,
        items: Iterable[Union[Item, Mapping[str, object]]],
        *,
        options: Optional[Options] = None,
        shaping: Optional[Shaping] = None,
        lane: Optional[Lane] = None,
        cache: Optional[Cache] = None,
        request_id: Optional[str] = None,
        timeout: Optional[float] = None,
    ) -> List[Result]:
        """As ``Client.score_many``."""
        deadline = self._deadline(timeout)
        how = _inputs.how(options, shaping, lane, cache)
        return await self._run(self._plans.score_many(items, how, request_id), deadline)

    async def score_dialogue(
        self,
        turns: Sequence[TurnLike],
        *,
        agent: str = "",
        persona: Optional[PersonaLike] = None,
        persona_id: Optional[str] = None,
        options: Optional[Options] = None,
        lane: Optional[Lane] = None,
        cache: Optional[Cache] = None,
        request_id: Optional[str] = None,
        timeout: Optional[float] = None,
    ) -> DialogueResult:
        """As ``Client.score_dialogue``."""
        deadline = self._deadline(timeout)
        head = _inputs.head(persona=persona, persona_id=persona_id, options=options, lane=lane, cache=cache)
        return await self._run(self._plans.score_dialogue(head, turns, agent, request_id), deadline)

    async def check(
        self,
        response: CandidateLike,
        *,
        persona: Optional[PersonaLike] = None,
        persona_id: Optional[str] = None,
        context: ContextLike = (),
        policy: Optional[Policy] = None,
        policy_name: Optional[str] = None,
        options: Optional[Options] = None,
        lane: Optional[Lane] = None,
        cache: Optional[Cache] = None,
        request_id: Optional[str] = None,
        timeout: Optional[float] = None,
    ) -> CheckResult:
        """As ``Client.check``."""
        deadline = self._deadline(timeout)
        head = _inputs.head(
            persona=persona,
            persona_id=persona_id,
            context=context,
            options=options,
            lane=lane,
            cache=cache,
        )
        return await self._run(self._plans.check(head, response, policy, policy_name, request_id), deadline)

    async def rank(
        self,
        responses: Sequence[CandidateLike],
        *,
        persona: Optional[PersonaLike] = None,
        persona_id: Optional[str] = None,
        context: ContextLike = (),
        options: Optional[Options] = None,
        shaping: Optional[Shaping] = None,
        lane: Optional[Lane] = None,
        cache: Optional[Cache] = None,
        request_id: Optional[str] = None,
        timeout: Optional[float] = None,
    ) -> Ranking:
        """As ``Client.rank``."""
        deadline = self._deadline(timeout)
        head = _inputs.head(
            persona=persona,
            persona_id=persona_id,
            context=context,
            options=options,
            shaping=shaping,
            lane=lane,
            cache=cache,
        )
        return await self._run(self._plans.rank(head, responses, request_id), deadline)

    async def personas(self, *, timeout: Optional[float] = None) -> List[NamedPersona]:
        """As ``Client.personas``."""
        return await self._run(self._plans.personas(), self._deadline(timeout))

    async def info(self, *, timeout: Optional[float] = None) -> JudgeInfo:
        """As ``Client.info``."""
        return await self._run(self._plans.info(), self._deadline(timeout))

    async def wait_until_ready(self, timeout: float = 60.0) -> JudgeInfo:
        """As ``Client.wait_until_ready``."""
        return await self._run(self._plans.info(), self._deadline(timeout), patient=True)

    async def close(self) -> None:
        """Closes the connections of the running event loop. A later call opens new ones."""
        await self._transport.close()

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.close()

    def _deadline(self, timeout: Optional[float]) -> float:
        return time.monotonic() + (self._config.timeout if timeout is None else seconds(timeout))

    async def _run(self, plan: Plan[T], deadline: float, *, patient: bool = False) -> T:
        """Carries out a plan."""

        async def outcome(call: Call) -> object:
            try:
                return await self._attempt(call, deadline, patient)
            except ApiError as error:
                if not plan.independent:
                    raise
                return error

        if plan.independent and len(plan.calls) > 1:
            tasks = [asyncio.ensure_future(outcome(call)) for call in plan.calls]
            try:
                return plan.finish(await asyncio.gather(*tasks))
            finally:
                for task in tasks:
                    task.cancel()
        return plan.finish([await outcome(call) for call in plan.calls])

    async def _attempt(self, call: Call, deadline: float, patient: bool) -> object:
        """One call, tried until it is answered or the deadline comes near."""
        retry = Retry(deadline, patient=patient)
        while True:
            try:
                reply = await self._transport.call(call.method, call.body, deadline)
                break
            except ApiError as error:
                error.request_id = call.request_id
                pause = retry.pause(error)
            await asyncio.sleep(pause)
        return call.read(self._codec.reply(call.method, reply))
