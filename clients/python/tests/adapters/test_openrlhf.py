"""OpenRLHF's own executor posts a rollout to the real program. There is no adapter: the program answers it."""

from __future__ import annotations

import asyncio
import importlib.util
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, Dict, List

import pytest

from prism_judge import Client

found = importlib.util.find_spec("openrlhf")
if found is None or found.origin is None:
    pytest.skip("openrlhf is not installed", allow_module_level=True)
# Its packages import the whole trainer, GPU libraries included; the executor itself needs none of it.
for name in ("openrlhf", "openrlhf.utils"):
    package = ModuleType(name)
    package.__path__ = [str(Path(found.origin).parent.joinpath(*name.split(".")[1:]))]
    sys.modules[name] = package
from openrlhf.utils.agent import SingleTurnAgentExecutor  # noqa: E402

PROMPT = "<|im_start|>user\nAre you coming tonight?<|im_end|>\n<|im_start|>assistant\n"
REPLY = "Yes! Who else is in?"


class Tokenizer:
    """Every character is a token; 0 is the end."""

    def __call__(self, text: str, **options: Any) -> Dict[str, Any]:
        class Row(List[int]):
            def tolist(self) -> List[int]:
                return list(self)

        return {"input_ids": [Row(map(ord, text))]}

    def decode(self, ids: List[int], skip_special_tokens: bool) -> str:
        return "".join("<|im_end|>" if one == 0 else chr(one) for one in ids)


class Engine:
    async def generate(self, ids: List[int], params: Any, multi_modal_data: Any = None) -> Any:
        tokens = [*map(ord, REPLY), *[0] * 200]
        return SimpleNamespace(outputs=[SimpleNamespace(token_ids=tokens, finish_reason="stop", logprobs=None)])


def test_a_padded_rollout_gets_the_reward_of_its_reply(real: str) -> None:
    executor = SingleTurnAgentExecutor(f"{real}/get_reward")
    params = SimpleNamespace(max_tokens=512, logprobs=None)
    rollout = asyncio.run(executor.execute(PROMPT, "host", params, 4096, Tokenizer(), Engine()))
    verdict = Client().score(REPLY, persona_id="host", context="Are you coming tonight?")
    assert rollout["reward"] == [verdict.s_prism]
    assert rollout["scores"] == [verdict.s_prism]
    assert rollout["extra_logs"]["task_framing"] == [verdict.dimensions.task_framing.evidence]
