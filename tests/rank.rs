//! Rank on the running server: the order is that of the verdicts of a ScoreGroup.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use prism_judge::server::pb;
use prism_judge::server::pb::candidate_result::Result as Wire;
use support::server::{Server, request, tiny_model};
use tonic::Code;
use tonic_types::StatusExt as _;

const RESPONSES: [&str; 6] =
    ["Perhaps.", "Yes! Who else is in?", "", "I would rather read.", "Yes! Who else is in?", " \n"];

async fn tiny() -> Option<(tempfile::TempDir, Server)> {
    let folder = tempfile::tempdir().unwrap();
    let model = tiny_model(folder.path())?;
    let server = Server::start(&["--model", model.to_str().unwrap()]).ready().await;
    Some((folder, server))
}

fn ask(responses: &[&str], shaping: Option<pb::Shaping>) -> pb::RankRequest {
    let pb::ScoreRequest { persona, context, .. } = request("");
    let candidate =
        |(at, response): (usize, &&str)| pb::Candidate { id: format!("c{at}"), response: (*response).into() };
    let candidates = responses.iter().enumerate().map(candidate).collect();
    pb::RankRequest { persona, context, candidates, shaping, request_id: "r".into(), ..Default::default() }
}

/// The same as a group, so that its verdicts can be compared.
fn as_group(rank: pb::RankRequest) -> pb::ScoreGroupRequest {
    let pb::RankRequest { persona, context, candidates, shaping, .. } = rank;
    pb::ScoreGroupRequest { persona, context, candidates, shaping, ..Default::default() }
}

fn evidence(verdict: &pb::Verdict) -> f64 {
    verdict.dimensions.as_ref().unwrap().linguistic_style.as_ref().unwrap().evidence
}

#[tokio::test(flavor = "multi_thread")]
async fn the_order_is_by_the_verdicts_of_a_group_or_by_the_rewards_that_are_asked_for() {
    let Some((_folder, server)) = tiny().await else { return };
    let mut judge = server.judge().await;
    let style = pb::DimensionWeights { task_framing: 0.0, interpersonal_stance: 0.0, linguistic_style: 2.0 };
    let style = pb::Shaping { weights: Some(style), ..pb::Shaping::default() };
    let z = pb::Shaping { group_z_score: true, ..style };
    for shaping in [None, Some(style), Some(z)] {
        let rank = judge.rank(ask(&RESPONSES, shaping)).await.unwrap().into_inner();
        assert_eq!(rank.request_id, "r");
        let group = judge.score_group(as_group(ask(&RESPONSES, shaping))).await.unwrap().into_inner().results;
        let value = |index: usize| match (&group[index].result, shaping) {
            (Some(Wire::Verdict(verdict)), None) => verdict.s_prism,
            (Some(Wire::Verdict(verdict)), Some(shaping)) if !shaping.group_z_score => evidence(verdict),
            (Some(Wire::Verdict(_)), Some(_)) => group[index].reward.unwrap(),
            _ => panic!("{index} has no verdict"),
        };
        // By selection: the first of the best that are left.
        let mut left = vec![0, 1, 3, 4];
        let mut order: Vec<usize> = Vec::new();
        while !left.is_empty() {
            let best = left.iter().map(|index| value(*index)).fold(f64::NEG_INFINITY, f64::max);
            let at = left.iter().position(|index| value(*index) == best).unwrap();
            order.push(left.remove(at));
        }
        let found: Vec<usize> = rank.ranking.iter().map(|place| place.index as usize).collect();
        assert_eq!(found, order, "{shaping:?}");
        for (at, place) in rank.ranking.iter().enumerate() {
            let index = place.index as usize;
            assert_eq!((place.id.as_str(), place.value), (format!("c{index}").as_str(), value(index)));
            let better = order.iter().filter(|other| value(**other) > place.value).count();
            assert_eq!(place.rank as usize, better + 1);
            let next = order.get(at + 1).map_or(place.value, |next| value(*next));
            assert_eq!(place.margin, place.value - next);
            let verdict = place.verdict.as_ref().unwrap();
            let Some(Wire::Verdict(expected)) = &group[index].result else { panic!("no verdict") };
            assert_eq!((&verdict.id, &verdict.dimensions), (&expected.id, &expected.dimensions));
        }
        // The same reply twice: one rank, in the order of the request.
        let twins: Vec<_> = rank.ranking.iter().filter(|place| [1, 4].contains(&place.index)).collect();
        assert_eq!((twins[0].index, twins[1].index, twins[0].margin), (1, 4, 0.0));
        assert_eq!(twins[0].rank, twins[1].rank);
        let failed: Vec<_> = rank.failed.iter().map(|result| (result.index, result.id.as_str())).collect();
        assert_eq!(failed, [(2, "c2"), (5, "c5")]);
        for result in &rank.failed {
            let Some(Wire::Error(error)) = &result.result else { panic!("{result:?}") };
            assert_eq!(error.code(), pb::ErrorCode::InvalidArgument);
            assert_eq!(error.field, format!("candidates[{}].response", result.index));
            assert_eq!(result.reward, None);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn where_nothing_can_be_ranked_the_reply_says_why() {
    let Some((_folder, server)) = tiny().await else { return };
    let mut judge = server.judge().await;
    let rank = judge.rank(ask(&["", ""], None)).await.unwrap().into_inner();
    assert_eq!((rank.ranking.len(), rank.failed.len()), (0, 2));
    let alone = judge.rank(ask(&["Alone."], None)).await.unwrap().into_inner().ranking;
    assert_eq!((alone.len(), alone[0].rank, alone[0].margin), (1, 1, 0.0));
    let z = pb::Shaping { group_z_score: true, ..pb::Shaping::default() };
    let alone = judge.rank(ask(&["Alone."], Some(z))).await.unwrap().into_inner().ranking;
    assert_eq!(alone[0].value, 0.0);

    let geometric = pb::Shaping {
        aggregation: pb::Aggregation::Geometric as i32,
        signal: pb::RewardSignal::Margin as i32,
        ..pb::Shaping::default()
    };
    for (request, field) in [
        (ask(&[], None), "candidates"),
        (ask(&["x"], Some(geometric)), "shaping.aggregation"),
        (pb::RankRequest { persona: None, ..ask(&["x"], None) }, "persona"),
    ] {
        let status = judge.rank(request).await.unwrap_err();
        assert_eq!(status.code(), Code::InvalidArgument);
        assert_eq!(status.get_details_bad_request().unwrap().field_violations[0].field, field);
    }
}
