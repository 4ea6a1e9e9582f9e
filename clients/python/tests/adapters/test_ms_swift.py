"""ms-swift's own code imports the plugin, resolves the reward by its name and computes a batch."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Callable

import pytest

from .judge import Judge

pytest.importorskip("swift", reason="ms-swift is not installed")
import torch
from swift.rl_core.data import OnPolicySample
from swift.rl_core.grpo_algorithm import compute_rewards_per_func
from swift.rlhf_trainers.utils import resolve_reward_funcs
from swift.utils.utils import import_external_file


def sample(reply: str, **columns: object) -> OnPolicySample:
    messages = [{"role": "user", "content": "Coming?"}, {"role": "assistant", "content": reply}]
    return OnPolicySample.from_row({"messages": messages, **columns})


@pytest.fixture
def rewards(tmp_path: Path) -> Callable[..., torch.Tensor]:
    plugin = tmp_path / "plugin.py"
    plugin.write_text("import prism_judge.adapters.ms_swift\n")
    import_external_file(str(plugin))
    functions, _ = resolve_reward_funcs(["prism"])

    def compute(*samples: OnPolicySample) -> torch.Tensor:
        return compute_rewards_per_func(list(samples), functions, device=torch.device("cpu"))

    return compute


def test_a_batch_is_judged_after_its_dialogue(
    judge: Judge, rewards: Callable[..., torch.Tensor], expected: Callable[..., float]
) -> None:
    table = rewards(sample("Yes!", persona_id="poirot"), sample("No.", persona_id="marple"))
    wanted = [
        expected("Yes!", [("User", "Coming?")], persona_id="poirot"),
        expected("No.", [("User", "Coming?")], persona_id="marple"),
    ]
    assert table.flatten().tolist() == pytest.approx(wanted)


def test_one_failure_does_not_poison_the_batch(judge: Judge, rewards: Callable[..., torch.Tensor]) -> None:
    table = rewards(sample("[1 1 1]", persona_id="poirot"), sample("", persona_id="poirot"))
    first, second = table.flatten().tolist()
    assert first == 1.0
    assert math.isnan(second)
