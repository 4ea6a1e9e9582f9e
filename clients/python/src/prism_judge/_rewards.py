"""From results to the numbers that trainers want."""

from __future__ import annotations

from typing import Iterable, List, Literal, Optional, Union, overload

from .errors import InvalidInputError, JudgementError
from .types import ItemError, Result, Verdict


@overload
def rewards(results: Iterable[Result], on_error: Literal["raise"]) -> List[float]: ...
@overload
def rewards(results: Iterable[Result], on_error: Literal["none"] = "none") -> List[Optional[float]]: ...
def rewards(
    results: Iterable[Result], on_error: Literal["none", "raise"] = "none"
) -> Union[List[float], List[Optional[float]]]:
    """One number for each result: its ``reward`` if the call had ``shaping``, else its ``s_prism``.

    A result without a verdict is ``None`` with ``on_error="none"``, and a ``JudgementError`` that has all of them with
    ``on_error="raise"``. It is never a number.
    """
    if on_error not in ("none", "raise"):
        raise InvalidInputError("on_error", f'it must be "none" or "raise", not {on_error!r}')
    results = list(results)
    errors = [result for result in results if isinstance(result, ItemError)]
    if errors and on_error == "raise":
        raise JudgementError(errors)
    return [None if isinstance(result, ItemError) else _reward(result) for result in results]


def _reward(verdict: Verdict) -> float:
    return verdict.s_prism if verdict.reward is None else verdict.reward
