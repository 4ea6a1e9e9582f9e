//! Rank: a ScoreGroup whose results are put in order.

use tonic::{Request, Response, Status};

use super::Scorer;
use super::score::{Judged, judged_group};
use crate::prism;
use crate::server::{convert, pb};

pub async fn rank<S: Scorer>(
    judge: &S,
    request: Request<pb::RankRequest>,
) -> Result<Response<pb::RankResponse>, Status> {
    let (_, extensions, request) = request.into_parts();
    let pb::RankRequest { persona, persona_id, context, candidates, options, request_id, lane, cache, shaping } =
        request;
    let group = pb::ScoreGroupRequest {
        persona,
        persona_id,
        context,
        candidates,
        options,
        lane,
        cache,
        shaping,
        request_id: String::new(),
    };
    let Judged { mut ids, results, shaping } = judged_group(judge, "Rank", (group, &request_id), &extensions).await?;
    let values: Vec<Option<f64>> = match shaping {
        Some(shaping) => shaping.rewards(&results),
        None => results.iter().map(|result| Some(result.as_ref().ok()?.s_prism)).collect(),
    };
    let (mut verdicts, mut failed) = (Vec::with_capacity(results.len()), Vec::new());
    for (index, result) in results.into_iter().enumerate() {
        match result {
            Ok(verdict) => verdicts.push(Some(verdict)),
            Err(error) => {
                verdicts.push(None);
                failed.push(convert::result(std::mem::take(&mut ids[index]), index, Err(error)));
            }
        }
    }
    let place = |place: prism::Place| {
        let verdict = verdicts[place.index].take()?;
        Some(pb::RankedCandidate {
            id: std::mem::take(&mut ids[place.index]),
            index: convert::number(place.index),
            rank: convert::number(place.rank),
            value: place.value,
            margin: place.margin,
            verdict: Some(convert::verdict(verdict)),
        })
    };
    let ranking = prism::rank(&values).into_iter().filter_map(place).collect();
    Ok(Response::new(pb::RankResponse { request_id, ranking, failed }))
}
