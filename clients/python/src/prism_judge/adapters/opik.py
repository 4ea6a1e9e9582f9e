"""Opik: a metric for ``opik.evaluate``.

::

    evaluate(dataset=..., task=..., scoring_metrics=[PersonaFidelity(persona_id="poirot")])

The task's answer and the item must give ``output`` (the reply) and may give ``input`` (the dialogue before it: a text
or messages) and ``persona_id`` or ``persona``. There is one result for S_PRISM and one for each dimension; of a reply
that cannot be judged, each says ``scoring_failed``.
"""

from __future__ import annotations

from typing import Any, List, Optional

from ..types import DIMENSIONS, ItemError, Options, Result
from . import _host, _rows
from ._settings import PersonaText, Settings, Thinking

try:
    from opik.evaluation.metrics.base_metric import BaseMetric
    from opik.evaluation.metrics.score_result import ScoreResult
except ImportError as error:
    raise _host.missing("opik", "opik") from error


class PersonaFidelity(BaseMetric):
    """Judges replies. ``persona_id`` or ``persona`` is for items that name nobody; ``name`` begins the results'
    names."""

    def __init__(
        self,
        name: str = "prism",
        track: bool = True,
        project_name: Optional[str] = None,
        *,
        persona_id: Optional[str] = None,
        persona: Optional[PersonaText] = None,
        url: Optional[str] = None,
        api_key: Optional[str] = None,
        timeout: Optional[float] = None,
        options: Optional[Options] = None,
        thinking: Thinking = "strip",
    ) -> None:
        super().__init__(name=name, track=track, project_name=project_name)
        self._settings = Settings(url, api_key, persona_id, persona, timeout, options, thinking)

    def score(
        self, output: Any, input: Any = None, persona_id: Any = None, persona: Any = None, **others: Any
    ) -> List[ScoreResult]:
        whose = {"persona_id": persona_id, "persona": persona}
        [result] = _rows.batch(self._settings, input, output, whose).judge()
        return self._results(result)

    async def ascore(
        self, output: Any, input: Any = None, persona_id: Any = None, persona: Any = None, **others: Any
    ) -> List[ScoreResult]:
        whose = {"persona_id": persona_id, "persona": persona}
        [result] = await _rows.batch(self._settings, input, output, whose).ajudge()
        return self._results(result)

    def _results(self, result: Result) -> List[ScoreResult]:
        names = [self.name, *(f"{self.name}_{dimension}" for dimension in DIMENSIONS)]
        if isinstance(result, ItemError):
            # Opik asks for a float even here, and reads `scoring_failed` before it.
            why = f"{result.code}: {result.message}"
            return [ScoreResult(name=name, value=float("nan"), reason=why, scoring_failed=True) for name in names]
        values = [result.s_prism, *(getattr(result.dimensions, dimension).evidence for dimension in DIMENSIONS)]
        why = f"weakest: {result.weakest_dimension.replace('_', ' ')}"
        return [ScoreResult(name=name, value=value, reason=why) for name, value in zip(names, values)]
