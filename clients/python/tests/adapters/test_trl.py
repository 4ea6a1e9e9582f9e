"""TRL's own trainers call the reward: two steps of GRPO and RLOO with a model of a few hundred weights."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, Callable, Dict, List

import pytest

from prism_judge.adapters.trl import make_reward, prism_areward, prism_reward

from .judge import Judge

pytest.importorskip("trl", reason="trl is not installed")
import torch
from datasets import Dataset
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast
from trl import GRPOConfig, GRPOTrainer, RLOOConfig, RLOOTrainer
from trl.trainer.utils import get_callable_name, is_async_callable

WORDS = ["<pad>", "<end>", "yes", "no", "maybe", "coming", "tonight", "who", "else", "is", "in"]


def tokenizer() -> PreTrainedTokenizerFast:
    words = Tokenizer(models.WordLevel({word: place for place, word in enumerate(WORDS)}, unk_token="maybe"))
    words.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    made = PreTrainedTokenizerFast(tokenizer_object=words, pad_token="<pad>", eos_token="<end>", padding_side="left")
    made.chat_template = "{% for m in messages %}{{ m['content'] }} {% endfor %}"
    return made


def model() -> LlamaForCausalLM:
    torch.manual_seed(1)
    config = LlamaConfig(
        vocab_size=len(WORDS),
        hidden_size=16,
        intermediate_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        num_key_value_heads=2,
        pad_token_id=0,
        eos_token_id=1,
        bos_token_id=None,
    )
    return LlamaForCausalLM(config)


def rows(conversational: bool) -> Dataset:
    prompt: Any = [{"role": "user", "content": "coming tonight"}] if conversational else "coming tonight"
    return Dataset.from_list([{"prompt": prompt, "persona_id": name} for name in ("poirot", "marple")] * 4)


def train(trainer: type, config: type, rewards: List[Callable[..., Any]], folder: Path, conversational: bool) -> Any:
    arguments = config(
        output_dir=str(folder),
        per_device_train_batch_size=4,
        num_generations=4,
        max_completion_length=4,
        max_steps=2,
        logging_steps=1,
        log_completions=True,
        report_to="none",
        save_strategy="no",
        use_cpu=True,
    )
    made = trainer(
        model=model(),
        processing_class=tokenizer(),
        reward_funcs=rewards,
        args=arguments,
        train_dataset=rows(conversational),
    )
    made.train()
    return made


@pytest.mark.parametrize("conversational", [False, True])
@pytest.mark.parametrize(("trainer", "config"), [(GRPOTrainer, GRPOConfig), (RLOOTrainer, RLOOConfig)])
def test_a_trainer_calls_both_kinds_of_reward(
    judge: Judge, tmp_path: Path, trainer: type, config: type, conversational: bool
) -> None:
    made = train(trainer, config, [prism_reward, prism_areward], tmp_path, conversational)
    steps = [step for step in made.state.log_history if "rewards/prism_reward/mean" in step]
    assert len(steps) == 2
    for step in steps:
        assert step["rewards/prism_reward/mean"] == pytest.approx(step["rewards/prism_areward/mean"])
        assert 0.0 <= step["prism/task_framing"] <= 1.0
    for body in judge.asked("ScoreGroup"):
        assert body["persona_id"] in ("poirot", "marple")
        assert body["context"] == [{"speaker": "User", "text": "coming tonight"}]


def test_the_log_has_the_same_names_while_the_judge_is_down(judge: Judge, tmp_path: Path) -> None:
    names: Dict[bool, set] = {}
    for down in (False, True):
        judge.down = down
        reward = make_reward(timeout=0.2)
        made = train(GRPOTrainer, GRPOConfig, [reward], tmp_path / str(down), True)
        step = next(step for step in made.state.log_history if "prism/failed" in step)
        names[down] = set(step)
        assert step["prism/failed"] == float(down)
        assert math.isnan(step["rewards/prism_reward/mean"]) == down
        assert set(made._logs["extra"]) >= {"prism_s", "prism_linguistic_style", "prism_error"}
    assert names[True] == names[False]


def test_a_policy_learns_nothing_while_the_judge_is_down(judge: Judge, tmp_path: Path) -> None:
    judge.down = True
    made = train(GRPOTrainer, GRPOConfig, [make_reward(timeout=0.2)], tmp_path, True)
    for trained, before in zip(made.model.parameters(), model().parameters()):
        assert torch.equal(trained, before)


def test_trl_sees_what_the_functions_are() -> None:
    assert is_async_callable(prism_areward)
    assert is_async_callable(make_reward(asynchronous=True))
    assert not is_async_callable(prism_reward)
    assert not is_async_callable(make_reward())
    for asynchronous in (False, True):
        assert get_callable_name(make_reward(name="host", asynchronous=asynchronous)) == "host_reward"
