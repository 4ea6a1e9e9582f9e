"""The client that blocks the thread."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from typing import Iterable, List, Mapping, Optional, Sequence, TypeVar, Union

from . import _inputs
from ._config import Config, parse, seconds
from ._plans import Call, Plan, Plans
from ._retry import Retry
from ._transports import blocking
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


class Client:
    """Calls of the judge that block the thread. Threads may share a client; it can be pickled.

    ``url`` is ``http://`` or ``https://`` with a host and port, or, with the extra ``[grpc]``, ``grpc://`` or ``grpcs://``;
    left out, it is the variable PRISM_JUDGE_URL, else http://127.0.0.1:8080. ``api_key``, left out, is
    PRISM_JUDGE_API_KEY.

    ``timeout``: seconds that a call may take, with its retries; each method takes one of its own. ``ca_file``:
    certificates to trust in place of the system's; ``cert_file`` and ``key_file``: who the client is. ``concurrency``:
    calls of one ``score_many`` at a time. ``chunk_bytes``: a larger group goes in several messages.

    A fork is safe over HTTP. A child of a process that has used gRPC cannot use gRPC; it gets a ``PrismJudgeError``.
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
        concurrency: int = 32,
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
        codec, self._transport = blocking(config)
        self._codec = codec
        self._plans = Plans(codec, config.chunk_bytes)

    def __getstate__(self) -> Config:
        return self._config

    def __setstate__(self, config: Config) -> None:
        self._start(config)

    def __repr__(self) -> str:
        return f"Client({self._config.url!r})"

    def score(
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
        """Judges one response. One that cannot be judged raises an ``ApiError``."""
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
        return self._run(self._plans.score(head, response, request_id), deadline)

    def score_group(
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
        """Judges several responses to one context under one persona: one result each, in their order.

        A large group goes in several messages. Verdicts and rewards do not depend on it; ``tokens`` and ``cached`` may.
        """
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
        return self._run(self._plans.score_group(head, responses, request_id), deadline)

    def score_many(
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
        """Judges responses that each have their own persona and context: one result each, in their order.

        Items that share persona and context travel together. If a call fails, its items have its error and the others
        their verdicts; only a refused key raises.
        """
        deadline = self._deadline(timeout)
        how = _inputs.how(options, shaping, lane, cache)
        return self._run(self._plans.score_many(items, how, request_id), deadline)

    def score_dialogue(
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
        """Judges every turn of ``agent`` (left out: of the persona's name) in a dialogue."""
        deadline = self._deadline(timeout)
        head = _inputs.head(persona=persona, persona_id=persona_id, options=options, lane=lane, cache=cache)
        return self._run(self._plans.score_dialogue(head, turns, agent, request_id), deadline)

    def check(
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
        """Judges one response and decides by a policy whether it may be shown (none: the server's ``default``).

        A response that could not be judged is a result with ``error``. A server that cannot be reached raises.
        """
        deadline = self._deadline(timeout)
        head = _inputs.head(
            persona=persona,
            persona_id=persona_id,
            context=context,
            options=options,
            lane=lane,
            cache=cache,
        )
        return self._run(self._plans.check(head, response, policy, policy_name, request_id), deadline)

    def rank(
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
        """Judges several responses to one context and orders them, best first."""
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
        return self._run(self._plans.rank(head, responses, request_id), deadline)

    def personas(self, *, timeout: Optional[float] = None) -> List[NamedPersona]:
        """The personas that calls may name by ``persona_id``."""
        return self._run(self._plans.personas(), self._deadline(timeout))

    def info(self, *, timeout: Optional[float] = None) -> JudgeInfo:
        """Which model and options judge."""
        return self._run(self._plans.info(), self._deadline(timeout))

    def wait_until_ready(self, timeout: float = 60.0) -> JudgeInfo:
        """Waits until the server is there and its model loaded. What was last wrong is raised when the time is over."""
        return self._run(self._plans.info(), self._deadline(timeout), patient=True)

    def close(self) -> None:
        """Closes the connections. A later call opens new ones."""
        self._transport.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def _deadline(self, timeout: Optional[float]) -> float:
        return time.monotonic() + (self._config.timeout if timeout is None else seconds(timeout))

    def _run(self, plan: Plan[T], deadline: float, *, patient: bool = False) -> T:
        """Carries out a plan."""

        def outcome(call: Call) -> object:
            try:
                return self._attempt(call, deadline, patient)
            except ApiError as error:
                if not plan.independent:
                    raise
                return error

        if plan.independent and len(plan.calls) > 1:
            with ThreadPoolExecutor(min(len(plan.calls), self._config.concurrency)) as threads:
                return plan.finish(list(threads.map(outcome, plan.calls)))
        return plan.finish([outcome(call) for call in plan.calls])

    def _attempt(self, call: Call, deadline: float, patient: bool) -> object:
        """One call, tried until it is answered or the deadline comes near."""
        retry = Retry(deadline, patient=patient)
        while True:
            try:
                reply = self._transport.call(call.method, call.body, deadline)
                break
            except ApiError as error:
                error.request_id = call.request_id
                pause = retry.pause(error)
            time.sleep(pause)
        return call.read(self._codec.reply(call.method, reply))
