"""TRL: reward functions for GRPOTrainer and RLOOTrainer, also under Unsloth and Axolotl.

``prism_reward`` and ``prism_areward`` take their settings from the environment; ``make_reward`` makes functions of both
kinds with settings of their own. All can be pickled. A completion that cannot be judged is ``None``, which TRL leaves
out of the advantage; it is never a number.

What is logged has the same names on every rank and at every step, whatever failed:

- columns of the completions table: ``prism_s``, ``prism_task_framing``, ``prism_interpersonal_stance``,
  ``prism_linguistic_style`` (``None`` without a verdict) and ``prism_error`` (empty with one);
- metrics: ``prism/s``, ``prism/task_framing``, ``prism/interpersonal_stance`` and ``prism/linguistic_style``, the mean
  over the verdicts, or NaN if there is none, as TRL does with a reward that is ``None`` everywhere; and
  ``prism/failed``, the share of completions without a verdict.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any, Callable, List, Optional, Sequence, Tuple

from .._rewards import rewards
from ..errors import InvalidInputError
from ..types import DIMENSIONS, ItemError, Options, Result, Shaping, Verdict
from ._batch import Batch, OnError
from ._settings import PersonaText, Settings, Thinking

Rewards = List[Optional[float]]
LogExtra = Callable[[str, List[Any]], None]
LogMetric = Callable[[str, float], None]


@dataclass(frozen=True)
class Plan:
    """How a reward function judges and what it calls its results."""

    settings: Settings
    name: str = "prism"
    shaping: Optional[Shaping] = None
    on_error: OnError = "none"


_DEFAULT = Plan(Settings())


def prism_reward(
    prompts: Sequence[object],
    completions: Sequence[object],
    persona_id: object = None,
    persona: object = None,
    log_extra: Optional[LogExtra] = None,
    log_metric: Optional[LogMetric] = None,
    **columns: object,
) -> Rewards:
    """S_PRISM of each completion. ``persona_id`` and ``persona`` are columns of the dataset; a row needs one of
    them."""
    return _reward(_DEFAULT, prompts, completions, persona_id, persona, log_extra, log_metric)


async def prism_areward(
    prompts: Sequence[object],
    completions: Sequence[object],
    persona_id: object = None,
    persona: object = None,
    log_extra: Optional[LogExtra] = None,
    log_metric: Optional[LogMetric] = None,
    **columns: object,
) -> Rewards:
    """The same for asyncio: TRL runs it at the same time as other asynchronous reward functions."""
    return await _areward(_DEFAULT, prompts, completions, persona_id, persona, log_extra, log_metric)


def make_reward(
    *,
    asynchronous: bool = False,
    name: str = "prism",
    url: Optional[str] = None,
    api_key: Optional[str] = None,
    persona_id: Optional[str] = None,
    persona: Optional[PersonaText] = None,
    timeout: Optional[float] = None,
    options: Optional[Options] = None,
    shaping: Optional[Shaping] = None,
    thinking: Thinking = "strip",
    on_error: OnError = "none",
) -> Callable[..., Any]:
    """A function like ``prism_reward`` or, if ``asynchronous``, ``prism_areward``, with settings of its own.

    ``name`` stands in the names of all that is logged and in the function's own, ``NAME_reward``: a second judge in the
    same run needs another one. ``persona_id`` or ``persona`` is for rows that name nobody. ``shaping`` makes a reward
    that is not S_PRISM; S_PRISM is logged all the same. ``on_error="raise"`` ends the run where ``"none"`` gives
    ``None``.
    """
    if shaping is not None and shaping.group_z_score:
        raise InvalidInputError("shaping.group_z_score", "it must be false: the trainer compares the group itself")
    settings = Settings(url, api_key, persona_id, persona, timeout, options, thinking)
    return _made(Plan(settings, name, shaping, on_error), asynchronous)


class _Made(functools.partial):  # type: ignore[type-arg]
    """A reward function that is made at run time and can be pickled. TRL looks through partials for the function's name
    and for whether it is asynchronous."""

    recipe: Tuple[Plan, bool]

    @property
    def __name__(self) -> str:
        return str(self.func.__name__)

    def __reduce__(self) -> Tuple[object, ...]:
        return _made, self.recipe


def _made(plan: Plan, asynchronous: bool) -> _Made:
    def reward(prompts: Sequence[object], completions: Sequence[object], **columns: Any) -> Rewards:
        return _reward(plan, prompts, completions, **columns)

    async def areward(prompts: Sequence[object], completions: Sequence[object], **columns: Any) -> Rewards:
        return await _areward(plan, prompts, completions, **columns)

    function: Callable[..., Any] = areward if asynchronous else reward
    function.__name__ = f"{plan.name}_reward"
    made = _Made(function)
    made.recipe = (plan, asynchronous)
    return made


def _reward(
    plan: Plan,
    prompts: Sequence[object],
    completions: Sequence[object],
    persona_id: object = None,
    persona: object = None,
    log_extra: Optional[LogExtra] = None,
    log_metric: Optional[LogMetric] = None,
    **columns: object,
) -> Rewards:
    batch = Batch.of(plan.settings, prompts, completions, persona_id, persona)
    return _told(plan, batch.judge(plan.shaping), log_extra, log_metric)


async def _areward(
    plan: Plan,
    prompts: Sequence[object],
    completions: Sequence[object],
    persona_id: object = None,
    persona: object = None,
    log_extra: Optional[LogExtra] = None,
    log_metric: Optional[LogMetric] = None,
    **columns: object,
) -> Rewards:
    batch = Batch.of(plan.settings, prompts, completions, persona_id, persona)
    return _told(plan, await batch.ajudge(plan.shaping), log_extra, log_metric)


def _told(
    plan: Plan, results: Sequence[Result], log_extra: Optional[LogExtra], log_metric: Optional[LogMetric]
) -> Rewards:
    """The rewards, after all that there is to log was logged."""
    values = {"s": [r.s_prism if isinstance(r, Verdict) else None for r in results]}
    for dimension in DIMENSIONS:
        values[dimension] = [
            getattr(r.dimensions, dimension).evidence if isinstance(r, Verdict) else None for r in results
        ]
    errors = [r.code if isinstance(r, ItemError) else "" for r in results]
    if log_extra is not None:
        for key, column in values.items():
            log_extra(f"{plan.name}_{key}", column)
        log_extra(f"{plan.name}_error", errors)
    if log_metric is not None and results:
        for key, column in values.items():
            log_metric(f"{plan.name}/{key}", _mean(column))
        log_metric(f"{plan.name}/failed", sum(map(bool, errors)) / len(errors))
    return list(rewards(results, plan.on_error))


def _mean(values: Sequence[Optional[float]]) -> float:
    numbers = [value for value in values if value is not None]
    return sum(numbers) / len(numbers) if numbers else float("nan")
