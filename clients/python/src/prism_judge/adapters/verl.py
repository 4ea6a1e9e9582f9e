"""verl: ``compute_score`` for ``reward.custom_reward_function``.

verl wants a number from every call and the same keys each time, so there is no ``None`` here: a failure is raised, or
becomes a constant that the configuration names and that ``prism_ok`` gives away.

verl hands over no prompt. The dataset's ``extra_info`` must hold it: ``prompt`` (a text or messages), and
``persona_id`` or ``persona`` for the row's persona.
"""

from __future__ import annotations

import math
from typing import Dict, Mapping, Optional, Union

from ..errors import InvalidInputError
from ..types import DIMENSIONS, ItemError
from ._batch import Batch, verdict
from ._settings import PersonaText, Settings, Thinking


async def compute_score(
    data_source: object,
    solution_str: str,
    ground_truth: object,
    extra_info: Optional[Mapping[str, object]] = None,
    *,
    persona_id: Optional[str] = None,
    persona: Optional[PersonaText] = None,
    on_error: Union[str, float] = "raise",
    timeout: Optional[float] = None,
    thinking: Thinking = "strip",
    **others: object,
) -> Dict[str, float]:
    """S_PRISM and the three evidences of one reply, all floats.

    The arguments after ``extra_info`` come from ``reward_kwargs`` of the configuration. ``persona_id`` or ``persona``
    is for rows that name nobody. ``on_error`` is ``"raise"``, or a number that stands for all that a failed judgement
    would have told; ``prism_ok`` is then 0.0, and 1.0 otherwise.
    """
    constant = _constant(on_error)
    row = extra_info or {}
    if "prompt" not in row:
        raise InvalidInputError("extra_info.prompt", "it is missing: set it to a text or messages, or to [] for none")
    settings = Settings(persona_id=persona_id, persona=persona, timeout=timeout, thinking=thinking)
    batch = Batch.of(settings, [row["prompt"]], [solution_str], row.get("persona_id"), row.get("persona"))
    [result] = await batch.ajudge()
    if isinstance(result, ItemError) and constant is not None:
        score, ok = constant, 0.0
        evidence = dict.fromkeys(DIMENSIONS, constant)
    else:
        judged = verdict(result)
        score, ok = judged.s_prism, 1.0
        evidence = {dimension: getattr(judged.dimensions, dimension).evidence for dimension in DIMENSIONS}
    return {"score": score, **{f"prism_{key}": value for key, value in evidence.items()}, "prism_ok": ok, "acc": score}


def _constant(on_error: Union[str, float]) -> Optional[float]:
    if on_error == "raise":
        return None
    if isinstance(on_error, (str, bool)) or not math.isfinite(on_error):
        raise InvalidInputError("on_error", f'it must be "raise" or a finite number, not {on_error!r}')
    return float(on_error)
