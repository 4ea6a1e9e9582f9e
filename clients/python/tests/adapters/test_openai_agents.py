"""The SDK's own runner calls the guardrail on what a scripted model says."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

import pytest

from prism_judge import InvalidInputError, Policy, Thresholds

from .judge import Judge

agents = pytest.importorskip("agents", reason="openai-agents is not installed")
from agents import Agent, OutputGuardrailTripwireTriggered, RunConfig, Runner  # noqa: E402
from agents.testing import ModelStep, ScriptedModel, assistant_message  # noqa: E402

from prism_judge.adapters.openai_agents import persona_guardrail  # noqa: E402


def run(reply: str, said: Any = "Who did it?", context: Any = None, **arguments: Any) -> Any:
    model = ScriptedModel([ModelStep(output=[assistant_message(reply)])])
    agent = Agent(name="detective", model=model, output_guardrails=[persona_guardrail(**arguments)])
    return asyncio.run(Runner.run(agent, said, context=context, run_config=RunConfig(tracing_disabled=True)))


def test_a_reply_in_character_passes_and_its_check_is_told(judge: Judge) -> None:
    result = run("[0.9 0.8 0.7]", persona_id="poirot")
    assert result.final_output == "[0.9 0.8 0.7]"
    [checked] = result.output_guardrail_results
    assert checked.guardrail.get_name() == "prism_judge"
    assert checked.output.output_info["status"] == "allow"
    assert checked.output.output_info["s_prism"] == pytest.approx(0.8)


def test_a_reply_out_of_character_trips_the_wire(judge: Judge) -> None:
    with pytest.raises(OutputGuardrailTripwireTriggered) as raised:
        run("[0.2 0.9 0.9]", persona_id="poirot", policy=Policy(block=Thresholds(task_framing=0.5)))
    assert raised.value.guardrail_result.output.output_info["failed"] == "task_framing"


def test_the_judge_gets_the_whole_dialogue(judge: Judge) -> None:
    said = [
        {"role": "user", "content": "Who did it?"},
        {"role": "assistant", "content": [{"type": "output_text", "text": "Patience."}]},
        {"role": "user", "content": [{"type": "input_text", "text": "Now?"}]},
    ]
    run("[0.9 0.8 0.7]", said, persona_id="poirot")
    assert judge.asked("Check")[0]["context"] == [
        {"speaker": "User", "text": "Who did it?"},
        {"speaker": "Assistant", "text": "Patience."},
        {"speaker": "User", "text": "Now?"},
    ]


def test_the_persona_may_come_from_the_runs_context(judge: Judge) -> None:
    @dataclass
    class Session:
        character: str

    run("[0.9 0.8 0.7]", context=Session("marple"), persona_id=lambda session: session.character)
    assert judge.asked("Check")[0]["persona_id"] == "marple"


@pytest.mark.parametrize("on_error", ["allow", "block"])
def test_an_outage_is_decided_by_on_error(judge: Judge, on_error: Any) -> None:
    judge.down = True
    arguments = {"persona_id": "poirot", "timeout": 0.2, "on_error": on_error}
    if on_error == "block":
        with pytest.raises(OutputGuardrailTripwireTriggered):
            run("[0.9 0.8 0.7]", **arguments)
        return
    [checked] = run("[0.9 0.8 0.7]", **arguments).output_guardrail_results
    assert checked.output.output_info["status"] == "error"


def test_an_output_that_is_no_text_needs_to_become_one(judge: Judge) -> None:
    guardrail = persona_guardrail(persona_id="poirot", text=lambda output: output["reply"])
    context = agents.RunContextWrapper(None)
    agent = Agent(name="detective")
    checked = asyncio.run(guardrail.run(context, agent, {"reply": "[0.9 0.8 0.7]"}))
    assert not checked.output.tripwire_triggered
    with pytest.raises(InvalidInputError, match="text="):
        asyncio.run(persona_guardrail(persona_id="poirot").run(context, agent, {"reply": "Yes."}))
