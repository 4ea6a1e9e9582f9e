"""Langfuse: an evaluator for experiments, and scores for traces.

::

    langfuse.run_experiment(name=..., data=..., task=..., evaluators=[persona_evaluator(persona_id="poirot")])

An item's ``metadata`` or ``input`` may have ``persona_id`` or ``persona``. There is a numeric score for S_PRISM and for
each dimension, a categorical one for the likeliest label of each dimension, and ``prism_status``: ``ok``, or why there
is no verdict and so no other score.
"""

from __future__ import annotations

from typing import Any, Awaitable, Callable, Dict, List, Optional

from ..types import DIMENSIONS, ItemError, Options, Result
from . import _host, _rows
from ._settings import PersonaText, Settings, Thinking

try:
    from langfuse import Evaluation
except ImportError as error:
    raise _host.missing("langfuse", "langfuse") from error

LABELS = ("aligned", "indeterminate", "contradictory")


def persona_evaluator(
    *,
    name: str = "prism",
    persona_id: Optional[str] = None,
    persona: Optional[PersonaText] = None,
    url: Optional[str] = None,
    api_key: Optional[str] = None,
    timeout: Optional[float] = None,
    options: Optional[Options] = None,
    thinking: Thinking = "strip",
) -> Callable[..., Awaitable[List[Evaluation]]]:
    """An evaluator of ``run_experiment``. ``persona_id`` or ``persona`` is for items that name nobody; ``name`` begins
    the names of the scores."""
    settings = Settings(url, api_key, persona_id, persona, timeout, options, thinking)

    async def prism(*, input: Any, output: Any, metadata: Any = None, **others: Any) -> List[Evaluation]:
        [result] = await _rows.batch(settings, input, output, metadata).ajudge()
        return [Evaluation(**score) for score in scores(result, name)]

    return prism


def scores(result: Result, name: str = "prism") -> List[Dict[str, Any]]:
    """The scores of a result, as arguments of ``Langfuse.create_score`` and ``span.score``."""
    if isinstance(result, ItemError):
        return [_category(f"{name}_status", result.code, result.message)]
    found = [_category(f"{name}_status", "ok"), _number(f"{name}_s", result.s_prism)]
    for dimension in DIMENSIONS:
        judged = getattr(result.dimensions, dimension)
        found.append(_number(f"{name}_{dimension}", judged.evidence))
        found.append(_category(f"{name}_{dimension}_label", max(LABELS, key=lambda label: getattr(judged, label))))
    return found


def _number(name: str, value: float) -> Dict[str, Any]:
    return {"name": name, "value": value, "data_type": "NUMERIC"}


def _category(name: str, value: str, comment: Optional[str] = None) -> Dict[str, Any]:
    return {"name": name, "value": value, "data_type": "CATEGORICAL", "comment": comment}
