"""MLflow: a scorer for ``mlflow.genai.evaluate``.

::

    mlflow.genai.evaluate(data=rows, scorers=[PersonaFidelity(persona_id="poirot")])

A row's ``inputs`` are the dialogue before the reply (``messages``, or one text under any name) and its ``outputs`` the
reply. ``expectations`` or ``inputs`` may have ``persona_id`` or ``persona``. There is a ``Feedback`` for S_PRISM and
one for each dimension. For a reply that cannot be judged, each has an error and no value.
"""

from __future__ import annotations

from typing import Any, List, Optional

from ..types import DIMENSIONS, ItemError, Options
from . import _host, _rows
from ._settings import PersonaText, Settings, Thinking

try:
    from mlflow.entities import AssessmentError, AssessmentSource, Feedback
    from mlflow.genai.scorers import Scorer
    from pydantic import PrivateAttr
except ImportError as error:
    raise _host.missing("mlflow", "mlflow") from error


class PersonaFidelity(Scorer):
    """Judges replies. ``persona_id`` or ``persona`` is for rows that name nobody; ``name`` stands in the feedbacks'
    names."""

    _settings: Settings = PrivateAttr()

    def __init__(
        self,
        *,
        name: str = "prism",
        persona_id: Optional[str] = None,
        persona: Optional[PersonaText] = None,
        url: Optional[str] = None,
        api_key: Optional[str] = None,
        timeout: Optional[float] = None,
        options: Optional[Options] = None,
        thinking: Thinking = "strip",
    ) -> None:
        super().__init__(name=name)
        self._settings = Settings(url, api_key, persona_id, persona, timeout, options, thinking)

    def __call__(self, *, inputs: Any = None, outputs: Any = None, expectations: Any = None) -> List[Feedback]:
        [result] = _rows.batch(self._settings, inputs, outputs, expectations).judge()
        names = [self.name, *(f"{self.name}_{dimension}" for dimension in DIMENSIONS)]
        if isinstance(result, ItemError):
            failure = AssessmentError(error_code=result.code.upper(), error_message=result.message)
            return [Feedback(name=name, error=failure) for name in names]
        values = [result.s_prism, *(getattr(result.dimensions, dimension).evidence for dimension in DIMENSIONS)]
        source = AssessmentSource(source_type="CODE", source_id=f"prism-judge/{result.judge.model}")
        why = f"weakest: {result.weakest_dimension.replace('_', ' ')}"
        return [Feedback(name=name, value=value, source=source, rationale=why) for name, value in zip(names, values)]
