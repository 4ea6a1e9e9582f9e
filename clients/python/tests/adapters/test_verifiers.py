"""A task of verifiers, with the judge plugged in by its configuration, scores a rollout."""

from __future__ import annotations

import asyncio
from typing import Any, Callable

import pytest

from .judge import Judge

vf = pytest.importorskip("verifiers.v1", reason="verifiers is not installed")
from verifiers.v1.types import AssistantMessage, SystemMessage, UserMessage  # noqa: E402

PLUGGED = vf.TaskConfig(
    rewards={"prism": {"fn": "prism_judge.adapters.verifiers:score"}},
    metrics={"prism_dimensions": {"fn": "prism_judge.adapters.verifiers:dimensions"}},
)
SAID = [
    SystemMessage(content="You are Poirot."),
    UserMessage(content="Who did it?"),
    AssistantMessage(content="Patience."),
    UserMessage(content="Now?"),
]
TURNS = [("User", "Who did it?"), ("Assistant", "Patience."), ("User", "Now?")]


class Data(vf.TaskData):
    persona_id: str = ""


def score(reply: str, **columns: Any) -> Any:
    data = Data(idx=0, prompt="Who did it?", **columns)
    messages = [*SAID, AssistantMessage(content=reply)]
    nodes = [
        vf.MessageNode(parent=place - 1 if place else None, message=message, sampled=message.role == "assistant")
        for place, message in enumerate(messages)
    ]
    trace = vf.Trace(
        task=vf.TraceTask(type="Task", data=data), agent=vf.AgentInfo(config=vf.AgentConfig()), nodes=nodes
    )
    asyncio.run(vf.Task(data, PLUGGED).score(trace))
    return trace


def test_a_rollout_is_judged_after_its_dialogue(judge: Judge, expected: Callable[..., float]) -> None:
    trace = score("It was you.", persona_id="poirot")
    assert trace.rewards["prism"].score == expected("It was you.", TURNS, persona_id="poirot")
    assert set(trace.metrics) == {"prism_task_framing", "prism_interpersonal_stance", "prism_linguistic_style"}


def test_the_default_persona_is_the_environments(judge: Judge, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PRISM_JUDGE_PERSONA", "marple")
    score("It was you.")
    assert {body["persona_id"] for body in judge.asked("ScoreGroup")} == {"marple"}


@pytest.mark.parametrize("reply", ["", "[error internal]"])
def test_a_rollout_that_cannot_be_judged_has_failed(judge: Judge, reply: str) -> None:
    with pytest.raises(vf.TaskError, match="could not be judged"):
        score(reply, persona_id="poirot")
