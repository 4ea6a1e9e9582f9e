"""ms-swift: the outcome reward ``prism`` for ``swift rlhf --rlhf_type grpo``.

Importing this file registers it. ``--external_plugins`` wants a file: give it one of your own that holds ``import
prism_judge.adapters.ms_swift`` (not this one, whose folder would then shadow other packages), and ``--reward_funcs
prism``. Settings come from the environment. A completion that cannot be judged is ``None``.

The reward is synchronous on purpose: ms-swift runs asynchronous ones in a new event loop at every step, which would
open new connections each time. The calls for a batch run at the same time all the same.
"""

from __future__ import annotations

from typing import List, Mapping, Optional, Sequence

from .._rewards import rewards
from . import _host
from ._batch import Batch
from ._settings import Settings

try:
    from swift.rewards import ORM, orms
except ImportError as error:
    raise _host.missing("ms-swift", "ms-swift") from error


class Prism(ORM):
    """S_PRISM of each completion. ``persona_id`` and ``persona`` are columns of the dataset; a row needs one of
    them."""

    def __call__(
        self,
        completions: Sequence[object],
        messages: Optional[Sequence[Sequence[Mapping[str, object]]]] = None,
        persona_id: object = None,
        persona: object = None,
        **columns: object,
    ) -> List[Optional[float]]:
        prompts = [[] for _ in completions] if messages is None else [_before_reply(row) for row in messages]
        batch = Batch.of(Settings(), prompts, completions, persona_id, persona)
        return rewards(batch.judge())


def _before_reply(messages: Sequence[Mapping[str, object]]) -> Sequence[Mapping[str, object]]:
    """ms-swift hands over the dialogue with the completion as its last message."""
    return messages[:-1] if messages and messages[-1].get("role") == "assistant" else messages


orms["prism"] = Prism
