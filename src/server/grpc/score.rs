//! Score and ScoreGroup.

use tonic::{Request, Response, Status};

use super::Scorer;
use super::call::{call, scored, who};
use crate::server::convert::{self, Violations, Wire};
use crate::server::{MESSAGE_LIMIT, pb, status};
use crate::service::JudgeError;

pub async fn one<S: Scorer>(
    judge: &S,
    request: Request<pb::ScoreRequest>,
) -> Result<Response<pb::ScoreResponse>, Status> {
    let (_, extensions, request) = request.into_parts();
    let mut violations = Violations::default();
    convert::request_id(&request.request_id, &mut violations);
    let candidates = convert::one_candidate(request.candidate, &mut violations);
    let wire = Wire {
        who: who(judge, request.persona, &request.persona_id)?,
        context: request.context,
        options: request.options,
        lane: request.lane,
        cache: request.cache,
    };
    let asked = wire.asked(candidates, violations).map_err(status::invalid)?;
    let call = call("Score", &asked, &request.request_id, &extensions)?;
    let verdict = of_one_candidate(scored(judge, asked, &call).await.and_then(|mut results| results.remove(0)))?;
    let verdict = Some(convert::verdict(verdict));
    Ok(Response::new(pb::ScoreResponse { request_id: request.request_id, verdict, reward: None }))
}

pub async fn group<S: Scorer>(
    judge: &S,
    request: Request<pb::ScoreGroupRequest>,
) -> Result<Response<pb::ScoreGroupResponse>, Status> {
    let (_, extensions, request) = request.into_parts();
    let mut violations = Violations::default();
    convert::request_id(&request.request_id, &mut violations);
    let candidates = convert::candidates(request.candidates, MESSAGE_LIMIT, &mut violations);
    let wire = Wire {
        who: who(judge, request.persona, &request.persona_id)?,
        context: request.context,
        options: request.options,
        lane: request.lane,
        cache: request.cache,
    };
    let asked = wire.asked(candidates, violations).map_err(status::invalid)?;
    let ids: Vec<String> = asked.group.candidates.iter().map(|candidate| candidate.id.clone()).collect();
    let call = call("ScoreGroup", &asked, &request.request_id, &extensions)?;
    let results = scored(judge, asked, &call).await.map_err(|error| status::of_error(&error))?;
    let results = ids.into_iter().zip(results).enumerate();
    let results = results.map(|(index, (id, result))| convert::result(id, index, result)).collect();
    Ok(Response::new(pb::ScoreGroupResponse { request_id: request.request_id, results }))
}

/// The service numbers candidates; a request with one `candidate` does not.
pub fn of_one_candidate<T>(result: Result<T, JudgeError>) -> Result<T, Status> {
    result.map_err(|error| {
        let field = error.field.map(|field| match field.strip_prefix("candidates[0]") {
            Some(rest) => format!("candidate{rest}"),
            None => field,
        });
        status::of_error(&JudgeError { field, ..error })
    })
}
