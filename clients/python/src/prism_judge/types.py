"""What goes into a call and what comes out of it.

Names are those of the wire contract (``proto/prism/judge/v1/judge.proto``). Values of enumerations are the short
lower-case names of the command line: ``"train"`` for ``LANE_TRAIN``, ``"task_framing"`` for ``DIMENSION_TASK_FRAMING``.

Everything here is immutable, compares by value and can be pickled.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Mapping, Optional, Sequence, Tuple, Union

Trait = Literal["openness", "conscientiousness", "extraversion", "agreeableness", "neuroticism"]
Polarity = Literal["high", "low"]
Dimension = Literal["task_framing", "interpersonal_stance", "linguistic_style"]
Evidence = Literal["label_slot", "likelihood"]
Layout = Literal["shared", "released"]
LabelOrder = Literal["released", "content", "cyclic", "all"]
Calibration = Literal["none", "contextual"]
Lane = Literal["guard", "train", "batch"]
"""Who waits: a person (``guard``), a training run (``train``, the default but for ``check``) or nobody (``batch``)."""
Cache = Literal["use", "refresh", "off"]
"""What a call wants of the server's verdict cache; ``use`` is the default."""
Aggregation = Literal["mean", "min", "geometric"]
Signal = Literal["evidence", "margin"]
OnError = Literal["allow", "block"]
Decision = Literal["allow", "warn", "block", "abstain"]

DIMENSIONS: Tuple[Dimension, ...] = ("task_framing", "interpersonal_stance", "linguistic_style")
"""The three dimensions, in canonical order."""


# What goes in.


@dataclass(frozen=True)
class TraitTarget:
    """A Big Five trait and the pole that the persona takes on it."""

    trait: Trait
    polarity: Polarity


@dataclass(frozen=True)
class Persona:
    """Who the response should sound like. Any part may be missing, but something usable must remain."""

    name: Optional[str] = None
    """The character's name."""
    traits: Sequence[Union[TraitTarget, Mapping[str, str]]] = ()
    """Big Five traits, each at most once."""
    description: str = ""
    """Free text, a character card, or ``Big Five focus: X = high|low``."""
    facts: Sequence[str] = ()
    """Single facts about the persona, one sentence each."""


@dataclass(frozen=True)
class Turn:
    """One turn of a dialogue."""

    speaker: str
    text: str


@dataclass(frozen=True)
class Candidate:
    """A response with an id, which comes back with its result."""

    response: str
    id: str = ""


PersonaLike = Union[Persona, Mapping[str, object]]
"""A persona, or a mapping with its fields (a row of a dataset: ``None`` counts as missing)."""
TurnLike = Union[Turn, Mapping[str, str], Tuple[str, str]]
"""A turn, a mapping with ``speaker`` and ``text``, or a pair of the two."""
ContextLike = Union[str, Sequence[TurnLike]]
"""The turns before the response, oldest first. A single text counts as one turn of ``User``."""
CandidateLike = Union[str, Candidate, Mapping[str, str]]
"""A response: its text, or its text with an id."""


@dataclass(frozen=True)
class Options:
    """How to judge. What is ``None`` falls back to the server's own options, which ``info()`` tells."""

    evidence: Optional[Evidence] = None
    layout: Optional[Layout] = None
    label_order: Optional[LabelOrder] = None
    calibration: Optional[Calibration] = None
    persona_block: Optional[bool] = None
    likelihood_t: Optional[float] = None
    likelihood_b: Optional[float] = None


@dataclass(frozen=True)
class DimensionWeights:
    """A weight for each dimension: finite, at least 0, one of them above 0. Only their ratios count."""

    task_framing: float = 1.0
    interpersonal_stance: float = 1.0
    linguistic_style: float = 1.0


@dataclass(frozen=True)
class Shaping:
    """How a reward is made of a verdict. The verdict itself, with ``s_prism``, is untouched by it."""

    weights: Optional[DimensionWeights] = None
    aggregation: Aggregation = "mean"
    signal: Signal = "evidence"
    group_z_score: bool = False
    """``score_group`` and ``rank`` only: ``(r - mean) / standard deviation`` over the group."""


@dataclass(frozen=True)
class Thresholds:
    """Least values, each in [0, 1]; ``None`` is not asked about."""

    s_prism: Optional[float] = None
    task_framing: Optional[float] = None
    interpersonal_stance: Optional[float] = None
    linguistic_style: Optional[float] = None


@dataclass(frozen=True)
class Policy:
    """What a guardrail allows."""

    block: Optional[Thresholds] = None
    """A value below one of these blocks."""
    warn: Optional[Thresholds] = None
    """A value below one of these, and below none that blocks, warns."""
    on_error: OnError = "allow"
    """What to say when the response could not be judged. The answer has the error in any case."""
    budget_ms: int = 0
    """How long the judgement may take, if the call's own deadline is not earlier; 0: as long as that."""
    min_tokens: int = 0
    """Tokens that a response must have to be judged; a shorter one gets ``abstain``."""


@dataclass(frozen=True)
class Item:
    """One response for ``score_many``, with its own persona and context."""

    response: str
    persona: Optional[PersonaLike] = None
    """This or ``persona_id`` is required."""
    persona_id: Optional[str] = None
    context: ContextLike = ()
    id: str = ""


# What comes out.


