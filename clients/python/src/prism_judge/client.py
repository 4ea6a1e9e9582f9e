"""Calls of the judge that block the thread."""

from __future__ import annotations

from typing import Iterable, List, Mapping, Optional, Sequence, Union

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


class Client:
    """Calls of the judge that block the thread.

    ``url``: ``http://``, ``https://``, or with the extra ``[grpc]`` ``grpc://``, ``grpcs://`` and a host and port.
    Default: the variable PRISM_JUDGE_URL, else http://127.0.0.1:8080. ``api_key``: default PRISM_JUDGE_API_KEY.
    ``timeout``: seconds for a whole call, with its retries. Clients can be pickled, and used after a fork.
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
        raise NotImplementedError

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
        """Judges one response. A response that cannot be judged raises."""
        raise NotImplementedError

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
        """Judges several responses to one context: one result each, in their order. No responses: no results."""
        raise NotImplementedError

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
        """Judges responses that each have their own persona and context: one result each, in their order."""
        raise NotImplementedError

    def score_dialogue(
        self,
        turns: Sequence[TurnLike],
        *,
        persona: Optional[PersonaLike] = None,
        persona_id: Optional[str] = None,
        agent: str = "",
        options: Optional[Options] = None,
        lane: Optional[Lane] = None,
        cache: Optional[Cache] = None,
        request_id: Optional[str] = None,
        timeout: Optional[float] = None,
    ) -> DialogueResult:
        """Judges every turn of ``agent`` (default: the persona's name) in a dialogue."""
        raise NotImplementedError

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
        """Judges one response and decides by a policy whether it may be shown (no policy: the server's ``default``)."""
        raise NotImplementedError

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
        raise NotImplementedError

    def personas(self, *, timeout: Optional[float] = None) -> List[NamedPersona]:
        """The personas that calls may name by ``persona_id``."""
        raise NotImplementedError

    def info(self, *, timeout: Optional[float] = None) -> JudgeInfo:
        """Which model and options judge."""
        raise NotImplementedError

    def wait_until_ready(self, timeout: float = 60.0) -> JudgeInfo:
        """Waits until the server is there and its model loaded; ``UnavailableError`` after ``timeout`` seconds."""
        raise NotImplementedError

    def close(self) -> None:
        """Closes the connections."""
        raise NotImplementedError

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()
