"""Inspect: a scorer.

::

    Task(dataset=..., solver=generate(), scorer=persona_fidelity(persona_id="poirot"))

A sample's metadata may hold ``persona_id`` or ``persona``. The score has S_PRISM and the three evidences, each with its
mean and standard error. A reply that cannot be judged is ``Score.unscored``: it stays in the log and out of the
metrics.
"""

from __future__ import annotations

from typing import Optional

from ..types import DIMENSIONS, ItemError, Options
from . import _host
from ._batch import Batch
from ._settings import PersonaText, Settings, Thinking

try:
    from inspect_ai.scorer import Score, Scorer, Target, mean, scorer, stderr
    from inspect_ai.solver import TaskState
except ImportError as error:
    raise _host.missing("inspect-ai", "inspect-ai") from error


@scorer(metrics={"*": [mean(), stderr()]}, name="prism_judge/persona_fidelity")
def persona_fidelity(
    persona_id: Optional[str] = None,
    persona: Optional[PersonaText] = None,
    url: Optional[str] = None,
    timeout: Optional[float] = None,
    options: Optional[Options] = None,
    thinking: Thinking = "strip",
) -> Scorer:
    """Judges the model's last reply after the dialogue before it. ``persona_id`` or ``persona`` is for samples that
    name nobody. Inspect writes these arguments into its log, so the key is not among them: it is the environment's."""
    settings = Settings(url, None, persona_id, persona, timeout, options, thinking)

    async def score(state: TaskState, target: Target) -> Score:
        said = list(state.messages)
        if said and said[-1].role == "assistant":
            said.pop()
        reply = state.output.completion
        whose = state.metadata.get("persona_id"), state.metadata.get("persona")
        [result] = await Batch.of(settings, [said], [reply], *whose, lane="batch").ajudge()
        if isinstance(result, ItemError):
            reason = "grader_failed" if reply.strip() else "no_response"
            return Score.unscored(reason=reason, answer=reply, explanation=f"{result.code}: {result.message}")
        evidence = {dimension: getattr(result.dimensions, dimension).evidence for dimension in DIMENSIONS}
        return Score(
            value={"s_prism": result.s_prism, **evidence},
            answer=reply,
            explanation=f"weakest: {result.weakest_dimension.replace('_', ' ')}",
            metadata={"model": result.judge.model, "model_digest": result.judge.model_digest},
        )

    return score
