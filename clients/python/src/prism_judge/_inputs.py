"""Arguments become the JSON form of the wire messages. What cannot is an ``InvalidInputError`` that names the field."""

from __future__ import annotations

import dataclasses
import math
from typing import Dict, Iterable, List, Mapping, NoReturn, Optional, Tuple

from .errors import InvalidInputError
from .types import (
    Candidate,
    DimensionWeights,
    Item,
    Options,
    Persona,
    Policy,
    Shaping,
    Thresholds,
    TraitTarget,
    Turn,
)

Json = Dict[str, object]
"""A message in its JSON form: proto field names, enumerations by name."""

# The short names of each enumeration's values; on the wire the prefix stands before them, in upper case.
_NAMES: Dict[str, Tuple[str, ...]] = {
    "TRAIT": ("openness", "conscientiousness", "extraversion", "agreeableness", "neuroticism"),
    "POLARITY": ("high", "low"),
    "EVIDENCE_KIND": ("label_slot", "likelihood"),
    "LAYOUT": ("shared", "released"),
    "LABEL_ORDER": ("released", "content", "cyclic", "all"),
    "CALIBRATION": ("none", "contextual"),
    "LANE": ("guard", "train", "batch"),
    "CACHE_CONTROL": ("use", "refresh", "off"),
    "AGGREGATION": ("mean", "min", "geometric"),
    "REWARD_SIGNAL": ("evidence", "margin"),
    "ON_ERROR": ("allow", "block"),
}


def head(
    *,
    persona: object,
    persona_id: object,
    context: object = None,
    options: object = None,
    shaping: object = None,
    lane: object = None,
    cache: object = None,
) -> Json:
    """What all calls that judge have in common."""
    return {**about(persona, persona_id, context), **how(options, shaping, lane, cache)}


def about(persona: object, persona_id: object, context: object, at: str = "") -> Json:
    """Who should have spoken, after what. ``at`` stands before the names of fields."""
    message: Json = {}
    if (persona is None) == (persona_id is None):
        one = "give one of the two, not both" if persona is not None else "give one of the two"
        raise InvalidInputError(f"{at}persona", f"persona or persona_id: {one}")
    if persona_id is not None:
        message["persona_id"] = text(f"{at}persona_id", persona_id)
    else:
        message["persona"] = _persona(f"{at}persona", persona)
    if isinstance(context, str):
        context = [Turn("User", text(f"{at}context", context))] if context else None
    if context is not None:
        message["context"] = turns(f"{at}context", context)
    return message


def how(options: object, shaping: object, lane: object, cache: object) -> Json:
    """How to judge, and for whom."""
    message: Json = {}
    if options is not None:
        message["options"] = _options(options)
    if shaping is not None:
        message["shaping"] = _shaping(shaping)
    if lane is not None:
        message["lane"] = _name("lane", "LANE", lane)
    if cache is not None:
        message["cache"] = _name("cache", "CACHE_CONTROL", cache)
    return message


def candidate(field: str, value: object) -> Candidate:
    """A response, checked: text is all that it holds."""
    if isinstance(value, str):
        return Candidate(text(f"{field}.response", value))
    parts = _fields(field, value, Candidate, "a str, a Candidate")
    return Candidate(
        text(f"{field}.response", parts.get("response")), text(f"{field}.id", _present(parts.get("id"), ""))
    )


def candidates(value: object) -> List[Candidate]:
    """The responses of a group."""
    return [candidate(f"candidates[{index}]", one) for index, one in enumerate(_list("candidates", value))]


def item(field: str, value: object) -> Tuple[Json, Candidate]:
    """An item of ``score_many``: what its group has in common, and its response."""
    parts = _fields(field, value, Item, "an Item")
    shared = about(parts.get("persona"), parts.get("persona_id"), parts.get("context"), f"{field}.")
    response = text(f"{field}.response", parts.get("response"))
    return shared, Candidate(response, text(f"{field}.id", _present(parts.get("id"), "")))


def turns(field: str, value: object) -> List[Json]:
    """Turns of a dialogue, oldest first."""
    return [_turn(f"{field}[{index}]", one) for index, one in enumerate(_list(field, value))]


def policy(value: object) -> Json:
    if not isinstance(value, Policy):
        _wrong("policy", value, "a Policy")
    message: Json = {
        "on_error": _name("policy.on_error", "ON_ERROR", value.on_error),
        "budget_ms": _whole("policy.budget_ms", value.budget_ms),
        "min_tokens": _whole("policy.min_tokens", value.min_tokens),
    }
    for name in ("block", "warn"):
        thresholds = getattr(value, name)
        if thresholds is None:
            continue
        if not isinstance(thresholds, Thresholds):
            _wrong(f"policy.{name}", thresholds, "Thresholds")
        message[name] = _numbers(f"policy.{name}", thresholds)
    return message


def text(field: str, value: object) -> str:
    """A str that UTF-8 can hold."""
    if not isinstance(value, str):
        _wrong(field, value, "a str")
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError as error:
            where = f"character {error.start} is a lone surrogate (U+{ord(value[error.start]):04X})"
            raise InvalidInputError(field, f"{where}, which UTF-8 cannot hold: decode the text properly") from None
    return value


