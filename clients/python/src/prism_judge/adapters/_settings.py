"""Where the judge is and who is judged: from arguments, else from the environment."""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import List, Literal, Mapping, Optional, Sequence, Union

from ..aio import AsyncClient
from ..client import Client
from ..errors import InvalidInputError
from ..types import Options, Persona, PersonaLike

PersonaText = Union[str, PersonaLike]
"""An inline persona: its description as text, or all its fields."""
Thinking = Literal["strip", "keep"]

URL = "PRISM_JUDGE_URL"
API_KEY = "PRISM_JUDGE_API_KEY"
PERSONA = "PRISM_JUDGE_PERSONA"
TIMEOUT = "PRISM_JUDGE_TIMEOUT"

BATCH_TIMEOUT = 600.0
"""Seconds for trainers and evaluations: a deadline that drops long batches would bias what is learnt from the rest."""
GUARD_TIMEOUT = 5.0
"""Seconds for guardrails: somebody waits for the reply."""


@dataclass(frozen=True)
class Settings:
    """What every adapter may be told. It can be pickled; a client is made where it is used."""

    url: Optional[str] = None
    """Default: PRISM_JUDGE_URL, else the client's own default."""
    api_key: Optional[str] = field(default=None, repr=False)
    """Default: PRISM_JUDGE_API_KEY."""
    persona_id: Optional[str] = None
    """The persona of what names none itself, by id. Default: PRISM_JUDGE_PERSONA, unless ``persona`` is given."""
    persona: Optional[PersonaText] = None
    """The same, inline."""
    timeout: Optional[float] = None
    """Seconds for a call with its retries. Default: PRISM_JUDGE_TIMEOUT, else 600, and 5 for guardrails."""
    options: Optional[Options] = None
    thinking: Thinking = "strip"
    """``strip`` judges only what follows the last ``</think>``; ``keep`` judges the text as it is."""

    def __post_init__(self) -> None:
        Who.of(self.persona_id, self.persona, "persona")
        if self.thinking not in ("strip", "keep"):
            raise InvalidInputError("thinking", f'it must be "strip" or "keep", not {self.thinking!r}')

    def resolved(self, timeout: float) -> Settings:
        """The settings with the environment's values, as they are now, where they have none."""
        environment = os.environ.get
        persona_id = self.persona_id or (None if self.persona else environment(PERSONA))
        return replace(
            self,
            url=self.url or environment(URL) or None,
            api_key=self.api_key or environment(API_KEY) or None,
            persona_id=persona_id or None,
            timeout=self.timeout if self.timeout is not None else _seconds(environment(TIMEOUT), timeout),
        )

    def who(self) -> Optional[Who]:
        """The default persona."""
        return Who.of(self.persona_id, self.persona, "persona")

    def client(self) -> Client:
        """The client for these settings; each process has one."""
        return _client(self.url, self.api_key)

    def async_client(self) -> AsyncClient:
        """The asyncio client for these settings; each process has one."""
        return _async_client(self.url, self.api_key)


@dataclass(frozen=True)
class Who:
    """A persona, by its id or inline: exactly one is set."""

    persona_id: Optional[str] = None
    persona: Optional[PersonaLike] = None

    @classmethod
    def of(cls, persona_id: object, persona: object, name: str) -> Optional[Who]:
        """Of two values of which at most one is there (``None`` and an empty text are not); ``None`` if neither is.

        A persona that is a text is a description. ``name`` is what an error calls them.
        """
        if persona_id and persona:
            raise InvalidInputError(name, "persona and persona_id are both set; keep one")
        if persona_id:
            if not isinstance(persona_id, str):
                raise InvalidInputError(name, f"a persona_id must be a text, not {type(persona_id).__name__}")
            return cls(persona_id=persona_id)
        if isinstance(persona, str):
            persona = Persona(description=persona) if persona.strip() else None
        if not persona:
            return None
        if not isinstance(persona, (Persona, Mapping)):
            raise InvalidInputError(
                name, f"a persona must be a text, a Persona or a mapping, not {type(persona).__name__}"
            )
        return cls(persona=persona)


def personas(settings: Settings, count: int, persona_id: object, persona: object) -> List[Optional[Who]]:
    """Who each of ``count`` responses should sound like, from two columns that may be missing.

    A column has one value for all, or one for each. A row that names nobody gets the default, and ``None`` without a
    default. With neither column nor default nothing could be judged, which is an error.
    """
    default = settings.who()
    if default is None and persona_id is None and persona is None:
        raise InvalidInputError(
            "persona_id", f"there is no persona: no column persona_id or persona, no default, no {PERSONA}"
        )
    ids = _column(persona_id, count, "persona_id")
    inline = _column(persona, count, "persona")
    rows = (Who.of(*row, name=f"persona[{place}]") for place, row in enumerate(zip(ids, inline)))
    return [default if row is None else row for row in rows]


def _column(value: object, count: int, name: str) -> Sequence[object]:
    if hasattr(value, "tolist"):
        value = value.tolist()
    if value is None or isinstance(value, (str, Mapping, Persona)):
        return [value] * count
    if not isinstance(value, Sequence):
        kind = type(value).__name__
        raise InvalidInputError(name, f"it must be one value or a list with one for each completion, not {kind}")
    if len(value) != count:
        raise InvalidInputError(name, f"it has {len(value)} values for {count} completions")
    return value


def _seconds(text: Optional[str], default: float) -> float:
    if not text:
        return default
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0.0 < seconds < float("inf"):
        raise InvalidInputError(TIMEOUT, f"it must be a number of seconds above 0, not {text!r}")
    return seconds


@lru_cache(maxsize=None)
def _client(url: Optional[str], api_key: Optional[str]) -> Client:
    return Client(url, api_key=api_key)


@lru_cache(maxsize=None)
def _async_client(url: Optional[str], api_key: Optional[str]) -> AsyncClient:
    return AsyncClient(url, api_key=api_key)
