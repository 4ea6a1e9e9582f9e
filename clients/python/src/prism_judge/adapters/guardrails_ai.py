"""guardrails-ai: a validator.

::

    guard = Guard().use(PersonaFidelity(persona_id="poirot", on_fail="exception"))
    guard.validate(reply, metadata={"prompt": messages})

A call's metadata may hold ``prompt`` (a text or messages: the dialogue before the reply), ``persona_id`` or
``persona``. Only a reply that the policy blocks fails; ``prism_judge`` in the result's metadata says how any reply was
checked.

A reply that streams is judged only with ``on_fail="fix"``: it is then held back, judged once, whole, and replaced by
``refusal`` if it is blocked. With any other action guardrails-ai 0.11 shows each piece at once and never says that the
reply has ended (guardrails/validator_service/sequential_validator_service.py), so that is refused.
"""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Optional, Union

from ..errors import InvalidInputError
from ..types import OnError, Options
from . import _host, _texts
from ._guard import Guard, PolicyLike, report
from ._settings import PersonaText, Settings, Thinking, Who

try:
    from guardrails import OnFailAction
    from guardrails.validator_base import FailResult, PassResult, ValidationResult, Validator, register_validator
except ImportError as error:
    raise _host.missing("guardrails-ai", "guardrails-ai") from error


@register_validator(name="prism-judge/persona-fidelity", data_type="string")
class PersonaFidelity(Validator):
    """Whether a reply sounds like its persona.

    ``policy`` is a ``Policy``, the name of one that the judge has, or ``None`` for its ``default``. ``on_error``
    decides when there is no judgement. ``refusal`` is what ``on_fail="fix"`` says in place of a blocked reply.
    """

    def __init__(
        self,
        persona_id: Optional[str] = None,
        persona: Optional[PersonaText] = None,
        policy: PolicyLike = None,
        on_error: Optional[OnError] = None,
        refusal: str = "",
        url: Optional[str] = None,
        api_key: Optional[str] = None,
        timeout: Optional[float] = None,
        options: Optional[Options] = None,
        thinking: Thinking = "strip",
        on_fail: Union[str, Callable[..., Any], None] = None,
    ) -> None:
        super().__init__(on_fail=on_fail, persona_id=persona_id, policy=policy if isinstance(policy, str) else None)
        self._refusal = refusal
        self._guard = Guard(Settings(url, api_key, persona_id, persona, timeout, options, thinking), policy, on_error)

    def _validate(self, value: Any, metadata: Dict[str, Any]) -> ValidationResult:
        who = Who.of(metadata.get("persona_id"), metadata.get("persona"), "metadata.persona")
        check = self._guard.check(str(value), _texts.context(metadata.get("prompt", ""), "metadata.prompt"), who)
        # What a validator returns is the metadata of the next one.
        told = {**metadata, "prism_judge": report(check)}
        if check.decision == "block":
            return FailResult(error_message=check.reason, fix_value=self._refusal, metadata=told)
        return PassResult(metadata=told)

    def validate_stream(self, chunk: Any, metadata: Dict[str, Any], **kwargs: Any) -> Optional[ValidationResult]:
        if self.on_fail_descriptor != OnFailAction.FIX:
            raise InvalidInputError("on_fail", 'it must be "fix" for a reply that streams: no other waits for its end')
        return super().validate_stream(chunk, metadata, **kwargs)

    def _chunking_function(self, chunk: str) -> List[str]:
        """No piece of a reply is judged by itself."""
        return []
