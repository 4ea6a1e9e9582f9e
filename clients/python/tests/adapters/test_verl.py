"""verl's own reward manager loads ``compute_score`` from its configuration and runs it over a batch."""

from __future__ import annotations

import asyncio
from typing import Any, Callable, Dict, List

import numpy as np
import pytest

from .judge import Judge

pytest.importorskip("verl", reason="verl is not installed")
import torch
from omegaconf import OmegaConf
from tensordict import TensorDict
from verl import DataProto
from verl.trainer.ppo.reward import get_custom_reward_fn, load_reward_manager

WORDS = ["<pad>", "Yes!", "[1", "0.4", "0.1]", "[error", "internal]"]


class Tokenizer:
    """As much of a tokenizer as the reward manager asks of one."""

    def decode(self, ids: torch.Tensor, skip_special_tokens: bool) -> str:
        return " ".join(WORDS[int(one)] for one in ids)


def config(**arguments: Any) -> Any:
    return OmegaConf.create(
        {
            "reward": {
                "num_workers": 1,
                "custom_reward_function": {
                    "path": "pkg://prism_judge.adapters.verl",
                    "name": "compute_score",
                    "reward_kwargs": arguments,
                },
                "reward_manager": {"source": "register", "name": "naive"},
            }
        }
    )


def batch(replies: List[List[int]], rows: List[Dict[str, Any]]) -> DataProto:
    length = max(map(len, replies))
    responses = torch.tensor([reply + [0] * (length - len(reply)) for reply in replies])
    tensors = {
        "prompts": torch.zeros((len(replies), 2), dtype=torch.long),
        "responses": responses,
        "attention_mask": torch.cat([torch.ones((len(replies), 2)), (responses != 0).float()], dim=1).long(),
    }
    return DataProto(
        batch=TensorDict(tensors, batch_size=len(replies)),
        non_tensor_batch={
            "data_source": np.array(["set"] * len(replies), dtype=object),
            "reward_model": np.array([{"ground_truth": ""}] * len(replies), dtype=object),
            "extra_info": np.array(rows, dtype=object),
        },
    )


def run(data: DataProto, **arguments: Any) -> List[Dict[str, Any]]:
    async def judged() -> List[Dict[str, Any]]:
        manager = load_reward_manager(config(**arguments), Tokenizer())
        return await asyncio.gather(*(manager.run_single(data[place : place + 1]) for place in range(len(data))))

    return asyncio.run(judged())


def test_the_reward_manager_judges_a_batch(judge: Judge, expected: Callable[..., float]) -> None:
    asked = [{"role": "user", "content": "Coming?"}]
    rows = [{"prompt": np.array(asked, dtype=object), "persona_id": "poirot"}, {"prompt": "Coming?"}]
    results = run(batch([[1], [2, 3, 4]], rows), persona_id="marple")
    assert results[0]["reward_score"] == expected("Yes!", [("User", "Coming?")], persona_id="poirot")
    assert results[1]["reward_score"] == 0.5
    assert results[1]["reward_extra_info"]["prism_interpersonal_stance"] == 0.4


def test_the_manager_makes_arrays_of_what_a_batch_with_a_failure_tells(judge: Judge) -> None:
    rows = [{"prompt": "Coming?", "persona_id": "poirot"}] * 2
    results = run(batch([[2, 3, 4], [5, 6]], rows), on_error=0.25)
    keys = list(results[0]["reward_extra_info"])
    arrays = {key: np.array([result["reward_extra_info"][key] for result in results]) for key in keys}
    assert all(array.dtype == np.float64 for array in arrays.values())
    assert arrays["prism_ok"].tolist() == [1.0, 0.0]
    assert results[1]["reward_score"] == 0.25


def test_verl_sees_an_asynchronous_function(judge: Judge) -> None:
    import inspect

    assert inspect.iscoroutinefunction(get_custom_reward_fn(config()))
