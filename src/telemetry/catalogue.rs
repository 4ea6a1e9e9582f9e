//! Every metric, each once. docs/metrics.md is generated from here (`tests/metrics.rs`).

use super::labels::{
    ALLOCATOR, AUDIT, AUTH, BREAKER, CALL_LANE, CODE, CONTROL, DECISION, DIMENSION, END_STAGE, GROUND, HEALTH, LANE,
    LEVEL, LIMIT, LOOKUP, METHOD, OUTCOME, REDIS_COMMAND, REDIS_RESULT, REFUSED, RELOAD, ROUTE, SHED_REASON, SPAN,
    STAGE, STATUS_CLASS, TIER, TLS_FAILURE,
};
use super::metric::{Counter, Gauge, Histogram, Info, Metric};

/// From half a millisecond to 16 seconds, with the bounds that guard budgets are made of: 50, 100 and 250 ms.
const SECONDS: &[f64] = &[0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0];

/// A command to a neighbour on the same network.
const SHORT_SECONDS: &[f64] = &[0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25];

const TOKENS: &[f64] = &[1.0, 4.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 1024.0, 2048.0, 4096.0];

const CANDIDATES: &[f64] = &[1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 1024.0, 4096.0];

const TENTHS: &[f64] = &[0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0];

const TWENTIETHS: &[f64] =
    &[0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 1.0];

/// A share that should be close to 1 and says something when it is close to 0.
const MASS: &[f64] = &[0.001, 0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 1.0];