def _persona(field: str, value: object) -> Json:
    if isinstance(value, str):
        raise InvalidInputError(field, "a str is no persona: use persona_id=... or Persona(description=...)")
    parts = _fields(field, value, Persona, "a Persona")
    message: Json = {}
    if parts.get("name") is not None:
        message["name"] = text(f"{field}.name", parts["name"])
    if parts.get("description") is not None:
        message["description"] = text(f"{field}.description", parts["description"])
    if parts.get("facts") is not None:
        facts = _list(f"{field}.facts", parts["facts"])
        message["facts"] = [text(f"{field}.facts[{index}]", fact) for index, fact in enumerate(facts)]
    if parts.get("traits") is not None:
        traits = _list(f"{field}.traits", parts["traits"])
        message["traits"] = [_trait(f"{field}.traits[{index}]", trait) for index, trait in enumerate(traits)]
    return message


def _trait(field: str, value: object) -> Json:
    parts = _fields(field, value, TraitTarget, "a TraitTarget")
    return {
        "trait": _name(f"{field}.trait", "TRAIT", parts.get("trait")),
        "polarity": _name(f"{field}.polarity", "POLARITY", parts.get("polarity")),
    }


def _turn(field: str, value: object) -> Json:
    if isinstance(value, tuple) and len(value) == 2:
        value = Turn(*value)
    parts = _fields(field, value, Turn, "a Turn, a pair of speaker and text")
    return {name: text(f"{field}.{name}", parts.get(name)) for name in ("speaker", "text")}


def _options(value: object) -> Json:
    if not isinstance(value, Options):
        _wrong("options", value, "Options")
    message: Json = {}
    for name, prefix in (
        ("evidence", "EVIDENCE_KIND"),
        ("layout", "LAYOUT"),
        ("label_order", "LABEL_ORDER"),
        ("calibration", "CALIBRATION"),
    ):
        if getattr(value, name) is not None:
            message[name] = _name(f"options.{name}", prefix, getattr(value, name))
    if value.persona_block is not None:
        message["persona_block"] = _bool("options.persona_block", value.persona_block)
    for name in ("likelihood_t", "likelihood_b"):
        if getattr(value, name) is not None:
            message[name] = _number(f"options.{name}", getattr(value, name))
    return message


def _shaping(value: object) -> Json:
    if not isinstance(value, Shaping):
        _wrong("shaping", value, "a Shaping")
    message: Json = {
        "aggregation": _name("shaping.aggregation", "AGGREGATION", value.aggregation),
        "signal": _name("shaping.signal", "REWARD_SIGNAL", value.signal),
        "group_z_score": _bool("shaping.group_z_score", value.group_z_score),
    }
    if value.weights is not None:
        if not isinstance(value.weights, DimensionWeights):
            _wrong("shaping.weights", value.weights, "DimensionWeights")
        message["weights"] = _numbers("shaping.weights", value.weights)
    return message


def _numbers(field: str, value: object) -> Json:
    """A dataclass of numbers; those that are ``None`` are left out."""
    parts = vars(value)
    return {name: _number(f"{field}.{name}", number) for name, number in parts.items() if number is not None}


def _fields(field: str, value: object, kind: type, wanted: str) -> Mapping[str, object]:
    """The fields of a dataclass or of a mapping that stands for one."""
    if isinstance(value, kind):
        return vars(value)
    if not isinstance(value, Mapping):
        _wrong(field, value, f"{wanted} or a mapping with its fields")
    known = [one.name for one in dataclasses.fields(kind)]
    unknown = [key for key in value if key not in known]
    if unknown:
        raise InvalidInputError(field, f"it has no field {unknown[0]!r}: the fields are {', '.join(known)}")
    return value


def _list(field: str, value: object) -> List[object]:
    if isinstance(value, (str, bytes, Mapping)) or not isinstance(value, Iterable):
        _wrong(field, value, "a sequence")
    return list(value)


def _name(field: str, prefix: str, value: object) -> str:
    names = _NAMES[prefix]
    if value not in names:
        raise InvalidInputError(field, f"it must be one of {', '.join(names)}, not {_shown(value)}")
    return f"{prefix}_{str(value).upper()}"


def _number(field: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        _wrong(field, value, "a number")
    if not math.isfinite(value):
        raise InvalidInputError(field, f"it must be finite, not {value}")
    return float(value)


def _whole(field: str, value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 1 << 32:
        raise InvalidInputError(field, f"it must be a whole number from 0 to {(1 << 32) - 1}, not {_shown(value)}")
    return value


def _bool(field: str, value: object) -> bool:
    if not isinstance(value, bool):
        _wrong(field, value, "a bool")
    return value


def _present(value: Optional[object], default: object) -> object:
    return default if value is None else value


def _shown(value: object) -> str:
    """A name as it is, everything else by its kind: it may be a user's text."""
    return (
        repr(value) if isinstance(value, (str, int, float)) and len(str(value)) <= 40 else f"a {type(value).__name__}"
    )


def _wrong(field: str, value: object, wanted: str) -> NoReturn:
    kind = "None" if value is None else f"a {type(value).__name__}"
    raise InvalidInputError(field, f"it must be {wanted}, not {kind}")
