"""``create_agent`` runs the middleware around a scripted chat model."""

from __future__ import annotations

import asyncio
from typing import Any, List, Optional

import pytest

from .judge import Judge

pytest.importorskip("langchain.agents", reason="langchain is not installed")
from langchain.agents import create_agent
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.tools import tool
from pydantic import Field

from prism_judge.adapters.langchain import PersonaMiddleware

GOOD, BAD = "[0.9 0.8 0.7]", "[0.2 0.4 0.3]"
ASKED = [{"speaker": "User", "text": "Who did it?"}]


class Model(GenericFakeChatModel):
    """Says what it is given, and takes tools."""

    seen: List[List[BaseMessage]] = Field(default_factory=list)

    def bind_tools(self, tools: Any, **kwargs: Any) -> Model:
        return self

    def _generate(self, messages: List[BaseMessage], *args: Any, **kwargs: Any) -> Any:
        self.seen.append(messages)
        return super()._generate(messages, *args, **kwargs)


@tool
def look(where: str) -> str:
    """Looks somewhere."""
    return f"nothing in {where}"


def run(replies: List[Any], asynchronous: bool, context: Optional[Any] = None, **arguments: Any) -> Any:
    said = [AIMessage(reply) if isinstance(reply, str) else reply for reply in replies]
    model = Model(messages=iter(said))
    agent = create_agent(model, [look], middleware=[PersonaMiddleware(**arguments)])
    given = {"messages": [HumanMessage("Who did it?")]}
    if asynchronous:
        return asyncio.run(agent.ainvoke(given, context=context)), model
    return agent.invoke(given, context=context), model


@pytest.fixture(params=[False, True], ids=["invoke", "ainvoke"])
def asynchronous(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


def test_a_reply_in_character_stands_and_tells_its_check(judge: Judge, asynchronous: bool) -> None:
    state, _ = run([GOOD], asynchronous, persona_id="poirot")
    assert [message.text for message in state["messages"]] == ["Who did it?", GOOD]
    assert state["messages"][-1].response_metadata["prism_judge"]["status"] == "allow"
    assert judge.asked("Check")[0]["context"] == ASKED


def test_a_reply_out_of_character_is_replaced(judge: Judge, asynchronous: bool) -> None:
    state, _ = run([BAD], asynchronous, persona_id="poirot", refusal="Pardon?")
    assert [message.text for message in state["messages"]] == ["Who did it?", "Pardon?"]
    assert state["messages"][-1].response_metadata["prism_judge"]["status"] == "block"


def test_the_model_may_try_again_and_leaves_no_trace(judge: Judge, asynchronous: bool) -> None:
    state, model = run([BAD, BAD, GOOD], asynchronous, persona_id="poirot", retries=2)
    assert [message.text for message in state["messages"]] == ["Who did it?", GOOD]
    assert "out of character" in model.seen[1][-1].text
    assert [body["context"] for body in judge.asked("Check")] == [ASKED] * 3


def test_the_model_does_not_try_for_ever(judge: Judge, asynchronous: bool) -> None:
    state, model = run([BAD, BAD, GOOD], asynchronous, persona_id="poirot", retries=1, refusal="Pardon?")
    assert [message.text for message in state["messages"]] == ["Who did it?", "Pardon?"]
    assert len(model.seen) == 2


def test_calls_of_tools_are_not_judged(judge: Judge, asynchronous: bool) -> None:
    call = AIMessage("Let me look.", tool_calls=[{"name": "look", "args": {"where": "the pantry"}, "id": "1"}])
    state, _ = run([call, GOOD], asynchronous, persona_id="poirot")
    assert state["messages"][-1].text == GOOD
    assert len(judge.asked("Check")) == 1
    looked = [{"speaker": "Assistant", "text": "Let me look."}, {"speaker": "tool", "text": "nothing in the pantry"}]
    assert judge.asked("Check")[0]["context"] == ASKED + looked


def test_the_persona_may_come_from_the_runs_context(judge: Judge, asynchronous: bool) -> None:
    run([GOOD], asynchronous, {"character": "marple"}, persona_id=lambda context: context["character"])
    assert judge.asked("Check")[0]["persona_id"] == "marple"


def test_an_outage_shows_the_reply_and_says_so(judge: Judge, asynchronous: bool) -> None:
    judge.down = True
    state, _ = run([BAD], asynchronous, persona_id="poirot", timeout=0.2)
    assert state["messages"][-1].text == BAD
    assert state["messages"][-1].response_metadata["prism_judge"]["status"] == "error"
