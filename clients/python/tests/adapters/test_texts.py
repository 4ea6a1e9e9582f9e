"""What text is judged, after which turns."""

from __future__ import annotations

import pytest

from prism_judge import InvalidInputError, Turn
from prism_judge.adapters import _texts


@pytest.mark.parametrize(
    ("text", "reply"),
    [
        ("Hello.", "Hello."),
        ("<think>He is rude.</think>\n\nHello.", "Hello."),
        ("He is rude.</think>Hello.", "Hello."),
        ("<think>a</think>Hi.<think>b</think> Hello.", "Hello."),
        ("<think>He is rude and I", ""),
        ("  <think>He is rude", ""),
        ("<think></think>", ""),
        ("Well, <think>he is", "Well,"),
        ("<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>final<|message|>Hello.", "Hello."),
        (" I think so. ", " I think so. "),
    ],
)
def test_only_what_follows_the_last_end_of_a_thought_is_judged(text: str, reply: str) -> None:
    assert _texts.aloud(text) == reply


def test_a_thought_that_the_prompt_begins_ends_in_the_reply_or_is_all_of_it() -> None:
    assert _texts.opens_thought("Coming?<think>\n")
    assert not _texts.opens_thought("Coming? <think> so.")
    assert _texts.context("Coming?<think>\n", "prompt") == (Turn("User", "Coming?"),)
    assert _texts.aloud("He is rude.</think>Hello.", begun=True) == "Hello."
    assert _texts.aloud("He is rude and I", begun=True) == ""


def test_a_text_a_message_and_a_list_of_one_are_the_same_reply() -> None:
    message = {"role": "assistant", "content": "Hello."}
    for completion in (
        "Hello.",
        message,
        [message],
        [{"role": "assistant", "content": [{"type": "text", "text": "Hello."}]}],
    ):
        assert _texts.reply(completion, "completion") == ((), "Hello.")


def test_a_text_and_one_user_message_are_the_same_context() -> None:
    turns = (Turn("User", "Coming?"),)
    assert _texts.context("Coming?", "prompt") == turns
    assert _texts.context(" Coming?\n", "prompt") == turns
    assert _texts.context([{"role": "user", "content": "Coming?"}], "prompt") == turns
    assert _texts.context([{"role": "user", "content": [{"type": "text", "text": "Coming?"}]}], "prompt") == turns


def test_an_empty_prompt_is_no_turn() -> None:
    assert _texts.context("", "prompt") == ()
    assert _texts.context([], "prompt") == ()


def test_only_the_dialogue_is_context() -> None:
    messages = [
        {"role": "system", "content": "You are Poirot."},
        {"role": "user", "content": "Who did it?"},
        {"role": "assistant", "content": None, "tool_calls": [{}]},
        {"role": "assistant", "content": "<think>Hm.</think>Patience."},
        {"role": "Hastings", "content": "Now?"},
    ]
    assert _texts.context(messages, "prompt") == (
        Turn("User", "Who did it?"),
        Turn("Assistant", "Patience."),
        Turn("Hastings", "Now?"),
    )


def test_a_completion_of_several_messages_ends_with_the_reply() -> None:
    completion = [
        {"role": "assistant", "content": "Let me see.", "tool_calls": [{}]},
        {"role": "tool", "content": "42"},
        {"role": "assistant", "content": "It is 42."},
    ]
    before = (Turn("Assistant", "Let me see."), Turn("tool", "42"))
    assert _texts.reply(completion, "completion") == (before, "It is 42.")


@pytest.mark.parametrize(
    "completion",
    [
        None,
        "",
        [],
        {"role": "assistant", "content": None},
        [{"role": "assistant", "content": None, "tool_calls": [{}]}],
    ],
)
def test_a_completion_without_text_is_empty(completion: object) -> None:
    assert _texts.reply(completion, "completion")[1] == ""


def test_a_completion_that_ends_with_a_tool_has_no_reply() -> None:
    said = [{"role": "assistant", "content": "Let me see."}, {"role": "tool", "content": "42"}]
    assert _texts.reply(said, "completion")[1] == ""


def test_arrays_of_a_data_frame_are_lists() -> None:
    class Array:
        def tolist(self) -> object:
            return [{"role": "user", "content": "Coming?"}]

    assert _texts.context(Array(), "prompt") == (Turn("User", "Coming?"),)


@pytest.mark.parametrize("prompt", [3, {"a": 1}, [3], [{"content": "no role"}]])
def test_what_is_no_prompt_is_refused_by_name(prompt: object) -> None:
    with pytest.raises(InvalidInputError, match=r"prompts\[2\]"):
        _texts.context(prompt, "prompts[2]")
