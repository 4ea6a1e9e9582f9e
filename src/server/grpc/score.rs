//! Score and ScoreGroup.

use tonic::{Extensions, Request, Response, Status};

use super::call::{Found, call, scored, who};
use super::{Refused, Scorer};
use crate::prism::{Shaping, Verdict};
use crate::server::convert::{self, Violations, Wire};
use crate::server::{MESSAGE_LIMIT, pb, reward};
use crate::service::{Call, JudgeError};

pub async fn one<S: Scorer>(
    judge: &S,
    request: Request<pb::ScoreRequest>,
) -> Result<Response<pb::ScoreResponse>, Status> {
    let (_, extensions, request) = request.into_parts();
    Ok(Response::new(judged(judge, "Score", request, Found::of(&extensions)).await?))
}

/// Judges the request of a call of `method`.
pub async fn judged<S: Scorer>(
    judge: &S,
    method: &'static str,
    request: pb::ScoreRequest,
    found: Found,
) -> Result<pb::ScoreResponse, Refused> {
    let mut violations = Violations::default();
    convert::request_id(&request.request_id, &mut violations);
    let candidates = convert::one_candidate(request.candidate, &mut violations);
    let shaping = reward::of_one(request.shaping, &mut violations);
    let wire = Wire {
        who: who(judge, request.persona, &request.persona_id)?,
        context: request.context,
        options: request.options,
        lane: request.lane,
        cache: request.cache,
    };
    let asked = wire.asked(candidates, violations)?;
    let call = Call { shaping, ..found.call(method, &asked, &request.request_id)? };
    let verdict = scored(judge, asked, &call).await.and_then(|mut results| results.remove(0));
    let verdict = verdict.map_err(of_one_candidate)?;
    let reward = shaping.map(|shaping| shaping.reward(&verdict.dimensions));
    let verdict = Some(convert::verdict(verdict));
    Ok(pb::ScoreResponse { request_id: request.request_id, verdict, reward })
}

pub async fn group<S: Scorer>(
    judge: &S,
    request: Request<pb::ScoreGroupRequest>,
) -> Result<Response<pb::ScoreGroupResponse>, Status> {
    let (_, extensions, mut request) = request.into_parts();
    let request_id = std::mem::take(&mut request.request_id);
    let Judged { ids, results, shaping } =
        judged_group(judge, "ScoreGroup", (request, &request_id), &extensions).await?;
    let rewards = shaping.map_or_else(|| vec![None; results.len()], |shaping| shaping.rewards(&results));
    let results = ids.into_iter().zip(results).zip(rewards).enumerate();
    let results = results
        .map(|(index, ((id, result), reward))| pb::CandidateResult { reward, ..convert::result(id, index, result) });
    Ok(Response::new(pb::ScoreGroupResponse { results: results.collect(), request_id }))
}

/// The candidates of a group, judged.
pub struct Judged {
    pub ids: Vec<String>,
    pub results: Vec<Result<Verdict, JudgeError>>,
    pub shaping: Option<Shaping>,
}

/// Judges a group and its id for a call of `method`.
pub async fn judged_group<S: Scorer>(
    judge: &S,
    method: &'static str,
    (request, request_id): (pb::ScoreGroupRequest, &str),
    extensions: &Extensions,
) -> Result<Judged, Refused> {
    let mut violations = Violations::default();
    convert::request_id(request_id, &mut violations);
    let candidates = convert::candidates(request.candidates, MESSAGE_LIMIT, &mut violations);
    let shaping = reward::of_group(request.shaping, &mut violations);
    let wire = Wire {
        who: who(judge, request.persona, &request.persona_id)?,
        context: request.context,
        options: request.options,
        lane: request.lane,
        cache: request.cache,
    };
    let asked = wire.asked(candidates, violations)?;
    let ids: Vec<String> = asked.group.candidates.iter().map(|candidate| candidate.id.clone()).collect();
    let call = Call { shaping, ..call(method, &asked, request_id, extensions)? };
    let results = scored(judge, asked, &call).await?;
    Ok(Judged { ids, results, shaping })
}

/// The service numbers candidates; a request with one `candidate` does not.
pub fn of_one_candidate(error: JudgeError) -> JudgeError {
    let field = error.field.map(|field| match field.strip_prefix("candidates[0]") {
        Some(rest) => format!("candidate{rest}"),
        None => field,
    });
    JudgeError { field, ..error }
}
