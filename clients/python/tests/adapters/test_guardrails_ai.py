"""guardrails-ai's own ``Guard`` runs the validator."""

from __future__ import annotations

import asyncio
from typing import Any, Iterator, List

import pytest

from .judge import Judge

pytest.importorskip("guardrails", reason="guardrails-ai is not installed")
from guardrails import AsyncGuard, Guard
from guardrails.errors import ValidationError

from prism_judge import InvalidInputError
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


def stream(reply: str, **arguments: Any) -> List[str]:
    def model(*args: Any, messages: Any, **kwargs: Any) -> Iterator[str]:
        yield from ("Patience. ", "I know. ", reply)

    asked = [{"role": "user", "content": "Who did it?"}]
    guard = Guard().use(validator(**arguments))
    return [piece.validated_output for piece in guard(model, stream=True, messages=asked)]


@pytest.mark.parametrize(("reply", "shown"), [(GOOD, f"Patience. I know. {GOOD}"), (BAD, "Pardon?")])
def test_a_streamed_reply_is_held_back_and_judged_once(judge: Judge, reply: str, shown: str) -> None:
    assert "".join(stream(reply, on_fail="fix", refusal="Pardon?")) == shown
    assert [body["candidate"]["response"] for body in judge.asked("Check")] == [f"Patience. I know. {reply}"]


def test_a_stream_is_refused_where_the_host_would_show_it_unjudged(judge: Judge) -> None:
    with pytest.raises(InvalidInputError, match="on_fail"):
        stream(BAD)


def test_an_outage_is_decided_by_on_error(judge: Judge) -> None:
    judge.down = True
    assert Guard().use(validator(timeout=0.2)).validate(BAD).validation_passed
    assert not Guard().use(validator(timeout=0.2, on_error="block")).validate(GOOD).validation_passed
