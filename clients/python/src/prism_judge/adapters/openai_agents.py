"""OpenAI Agents SDK: an output guardrail.

::

    agent = Agent(..., output_guardrails=[persona_guardrail(persona_id="poirot")])

A reply that the policy blocks trips the wire: the run ends with ``OutputGuardrailTripwireTriggered``, whose
``guardrail_result.output.output_info`` says why. The dialogue before the reply is the input of the run.
"""

from __future__ import annotations

from typing import Any, Callable, Optional, Union

from ..errors import InvalidInputError
from ..types import OnError, Options
from . import _host, _texts
from ._guard import Guard, PolicyLike, report
from ._settings import PersonaText, Settings, Thinking, Who

try:
    from agents import Agent, GuardrailFunctionOutput, OutputGuardrail, RunContextWrapper
except ImportError as error:
    raise _host.missing("openai-agents", "openai-agents") from error


def persona_guardrail(
    *,
    persona_id: Union[str, Callable[[Any], str], None] = None,
    persona: Optional[PersonaText] = None,
    policy: PolicyLike = None,
    on_error: Optional[OnError] = None,
    text: Optional[Callable[[Any], str]] = None,
    name: str = "prism_judge",
    url: Optional[str] = None,
    api_key: Optional[str] = None,
    timeout: Optional[float] = None,
    options: Optional[Options] = None,
    thinking: Thinking = "strip",
) -> OutputGuardrail[Any]:
    """A guardrail that judges the final output.

    ``persona_id`` may be a function of the run's context, for applications with many personas. ``policy`` is a
    ``Policy``, the name of one that the judge has, or ``None`` for its ``default``. ``on_error`` decides when there is
    no judgement. ``text`` makes the text to judge of an output that is not one itself.
    """
    of_run = persona_id if callable(persona_id) else None
    settings = Settings(url, api_key, None if callable(persona_id) else persona_id, persona, timeout, options, thinking)
    guard = Guard(settings, policy, on_error)

    async def judge(context: RunContextWrapper[Any], agent: Agent[Any], output: Any) -> GuardrailFunctionOutput:
        if text is not None:
            output = text(output)
        if not isinstance(output, str):
            raise InvalidInputError(
                "output", f"it is a {type(output).__name__}, not a text: give text=, a function of it"
            )
        who = None if of_run is None else Who.of(of_run(context.context), None, "persona_id")
        # Items without a role are calls of tools and their results.
        said = _texts.turns(item for item in context.turn_input if "role" in item)
        check = await guard.acheck(output, said, who)
        return GuardrailFunctionOutput(output_info=report(check), tripwire_triggered=check.decision == "block")

    return OutputGuardrail(guardrail_function=judge, name=name)
