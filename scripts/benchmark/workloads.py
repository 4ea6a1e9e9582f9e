"""What is judged: groups and dialogues of a given size in tokens, as lines that `prism-judge score` reads."""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

from .programs import Json
from .texts import Prose

TRAITS = ["openness", "conscientiousness", "extraversion", "agreeableness", "neuroticism"]
WORDS_PER_TOKEN = 0.75
TURN_TOKENS = 45
FIT_ROUNDS = 6


@dataclass
class Shape:
    """The size of a group in tokens: what its candidates share before the reply, and the reply."""

    candidates: int
    prefix: int
    reply: int


@dataclass
class Group:
    """A group whose texts can be made longer or shorter until its tokens fit."""

    key: str
    shape: Shape
    context_words: int = field(init=False)
    reply_words: list[int] = field(init=False)

    def __post_init__(self) -> None:
        self.context_words = max(1, round((self.shape.prefix - 60) * WORDS_PER_TOKEN))
        self.reply_words = [max(1, round(self.shape.reply * WORDS_PER_TOKEN))] * self.shape.candidates

    def line(self) -> str:
        """The group as one JSON line."""
        persona = Prose(f"{self.key}/persona")
        target = {"trait": persona.choice(TRAITS), "polarity": persona.choice(["high", "low"])}
        replies = [Prose(f"{self.key}/reply/{index}").words(words) for index, words in enumerate(self.reply_words)]
        return json.dumps(
            {
                "group_id": self.key,
                "persona": {"traits": [target]},
                "context": turns(
                    Prose(f"{self.key}/context").words(self.context_words), self.shape.prefix // TURN_TOKENS
                ),
                "positive": replies[0],
                "negatives": [{"text": reply} for reply in replies[1:]],
            }
        )

    def adjust(self, prefix: int, replies: list[int]) -> bool:
        """Bring the words closer to the shape; False if nothing is left to do (a word is a token or two)."""
        wrong_prefix = abs(prefix - self.shape.prefix) > 1
        wrong = [abs(tokens - self.shape.reply) > 1 for tokens in replies]
        if wrong_prefix:
            self.context_words = max(1, self.context_words + nudge(self.shape.prefix - prefix))
        for index, tokens in enumerate(replies):
            if wrong[index]:
                self.reply_words[index] = max(1, self.reply_words[index] + nudge(self.shape.reply - tokens))
        return wrong_prefix or any(wrong)


def nudge(tokens: int) -> int:
    """Words that make about so many tokens, at least one."""
    words = round(tokens * WORDS_PER_TOKEN)
    return words or (1 if tokens > 0 else -1)


def turns(text: str, about: int) -> list[dict[str, str]]:
    """A dialogue of about so many turns that ends with the user."""
    words = text.split()
    count = max(1, about) | 1
    size = -(-len(words) // count)
    cuts = [words[at : at + size] for at in range(0, len(words), size)]
    return [{"speaker": "Agent" if index % 2 else "User", "text": " ".join(cut)} for index, cut in enumerate(cuts)]


def chat(key: str, agent_turns: int, words: int) -> list[str]:
    """A dialogue judged at each of the agent's turns: one line a turn, each with the context before it."""
    prose = Prose(key)
    persona = {"traits": [{"trait": prose.choice(TRAITS), "polarity": prose.choice(["high", "low"])}]}
    context: list[dict[str, str]] = []
    lines = []
    for turn in range(agent_turns):
        context.append({"speaker": "User", "text": prose.words(words)})
        reply = prose.words(words)
        lines.append(json.dumps({"id": f"{key}/{turn}", "persona": persona, "context": context, "response": reply}))
        context.append({"speaker": "Agent", "text": reply})
    return lines


def write(path: Path, lines: list[str]) -> Path:
    """The lines as a file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def prompts(judge: list[str], rows: Path, *flags: str) -> list[Json]:
    """Every prompt of a file of rows as our program (`judge`: its path and the flag of its model) runs it."""
    command = [judge[0], "debug-prompts", *judge[1:], str(rows), *flags]
    output = subprocess.run(command, check=True, capture_output=True, text=True, timeout=300).stdout
    return [json.loads(line) for line in output.splitlines()]


def save_prompts(path: Path, lines: list[Json]) -> Path:
    """Prompts as a file that the peers read."""
    return write(path, [json.dumps(line, separators=(",", ":")) for line in lines])


def by_candidate(lines: list[Json]) -> dict[str, dict[str, list[Json]]]:
    """group → candidate → prompts, in order."""
    groups: dict[str, dict[str, list[Json]]] = {}
    for line in lines:
        groups.setdefault(line["group"], {}).setdefault(line["candidate"], []).append(line)
    return groups


def fitted(judge: list[str], path: Path, groups: list[Group]) -> Path:
    """Write the groups to `path`, their sizes in tokens as near to their shapes as whole words allow."""
    for _ in range(FIT_ROUNDS):
        write(path, [group.line() for group in groups])
        measured = sizes(prompts(judge, path, "--evidence", "likelihood"))
        if not any([group.adjust(*measured[group.key]) for group in groups]):
            break
    return path


def sizes(lines: list[Json]) -> dict[str, tuple[int, list[int]]]:
    """For each group of likelihood prompts: the tokens before the reply, and those of each reply with its end."""
    result = {}
    for key, candidates in by_candidate(lines).items():
        first = [prompts[0]["span"] for prompts in candidates.values()]
        result[key] = (min(span[0] for span in first), [span[1] - span[0] for span in first])
    return result
