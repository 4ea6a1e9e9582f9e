"""Client of prism-judge: does this reply sound like the persona that should have given it?

>>> from prism_judge import Client, Persona
>>> judge = Client("http://127.0.0.1:8080")
>>> verdict = judge.score("Yes! Who else is in?", persona=Persona(description="An outgoing host."), context="Coming?")
>>> 0.0 <= verdict.s_prism <= 1.0
True

``Client`` blocks and may be shared by threads, ``AsyncClient`` is for asyncio; both have the same methods. They can be
pickled and, over HTTP, used in the children of a fork. A call that fails raises a ``PrismJudgeError``; one response of
many that cannot be judged is an ``ItemError`` in its place, never a number. ``rewards`` makes numbers of results.
"""

from ._rewards import rewards
from .aio import AsyncClient
from .client import Client
from .errors import (
    ApiError,
    DeadlineExceededError,
    InternalError,
    InvalidArgumentError,
    InvalidInputError,
    JudgementError,
    NotFoundError,
    PermissionDeniedError,
    PrismJudgeError,
    ProtocolError,
    RequestTooLargeError,
    ResourceExhaustedError,
    UnauthenticatedError,
    UnavailableError,
)
from .types import (
    DIMENSIONS,
    Candidate,
    CheckResult,
    DialogueDrift,
    DialogueResult,
    DimensionVerdict,
    DimensionVerdicts,
    DimensionWeights,
    Drift,
    Item,
    ItemError,
    JudgeInfo,
    NamedPersona,
    Options,
    Persona,
    Policy,
    Provenance,
    RankedCandidate,
    Ranking,
    Result,
    Shaping,
    TextCounts,
    TextWarnings,
    Thresholds,
    TokenCounts,
    TraitTarget,
    Turn,
    TurnResult,
    Verdict,
)

__version__ = "0.1.0"

__all__ = [
    "DIMENSIONS",
    "ApiError",
    "AsyncClient",
    "Candidate",
    "CheckResult",
    "Client",
    "DeadlineExceededError",
    "DialogueDrift",
    "DialogueResult",
    "DimensionVerdict",
    "DimensionVerdicts",
    "DimensionWeights",
    "Drift",
    "InternalError",
    "InvalidArgumentError",
    "InvalidInputError",
    "Item",
    "ItemError",
    "JudgeInfo",
    "JudgementError",
    "NamedPersona",
    "NotFoundError",
    "Options",
    "PermissionDeniedError",
    "Persona",
    "Policy",
    "PrismJudgeError",
    "ProtocolError",
    "Provenance",
    "RankedCandidate",
    "Ranking",
    "RequestTooLargeError",
    "ResourceExhaustedError",
    "Result",
    "Shaping",
    "TextCounts",
    "TextWarnings",
    "Thresholds",
    "TokenCounts",
    "TraitTarget",
    "Turn",
    "TurnResult",
    "UnauthenticatedError",
    "UnavailableError",
    "Verdict",
    "rewards",
]