/// Defines the statics and the list of all of them.
macro_rules! catalogue {
    ($($static:ident: $kind:ident<$n:literal> = $name:literal, [$($label:expr),*] $(, $buckets:ident)?; $help:literal)*) => {
        $(#[doc = $help] pub static $static: $kind<$n> = $kind::new($name, $help, [$($label),*] $(, $buckets)?);)*

        /// All metrics, in the order of the docs.
        pub static CATALOGUE: &[&dyn Metric] = &[$(&$static),*];
    };
}

catalogue! {
    REQUESTS: Counter<2> = "prism_judge_requests_total", [METHOD, CODE];
    "Calls answered, by method and gRPC status."
    REQUEST_SECONDS: Histogram<2> = "prism_judge_request_duration_seconds", [METHOD, CALL_LANE], SECONDS;
    "Time from a call's headers to the end of its answer; of a stream, its whole life."
    HTTP_REQUESTS: Counter<2> = "prism_judge_http_requests_total", [ROUTE, STATUS_CLASS];
    "Requests to the HTTP port, by route and class of status; those that judge are part of prism_judge_requests_total too."
    REQUESTS_IN_FLIGHT: Gauge<0> = "prism_judge_requests_in_flight", [];
    "Calls under way."
    STAGE_SECONDS: Histogram<2> = "prism_judge_stage_duration_seconds", [STAGE, LANE], SECONDS;
    "Where the time of a call goes that the model computes for: waiting for a preparing thread, templates and tokeniser, waiting for the model, the model, and all that is outside of these."
    CANDIDATES_JUDGED: Counter<1> = "prism_judge_candidates_total", [OUTCOME];
    "Candidates by what became of them."
    GROUP_CANDIDATES: Histogram<0> = "prism_judge_group_candidates", [], CANDIDATES;
    "Candidates per call."
    STREAM_ITEMS: Gauge<0> = "prism_judge_stream_items_in_flight", [];
    "Requests of ScoreStreams that were read and have no result yet; 64 of a stream at most."
    STREAM_ITEM_SECONDS: Histogram<1> = "prism_judge_stream_item_duration_seconds", [CALL_LANE], SECONDS;
    "Time from reading a request of a ScoreStream to its result."
    PROMPT_TOKENS: Counter<0> = "prism_judge_prompt_tokens_total", [];
    "Tokens of the prompts of all verdicts that were handed out, as if each prompt were run alone."

    QUEUE_TOKENS: Gauge<1> = "prism_judge_queue_tokens", [LANE];
    "Tokens admitted and not yet answered: waiting, being prepared or in the model."
    QUEUE_LIMIT_TOKENS: Gauge<1> = "prism_judge_queue_limit_tokens", [LANE];
    "Tokens that the lane admits at most."
    QUEUE_PIECES: Gauge<1> = "prism_judge_queue_pieces", [LANE];
    "Pieces of work admitted and not yet answered; a call that the model computes for is one."
    QUEUE_AGE_SECONDS: Gauge<1> = "prism_judge_queue_age_seconds", [LANE];
    "How long the oldest piece of work has been waiting for the model; 0 if none is."
    PREPARE_WAITING: Gauge<1> = "prism_judge_prepare_waiting_requests", [LANE];
    "Calls that wait for a preparing thread."
    SHED: Counter<2> = "prism_judge_shed_total", [CALL_LANE, SHED_REASON];
    "Calls refused before any work because there is no room; each was told when to try again."
    LIMIT_REFUSALS: Counter<1> = "prism_judge_limit_refusals_total", [LIMIT];
    "Calls refused because a field is larger than its limit."
    EXPIRED: Counter<1> = "prism_judge_expired_total", [END_STAGE];
    "Calls whose deadline passed, by where they were."
    CANCELLED: Counter<1> = "prism_judge_cancelled_total", [END_STAGE];
    "Calls that their callers gave up, by where they were."

    COMPUTED_TOKENS: Counter<0> = "prism_judge_computed_tokens_total", [];
    "Tokens that went through the model."
    WASTED_TOKENS: Counter<0> = "prism_judge_wasted_tokens_total", [];
    "Tokens that went through the model for calls that ended before their answer."
    PREFIX_HIT_TOKENS: Counter<0> = "prism_judge_prefix_cache_hit_tokens_total", [];
    "Tokens whose keys and values were there already."
    PREFIX_EVICTED_TOKENS: Counter<0> = "prism_judge_prefix_cache_evicted_tokens_total", [];
    "Tokens whose keys and values made room for others."
    KV_BYTES: Gauge<0> = "prism_judge_kv_cache_bytes", [];
    "Keys and values held."
    KV_LIMIT_BYTES: Gauge<0> = "prism_judge_kv_cache_limit_bytes", [];
    "Keys and values that are held at most."
    ACTIVE_PIECES: Gauge<0> = "prism_judge_active_pieces", [];
    "Pieces of work that the model is computing."
    CHUNK_TOKENS: Histogram<0> = "prism_judge_chunk_tokens", [], TOKENS;
    "Tokens of a forward pass: the size of a batch."
    CHUNK_FILL: Histogram<0> = "prism_judge_chunk_fill_ratio", [], TENTHS;
    "Tokens of a forward pass as a share of the most that one takes; a pass is never padded up to it."
    CHUNK_SECONDS: Histogram<0> = "prism_judge_chunk_duration_seconds", [], SECONDS;
    "Time of a forward pass."
    PADDING_TOKENS: Counter<0> = "prism_judge_padding_tokens_total", [];
    "Tokens that were computed only to fill up a forward pass: a single token is doubled, nothing else is padded."

    CACHE_LOOKUPS: Counter<2> = "prism_judge_verdict_cache_lookups_total", [TIER, LOOKUP];
    "Look-ups in the verdict cache, one per candidate and tier."
    CACHE_ENTRIES: Gauge<0> = "prism_judge_verdict_cache_entries", [];
    "Verdicts held in memory."
    CACHE_BYTES: Gauge<0> = "prism_judge_verdict_cache_bytes", [];
    "Memory that they take."
    CACHE_LIMIT_BYTES: Gauge<0> = "prism_judge_verdict_cache_limit_bytes", [];
    "Memory that they may take."
    REDIS_COMMANDS: Counter<2> = "prism_judge_redis_commands_total", [REDIS_COMMAND, REDIS_RESULT];
    "Commands to Redis, one a verdict; skipped: not sent because the breaker is open, dropped: because too many waited."
    REDIS_SECONDS: Histogram<1> = "prism_judge_redis_command_duration_seconds", [REDIS_COMMAND], SHORT_SECONDS;
    "Time of the round trips; each carries the commands of up to a few hundred verdicts."
    REDIS_BREAKER: Gauge<1> = "prism_judge_redis_breaker_state", [BREAKER];
    "1 for the state that the breaker is in; all 0 without Redis."

    S_PRISM: Histogram<0> = "prism_judge_score", [], TWENTIETHS;
    "S_PRISM of the computed verdicts."
    EVIDENCE: Histogram<1> = "prism_judge_evidence", [DIMENSION], TWENTIETHS;
    "Evidence of the computed verdicts."
    LABEL_MASS: Histogram<1> = "prism_judge_label_mass", [DIMENSION], MASS;
    "Share of the next-token probability that the three labels hold; low means that the model does not answer in labels."
    NON_FINITE: Counter<0> = "prism_judge_non_finite_total", [];
    "Candidates for which the model gave a value that is not finite; each is an error."
    CONTROL_TEXT: Counter<1> = "prism_judge_control_text_total", [CONTROL];
    "Characters in requests that nobody sees, and texts that spell a model's special tokens."

    CHECKS: Counter<2> = "prism_judge_checks_total", [DECISION, GROUND];
    "Decisions of the guardrail, by what they stand on; only those on a verdict say something of a response. A stream has one for each text that it judges."

    READY: Gauge<0> = "prism_judge_ready", [];
    "Whether calls are served."
    DRAINING: Gauge<0> = "prism_judge_draining", [];
    "Whether the server is stopping."
    MODEL_HEALTH: Gauge<1> = "prism_judge_model_health", [HEALTH];
    "1 for the state that the model is in."
    BUILD_INFO: Info<1> = "prism_judge_build_info", ["version"];
    "The program."
    MODEL_INFO: Info<4> = "prism_judge_model_info", ["model", "model_digest", "label_space_digest", "numerics"];
    "The judge that was loaded."

    CONNECTIONS: Gauge<0> = "prism_judge_connections_open", [];
    "Connections that are open."
    CONNECTIONS_ACCEPTED: Counter<0> = "prism_judge_connections_accepted_total", [];
    "Connections that were accepted."
    CONNECTIONS_REFUSED: Counter<1> = "prism_judge_connections_refused_total", [REFUSED];
    "Connections that were not served."
    TLS_FAILURES: Counter<1> = "prism_judge_tls_handshake_failures_total", [TLS_FAILURE];
    "TLS handshakes that failed."
    TLS_EXPIRY: Gauge<0> = "prism_judge_tls_certificate_expiry_timestamp_seconds", [];
    "When the certificate in use ends; 0 without TLS."
    TLS_RELOADS: Counter<1> = "prism_judge_tls_reloads_total", [RELOAD];
    "Attempts to read certificate and key anew; after one that failed the old ones stay."
    AUTH_FAILURES: Counter<1> = "prism_judge_auth_failures_total", [AUTH];
    "Calls that were not let in."
    POLICY_RELOADS: Counter<1> = "prism_judge_policy_reloads_total", [RELOAD];
    "Attempts to read the file of policies anew; after one that failed the old ones stay."
    AUTH_RELOADS: Counter<1> = "prism_judge_auth_reloads_total", [RELOAD];
    "Attempts to read the file of keys anew; after one that failed the old ones stay."

    PERSONAS: Gauge<0> = "prism_judge_personas", [];
    "Personas that requests may name by an id."
    PERSONA_RELOADS: Counter<1> = "prism_judge_persona_reloads_total", [RELOAD];
    "Attempts to read the files of personas anew; after one that failed the old ones stay."

    AUDIT_RECORDS: Counter<1> = "prism_judge_audit_records_total", [AUDIT];
    "Audit records by what became of them."
    AUDIT_WITHHELD: Counter<0> = "prism_judge_audit_withheld_total", [];
    "Calls whose verdicts were not handed out for want of a record."
    AUDIT_BYTES: Counter<0> = "prism_judge_audit_bytes_total", [];
    "Bytes of audit records written."
    AUDIT_ROTATIONS: Counter<0> = "prism_judge_audit_rotations_total", [];
    "Audit files that were closed for a new one."
    LOG_LINES: Counter<1> = "prism_judge_log_lines_total", [LEVEL];
    "Log lines written."
    LOG_FAILURES: Counter<0> = "prism_judge_log_failures_total", [];
    "Log lines that could not be written."
    TRACE_SPANS: Counter<1> = "prism_judge_trace_spans_total", [SPAN];
    "Spans by what became of them."

    PROCESS_CPU_SECONDS: Counter<0> = "process_cpu_seconds_total", [];
    "CPU time of the process, user and system, in whole seconds."
    PROCESS_RESIDENT_BYTES: Gauge<0> = "process_resident_memory_bytes", [];
    "Resident memory; a mapped model file is part of it."
    PROCESS_VIRTUAL_BYTES: Gauge<0> = "process_virtual_memory_bytes", [];
    "Virtual memory."
    PROCESS_THREADS: Gauge<0> = "process_threads", [];
    "Threads."
    PROCESS_OPEN_FDS: Gauge<0> = "process_open_fds", [];
    "Open file descriptors."
    PROCESS_MAX_FDS: Gauge<0> = "process_max_fds", [];
    "File descriptors that may be open."
    PROCESS_START_SECONDS: Gauge<0> = "process_start_time_seconds", [];
    "When the process started, in seconds since 1970."
    ALLOCATOR_BYTES: Gauge<1> = "prism_judge_allocator_bytes", [ALLOCATOR];
    "Memory as the allocator counts it."
}
