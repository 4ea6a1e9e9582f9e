//! ScoreDialogue.

use tonic::{Request, Response, Status};

use super::call::{call, caught, who};
use super::{Refused, Scorer};
use crate::prism::{DialogueDrift, Drift, Verdict};
use crate::server::convert::{self, Asked, Violations, Wire};
use crate::server::{pb, status};
use crate::service::{Dialogue, JudgeError};

pub async fn dialogue<S: Scorer>(
    judge: &S,
    request: Request<pb::ScoreDialogueRequest>,
) -> Result<Response<pb::ScoreDialogueResponse>, Status> {
    let (_, extensions, request) = request.into_parts();
    let mut violations = Violations::default();
    convert::request_id(&request.request_id, &mut violations);
    let wire = Wire {
        who: who(judge, request.persona, &request.persona_id)?,
        context: request.turns,
        options: request.options,
        lane: request.lane,
        cache: request.cache,
    };
    let asked = wire.asked(Vec::new(), violations).map_err(Refused::from)?;
    let call = call("ScoreDialogue", &asked, &request.request_id, &extensions)?;
    let Asked { group, overrides, .. } = asked;
    let dialogue = Dialogue { persona: group.persona, turns: group.context, agent: request.agent };
    let scored = caught(judge.score_dialogue(dialogue, &overrides, &call)).await.flatten();
    let scored = scored.map_err(|error| status::of_error(&error))?;
    Ok(Response::new(pb::ScoreDialogueResponse {
        request_id: request.request_id,
        results: scored.turns.into_iter().map(turn).collect(),
        drift: scored.drift.map(drift),
    }))
}

fn turn((turn, result): (usize, Result<Verdict, JudgeError>)) -> pb::TurnResult {
    use pb::turn_result::Result as Wire;
    let result = match result {
        Ok(verdict) => Wire::Verdict(convert::verdict(verdict)),
        Err(error) => Wire::Error(convert::error(error)),
    };
    pb::TurnResult { turn: convert::number(turn), result: Some(result) }
}

fn drift(drift: DialogueDrift) -> pb::DialogueDrift {
    let DialogueDrift { s_prism, task_framing, interpersonal_stance, linguistic_style } = drift;
    let curve = |Drift { mean, slope, change, lowest, lowest_turn }| {
        Some(pb::Drift { mean, slope, change, lowest, lowest_turn: convert::number(lowest_turn) })
    };
    pb::DialogueDrift {
        s_prism: curve(s_prism),
        task_framing: curve(task_framing),
        interpersonal_stance: curve(interpersonal_stance),
        linguistic_style: curve(linguistic_style),
    }
}
