"""Ragas: a numeric metric.

::

    result = await PersonaFidelity(persona_id="poirot").ascore(user_input="Who did it?", response="Patience, mon ami.")

``user_input`` is the dialogue before the reply, a text or messages. The value is S_PRISM, and ``traces["output"]`` has
the three evidences. A reply that cannot be judged has the value ``None`` and a reason.
"""

from __future__ import annotations

from typing import Any, Optional

from ..types import DIMENSIONS, ItemError, Options, Result
from . import _host, _rows
from ._settings import PersonaText, Settings, Thinking

try:
    from ragas.metrics.base import SimpleBaseMetric
    from ragas.metrics.result import MetricResult
    from ragas.metrics.validators import NumericValidator
except ImportError as error:
    raise _host.missing("ragas", "ragas") from error


class PersonaFidelity(SimpleBaseMetric, NumericValidator):
    """Judges replies. ``persona_id`` or ``persona`` is for rows that name nobody."""

    def __init__(
        self,
        name: str = "prism",
        *,
        persona_id: Optional[str] = None,
        persona: Optional[PersonaText] = None,
        url: Optional[str] = None,
        api_key: Optional[str] = None,
        timeout: Optional[float] = None,
        options: Optional[Options] = None,
        thinking: Thinking = "strip",
    ) -> None:
        super().__init__(name=name, allowed_values=(0.0, 1.0))
        self._settings = Settings(url, api_key, persona_id, persona, timeout, options, thinking)

    def score(
        self, *, response: Any, user_input: Any = None, persona_id: Any = None, persona: Any = None, **others: Any
    ) -> MetricResult:
        whose = {"persona_id": persona_id, "persona": persona}
        [result] = _rows.batch(self._settings, user_input, response, whose).judge()
        return _metric_result(result)

    async def ascore(
        self, *, response: Any, user_input: Any = None, persona_id: Any = None, persona: Any = None, **others: Any
    ) -> MetricResult:
        whose = {"persona_id": persona_id, "persona": persona}
        [result] = await _rows.batch(self._settings, user_input, response, whose).ajudge()
        return _metric_result(result)


def _metric_result(result: Result) -> MetricResult:
    if isinstance(result, ItemError):
        return MetricResult(None, reason=f"{result.code}: {result.message}")
    evidence = {dimension: getattr(result.dimensions, dimension).evidence for dimension in DIMENSIONS}
    weakest = result.weakest_dimension.replace("_", " ")
    return MetricResult(result.s_prism, reason=f"weakest: {weakest}", traces={"output": evidence})
