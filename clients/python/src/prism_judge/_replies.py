"""Replies in their JSON form become results. What is not a whole reply is a ``ProtocolError``.

A field that holds a number with a point must be there: a missing one is never read as 0.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from typing import List, Optional, Tuple, cast

from ._inputs import Json
from .errors import ProtocolError
from .types import (
    CheckResult,
    Decision,
    DialogueDrift,
    DialogueResult,
    DimensionVerdict,
    DimensionVerdicts,
    Drift,
    ItemError,
    JudgeInfo,
    NamedPersona,
    Options,
    Provenance,
    RankedCandidate,
    Ranking,
    Result,
    TextCounts,
    TextWarnings,
    TokenCounts,
    TurnResult,
    Verdict,
)


def candidate_result(message: Json) -> Result:
    """A ``CandidateResult``."""
    return _result(message, _string(message, "id"), _whole(message, "index"))


def score(message: Json) -> Verdict:
    """A ``ScoreResponse``."""
    return _verdict(_object(message, "verdict"), _optional_number(message, "reward"))


def dialogue(message: Json) -> DialogueResult:
    """A ``ScoreDialogueResponse``."""
    results = []
    for index, one in enumerate(objects(message, "results")):
        results.append(TurnResult(_whole(one, "turn"), _result(one, "", index)))
    drift = message.get("drift")
    return DialogueResult(tuple(results), None if drift is None else _drifts(_object(message, "drift")))


def check(message: Json) -> CheckResult:
    """A ``CheckResponse``."""
    decision = _name(message, "decision", "DECISION_")
    if decision not in ("allow", "warn", "block", "abstain"):
        raise ProtocolError(f"decision: {decision!r} is none")
    error = None if message.get("error") is None else _error(_object(message, "error"), "", 0)
    verdict = None if message.get("verdict") is None else _verdict(_object(message, "verdict"), None)
    return CheckResult(
        cast(Decision, decision),
        _string(message, "reason"),
        _string(message, "failed"),
        verdict,
        error,
        _string(message, "policy_name"),
    )


def ranking(message: Json) -> Ranking:
    """A ``RankResponse``."""
    ranked = tuple(_ranked(one) for one in objects(message, "ranking"))
    failed = [candidate_result(one) for one in objects(message, "failed")]
    if not all(isinstance(one, ItemError) for one in failed):
        raise ProtocolError("failed: a candidate in it has a verdict")
    return Ranking(ranked, tuple(one for one in failed if isinstance(one, ItemError)))


def personas(message: Json) -> List[NamedPersona]:
    """A ``ListPersonasResponse``."""
    return [
        NamedPersona(_string(one, "id"), _string(one, "name"), _string(one, "digest"))
        for one in objects(message, "personas")
    ]


def info(message: Json) -> JudgeInfo:
    """A ``GetJudgeInfoResponse``."""
    options = _object(message, "options")
    block = options.get("persona_block")
    return JudgeInfo(
        _string(message, "version"),
        _string(message, "model"),
        _string(message, "model_digest"),
        _string(message, "prompt_digest"),
        _string(message, "label_space_digest"),
        _string(message, "architecture"),
        _whole(message, "parameters"),
        _whole(message, "context_length"),
        _whole(message, "vocabulary"),
        _strings(message, "answer_slot"),
        _whole(message, "threads"),
        Options(
            _name(options, "evidence", "EVIDENCE_KIND_"),  # type: ignore[arg-type]
            _name(options, "layout", "LAYOUT_"),  # type: ignore[arg-type]
            _name(options, "label_order", "LABEL_ORDER_"),  # type: ignore[arg-type]
            _name(options, "calibration", "CALIBRATION_"),  # type: ignore[arg-type]
            None if block is None else bool(block),
            _optional_number(options, "likelihood_t"),
            _optional_number(options, "likelihood_b"),
        ),
        _name(message, "numerics", "NUMERICS_"),
    )


def objects(message: Json, name: str) -> List[Json]:
    """A list of messages."""
    values = _list(message, name)
    for value in values:
        if not isinstance(value, dict):
            raise ProtocolError(f"{name}: it holds a {_kind(value)}")
    return cast(List[Json], values)


def request_id(message: Json) -> str:
    return _string(message, "request_id")


def _result(message: Json, id: str, index: int) -> Result:
    """A oneof of ``verdict`` and ``error``."""
    verdict, error = message.get("verdict"), message.get("error")
    if (verdict is None) == (error is None):
        raise ProtocolError(f"result {index}: it must have a verdict or an error")
    if error is not None:
        return _error(_object(message, "error"), id, index)
    return _verdict(_object(message, "verdict"), _optional_number(message, "reward"))


def _error(message: Json, id: str, index: int) -> ItemError:
    retry = message.get("retry_after_ms")
    return ItemError(
        _name(message, "code", "ERROR_CODE_"),
        _string(message, "message"),
        _string(message, "field"),
        None if retry is None else _whole(message, "retry_after_ms"),
        id,
        index,
    )


def _verdict(message: Json, reward: Optional[float]) -> Verdict:
    dimensions = _object(message, "dimensions")
    judge = _object(message, "judge")
    tokens = _object(message, "tokens")
    warnings = _object(message, "warnings")
    return Verdict(
        _string(message, "id"),
        _number(message, "s_prism"),
        DimensionVerdicts(
            _dimension(_object(dimensions, "task_framing")),
            _dimension(_object(dimensions, "interpersonal_stance")),
            _dimension(_object(dimensions, "linguistic_style")),
        ),
        _name(message, "weakest_dimension", "DIMENSION_"),
        _provenance(tuple([_string(judge, name) for name in _PROVENANCE])),
        TokenCounts(_whole(tokens, "prompt"), _whole(tokens, "computed")),
        bool(message.get("cached", False)),
        TextWarnings(_counts(_object(warnings, "response")), _counts(_object(warnings, "request"))),
        reward,
    )


# Verdicts of a reply share their provenance, and nearly all of them counts and label orders: each is made once.

_PROVENANCE = tuple(one.name for one in dataclasses.fields(Provenance))
_COUNTS = tuple(one.name for one in dataclasses.fields(TextCounts))


@functools.lru_cache(maxsize=64)
def _provenance(values: Tuple[str, ...]) -> Provenance:
    model, model_digest, prompt, labels, evidence, layout, order, calibration, numerics = values
    return Provenance(
        model,
        model_digest,
        prompt,
        labels,
        _short(evidence, "EVIDENCE_KIND_"),
        _short(layout, "LAYOUT_"),
        _short(order, "LABEL_ORDER_"),
        _short(calibration, "CALIBRATION_"),
        _short(numerics, "NUMERICS_"),
    )


def _counts(message: Json) -> TextCounts:
    return _text_counts(tuple([_whole(message, name) for name in _COUNTS]))


@functools.lru_cache(maxsize=64)
def _text_counts(values: Tuple[int, ...]) -> TextCounts:
    return TextCounts(*values)


def _dimension(message: Json) -> DimensionVerdict:
    orders = message.get("label_order")
    return DimensionVerdict(
        _number(message, "aligned"),
        _number(message, "indeterminate"),
        _number(message, "contradictory"),
        _number(message, "evidence"),
        _optional_number(message, "label_mass"),
        tuple([_order(_strings(one, "labels")) for one in objects(message, "label_order")]) if orders else (),
    )


@functools.lru_cache(maxsize=64)
def _order(labels: Tuple[str, ...]) -> Tuple[str, ...]:
    return tuple(_short(label, "LABEL_") for label in labels)


def _drifts(message: Json) -> DialogueDrift:
    return DialogueDrift(
        _drift(_object(message, "s_prism")),
        _drift(_object(message, "task_framing")),
        _drift(_object(message, "interpersonal_stance")),
        _drift(_object(message, "linguistic_style")),
    )


def _drift(message: Json) -> Drift:
    return Drift(
        _number(message, "mean"),
        _number(message, "slope"),
        _number(message, "change"),
        _number(message, "lowest"),
        _whole(message, "lowest_turn"),
    )


def _ranked(message: Json) -> RankedCandidate:
    return RankedCandidate(
        _string(message, "id"),
        _whole(message, "index"),
        _whole(message, "rank"),
        _number(message, "value"),
        _number(message, "margin"),
        _verdict(_object(message, "verdict"), None),
    )


def _object(message: Json, name: str) -> Json:
    value = message.get(name)
    if not isinstance(value, dict):
        raise ProtocolError(f"{name}: the answer has {_kind(value)} where an object must be")
    return value


def _list(message: Json, name: str) -> List[object]:
    value = message.get(name, [])
    if not isinstance(value, list):
        raise ProtocolError(f"{name}: the answer has {_kind(value)} where a list must be")
    return value


def _strings(message: Json, name: str) -> Tuple[str, ...]:
    values = _list(message, name)
    if not all(isinstance(value, str) for value in values):
        raise ProtocolError(f"{name}: the answer has something in it that is no text")
    return tuple(cast(List[str], values))


def _string(message: Json, name: str) -> str:
    value = message.get(name, "")
    if not isinstance(value, str):
        raise ProtocolError(f"{name}: the answer has {_kind(value)} where a text must be")
    return value


def _number(message: Json, name: str) -> float:
    value = message.get(name)
    if type(value) is float and math.isfinite(value):
        return value
    if type(value) is int and abs(value) < 1 << 53:
        return float(value)
    raise ProtocolError(f"{name}: the answer has {_kind(value)} where a finite number must be")


def _optional_number(message: Json, name: str) -> Optional[float]:
    return None if message.get(name) is None else _number(message, name)


def _whole(message: Json, name: str) -> int:
    """A whole number; 64-bit ones are decimal strings in JSON."""
    value = message.get(name, 0)
    if type(value) is int and value >= 0:
        return value
    if isinstance(value, str) and len(value) <= 20 and value.isascii() and value.isdigit():
        return int(value)
    raise ProtocolError(f"{name}: the answer has {_kind(value)} where a whole number must be")


def _name(message: Json, name: str, prefix: str) -> str:
    return _short(_string(message, name), prefix)


def _short(name: str, prefix: str) -> str:
    """The short name of an enumeration's value."""
    return name[len(prefix) :].lower() if name.startswith(prefix) else name


def _kind(value: object) -> str:
    return "nothing" if value is None else f"a {type(value).__name__}"
