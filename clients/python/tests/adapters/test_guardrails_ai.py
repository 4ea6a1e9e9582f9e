"""guardrails-ai's own ``Guard`` runs the validator."""

from __future__ import annotations

import asyncio
from typing import Any, Iterator

import pytest

from .judge import Judge

pytest.importorskip("guardrails", reason="guardrails-ai is not installed")
from guardrails import AsyncGuard, Guard
from guardrails.errors import ValidationError

from prism_judge.adapters.guardrails_ai import PersonaFidelity

GOOD, BAD = "[0.9 0.8 0.7]", "[0.2 0.4 0.3]"


def validator(**arguments: Any) -> PersonaFidelity:
    return PersonaFidelity(**{"persona_id": "poirot", "on_fail": "noop", **arguments})


def test_a_guard_passes_what_is_in_character(judge: Judge) -> None:
    outcome = Guard().use(validator()).validate(GOOD)
    assert outcome.validation_passed
    assert outcome.validated_output == GOOD


def test_a_guard_fails_what_is_not(judge: Judge) -> None:
    outcome = Guard().use(validator()).validate(BAD)
    assert not outcome.validation_passed
    assert "below 0.5" in outcome.validation_summaries[0].failure_reason


def test_a_guard_raises_if_it_is_told_to(judge: Judge) -> None:
    with pytest.raises(ValidationError, match="below"):
        Guard().use(validator(on_fail="exception")).validate(BAD)


def test_an_async_guard_does_the_same(judge: Judge) -> None:
    guard = AsyncGuard().use(validator())
    assert asyncio.run(guard.validate(GOOD)).validation_passed
    assert not asyncio.run(guard.validate(BAD)).validation_passed


def test_a_call_brings_its_dialogue_and_its_persona(judge: Judge) -> None:
    prompt = [{"role": "user", "content": "Who did it?"}]
    Guard().use(validator()).validate(GOOD, metadata={"prompt": prompt, "persona_id": "marple"})
    [body] = judge.asked("Check")
    assert body["persona_id"] == "marple"
    assert body["context"] == [{"speaker": "User", "text": "Who did it?"}]


def test_a_streamed_reply_is_judged_once_and_whole(judge: Judge) -> None:
    def stream(*args: Any, **kwargs: Any) -> Iterator[str]:
        yield from ("Patience. ", "I know. ", BAD)

    pieces = list(Guard().use(validator())(stream, stream=True, messages=[{"role": "user", "content": "Who did it?"}]))
    assert [body["candidate"]["response"] for body in judge.asked("Check")] == [f"Patience. I know. {BAD}"]
    assert not pieces[-1].validation_passed


def test_an_outage_is_decided_by_on_error(judge: Judge) -> None:
    judge.down = True
    assert Guard().use(validator(timeout=0.2)).validate(BAD).validation_passed
    assert not Guard().use(validator(timeout=0.2, on_error="block")).validate(GOOD).validation_passed
