from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Trait(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    TRAIT_UNSPECIFIED: _ClassVar[Trait]
    TRAIT_OPENNESS: _ClassVar[Trait]
    TRAIT_CONSCIENTIOUSNESS: _ClassVar[Trait]
    TRAIT_EXTRAVERSION: _ClassVar[Trait]
    TRAIT_AGREEABLENESS: _ClassVar[Trait]
    TRAIT_NEUROTICISM: _ClassVar[Trait]

class Polarity(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    POLARITY_UNSPECIFIED: _ClassVar[Polarity]
    POLARITY_HIGH: _ClassVar[Polarity]
    POLARITY_LOW: _ClassVar[Polarity]

class Dimension(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    DIMENSION_UNSPECIFIED: _ClassVar[Dimension]
    DIMENSION_TASK_FRAMING: _ClassVar[Dimension]
    DIMENSION_INTERPERSONAL_STANCE: _ClassVar[Dimension]
    DIMENSION_LINGUISTIC_STYLE: _ClassVar[Dimension]

class Label(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    LABEL_UNSPECIFIED: _ClassVar[Label]
    LABEL_ALIGNED: _ClassVar[Label]
    LABEL_INDETERMINATE: _ClassVar[Label]
    LABEL_CONTRADICTORY: _ClassVar[Label]

class EvidenceKind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    EVIDENCE_KIND_UNSPECIFIED: _ClassVar[EvidenceKind]
    EVIDENCE_KIND_LABEL_SLOT: _ClassVar[EvidenceKind]
    EVIDENCE_KIND_LIKELIHOOD: _ClassVar[EvidenceKind]

class Layout(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    LAYOUT_UNSPECIFIED: _ClassVar[Layout]
    LAYOUT_SHARED: _ClassVar[Layout]
    LAYOUT_RELEASED: _ClassVar[Layout]

class LabelOrder(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    LABEL_ORDER_UNSPECIFIED: _ClassVar[LabelOrder]
    LABEL_ORDER_RELEASED: _ClassVar[LabelOrder]
    LABEL_ORDER_CONTENT: _ClassVar[LabelOrder]
    LABEL_ORDER_CYCLIC: _ClassVar[LabelOrder]
    LABEL_ORDER_ALL: _ClassVar[LabelOrder]

class Calibration(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    CALIBRATION_UNSPECIFIED: _ClassVar[Calibration]
    CALIBRATION_NONE: _ClassVar[Calibration]
    CALIBRATION_CONTEXTUAL: _ClassVar[Calibration]

class Lane(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    LANE_UNSPECIFIED: _ClassVar[Lane]
    LANE_GUARD: _ClassVar[Lane]
    LANE_TRAIN: _ClassVar[Lane]
    LANE_BATCH: _ClassVar[Lane]

class CacheControl(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    CACHE_CONTROL_UNSPECIFIED: _ClassVar[CacheControl]
    CACHE_CONTROL_USE: _ClassVar[CacheControl]
    CACHE_CONTROL_REFRESH: _ClassVar[CacheControl]
    CACHE_CONTROL_OFF: _ClassVar[CacheControl]

class Numerics(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    NUMERICS_UNSPECIFIED: _ClassVar[Numerics]
    NUMERICS_F32: _ClassVar[Numerics]
    NUMERICS_INT8: _ClassVar[Numerics]

class ErrorCode(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    ERROR_CODE_UNSPECIFIED: _ClassVar[ErrorCode]
    ERROR_CODE_INVALID_ARGUMENT: _ClassVar[ErrorCode]
    ERROR_CODE_NON_FINITE: _ClassVar[ErrorCode]
    ERROR_CODE_CANCELLED: _ClassVar[ErrorCode]
    ERROR_CODE_DEADLINE_EXCEEDED: _ClassVar[ErrorCode]
    ERROR_CODE_INTERNAL: _ClassVar[ErrorCode]
    ERROR_CODE_OVERLOADED: _ClassVar[ErrorCode]
    ERROR_CODE_UNAVAILABLE: _ClassVar[ErrorCode]
    ERROR_CODE_NOT_FOUND: _ClassVar[ErrorCode]
    ERROR_CODE_OVER_QUOTA: _ClassVar[ErrorCode]
    ERROR_CODE_PERMISSION_DENIED: _ClassVar[ErrorCode]

class RewardSignal(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    REWARD_SIGNAL_UNSPECIFIED: _ClassVar[RewardSignal]
    REWARD_SIGNAL_EVIDENCE: _ClassVar[RewardSignal]
    REWARD_SIGNAL_MARGIN: _ClassVar[RewardSignal]

class Aggregation(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    AGGREGATION_UNSPECIFIED: _ClassVar[Aggregation]
    AGGREGATION_MEAN: _ClassVar[Aggregation]
    AGGREGATION_MIN: _ClassVar[Aggregation]
    AGGREGATION_GEOMETRIC: _ClassVar[Aggregation]

class Decision(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    DECISION_UNSPECIFIED: _ClassVar[Decision]
    DECISION_ALLOW: _ClassVar[Decision]
    DECISION_WARN: _ClassVar[Decision]
    DECISION_BLOCK: _ClassVar[Decision]
    DECISION_ABSTAIN: _ClassVar[Decision]

class OnError(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    ON_ERROR_UNSPECIFIED: _ClassVar[OnError]
    ON_ERROR_ALLOW: _ClassVar[OnError]
    ON_ERROR_BLOCK: _ClassVar[OnError]
TRAIT_UNSPECIFIED: Trait
TRAIT_OPENNESS: Trait
TRAIT_CONSCIENTIOUSNESS: Trait
TRAIT_EXTRAVERSION: Trait
TRAIT_AGREEABLENESS: Trait
TRAIT_NEUROTICISM: Trait
POLARITY_UNSPECIFIED: Polarity
POLARITY_HIGH: Polarity
POLARITY_LOW: Polarity
DIMENSION_UNSPECIFIED: Dimension
DIMENSION_TASK_FRAMING: Dimension
DIMENSION_INTERPERSONAL_STANCE: Dimension
DIMENSION_LINGUISTIC_STYLE: Dimension
LABEL_UNSPECIFIED: Label
LABEL_ALIGNED: Label
LABEL_INDETERMINATE: Label
LABEL_CONTRADICTORY: Label
EVIDENCE_KIND_UNSPECIFIED: EvidenceKind
EVIDENCE_KIND_LABEL_SLOT: EvidenceKind
EVIDENCE_KIND_LIKELIHOOD: EvidenceKind
LAYOUT_UNSPECIFIED: Layout
LAYOUT_SHARED: Layout
LAYOUT_RELEASED: Layout
LABEL_ORDER_UNSPECIFIED: LabelOrder
LABEL_ORDER_RELEASED: LabelOrder
LABEL_ORDER_CONTENT: LabelOrder
LABEL_ORDER_CYCLIC: LabelOrder
LABEL_ORDER_ALL: LabelOrder
CALIBRATION_UNSPECIFIED: Calibration
CALIBRATION_NONE: Calibration
CALIBRATION_CONTEXTUAL: Calibration
LANE_UNSPECIFIED: Lane
LANE_GUARD: Lane
LANE_TRAIN: Lane
LANE_BATCH: Lane
CACHE_CONTROL_UNSPECIFIED: CacheControl
CACHE_CONTROL_USE: CacheControl
CACHE_CONTROL_REFRESH: CacheControl
CACHE_CONTROL_OFF: CacheControl
NUMERICS_UNSPECIFIED: Numerics
NUMERICS_F32: Numerics
NUMERICS_INT8: Numerics
ERROR_CODE_UNSPECIFIED: ErrorCode
ERROR_CODE_INVALID_ARGUMENT: ErrorCode
ERROR_CODE_NON_FINITE: ErrorCode
ERROR_CODE_CANCELLED: ErrorCode
ERROR_CODE_DEADLINE_EXCEEDED: ErrorCode
ERROR_CODE_INTERNAL: ErrorCode
ERROR_CODE_OVERLOADED: ErrorCode
ERROR_CODE_UNAVAILABLE: ErrorCode
ERROR_CODE_NOT_FOUND: ErrorCode
ERROR_CODE_OVER_QUOTA: ErrorCode
ERROR_CODE_PERMISSION_DENIED: ErrorCode
REWARD_SIGNAL_UNSPECIFIED: RewardSignal
REWARD_SIGNAL_EVIDENCE: RewardSignal
REWARD_SIGNAL_MARGIN: RewardSignal
AGGREGATION_UNSPECIFIED: Aggregation
AGGREGATION_MEAN: Aggregation
AGGREGATION_MIN: Aggregation
AGGREGATION_GEOMETRIC: Aggregation
DECISION_UNSPECIFIED: Decision
DECISION_ALLOW: Decision
DECISION_WARN: Decision
DECISION_BLOCK: Decision
DECISION_ABSTAIN: Decision
ON_ERROR_UNSPECIFIED: OnError
ON_ERROR_ALLOW: OnError
ON_ERROR_BLOCK: OnError

class TraitTarget(_message.Message):
    __slots__ = ("trait", "polarity")
    TRAIT_FIELD_NUMBER: _ClassVar[int]
    POLARITY_FIELD_NUMBER: _ClassVar[int]
    trait: Trait
    polarity: Polarity
    def __init__(self, trait: _Optional[_Union[Trait, str]] = ..., polarity: _Optional[_Union[Polarity, str]] = ...) -> None: ...

class Persona(_message.Message):
    __slots__ = ("name", "traits", "description", "facts")
    NAME_FIELD_NUMBER: _ClassVar[int]
    TRAITS_FIELD_NUMBER: _ClassVar[int]
    DESCRIPTION_FIELD_NUMBER: _ClassVar[int]
    FACTS_FIELD_NUMBER: _ClassVar[int]
    name: str
    traits: _containers.RepeatedCompositeFieldContainer[TraitTarget]
    description: str
    facts: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, name: _Optional[str] = ..., traits: _Optional[_Iterable[_Union[TraitTarget, _Mapping]]] = ..., description: _Optional[str] = ..., facts: _Optional[_Iterable[str]] = ...) -> None: ...

class Turn(_message.Message):
    __slots__ = ("speaker", "text")
    SPEAKER_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    speaker: str
    text: str
    def __init__(self, speaker: _Optional[str] = ..., text: _Optional[str] = ...) -> None: ...

class Candidate(_message.Message):
    __slots__ = ("id", "response")
    ID_FIELD_NUMBER: _ClassVar[int]
    RESPONSE_FIELD_NUMBER: _ClassVar[int]
    id: str
    response: str
    def __init__(self, id: _Optional[str] = ..., response: _Optional[str] = ...) -> None: ...

class Options(_message.Message):
    __slots__ = ("evidence", "layout", "label_order", "calibration", "persona_block", "likelihood_t", "likelihood_b")
    EVIDENCE_FIELD_NUMBER: _ClassVar[int]
    LAYOUT_FIELD_NUMBER: _ClassVar[int]
    LABEL_ORDER_FIELD_NUMBER: _ClassVar[int]
    CALIBRATION_FIELD_NUMBER: _ClassVar[int]
    PERSONA_BLOCK_FIELD_NUMBER: _ClassVar[int]
    LIKELIHOOD_T_FIELD_NUMBER: _ClassVar[int]
    LIKELIHOOD_B_FIELD_NUMBER: _ClassVar[int]
    evidence: EvidenceKind
    layout: Layout
    label_order: LabelOrder
    calibration: Calibration
    persona_block: bool
    likelihood_t: float
    likelihood_b: float
    def __init__(self, evidence: _Optional[_Union[EvidenceKind, str]] = ..., layout: _Optional[_Union[Layout, str]] = ..., label_order: _Optional[_Union[LabelOrder, str]] = ..., calibration: _Optional[_Union[Calibration, str]] = ..., persona_block: bool = ..., likelihood_t: _Optional[float] = ..., likelihood_b: _Optional[float] = ...) -> None: ...

class Shaping(_message.Message):
    __slots__ = ("weights", "aggregation", "signal", "group_z_score")
    WEIGHTS_FIELD_NUMBER: _ClassVar[int]
    AGGREGATION_FIELD_NUMBER: _ClassVar[int]
    SIGNAL_FIELD_NUMBER: _ClassVar[int]
    GROUP_Z_SCORE_FIELD_NUMBER: _ClassVar[int]
    weights: DimensionWeights
    aggregation: Aggregation
    signal: RewardSignal
    group_z_score: bool
    def __init__(self, weights: _Optional[_Union[DimensionWeights, _Mapping]] = ..., aggregation: _Optional[_Union[Aggregation, str]] = ..., signal: _Optional[_Union[RewardSignal, str]] = ..., group_z_score: bool = ...) -> None: ...

class DimensionWeights(_message.Message):
    __slots__ = ("task_framing", "interpersonal_stance", "linguistic_style")
    TASK_FRAMING_FIELD_NUMBER: _ClassVar[int]
    INTERPERSONAL_STANCE_FIELD_NUMBER: _ClassVar[int]
    LINGUISTIC_STYLE_FIELD_NUMBER: _ClassVar[int]
    task_framing: float
    interpersonal_stance: float
    linguistic_style: float
    def __init__(self, task_framing: _Optional[float] = ..., interpersonal_stance: _Optional[float] = ..., linguistic_style: _Optional[float] = ...) -> None: ...

class ScoreRequest(_message.Message):
    __slots__ = ("persona", "context", "candidate", "options", "request_id", "lane", "cache", "persona_id", "shaping")
    PERSONA_FIELD_NUMBER: _ClassVar[int]
    CONTEXT_FIELD_NUMBER: _ClassVar[int]
    CANDIDATE_FIELD_NUMBER: _ClassVar[int]
    OPTIONS_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    LANE_FIELD_NUMBER: _ClassVar[int]
    CACHE_FIELD_NUMBER: _ClassVar[int]
    PERSONA_ID_FIELD_NUMBER: _ClassVar[int]
    SHAPING_FIELD_NUMBER: _ClassVar[int]
    persona: Persona
    context: _containers.RepeatedCompositeFieldContainer[Turn]
    candidate: Candidate
    options: Options
    request_id: str
    lane: Lane
    cache: CacheControl
    persona_id: str
    shaping: Shaping
    def __init__(self, persona: _Optional[_Union[Persona, _Mapping]] = ..., context: _Optional[_Iterable[_Union[Turn, _Mapping]]] = ..., candidate: _Optional[_Union[Candidate, _Mapping]] = ..., options: _Optional[_Union[Options, _Mapping]] = ..., request_id: _Optional[str] = ..., lane: _Optional[_Union[Lane, str]] = ..., cache: _Optional[_Union[CacheControl, str]] = ..., persona_id: _Optional[str] = ..., shaping: _Optional[_Union[Shaping, _Mapping]] = ...) -> None: ...

class ScoreResponse(_message.Message):
    __slots__ = ("request_id", "verdict", "reward")
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    VERDICT_FIELD_NUMBER: _ClassVar[int]
    REWARD_FIELD_NUMBER: _ClassVar[int]
    request_id: str
    verdict: Verdict
    reward: float
    def __init__(self, request_id: _Optional[str] = ..., verdict: _Optional[_Union[Verdict, _Mapping]] = ..., reward: _Optional[float] = ...) -> None: ...

class ScoreGroupRequest(_message.Message):
    __slots__ = ("persona", "context", "candidates", "options", "request_id", "lane", "cache", "persona_id", "shaping")
    PERSONA_FIELD_NUMBER: _ClassVar[int]
    CONTEXT_FIELD_NUMBER: _ClassVar[int]
    CANDIDATES_FIELD_NUMBER: _ClassVar[int]
    OPTIONS_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    LANE_FIELD_NUMBER: _ClassVar[int]
    CACHE_FIELD_NUMBER: _ClassVar[int]
    PERSONA_ID_FIELD_NUMBER: _ClassVar[int]
    SHAPING_FIELD_NUMBER: _ClassVar[int]
    persona: Persona
    context: _containers.RepeatedCompositeFieldContainer[Turn]
    candidates: _containers.RepeatedCompositeFieldContainer[Candidate]
    options: Options
    request_id: str
    lane: Lane
    cache: CacheControl
    persona_id: str
    shaping: Shaping
    def __init__(self, persona: _Optional[_Union[Persona, _Mapping]] = ..., context: _Optional[_Iterable[_Union[Turn, _Mapping]]] = ..., candidates: _Optional[_Iterable[_Union[Candidate, _Mapping]]] = ..., options: _Optional[_Union[Options, _Mapping]] = ..., request_id: _Optional[str] = ..., lane: _Optional[_Union[Lane, str]] = ..., cache: _Optional[_Union[CacheControl, str]] = ..., persona_id: _Optional[str] = ..., shaping: _Optional[_Union[Shaping, _Mapping]] = ...) -> None: ...

class ScoreGroupResponse(_message.Message):
    __slots__ = ("request_id", "results")
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    RESULTS_FIELD_NUMBER: _ClassVar[int]
    request_id: str
    results: _containers.RepeatedCompositeFieldContainer[CandidateResult]
    def __init__(self, request_id: _Optional[str] = ..., results: _Optional[_Iterable[_Union[CandidateResult, _Mapping]]] = ...) -> None: ...

class CandidateResult(_message.Message):
    __slots__ = ("id", "index", "verdict", "error", "reward")
    ID_FIELD_NUMBER: _ClassVar[int]
    INDEX_FIELD_NUMBER: _ClassVar[int]
    VERDICT_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    REWARD_FIELD_NUMBER: _ClassVar[int]
    id: str
    index: int
    verdict: Verdict
    error: JudgeError
    reward: float
    def __init__(self, id: _Optional[str] = ..., index: _Optional[int] = ..., verdict: _Optional[_Union[Verdict, _Mapping]] = ..., error: _Optional[_Union[JudgeError, _Mapping]] = ..., reward: _Optional[float] = ...) -> None: ...

class ScoreStreamRequest(_message.Message):
    __slots__ = ("score",)
    SCORE_FIELD_NUMBER: _ClassVar[int]
    score: ScoreRequest
    def __init__(self, score: _Optional[_Union[ScoreRequest, _Mapping]] = ...) -> None: ...

class ScoreStreamResponse(_message.Message):
    __slots__ = ("request_id", "index", "response", "error")
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    INDEX_FIELD_NUMBER: _ClassVar[int]
    RESPONSE_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    request_id: str
    index: int
    response: ScoreResponse
    error: JudgeError
    def __init__(self, request_id: _Optional[str] = ..., index: _Optional[int] = ..., response: _Optional[_Union[ScoreResponse, _Mapping]] = ..., error: _Optional[_Union[JudgeError, _Mapping]] = ...) -> None: ...

class ScoreDialogueRequest(_message.Message):
    __slots__ = ("persona", "persona_id", "turns", "agent", "options", "request_id", "lane", "cache")
    PERSONA_FIELD_NUMBER: _ClassVar[int]
    PERSONA_ID_FIELD_NUMBER: _ClassVar[int]
    TURNS_FIELD_NUMBER: _ClassVar[int]
    AGENT_FIELD_NUMBER: _ClassVar[int]
    OPTIONS_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    LANE_FIELD_NUMBER: _ClassVar[int]
    CACHE_FIELD_NUMBER: _ClassVar[int]
    persona: Persona
    persona_id: str
    turns: _containers.RepeatedCompositeFieldContainer[Turn]
    agent: str
    options: Options
    request_id: str
    lane: Lane
    cache: CacheControl
    def __init__(self, persona: _Optional[_Union[Persona, _Mapping]] = ..., persona_id: _Optional[str] = ..., turns: _Optional[_Iterable[_Union[Turn, _Mapping]]] = ..., agent: _Optional[str] = ..., options: _Optional[_Union[Options, _Mapping]] = ..., request_id: _Optional[str] = ..., lane: _Optional[_Union[Lane, str]] = ..., cache: _Optional[_Union[CacheControl, str]] = ...) -> None: ...

class ScoreDialogueResponse(_message.Message):
    __slots__ = ("request_id", "results", "drift")
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    RESULTS_FIELD_NUMBER: _ClassVar[int]
    DRIFT_FIELD_NUMBER: _ClassVar[int]
    request_id: str
    results: _containers.RepeatedCompositeFieldContainer[TurnResult]
    drift: DialogueDrift
    def __init__(self, request_id: _Optional[str] = ..., results: _Optional[_Iterable[_Union[TurnResult, _Mapping]]] = ..., drift: _Optional[_Union[DialogueDrift, _Mapping]] = ...) -> None: ...

class TurnResult(_message.Message):
    __slots__ = ("turn", "verdict", "error")
    TURN_FIELD_NUMBER: _ClassVar[int]
    VERDICT_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    turn: int
    verdict: Verdict
    error: JudgeError
    def __init__(self, turn: _Optional[int] = ..., verdict: _Optional[_Union[Verdict, _Mapping]] = ..., error: _Optional[_Union[JudgeError, _Mapping]] = ...) -> None: ...

class DialogueDrift(_message.Message):
    __slots__ = ("s_prism", "task_framing", "interpersonal_stance", "linguistic_style")
    S_PRISM_FIELD_NUMBER: _ClassVar[int]
    TASK_FRAMING_FIELD_NUMBER: _ClassVar[int]
    INTERPERSONAL_STANCE_FIELD_NUMBER: _ClassVar[int]
    LINGUISTIC_STYLE_FIELD_NUMBER: _ClassVar[int]
    s_prism: Drift
    task_framing: Drift
    interpersonal_stance: Drift
    linguistic_style: Drift
    def __init__(self, s_prism: _Optional[_Union[Drift, _Mapping]] = ..., task_framing: _Optional[_Union[Drift, _Mapping]] = ..., interpersonal_stance: _Optional[_Union[Drift, _Mapping]] = ..., linguistic_style: _Optional[_Union[Drift, _Mapping]] = ...) -> None: ...

class Drift(_message.Message):
    __slots__ = ("mean", "slope", "change", "lowest", "lowest_turn")
    MEAN_FIELD_NUMBER: _ClassVar[int]
    SLOPE_FIELD_NUMBER: _ClassVar[int]
    CHANGE_FIELD_NUMBER: _ClassVar[int]
    LOWEST_FIELD_NUMBER: _ClassVar[int]
    LOWEST_TURN_FIELD_NUMBER: _ClassVar[int]
    mean: float
    slope: float
    change: float
    lowest: float
    lowest_turn: int
    def __init__(self, mean: _Optional[float] = ..., slope: _Optional[float] = ..., change: _Optional[float] = ..., lowest: _Optional[float] = ..., lowest_turn: _Optional[int] = ...) -> None: ...

class Policy(_message.Message):
    __slots__ = ("block", "warn", "on_error", "budget_ms", "min_tokens")
    BLOCK_FIELD_NUMBER: _ClassVar[int]
    WARN_FIELD_NUMBER: _ClassVar[int]
    ON_ERROR_FIELD_NUMBER: _ClassVar[int]
    BUDGET_MS_FIELD_NUMBER: _ClassVar[int]
    MIN_TOKENS_FIELD_NUMBER: _ClassVar[int]
    block: Thresholds
    warn: Thresholds
    on_error: OnError
    budget_ms: int
    min_tokens: int
    def __init__(self, block: _Optional[_Union[Thresholds, _Mapping]] = ..., warn: _Optional[_Union[Thresholds, _Mapping]] = ..., on_error: _Optional[_Union[OnError, str]] = ..., budget_ms: _Optional[int] = ..., min_tokens: _Optional[int] = ...) -> None: ...

class Thresholds(_message.Message):
    __slots__ = ("s_prism", "task_framing", "interpersonal_stance", "linguistic_style")
    S_PRISM_FIELD_NUMBER: _ClassVar[int]
    TASK_FRAMING_FIELD_NUMBER: _ClassVar[int]
    INTERPERSONAL_STANCE_FIELD_NUMBER: _ClassVar[int]
    LINGUISTIC_STYLE_FIELD_NUMBER: _ClassVar[int]
    s_prism: float
    task_framing: float
    interpersonal_stance: float
    linguistic_style: float
    def __init__(self, s_prism: _Optional[float] = ..., task_framing: _Optional[float] = ..., interpersonal_stance: _Optional[float] = ..., linguistic_style: _Optional[float] = ...) -> None: ...

class CheckRequest(_message.Message):
    __slots__ = ("persona", "persona_id", "context", "candidate", "options", "request_id", "lane", "cache", "policy", "policy_name")
    PERSONA_FIELD_NUMBER: _ClassVar[int]
    PERSONA_ID_FIELD_NUMBER: _ClassVar[int]
    CONTEXT_FIELD_NUMBER: _ClassVar[int]
    CANDIDATE_FIELD_NUMBER: _ClassVar[int]
    OPTIONS_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    LANE_FIELD_NUMBER: _ClassVar[int]
    CACHE_FIELD_NUMBER: _ClassVar[int]
    POLICY_FIELD_NUMBER: _ClassVar[int]
    POLICY_NAME_FIELD_NUMBER: _ClassVar[int]
    persona: Persona
    persona_id: str
    context: _containers.RepeatedCompositeFieldContainer[Turn]
    candidate: Candidate
    options: Options
    request_id: str
    lane: Lane
    cache: CacheControl
    policy: Policy
    policy_name: str
    def __init__(self, persona: _Optional[_Union[Persona, _Mapping]] = ..., persona_id: _Optional[str] = ..., context: _Optional[_Iterable[_Union[Turn, _Mapping]]] = ..., candidate: _Optional[_Union[Candidate, _Mapping]] = ..., options: _Optional[_Union[Options, _Mapping]] = ..., request_id: _Optional[str] = ..., lane: _Optional[_Union[Lane, str]] = ..., cache: _Optional[_Union[CacheControl, str]] = ..., policy: _Optional[_Union[Policy, _Mapping]] = ..., policy_name: _Optional[str] = ...) -> None: ...

class CheckResponse(_message.Message):
    __slots__ = ("request_id", "decision", "reason", "failed", "verdict", "error", "policy_name")
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    DECISION_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    FAILED_FIELD_NUMBER: _ClassVar[int]
    VERDICT_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    POLICY_NAME_FIELD_NUMBER: _ClassVar[int]
    request_id: str
    decision: Decision
    reason: str
    failed: str
    verdict: Verdict
    error: JudgeError
    policy_name: str
    def __init__(self, request_id: _Optional[str] = ..., decision: _Optional[_Union[Decision, str]] = ..., reason: _Optional[str] = ..., failed: _Optional[str] = ..., verdict: _Optional[_Union[Verdict, _Mapping]] = ..., error: _Optional[_Union[JudgeError, _Mapping]] = ..., policy_name: _Optional[str] = ...) -> None: ...

class CheckStreamRequest(_message.Message):
    __slots__ = ("start", "text")
    START_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    start: CheckRequest
    text: str
    def __init__(self, start: _Optional[_Union[CheckRequest, _Mapping]] = ..., text: _Optional[str] = ...) -> None: ...

class CheckStreamResponse(_message.Message):
    __slots__ = ("check", "judged_bytes", "last")
    CHECK_FIELD_NUMBER: _ClassVar[int]
    JUDGED_BYTES_FIELD_NUMBER: _ClassVar[int]
    LAST_FIELD_NUMBER: _ClassVar[int]
    check: CheckResponse
    judged_bytes: int
    last: bool
    def __init__(self, check: _Optional[_Union[CheckResponse, _Mapping]] = ..., judged_bytes: _Optional[int] = ..., last: bool = ...) -> None: ...

class RankRequest(_message.Message):
    __slots__ = ("persona", "persona_id", "context", "candidates", "options", "request_id", "lane", "cache", "shaping")
    PERSONA_FIELD_NUMBER: _ClassVar[int]
    PERSONA_ID_FIELD_NUMBER: _ClassVar[int]
    CONTEXT_FIELD_NUMBER: _ClassVar[int]
    CANDIDATES_FIELD_NUMBER: _ClassVar[int]
    OPTIONS_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    LANE_FIELD_NUMBER: _ClassVar[int]
    CACHE_FIELD_NUMBER: _ClassVar[int]
    SHAPING_FIELD_NUMBER: _ClassVar[int]
    persona: Persona
    persona_id: str
    context: _containers.RepeatedCompositeFieldContainer[Turn]
    candidates: _containers.RepeatedCompositeFieldContainer[Candidate]
    options: Options
    request_id: str
    lane: Lane
    cache: CacheControl
    shaping: Shaping
    def __init__(self, persona: _Optional[_Union[Persona, _Mapping]] = ..., persona_id: _Optional[str] = ..., context: _Optional[_Iterable[_Union[Turn, _Mapping]]] = ..., candidates: _Optional[_Iterable[_Union[Candidate, _Mapping]]] = ..., options: _Optional[_Union[Options, _Mapping]] = ..., request_id: _Optional[str] = ..., lane: _Optional[_Union[Lane, str]] = ..., cache: _Optional[_Union[CacheControl, str]] = ..., shaping: _Optional[_Union[Shaping, _Mapping]] = ...) -> None: ...

class RankResponse(_message.Message):
    __slots__ = ("request_id", "ranking", "failed")
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    RANKING_FIELD_NUMBER: _ClassVar[int]
    FAILED_FIELD_NUMBER: _ClassVar[int]
    request_id: str
    ranking: _containers.RepeatedCompositeFieldContainer[RankedCandidate]
    failed: _containers.RepeatedCompositeFieldContainer[CandidateResult]
    def __init__(self, request_id: _Optional[str] = ..., ranking: _Optional[_Iterable[_Union[RankedCandidate, _Mapping]]] = ..., failed: _Optional[_Iterable[_Union[CandidateResult, _Mapping]]] = ...) -> None: ...

class RankedCandidate(_message.Message):
    __slots__ = ("id", "index", "rank", "value", "margin", "verdict")
    ID_FIELD_NUMBER: _ClassVar[int]
    INDEX_FIELD_NUMBER: _ClassVar[int]
    RANK_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    MARGIN_FIELD_NUMBER: _ClassVar[int]
    VERDICT_FIELD_NUMBER: _ClassVar[int]
    id: str
    index: int
    rank: int
    value: float
    margin: float
    verdict: Verdict
    def __init__(self, id: _Optional[str] = ..., index: _Optional[int] = ..., rank: _Optional[int] = ..., value: _Optional[float] = ..., margin: _Optional[float] = ..., verdict: _Optional[_Union[Verdict, _Mapping]] = ...) -> None: ...

class JudgeError(_message.Message):
    __slots__ = ("code", "message", "field", "retry_after_ms")
    CODE_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    FIELD_FIELD_NUMBER: _ClassVar[int]
    RETRY_AFTER_MS_FIELD_NUMBER: _ClassVar[int]
    code: ErrorCode
    message: str
    field: str
    retry_after_ms: int
    def __init__(self, code: _Optional[_Union[ErrorCode, str]] = ..., message: _Optional[str] = ..., field: _Optional[str] = ..., retry_after_ms: _Optional[int] = ...) -> None: ...

class Verdict(_message.Message):
    __slots__ = ("id", "s_prism", "dimensions", "weakest_dimension", "judge", "tokens", "cached", "warnings")
    ID_FIELD_NUMBER: _ClassVar[int]
    S_PRISM_FIELD_NUMBER: _ClassVar[int]
    DIMENSIONS_FIELD_NUMBER: _ClassVar[int]
    WEAKEST_DIMENSION_FIELD_NUMBER: _ClassVar[int]
    JUDGE_FIELD_NUMBER: _ClassVar[int]
    TOKENS_FIELD_NUMBER: _ClassVar[int]
    CACHED_FIELD_NUMBER: _ClassVar[int]
    WARNINGS_FIELD_NUMBER: _ClassVar[int]
    id: str
    s_prism: float
    dimensions: DimensionVerdicts
    weakest_dimension: Dimension
    judge: Provenance
    tokens: TokenCounts
    cached: bool
    warnings: TextWarnings
    def __init__(self, id: _Optional[str] = ..., s_prism: _Optional[float] = ..., dimensions: _Optional[_Union[DimensionVerdicts, _Mapping]] = ..., weakest_dimension: _Optional[_Union[Dimension, str]] = ..., judge: _Optional[_Union[Provenance, _Mapping]] = ..., tokens: _Optional[_Union[TokenCounts, _Mapping]] = ..., cached: bool = ..., warnings: _Optional[_Union[TextWarnings, _Mapping]] = ...) -> None: ...

class TextWarnings(_message.Message):
    __slots__ = ("response", "request")
    RESPONSE_FIELD_NUMBER: _ClassVar[int]
    REQUEST_FIELD_NUMBER: _ClassVar[int]
    response: TextCounts
    request: TextCounts
    def __init__(self, response: _Optional[_Union[TextCounts, _Mapping]] = ..., request: _Optional[_Union[TextCounts, _Mapping]] = ...) -> None: ...

class TextCounts(_message.Message):
    __slots__ = ("control", "bidi", "invisible", "special_tokens")
    CONTROL_FIELD_NUMBER: _ClassVar[int]
    BIDI_FIELD_NUMBER: _ClassVar[int]
    INVISIBLE_FIELD_NUMBER: _ClassVar[int]
    SPECIAL_TOKENS_FIELD_NUMBER: _ClassVar[int]
    control: int
    bidi: int
    invisible: int
    special_tokens: int
    def __init__(self, control: _Optional[int] = ..., bidi: _Optional[int] = ..., invisible: _Optional[int] = ..., special_tokens: _Optional[int] = ...) -> None: ...

class DimensionVerdicts(_message.Message):
    __slots__ = ("task_framing", "interpersonal_stance", "linguistic_style")
    TASK_FRAMING_FIELD_NUMBER: _ClassVar[int]
    INTERPERSONAL_STANCE_FIELD_NUMBER: _ClassVar[int]
    LINGUISTIC_STYLE_FIELD_NUMBER: _ClassVar[int]
    task_framing: DimensionVerdict
    interpersonal_stance: DimensionVerdict
    linguistic_style: DimensionVerdict
    def __init__(self, task_framing: _Optional[_Union[DimensionVerdict, _Mapping]] = ..., interpersonal_stance: _Optional[_Union[DimensionVerdict, _Mapping]] = ..., linguistic_style: _Optional[_Union[DimensionVerdict, _Mapping]] = ...) -> None: ...

class DimensionVerdict(_message.Message):
    __slots__ = ("aligned", "indeterminate", "contradictory", "evidence", "label_mass", "label_order")
    ALIGNED_FIELD_NUMBER: _ClassVar[int]
    INDETERMINATE_FIELD_NUMBER: _ClassVar[int]
    CONTRADICTORY_FIELD_NUMBER: _ClassVar[int]
    EVIDENCE_FIELD_NUMBER: _ClassVar[int]
    LABEL_MASS_FIELD_NUMBER: _ClassVar[int]
    LABEL_ORDER_FIELD_NUMBER: _ClassVar[int]
    aligned: float
    indeterminate: float
    contradictory: float
    evidence: float
    label_mass: float
    label_order: _containers.RepeatedCompositeFieldContainer[LabelPermutation]
    def __init__(self, aligned: _Optional[float] = ..., indeterminate: _Optional[float] = ..., contradictory: _Optional[float] = ..., evidence: _Optional[float] = ..., label_mass: _Optional[float] = ..., label_order: _Optional[_Iterable[_Union[LabelPermutation, _Mapping]]] = ...) -> None: ...

class LabelPermutation(_message.Message):
    __slots__ = ("labels",)
    LABELS_FIELD_NUMBER: _ClassVar[int]
    labels: _containers.RepeatedScalarFieldContainer[Label]
    def __init__(self, labels: _Optional[_Iterable[_Union[Label, str]]] = ...) -> None: ...

class Provenance(_message.Message):
    __slots__ = ("model", "model_digest", "prompt_digest", "label_space_digest", "evidence", "layout", "label_order", "calibration", "numerics")
    MODEL_FIELD_NUMBER: _ClassVar[int]
    MODEL_DIGEST_FIELD_NUMBER: _ClassVar[int]
    PROMPT_DIGEST_FIELD_NUMBER: _ClassVar[int]
    LABEL_SPACE_DIGEST_FIELD_NUMBER: _ClassVar[int]
    EVIDENCE_FIELD_NUMBER: _ClassVar[int]
    LAYOUT_FIELD_NUMBER: _ClassVar[int]
    LABEL_ORDER_FIELD_NUMBER: _ClassVar[int]
    CALIBRATION_FIELD_NUMBER: _ClassVar[int]
    NUMERICS_FIELD_NUMBER: _ClassVar[int]
    model: str
    model_digest: str
    prompt_digest: str
    label_space_digest: str
    evidence: EvidenceKind
    layout: Layout
    label_order: LabelOrder
    calibration: Calibration
    numerics: Numerics
    def __init__(self, model: _Optional[str] = ..., model_digest: _Optional[str] = ..., prompt_digest: _Optional[str] = ..., label_space_digest: _Optional[str] = ..., evidence: _Optional[_Union[EvidenceKind, str]] = ..., layout: _Optional[_Union[Layout, str]] = ..., label_order: _Optional[_Union[LabelOrder, str]] = ..., calibration: _Optional[_Union[Calibration, str]] = ..., numerics: _Optional[_Union[Numerics, str]] = ...) -> None: ...

class TokenCounts(_message.Message):
    __slots__ = ("prompt", "computed")
    PROMPT_FIELD_NUMBER: _ClassVar[int]
    COMPUTED_FIELD_NUMBER: _ClassVar[int]
    prompt: int
    computed: int
    def __init__(self, prompt: _Optional[int] = ..., computed: _Optional[int] = ...) -> None: ...

class ListPersonasRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ListPersonasResponse(_message.Message):
    __slots__ = ("personas",)
    PERSONAS_FIELD_NUMBER: _ClassVar[int]
    personas: _containers.RepeatedCompositeFieldContainer[NamedPersona]
    def __init__(self, personas: _Optional[_Iterable[_Union[NamedPersona, _Mapping]]] = ...) -> None: ...

class NamedPersona(_message.Message):
    __slots__ = ("id", "name", "digest")
    ID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    DIGEST_FIELD_NUMBER: _ClassVar[int]
    id: str
    name: str
    digest: str
    def __init__(self, id: _Optional[str] = ..., name: _Optional[str] = ..., digest: _Optional[str] = ...) -> None: ...

class GetJudgeInfoRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class GetJudgeInfoResponse(_message.Message):
    __slots__ = ("version", "model", "model_digest", "prompt_digest", "label_space_digest", "architecture", "parameters", "context_length", "vocabulary", "answer_slot", "threads", "options", "numerics")
    VERSION_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    MODEL_DIGEST_FIELD_NUMBER: _ClassVar[int]
    PROMPT_DIGEST_FIELD_NUMBER: _ClassVar[int]
    LABEL_SPACE_DIGEST_FIELD_NUMBER: _ClassVar[int]
    ARCHITECTURE_FIELD_NUMBER: _ClassVar[int]
    PARAMETERS_FIELD_NUMBER: _ClassVar[int]
    CONTEXT_LENGTH_FIELD_NUMBER: _ClassVar[int]
    VOCABULARY_FIELD_NUMBER: _ClassVar[int]
    ANSWER_SLOT_FIELD_NUMBER: _ClassVar[int]
    THREADS_FIELD_NUMBER: _ClassVar[int]
    OPTIONS_FIELD_NUMBER: _ClassVar[int]
    NUMERICS_FIELD_NUMBER: _ClassVar[int]
    version: str
    model: str
    model_digest: str
    prompt_digest: str
    label_space_digest: str
    architecture: str
    parameters: int
    context_length: int
    vocabulary: int
    answer_slot: _containers.RepeatedScalarFieldContainer[str]
    threads: int
    options: Options
    numerics: Numerics
    def __init__(self, version: _Optional[str] = ..., model: _Optional[str] = ..., model_digest: _Optional[str] = ..., prompt_digest: _Optional[str] = ..., label_space_digest: _Optional[str] = ..., architecture: _Optional[str] = ..., parameters: _Optional[int] = ..., context_length: _Optional[int] = ..., vocabulary: _Optional[int] = ..., answer_slot: _Optional[_Iterable[str]] = ..., threads: _Optional[int] = ..., options: _Optional[_Union[Options, _Mapping]] = ..., numerics: _Optional[_Union[Numerics, str]] = ...) -> None: ...
