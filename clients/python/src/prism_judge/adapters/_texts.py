"""Texts out of what hosts pass around: strings, lists of chat messages, messages of their own classes."""

from __future__ import annotations

from typing import Iterable, List, Mapping, Optional, Sequence, Tuple

from ..errors import InvalidInputError
from ..types import Turn

USER, AGENT = "User", "Assistant"
_SPEAKERS = {
    **dict.fromkeys(("", "user", "human"), USER),
    **dict.fromkeys(("assistant", "ai", "model", "bot", "gpt"), AGENT),
}
_INSTRUCTIONS = ("system", "developer")
"""Roles whose messages are no turns: the persona stands in their place."""

_THOUGHTS = (("<think>", "</think>"), ("<|channel|>analysis<|message|>", "<|channel|>final<|message|>"))
"""What begins a thought, and what ends it and begins what is said aloud. The first is often in the prompt."""


def aloud(text: str, begun: bool = False) -> str:
    """What stands after the last thought, also if only its end is there. A thought without an end leaves what stands
    before it: nothing, if it was ``begun`` before the text. The judge's own routes do the same."""
    text = _THOUGHTS[0][0] + text if begun else text
    for begin, end in _THOUGHTS:
        _, ended, reply = text.rpartition(end)
        if ended:
            return reply.lstrip()
        before, begun, _ = text.partition(begin)
        if begun:
            return before.rstrip()
    return text


def opens_thought(prompt: object) -> bool:
    """Whether a prompt ends with the beginning of a thought, as some chat templates write it."""
    return isinstance(prompt, str) and prompt.rstrip().endswith(_THOUGHTS[0][0])


def context(prompt: object, field: str) -> Tuple[Turn, ...]:
    """The turns of a prompt: a text is one turn of ``User``, the same as a list with one user message."""
    if isinstance(prompt, str):
        text = prompt.rstrip()[: -len(_THOUGHTS[0][0])] if opens_thought(prompt) else prompt
        prompt = [{"role": "user", "content": text}]
    return tuple(turns(messages(prompt, field)))


def reply(completion: object, field: str) -> Tuple[Tuple[Turn, ...], str]:
    """The turns that a completion itself has before its reply, and the reply.

    A completion is a text, one message or a list of messages. The reply of a list is its last message; it is empty if
    that is not the assistant's or has no text (a tool call, for example).
    """
    before: Tuple[Turn, ...] = ()
    if completion is None:
        text = ""
    elif isinstance(completion, str):
        text = completion
    elif isinstance(completion, Mapping):
        text = content_text(completion.get("content"))
    else:
        said = messages(completion, field)
        ended = bool(said) and _speaker(said[-1]) == AGENT
        before = tuple(turns(said[:-1]))
        text = content_text(_get(said[-1], "content")) if ended else ""
    return before, text


def turns(said: Iterable[object]) -> List[Turn]:
    """The messages that are part of the dialogue and have text. White space around it goes, as the judge's own routes
    do it, and so do the assistant's thoughts. Speakers that are neither user nor assistant keep their names."""
    found = []
    for message in said:
        speaker = _speaker(message)
        text = content_text(_get(message, "content"))
        if speaker == AGENT:
            text = aloud(text)
        if speaker is not None and text.strip():
            found.append(Turn(speaker, text.strip()))
    return found


def messages(value: object, field: str) -> Sequence[object]:
    """A list of messages, also from an array of a data frame."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if not isinstance(value, (list, tuple)):
        raise InvalidInputError(field, f"it must be a text or a list of messages, not {type(value).__name__}")
    for message in value:
        if not isinstance(_role(message), str):
            kind = type(message).__name__
            raise InvalidInputError(field, f"a message must have a role and a content; one is {kind} without a role")
    return value


def content_text(content: object) -> str:
    """The text of a message's content: a string, or the text parts of a list of parts. Other parts have no text."""
    if isinstance(content, str):
        return content
    if hasattr(content, "tolist"):
        content = content.tolist()
    if not isinstance(content, (list, tuple)):
        return ""
    parts = (part if isinstance(part, str) else _get(part, "text") for part in content)
    return "".join(part for part in parts if isinstance(part, str))


def unreadable(text: str, before: Iterable[Turn] = ()) -> Optional[str]:
    """Why a reply, with what its model said ``before`` it, cannot be sent, if it cannot."""
    if not text.strip():
        return "it is empty: there is nothing to judge"
    try:
        for part in (text, *(turn.text for turn in before)):
            part.encode("utf-8")
    except UnicodeEncodeError as error:
        return f"character {error.start} is half of a surrogate pair, which UTF-8 cannot hold"
    return None


def _speaker(message: object) -> Optional[str]:
    role = str(_role(message))
    return None if role.lower() in _INSTRUCTIONS else _SPEAKERS.get(role.lower(), role)


def _role(message: object) -> object:
    """OpenAI's messages have a ``role``, LangChain's a ``type``."""
    role = _get(message, "role")
    return _get(message, "type") if role is None else role


def _get(message: object, name: str) -> object:
    return message.get(name) if isinstance(message, Mapping) else getattr(message, name, None)
