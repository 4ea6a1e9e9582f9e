"""NeMo Guardrails: an action for output rails.

In ``config.py`` beside the rails' configuration::

    from prism_judge.adapters.nemo_guardrails import make_action

    def init(app):
        app.register_action(make_action(persona_id="poirot"), "prism_judge_check")

and in a Colang 1.0 flow that ``rails.output.flows`` names::

    define subflow prism judge
      $outcome = execute prism_judge_check
      if $outcome.is_blocked
        bot refuse to respond
        stop

The action's parameter or the context variable ``persona_id`` goes before the persona given here.
"""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Mapping, Optional

from ..types import OnError, Options, Turn
from . import _host, _texts
from ._guard import Guard, PolicyLike, report
from ._settings import PersonaText, Settings, Thinking, Who

try:
    from nemoguardrails.actions import action
    from nemoguardrails.actions.rail_outcome import RailOutcome
except ImportError as error:
    raise _host.missing("nemoguardrails", "nemo-guardrails") from error


def make_action(
    *,
    persona_id: Optional[str] = None,
    persona: Optional[PersonaText] = None,
    policy: PolicyLike = None,
    on_error: Optional[OnError] = None,
    name: str = "prism_judge_check",
    url: Optional[str] = None,
    api_key: Optional[str] = None,
    timeout: Optional[float] = None,
    options: Optional[Options] = None,
    thinking: Thinking = "strip",
) -> Callable[..., Any]:
    """An action that judges the bot's message and returns a ``RailOutcome``, whose metadata says how it was checked.

    ``policy`` is a ``Policy``, the name of one that the judge has, or ``None`` for its ``default``. ``on_error``
    decides when there is no judgement.
    """
    guard = Guard(Settings(url, api_key, persona_id, persona, timeout, options, thinking), policy, on_error)

    @action(name=name, is_system_action=True)
    async def prism_judge_check(
        context: Optional[Mapping[str, Any]] = None,
        events: Optional[List[Dict[str, Any]]] = None,
        persona_id: Optional[str] = None,
        **others: Any,
    ) -> RailOutcome:
        known = context or {}
        who = Who.of(persona_id or known.get("persona_id"), None, "persona_id")
        check = await guard.acheck(known.get("bot_message") or "", _dialogue(events or [], known), who)
        if check.decision == "block":
            return RailOutcome.block(reason=check.reason, metadata=report(check))
        return RailOutcome.allow(reason=check.reason, metadata=report(check))

    return prism_judge_check


def _dialogue(events: List[Dict[str, Any]], known: Mapping[str, Any]) -> List[Turn]:
    """The turns that have been said; without a history of events, the user's last message."""
    said = []
    for event in events:
        if event.get("type") == "UtteranceUserActionFinished":
            said.append({"role": "user", "content": event.get("final_transcript")})
        elif event.get("type") == "StartUtteranceBotAction":
            said.append({"role": "assistant", "content": event.get("script")})
    return _texts.turns(said or [{"role": "user", "content": known.get("user_message")}])
