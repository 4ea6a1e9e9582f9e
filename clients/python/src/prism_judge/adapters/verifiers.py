"""verifiers (and prime-rl, which runs its environments): a reward and metrics to plug into any task.

In the configuration of a task set::

    [env.taskset.task.rewards.prism]
    fn = "prism_judge.adapters.verifiers:score"
    [env.taskset.task.metrics.prism_dimensions]
    fn = "prism_judge.adapters.verifiers:dimensions"

The task's data may have ``persona_id`` or ``persona``; other settings come from the environment. What cannot be judged
raises, so that the rollout counts as failed and not as bad.
"""

from __future__ import annotations

from typing import Any, Dict

from ..types import DIMENSIONS, Verdict
from ._batch import Batch, verdict
from ._settings import Settings


async def score(task: Any, trace: Any) -> float:
    """S_PRISM of the rollout's last reply, after the dialogue that led to it."""
    return (await _verdict(task, trace)).s_prism


async def dimensions(task: Any, trace: Any) -> Dict[str, float]:
    """The three evidences of the same reply. The judge remembers its verdicts: beside ``score`` this costs nothing."""
    judged = await _verdict(task, trace)
    return {f"prism_{dimension}": getattr(judged.dimensions, dimension).evidence for dimension in DIMENSIONS}


async def _verdict(task: Any, trace: Any) -> Verdict:
    messages = list(trace.messages)
    while messages and messages.pop().role != "assistant":
        pass
    whose = getattr(task, "persona_id", None), getattr(task, "persona", None)
    batch = Batch.of(Settings(), [messages], [trace.last_reply], *whose)
    [result] = await batch.ajudge()
    return verdict(result)
