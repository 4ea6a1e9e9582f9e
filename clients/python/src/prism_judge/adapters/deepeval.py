"""DeepEval: a conversational metric that can stand where ``RoleAdherenceMetric`` does.

::

    case = ConversationalTestCase(turns=[...], chatbot_role="A vain Belgian detective who speaks of himself by name.")
    evaluate([case], [PersonaFidelityMetric(threshold=0.5)])

Every assistant turn is judged in its place in the dialogue; the score is the mean of S_PRISM. ``score_breakdown`` has
the mean evidence of each dimension, and S_PRISM turn by turn. A turn that cannot be judged is an error, never a score.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar, Dict, List, Optional, Tuple

from ..errors import JudgementError
from ..types import DIMENSIONS, DialogueResult, ItemError, Options, Turn
from . import _host, _texts
from ._batch import verdict
from ._settings import BATCH_TIMEOUT, PersonaText, Settings, Thinking, Who

try:
    from deepeval.errors import MissingTestCaseParamsError
    from deepeval.metrics import BaseConversationalMetric
    from deepeval.test_case import ConversationalTestCase, MultiTurnParams
except ImportError as error:
    raise _host.missing("deepeval", "deepeval") from error

_AGENT = _texts.AGENT


class PersonaFidelityMetric(BaseConversationalMetric):
    """How much a chatbot sounds like its persona, in [0, 1].

    The persona is ``persona_id`` or ``persona``, else the test case's ``chatbot_role``, else the environment's.
    """

    _required_test_case_params: ClassVar[List[MultiTurnParams]] = [MultiTurnParams.CONTENT, MultiTurnParams.ROLE]

    score: Optional[float]
    score_breakdown: Optional[Dict[str, float]]
    reason: Optional[str]
    success: Optional[bool]
    error: Optional[str]

    def __init__(
        self,
        threshold: Optional[float] = 0.5,
        *,
        persona_id: Optional[str] = None,
        persona: Optional[PersonaText] = None,
        include_reason: bool = True,
        async_mode: bool = True,
        strict_mode: bool = False,
        verbose_mode: bool = False,
        url: Optional[str] = None,
        api_key: Optional[str] = None,
        timeout: Optional[float] = None,
        options: Optional[Options] = None,
        thinking: Thinking = "strip",
    ) -> None:
        # DeepEval copies a metric by its attributes that have the names of these arguments.
        self.threshold = 1.0 if strict_mode else threshold
        self.persona_id = persona_id
        self.persona = persona
        self.include_reason = include_reason
        self.async_mode = async_mode
        self.strict_mode = strict_mode
        self.verbose_mode = verbose_mode
        self.url = url
        self.api_key = api_key
        self.timeout = timeout
        self.options = options
        self.thinking = thinking
        self.evaluation_model = "prism-judge"

    def measure(self, test_case: ConversationalTestCase, *args: Any, **kwargs: Any) -> float:
        settings, call = self._call(test_case)
        return self._conclude(settings.client().score_dialogue(**call))

    async def a_measure(self, test_case: ConversationalTestCase, *args: Any, **kwargs: Any) -> float:
        settings, call = self._call(test_case)
        return self._conclude(await settings.async_client().score_dialogue(**call))

    @property
    def __name__(self) -> str:
        return "Persona Fidelity"

    def _call(self, test_case: ConversationalTestCase) -> Tuple[Settings, Dict[str, Any]]:
        self.score = self.score_breakdown = self.reason = self.success = self.error = None
        given = Settings(
            self.url, self.api_key, self.persona_id, self.persona, self.timeout, self.options, self.thinking
        )
        settings = given.resolved(BATCH_TIMEOUT)
        who = given.who() or Who.of(None, test_case.chatbot_role, "chatbot_role") or settings.who()
        turns = [
            Turn(_AGENT if turn.role == "assistant" else _texts.USER, self._text(turn)) for turn in test_case.turns
        ]
        if who is None or not any(turn.speaker == _AGENT for turn in turns):
            what = "a chatbot_role, a persona_id or a persona" if who is None else "a turn of the assistant"
            self.error = f"{self.__name__} needs {what}"
            raise MissingTestCaseParamsError(self.error)
        return settings, {
            "turns": turns,
            "agent": _AGENT,
            "persona": who.persona,
            "persona_id": who.persona_id,
            "options": settings.options,
            "lane": "batch",
            "timeout": settings.timeout,
        }

    def _text(self, turn: Any) -> str:
        text: str = turn.content
        return _texts.aloud(text) if self.thinking == "strip" and turn.role == "assistant" else text

    def _conclude(self, judged: DialogueResult) -> float:
        errors = [replace(one.result, index=one.turn) for one in judged.results if isinstance(one.result, ItemError)]
        drift = judged.drift
        if errors or drift is None:
            raise JudgementError(errors)
        verdicts = {one.turn: verdict(one.result) for one in judged.results}
        lowest = verdicts[drift.s_prism.lowest_turn]
        score = 0.0 if self.strict_mode and drift.s_prism.mean < 1.0 else drift.s_prism.mean
        self.score = score
        self.score_breakdown = {
            **{dimension: getattr(drift, dimension).mean for dimension in DIMENSIONS},
            **{f"turn_{turn}": found.s_prism for turn, found in verdicts.items()},
        }
        if self.include_reason:
            weakest = lowest.weakest_dimension.replace("_", " ")
            self.reason = (
                f"S_PRISM is {drift.s_prism.mean:.2f} on average over {len(verdicts)} turns and least at turn "
                f"{drift.s_prism.lowest_turn} ({drift.s_prism.lowest:.2f}), where {weakest} is weakest"
            )
        self.evaluation_model = lowest.judge.model
        self.is_successful()
        return score
