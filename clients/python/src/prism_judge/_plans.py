"""What a method of a client does: which calls, and how their replies become its result.

A plan knows nothing of threads, event loops and sockets; ``client`` and ``aio`` carry it out. All that can be wrong
with the arguments is found while it is made, before the first call.
"""

from __future__ import annotations

import dataclasses
import math
import re
import uuid
from dataclasses import dataclass
from typing import Callable, Dict, Generic, Iterator, List, Optional, Sequence, Tuple, TypeVar, Union, cast

from . import _inputs, _replies
from ._codec import MESSAGE_BYTES, Codec
from ._inputs import Json
from .errors import (
    ApiError,
    InvalidInputError,
    PermissionDeniedError,
    ProtocolError,
    UnauthenticatedError,
)
from .types import (
    Candidate,
    CheckResult,
    DialogueResult,
    ItemError,
    JudgeInfo,
    NamedPersona,
    Ranking,
    Result,
    Verdict,
)

T = TypeVar("T")

CHUNK_CANDIDATES = 1024
"""Candidates of one message at most: their verdicts must fit into one reply."""


@dataclass(frozen=True)
class Call:
    """One request and its answer."""

    method: str
    body: bytes
    read: Callable[[Json], object]
    """Reads the reply and checks that it is one to this request."""
    request_id: str = ""


@dataclass(frozen=True)
class Plan(Generic[T]):
    """The calls of one method."""

    calls: Sequence[Call]
    finish: Callable[[List[object]], T]
    """Takes what the calls read, in their order; with ``independent`` an ``ApiError`` stands where a call failed."""
    independent: bool = False
    """Whether the calls may run at the same time, and one may fail without the others."""