@dataclass(frozen=True)
class DimensionVerdict:
    """One dimension of a verdict. The three probabilities sum to 1."""

    aligned: float
    indeterminate: float
    contradictory: float
    evidence: float
    """e_d = q_d(aligned), in [0, 1]."""
    label_mass: Optional[float]
    """Share of the next-token probability that the labels hold; ``None`` for the likelihood estimator."""
    label_order: Tuple[Tuple[str, ...], ...]
    """The displayed orders that were scored, for example ``(("aligned", "indeterminate", "contradictory"),)``."""


@dataclass(frozen=True)
class DimensionVerdicts:
    """The three dimensions of a verdict, by name."""

    task_framing: DimensionVerdict
    interpersonal_stance: DimensionVerdict
    linguistic_style: DimensionVerdict


@dataclass(frozen=True)
class Provenance:
    """What judged. Digests are SHA-256, 64 hexadecimal digits."""

    model: str
    model_digest: str
    prompt_digest: str
    label_space_digest: str
    evidence: str
    layout: str
    label_order: str
    calibration: str
    numerics: str


@dataclass(frozen=True)
class TokenCounts:
    """Tokens of one judgement: of its prompts as if each were run alone, and those that were computed for it."""

    prompt: int
    computed: int


@dataclass(frozen=True)
class TextCounts:
    """How often things that people do not see, or that imitate the model's own structure, stand in a text."""

    control: int
    bidi: int
    invisible: int
    special_tokens: int


@dataclass(frozen=True)
class TextWarnings:
    """What is odd about the texts of a call: the response, and the persona with the context."""

    response: TextCounts
    request: TextCounts


@dataclass(frozen=True)
class Verdict:
    """The judgement of one response."""

    id: str
    """The candidate's id."""
    s_prism: float
    """The mean of the three evidences, in [0, 1]."""
    dimensions: DimensionVerdicts
    weakest_dimension: str
    """The dimension of least evidence."""
    judge: Provenance
    tokens: TokenCounts
    cached: bool
    warnings: TextWarnings
    reward: Optional[float] = None
    """Set if the call had ``shaping``."""


@dataclass(frozen=True)
class ItemError:
    """Stands where a verdict would: this response could not be judged; the others were. It is never a number."""

    code: str
    """``invalid_argument``, ``non_finite``, ``cancelled``, ``deadline_exceeded``, ``internal``, ``overloaded``,
    ``unavailable``, ``not_found``, ``over_quota``, ``permission_denied``, or a name that only a newer server knows."""
    message: str
    field: str = ""
    """The field at fault, for example ``candidates[3].response``; empty when no single field is."""
    retry_after_ms: Optional[int] = None
    id: str = ""
    """The candidate's id."""
    index: int = 0
    """Its place in the call, from 0."""


Result = Union[Verdict, ItemError]
"""What became of one response."""


@dataclass(frozen=True)
class TurnResult:
    """What became of one turn of a dialogue."""

    turn: int
    """Its place in the dialogue, from 0."""
    result: Result


@dataclass(frozen=True)
class Drift:
    """A curve over the judged turns, in numbers."""

    mean: float
    slope: float
    """Change from one judged turn to the next."""
    change: float
    """The last value less the first."""
    lowest: float
    lowest_turn: int


@dataclass(frozen=True)
class DialogueDrift:
    """How the persona held over the turns that have a verdict."""

    s_prism: Drift
    task_framing: Drift
    interpersonal_stance: Drift
    linguistic_style: Drift


@dataclass(frozen=True)
class DialogueResult:
    """The judgements of a dialogue."""

    results: Tuple[TurnResult, ...]
    """One per turn of the agent, in order."""
    drift: Optional[DialogueDrift]
    """``None`` if no turn has a verdict."""


@dataclass(frozen=True)
class CheckResult:
    """Whether a response may be shown."""

    decision: Decision
    """With ``error`` it is what the policy says of failures, and never a pass."""
    reason: str
    """In plain words, with the numbers that decided."""
    failed: str
    """What fell short: ``s_prism`` or the name of a dimension; else empty."""
    verdict: Optional[Verdict]
    error: Optional[ItemError]
    """Why the response could not be judged."""
    policy_name: str
    """The policy that decided; empty for one that came with the call."""


@dataclass(frozen=True)
class RankedCandidate:
    """A response and its rank."""

    id: str
    index: int
    """Its place in the call, from 0."""
    rank: int
    """1 is best; equal values share a rank."""
    value: float
    """What it was ordered by: ``s_prism``, or the reward if the call had ``shaping``."""
    margin: float
    """``value`` less that of the next in the ranking; 0 for the last."""
    verdict: Verdict


@dataclass(frozen=True)
class Ranking:
    """Responses in order."""

    ranking: Tuple[RankedCandidate, ...]
    """Best first."""
    failed: Tuple[ItemError, ...]
    """Those that could not be judged. They have no rank."""

    @property
    def best(self) -> Optional[RankedCandidate]:
        """The first of the ranking; ``None`` if no response could be judged."""
        return self.ranking[0] if self.ranking else None


@dataclass(frozen=True)
class NamedPersona:
    """A persona that calls may refer to by ``persona_id``."""

    id: str
    name: str
    digest: str


@dataclass(frozen=True)
class JudgeInfo:
    """What judges behind this client."""

    version: str
    model: str
    model_digest: str
    prompt_digest: str
    label_space_digest: str
    architecture: str
    parameters: int
    context_length: int
    vocabulary: int
    answer_slot: Tuple[str, ...]
    threads: int
    options: Options
    numerics: str
