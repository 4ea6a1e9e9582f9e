//! Check.

use std::time::Instant;

use tonic::{Request, Response, Status};
use tonic_types::FieldViolation;

use super::Scorer;
use super::call::{call, caught, scored, who};
use super::score::of_one_candidate;
use crate::server::convert::{self, Asked, Violations, Wire};
use crate::server::deadline::Deadline;
use crate::server::{PolicyFile, pb, status};
use crate::service::check::{Checked, Policies, Policy};
use crate::service::{Call, Cancel, JudgeError};

/// What a check asks for, whether or not its response is complete.
pub struct Question {
    pub request_id: String,
    /// What is judged; its candidates are those of the request, at most one.
    pub asked: Asked,
    pub policy: Policy,
    /// Empty: the policy came with the request.
    pub policy_name: String,
}

pub async fn one<S: Scorer>(
    judge: &S,
    policies: Option<&PolicyFile>,
    request: Request<pb::CheckRequest>,
) -> Result<Response<pb::CheckResponse>, Status> {
    let (_, extensions, mut request) = request.into_parts();
    let mut violations = Violations::default();
    let candidates = convert::one_candidate(request.candidate.take(), &mut violations);
    let Question { request_id, asked, policy, policy_name } =
        question(judge, policies, request, candidates, violations)?;
    let call = call("Check", &asked, &request_id, &extensions)?;
    let checked = checked(judge, &policy, asked, (&call, Deadline::of(&extensions))).await?;
    Ok(Response::new(convert::checked(checked, request_id, policy_name)))
}

/// Reads a request but for its candidate. Who says nothing of a lane waits for the answer.
pub fn question<S: Scorer>(
    judge: &S,
    policies: Option<&PolicyFile>,
    request: pb::CheckRequest,
    candidates: Vec<pb::Candidate>,
    mut violations: Violations,
) -> Result<Question, Status> {
    convert::request_id(&request.request_id, &mut violations);
    let who = who(judge, request.persona, &request.persona_id)?;
    let policy = match (request.policy, request.policy_name.as_str()) {
        (Some(policy), "") => convert::policy(policy).map(|policy| (String::new(), policy)),
        (Some(_), _) => {
            let message = "it is given beside `policy`; send one of the two";
            Err(vec![FieldViolation::new("policy_name", message)])
        }
        (None, name) => {
            let found = policies.map_or_else(|| Policies::default().find(name), |policies| policies.find(name));
            Ok(found.map_err(|error| status::of_error(&error))?)
        }
    };
    violations.of(&policy);
    let lane = if request.lane == 0 { pb::Lane::Guard as i32 } else { request.lane };
    let wire = Wire { who, context: request.context, options: request.options, lane, cache: request.cache };
    let asked = wire.asked(candidates, violations).map_err(status::invalid)?;
    let (policy_name, policy) = policy.map_err(status::invalid)?;
    Ok(Question { request_id: request.request_id, asked, policy, policy_name })
}

/// Judges the only candidate within the policy's budget and the call's deadline, and decides.
pub async fn checked<S: Scorer>(
    judge: &S,
    policy: &Policy,
    asked: Asked,
    (call, deadline): (&Call, Deadline),
) -> Result<Checked, Status> {
    let cancel = Cancel::with_deadline(policy.deadline(deadline.0, Instant::now()));
    let call = &Call { cancel, ..call.clone() };
    let verdict = match short(judge, policy, &asked, call).await {
        Ok(Some(short)) => return Ok(short),
        Ok(None) => scored(judge, asked, call).await.and_then(|mut results| results.remove(0)),
        Err(error) => Err(error),
    };
    policy.conclude(verdict).map_err(|error| status::of_error(&of_one_candidate(error)))
}

/// The answer where the response is too short for the policy.
async fn short<S: Scorer>(
    judge: &S,
    policy: &Policy,
    asked: &Asked,
    call: &Call,
) -> Result<Option<Checked>, JudgeError> {
    if policy.min_tokens() == 0 {
        return Ok(None);
    }
    let tokens = caught(judge.response_tokens(&asked.group, &asked.overrides, call)).await??;
    Ok(tokens.first().and_then(|tokens| policy.abstain(*tokens)))
}