class Plans:
    """Makes plans for one transport."""

    def __init__(self, codec: Codec, chunk_bytes: int) -> None:
        self._codec = codec
        self._chunk_bytes = chunk_bytes

    def score(self, head: Json, response: object, request_id: Optional[str]) -> Plan[Verdict]:
        _no_group(head)
        candidate = _inputs.candidate("candidate", response)
        head = {**head, "candidate": {"id": candidate.id, "response": candidate.response}}

        def read(reply: Json) -> Verdict:
            verdict = _replies.score(reply)
            _same("verdict.id", verdict.id, candidate.id)
            return verdict

        return _one(self._call("Score", head, None, read, request_id))

    def score_group(self, head: Json, responses: object, request_id: Optional[str]) -> Plan[List[Result]]:
        candidates = _inputs.candidates(responses)
        chunks = list(self._chunks("ScoreGroup", head, candidates))
        z_score = len(chunks) > 1 and _wants_z_score(head)
        if z_score:
            head = {**head, "shaping": {**_shaping(head), "group_z_score": False}}
        calls = []
        for number, (first, pieces) in enumerate(chunks):
            name = request_id if request_id is None or len(chunks) == 1 else f"{request_id}#{number}"
            chunk = candidates[first : first + len(pieces)]
            calls.append(self._call("ScoreGroup", head, pieces, _group_reader(chunk, first), name))

        def finish(parts: List[object]) -> List[Result]:
            results: List[Result] = [result for part in parts for result in _results(part)]
            return _z_scores(results) if z_score else results

        return Plan(calls, finish)

    def score_many(self, items: object, how: Json, request_id: Optional[str]) -> Plan[List[Result]]:
        _no_group(how)
        if isinstance(items, (str, bytes)) or not hasattr(items, "__iter__"):
            raise InvalidInputError("items", f"it must be a sequence of Item, not a {type(items).__name__}")
        groups: Dict[bytes, _Group] = {}
        count = 0
        for index, item in enumerate(items):
            shared, candidate = _inputs.item(f"items[{index}]", item)
            head = {**shared, **how}
            group = groups.setdefault(self._codec.request("ScoreGroup", head), _Group(head, [], []))
            group.places.append(index)
            group.candidates.append(candidate)
            count = index + 1
        calls: List[Call] = []
        places: List[List[int]] = []
        ids: List[str] = [""] * count
        for group in groups.values():
            for first, pieces in self._chunks("ScoreGroup", group.head, group.candidates):
                chunk = group.candidates[first : first + len(pieces)]
                name = None if request_id is None else f"{request_id}#{len(calls)}"
                calls.append(self._call("ScoreGroup", group.head, pieces, _group_reader(chunk, 0), name))
                places.append(group.places[first : first + len(pieces)])
            for index, candidate in zip(group.places, group.candidates):
                ids[index] = candidate.id

        def finish(parts: List[object]) -> List[Result]:
            results: List[Optional[Result]] = [None] * count
            for part, indices in zip(parts, places):
                if isinstance(part, (UnauthenticatedError, PermissionDeniedError)):
                    raise part
                chunk = _failed(part, indices, ids) if isinstance(part, ApiError) else _results(part)
                for index, result in zip(indices, chunk):
                    results[index] = _moved(result, index, "items")
            return [result for result in results if result is not None]

        return Plan(calls, finish, independent=True)

    def score_dialogue(self, head: Json, turns: object, agent: str, request_id: Optional[str]) -> Plan[DialogueResult]:
        said = _inputs.turns("turns", turns)
        agent = _inputs.text("agent", agent)
        head = {**head, "turns": said, "agent": agent}

        def read(reply: Json) -> DialogueResult:
            result = _replies.dialogue(reply)
            _check_turns([one.turn for one in result.results], [str(turn["speaker"]) for turn in said], agent)
            for one in result.results:
                if isinstance(one.result, Verdict):
                    _same("verdict.id", one.result.id, str(one.turn))
            return result

        return _one(self._call("ScoreDialogue", head, None, read, request_id))

    def check(
        self, head: Json, response: object, policy: object, policy_name: object, request_id: Optional[str]
    ) -> Plan[CheckResult]:
        candidate = _inputs.candidate("candidate", response)
        head = {**head, "candidate": {"id": candidate.id, "response": candidate.response}}
        if policy is not None and policy_name is not None:
            raise InvalidInputError("policy", "policy or policy_name: give one of the two, not both")
        if policy is not None:
            head["policy"] = _inputs.policy(policy)
        if policy_name is not None:
            head["policy_name"] = _inputs.text("policy_name", policy_name)

        def read(reply: Json) -> CheckResult:
            result = _replies.check(reply)
            if result.verdict is not None:
                _same("verdict.id", result.verdict.id, candidate.id)
            return result

        return _one(self._call("Check", head, None, read, request_id))

    def rank(self, head: Json, responses: object, request_id: Optional[str]) -> Plan[Ranking]:
        candidates = _inputs.candidates(responses)
        if not candidates:
            return Plan([], lambda _: Ranking((), ()))
        pieces = [self._codec.piece("Rank", candidate) for candidate in candidates]

        def read(reply: Json) -> Ranking:
            result = _replies.ranking(reply)
            _check_ranking(result, candidates)
            return result

        return _one(self._call("Rank", head, pieces, read, request_id))

    def personas(self) -> Plan[List[NamedPersona]]:
        return _one(Call("ListPersonas", self._codec.request("ListPersonas", {}), _replies.personas))

    def info(self) -> Plan[JudgeInfo]:
        return _one(Call("GetJudgeInfo", self._codec.request("GetJudgeInfo", {}), _replies.info))

    def _call(
        self,
        method: str,
        head: Json,
        pieces: Optional[Sequence[bytes]],
        read: Callable[[Json], object],
        request_id: Optional[str],
    ) -> Call:
        name = uuid.uuid4().hex if request_id is None else _inputs.text("request_id", request_id)
        body = self._codec.request(method, {**head, "request_id": name}, pieces)
        if len(body) > MESSAGE_BYTES:
            raise InvalidInputError(
                "request", f"it has {len(body)} bytes and a message holds at most {MESSAGE_BYTES}: shorten its texts"
            )

        def checked(reply: Json) -> object:
            _same("request_id", _replies.request_id(reply), name)
            return read(reply)

        return Call(method, body, checked, name)

    def _chunks(self, method: str, head: Json, candidates: Sequence[Candidate]) -> Iterator[Tuple[int, List[bytes]]]:
        """Cuts a group into messages: the place of each one's first candidate, and its candidates' bytes."""
        room = min(self._chunk_bytes, MESSAGE_BYTES - len(self._codec.request(method, head)) - 1024)
        first, size = 0, 0
        pieces: List[bytes] = []
        for index, candidate in enumerate(candidates):
            piece = self._codec.piece(method, candidate)
            if pieces and (size + len(piece) > room or len(pieces) == CHUNK_CANDIDATES):
                yield first, pieces
                first, pieces, size = index, [], 0
            pieces.append(piece)
            size += len(piece) + 1
        if pieces:
            yield first, pieces


@dataclass(frozen=True)
class _Group:
    """Items of ``score_many`` that share everything but their response."""

    head: Json
    places: List[int]
    candidates: List[Candidate]


def _one(call: Call) -> Plan[T]:
    """A plan of one call, whose reply is the result."""
    return Plan([call], lambda parts: cast(T, parts[0]))


def _results(part: object) -> List[Result]:
    return cast(List[Result], part)


