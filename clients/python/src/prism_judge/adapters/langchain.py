"""LangChain 1.x: middleware that judges the model's reply before the agent hands it out.

::

    agent = create_agent(model, tools, middleware=[PersonaMiddleware(persona_id="poirot", retries=1)])

A reply that the policy blocks is taken back and the model is asked again, ``retries`` times; then ``refusal`` stands in
its place. Messages that call tools are not judged. A reply's ``response_metadata["prism_judge"]`` says how it was
checked.
"""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Optional, Union

from ..types import CheckResult, OnError, Options
from . import _host, _texts
from ._guard import Guard, PolicyLike, report
from ._settings import PersonaText, Settings, Thinking, Who

try:
    from langchain.agents.middleware import AgentMiddleware, AgentState, hook_config
    from langchain_core.messages import AIMessage, HumanMessage, RemoveMessage
except ImportError as error:
    raise _host.missing("langchain", "langchain") from error

NAME = "prism_judge"
"""The name of the messages that ask again; they are gone once a reply stands."""


class PersonaMiddleware(AgentMiddleware):
    """Judges replies; see this file's own text.

    ``persona_id`` may be a function of the run's context, for applications with many personas. ``policy`` is a
    ``Policy``, the name of one that the judge has, or ``None`` for its ``default``. ``on_error`` decides when there is
    no judgement.
    """

    def __init__(
        self,
        *,
        persona_id: Union[str, Callable[[Any], str], None] = None,
        persona: Optional[PersonaText] = None,
        policy: PolicyLike = None,
        on_error: Optional[OnError] = None,
        retries: int = 0,
        refusal: str = "I cannot answer that the way I should.",
        url: Optional[str] = None,
        api_key: Optional[str] = None,
        timeout: Optional[float] = None,
        options: Optional[Options] = None,
        thinking: Thinking = "strip",
    ) -> None:
        super().__init__()
        self._of_run = persona_id if callable(persona_id) else None
        fixed = None if callable(persona_id) else persona_id
        self._guard = Guard(Settings(url, api_key, fixed, persona, timeout, options, thinking), policy, on_error)
        self._retries = retries
        self._refusal = refusal

    @hook_config(can_jump_to=["model", "end"])
    def after_model(self, state: AgentState, runtime: Any) -> Optional[Dict[str, Any]]:
        reply = _reply(state)
        if reply is None:
            return None
        return self._update(state, reply, self._guard.check(reply.text, _before(state), self._who(runtime)))

    @hook_config(can_jump_to=["model", "end"])
    async def aafter_model(self, state: AgentState, runtime: Any) -> Optional[Dict[str, Any]]:
        reply = _reply(state)
        if reply is None:
            return None
        return self._update(state, reply, await self._guard.acheck(reply.text, _before(state), self._who(runtime)))

    def _who(self, runtime: Any) -> Optional[Who]:
        return None if self._of_run is None else Who.of(self._of_run(runtime.context), None, "persona_id")

    def _update(self, state: AgentState, reply: AIMessage, check: CheckResult) -> Dict[str, Any]:
        asked = [message for message in state["messages"] if _asks_again(message)]
        if check.decision == "block" and len(asked) < self._retries:
            what = check.failed.replace("_", " ") or "persona"
            again = f"That reply was taken back: it is out of character ({what}). Answer again, in character."
            return {"messages": [RemoveMessage(id=reply.id), HumanMessage(again, name=NAME)], "jump_to": "model"}
        told = {**reply.response_metadata, NAME: report(check)}
        settled: List[Any] = [RemoveMessage(id=message.id) for message in asked]
        if check.decision == "block":
            settled.append(AIMessage(self._refusal, id=reply.id, response_metadata=told))
            return {"messages": settled, "jump_to": "end"}
        settled.append(reply.model_copy(update={"response_metadata": told}))
        return {"messages": settled}


def _reply(state: AgentState) -> Optional[AIMessage]:
    last = state["messages"][-1]
    return last if isinstance(last, AIMessage) and not last.tool_calls else None


def _before(state: AgentState) -> List[Any]:
    return _texts.turns(message for message in state["messages"][:-1] if not _asks_again(message))


def _asks_again(message: object) -> bool:
    return isinstance(message, HumanMessage) and message.name == NAME
