"""A batch of completions: what is sent for it, and what becomes of each completion."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Dict, List, Literal, Optional, Sequence

from ..errors import InvalidInputError, JudgementError
from ..types import Item, ItemError, Lane, Result, Shaping, Verdict
from . import _texts
from ._settings import BATCH_TIMEOUT, Settings, personas

OnError = Literal["none", "raise"]


@dataclass(frozen=True)
class Batch:
    """Completions, ready to be judged."""

    settings: Settings
    lane: Lane
    sent: Dict[int, Item]
    """What is sent, by the completion's place."""
    unsent: Dict[int, ItemError]
    """Completions that no judge could judge, and why."""

    @classmethod
    def of(
        cls,
        settings: Settings,
        prompts: Sequence[object],
        completions: Sequence[object],
        persona_id: object = None,
        persona: object = None,
        lane: Lane = "train",
    ) -> Batch:
        """Of completions, the prompts before them, and two columns that may be missing."""
        settings = settings.resolved(BATCH_TIMEOUT)
        count = len(completions)
        if len(prompts) != count:
            raise InvalidInputError("prompts", f"there are {len(prompts)} for {count} completions")
        batch = cls(settings, lane, {}, {})
        whose = personas(settings, count, persona_id, persona)
        for place, (prompt, completion, who) in enumerate(zip(prompts, completions, whose)):
            name = f"completions[{place}]"
            before, text = _texts.reply(completion, name)
            if settings.thinking == "strip":
                text = _texts.aloud(text, _texts.opens_thought(prompt))
            problem = _texts.unreadable(text, before)
            if who is None:
                batch._leave_out(place, f"persona_id[{place}]", "the row names no persona and there is no default")
            elif problem is not None:
                batch._leave_out(place, name, problem)
            else:
                context = _texts.context(prompt, f"prompts[{place}]") + before
                batch.sent[place] = Item(text, persona=who.persona, persona_id=who.persona_id, context=context)
        return batch

    def _leave_out(self, place: int, field: str, message: str) -> None:
        self.unsent[place] = ItemError("invalid_argument", message, field, index=place)

    def judge(self, shaping: Optional[Shaping] = None) -> List[Result]:
        """One result for each completion, in their order."""
        if not self.sent:
            return self._in_order([])
        options, timeout = self.settings.options, self.settings.timeout
        client = self.settings.client()
        return self._in_order(
            client.score_many(self.sent.values(), options=options, shaping=shaping, lane=self.lane, timeout=timeout)
        )

    async def ajudge(self, shaping: Optional[Shaping] = None) -> List[Result]:
        """The same for asyncio."""
        if not self.sent:
            return self._in_order([])
        options, timeout = self.settings.options, self.settings.timeout
        client = self.settings.async_client()
        return self._in_order(
            await client.score_many(
                self.sent.values(), options=options, shaping=shaping, lane=self.lane, timeout=timeout
            )
        )

    def _in_order(self, results: Sequence[Result]) -> List[Result]:
        found: Dict[int, Result] = dict(self.unsent)
        for place, result in zip(self.sent, results):
            found[place] = replace(result, index=place) if isinstance(result, ItemError) else result
        unknown = [result for result in found.values() if isinstance(result, ItemError) and result.code == "not_found"]
        if unknown:
            # A persona that the judge does not know will not be there in the next batch either.
            raise JudgementError(unknown)
        return [found[place] for place in sorted(found)]


def verdict(result: Result) -> Verdict:
    """The verdict, where nothing else will do."""
    if isinstance(result, ItemError):
        raise JudgementError([result])
    return result