def _group_reader(candidates: Sequence[Candidate], offset: int) -> Callable[[Json], List[Result]]:
    """Reads the reply to a chunk of a group whose first candidate has the place ``offset`` in the call."""

    def read(reply: Json) -> List[Result]:
        messages = _replies.objects(reply, "results")
        if len(messages) != len(candidates):
            raise ProtocolError(f"results: the answer has {len(messages)} for {len(candidates)} candidates")
        results: List[Result] = []
        for index, (message, candidate) in enumerate(zip(messages, candidates)):
            _same(f"results[{index}].id", message.get("id", ""), candidate.id)
            _same(f"results[{index}].index", message.get("index", 0), index)
            result = _replies.candidate_result(message)
            _same(f"results[{index}].verdict.id", result.id, candidate.id)
            results.append(_moved(result, index + offset, "candidates") if offset else result)
        return results

    return read


def _moved(result: Result, index: int, within: str) -> Result:
    """An error says where in the whole call it is."""
    if isinstance(result, Verdict):
        return result
    field = re.sub(r"^candidates\[\d+\]", f"{within}[{index}]", result.field)
    return dataclasses.replace(result, index=index, field=field)


def _failed(error: ApiError, indices: Sequence[int], ids: Sequence[str]) -> List[Result]:
    """A failed call of independent ones: its items have its error."""
    code = {"RESOURCE_EXHAUSTED": "overloaded"}.get(error.code, error.code.lower())
    if error.reason == "OVER_QUOTA":
        code = "over_quota"
    field = error.fields[0][0] if error.fields else ""
    return [ItemError(code, error.message, field, error.retry_after_ms, ids[index], index) for index in indices]


def _same(name: str, there: object, here: Union[str, int]) -> None:
    """The answer is one to this request."""
    if there != here:
        raise ProtocolError(f"{name}: the answer has {there!r} where {here!r} was sent")


def _check_turns(judged: Sequence[int], speakers: Sequence[str], agent: str) -> None:
    """The turns of one speaker, each once and in order."""
    if not judged:
        raise ProtocolError("results: the answer has no turn")
    if max(judged) >= len(speakers):
        raise ProtocolError(f"results: the answer has turn {max(judged)} of {len(speakers)}")
    name = _folded(agent if agent.strip() else speakers[judged[0]])
    wanted = [index for index, speaker in enumerate(speakers) if _folded(speaker) == name]
    if list(judged) != wanted:
        raise ProtocolError(f"results: the answer has the turns {list(judged)} where {wanted} are the agent's")


def _folded(speaker: str) -> str:
    """As the server compares speakers."""
    return speaker.strip().lower()


def _check_ranking(result: Ranking, candidates: Sequence[Candidate]) -> None:
    """Every candidate once, best first."""
    places = sorted([one.index for one in result.ranking] + [one.index for one in result.failed])
    if places != list(range(len(candidates))):
        raise ProtocolError(f"ranking: the answer has {len(places)} places for {len(candidates)} candidates")
    for one in result.ranking:
        _same("ranking.id", one.id, candidates[one.index].id)
        _same("ranking.verdict.id", one.verdict.id, candidates[one.index].id)
    for error in result.failed:
        _same("failed.id", error.id, candidates[error.index].id)
    for better, worse in zip(result.ranking, result.ranking[1:]):
        if better.value < worse.value or (better.rank, better.index) > (worse.rank, worse.index):
            raise ProtocolError("ranking: the answer is not in order")


def _shaping(head: Json) -> Json:
    shaping = head.get("shaping")
    return shaping if isinstance(shaping, dict) else {}


def _wants_z_score(head: Json) -> bool:
    return _shaping(head).get("group_z_score") is True


def _no_group(head: Json) -> None:
    if _wants_z_score(head):
        raise InvalidInputError("shaping.group_z_score", "it needs a group: use score_group or rank")


def _z_scores(results: List[Result]) -> List[Result]:
    """What the server does with ``group_z_score``, over a group that went to it in several messages."""
    rewards = [result.reward for result in results if isinstance(result, Verdict) and result.reward is not None]
    scores = iter(z_scores(rewards))
    return [
        dataclasses.replace(result, reward=next(scores))
        if isinstance(result, Verdict) and result.reward is not None
        else result
        for result in results
    ]


def z_scores(rewards: Sequence[float]) -> List[float]:
    """(r - mean) / standard deviation, over n - 1; 0 for all if they are equal or if there is only one.

    The server's own steps, for the same bits: scaled to [0, 1] first, and summed in the order of size.
    """
    if len(set(rewards)) < 2:
        return [0.0] * len(rewards)
    least = min(rewards)
    spread = max(reward - least for reward in rewards)
    scaled = [(reward - least) / spread for reward in rewards]
    mean = _sum(scaled) / len(scaled)
    deviation = math.sqrt(_sum([(value - mean) * (value - mean) for value in scaled]) / (len(scaled) - 1))
    return [(value - mean) / deviation for value in scaled]


def _sum(values: Sequence[float]) -> float:
    """One rounding for each addition: ``sum`` of Python 3.12 makes fewer."""
    total = 0.0
    for value in sorted(values):
        total += value
    return total
