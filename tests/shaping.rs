//! Rewards beside verdicts: what they are made of, that they change no verdict, and that a recorded one can be made again.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use prism_judge::audit::{Link, Real, Record, open_line, seal};
use prism_judge::server::pb;
use prism_judge::server::pb::candidate_result::Result as Wire;
use prism_judge::server::pb::judge_service_client::JudgeServiceClient;
use serde_json::Value;
use support::cli::{binary, run};
use support::server::{Server, request, tiny_model};
use tonic::transport::Channel;
use tonic::{Code, Status};
use tonic_types::StatusExt as _;

async fn tiny(flags: &[&str]) -> Option<(tempfile::TempDir, Server)> {
    let folder = tempfile::tempdir().unwrap();
    let model = tiny_model(folder.path())?;
    let server = Server::start(&[&["--model", model.to_str().unwrap()], flags].concat()).ready().await;
    Some((folder, server))
}

fn shaping(weights: Option<[f64; 3]>, aggregation: pb::Aggregation, signal: pb::RewardSignal) -> pb::Shaping {
    let weights = weights.map(|[task_framing, interpersonal_stance, linguistic_style]| pb::DimensionWeights {
        task_framing,
        interpersonal_stance,
        linguistic_style,
    });
    pb::Shaping { weights, aggregation: aggregation as i32, signal: signal as i32, group_z_score: false }
}

fn shaped(response: &str, shaping: pb::Shaping) -> pb::ScoreRequest {
    pb::ScoreRequest { shaping: Some(shaping), ..request(response) }
}

fn group(responses: &[&str], shaping: pb::Shaping) -> pb::ScoreGroupRequest {
    let pb::ScoreRequest { persona, context, .. } = request("");
    let candidate =
        |(at, response): (usize, &&str)| pb::Candidate { id: format!("c{at}"), response: (*response).into() };
    let candidates = responses.iter().enumerate().map(candidate).collect();
    pb::ScoreGroupRequest { persona, context, candidates, shaping: Some(shaping), ..Default::default() }
}

/// Aligned and contradictory by dimension.
fn shares(verdict: &pb::Verdict) -> [(f64, f64); 3] {
    let dimensions = verdict.dimensions.as_ref().unwrap();
    [&dimensions.task_framing, &dimensions.interpersonal_stance, &dimensions.linguistic_style]
        .map(|dimension| dimension.as_ref().map(|it| (it.aligned, it.contradictory)).unwrap())
}

fn fields(status: &Status) -> Vec<String> {
    assert_eq!(status.code(), Code::InvalidArgument, "{status:?}");
    status.get_details_bad_request().unwrap().field_violations.into_iter().map(|violation| violation.field).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reward_follows_its_formula_and_neither_verdict_nor_cache_sees_it() {
    use pb::Aggregation::{Geometric, Mean, Min, Unspecified};
    use pb::RewardSignal::{Evidence, Margin};
    let Some((_folder, server)) = tiny(&[]).await else { return };
    let mut judge = server.judge().await;
    let plain = judge.score(request("Yes! Who else is in?")).await.unwrap().into_inner();
    assert_eq!(plain.reward, None);
    let plain = plain.verdict.unwrap();
    let [(a, x), (b, y), (c, z)] = shares(&plain);
    let none = pb::RewardSignal::Unspecified;
    let cases = [
        (shaping(None, Unspecified, none), plain.s_prism),
        (shaping(None, Mean, Evidence), (a + b + c) / 3.0),
        (shaping(Some([1.0, 2.0, 5.0]), Mean, Evidence), (a + 2.0 * b + 5.0 * c) / 8.0),
        (shaping(None, Mean, Margin), ((a - x) + (b - y) + (c - z)) / 3.0),
        (shaping(Some([0.0, 1.0, 0.0]), Mean, Margin), b - y),
        (shaping(None, Min, Evidence), a.min(b).min(c)),
        (shaping(Some([0.1, 0.0, 9.0]), Min, Margin), (a - x).min(c - z)),
        (shaping(None, Geometric, Evidence), (a * b * c).cbrt()),
        (shaping(Some([1.0, 0.0, 1.0]), Geometric, Evidence), (a * c).sqrt()),
    ];
    for (shaping, expected) in cases {
        let reply = judge.score(shaped("Yes! Who else is in?", shaping)).await.unwrap().into_inner();
        let reward = reply.reward.unwrap();
        assert!((reward - expected).abs() < 1e-14, "{reward} and not {expected}: {shaping:?}");
        // The first call was kept under a key that knows nothing of rewards.
        let tokens = pb::TokenCounts { computed: 0, ..plain.tokens.unwrap() };
        assert_eq!(reply.verdict, Some(pb::Verdict { cached: true, tokens: Some(tokens), ..plain.clone() }));
    }
    let default = judge.score(shaped("Yes! Who else is in?", pb::Shaping::default())).await.unwrap().into_inner();
    assert_eq!(default.reward.map(f64::to_bits), Some(plain.s_prism.to_bits()), "S_PRISM, to the last bit");
}

/// The rewards of a group. Each result that has a verdict has one.
async fn rewards(
    judge: &mut JudgeServiceClient<Channel>,
    responses: &[&str],
    shaping: pb::Shaping,
) -> Vec<Option<f64>> {
    let results = judge.score_group(group(responses, shaping)).await.unwrap().into_inner().results;
    for result in &results {
        assert_eq!(result.reward.is_some(), matches!(result.result, Some(Wire::Verdict(_))), "{result:?}");
    }
    results.into_iter().map(|result| result.reward).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn z_scores_compare_the_candidates_that_have_a_verdict() {
    let Some((_folder, server)) = tiny(&[]).await else { return };
    let mut judge = server.judge().await;
    let z = pb::Shaping { group_z_score: true, ..shaping(None, pb::Aggregation::Mean, pb::RewardSignal::Margin) };
    let responses = ["Yes!", "", "I would rather read.", "Perhaps, if it is quiet.", " "];
    let raw = rewards(&mut judge, &responses, pb::Shaping { group_z_score: false, ..z }).await;
    let scores = rewards(&mut judge, &responses, z).await;
    assert_eq!(scores.iter().map(Option::is_some).collect::<Vec<_>>(), [true, false, true, true, false]);
    let (raw, scores) = (raw.into_iter().flatten(), scores.into_iter().flatten());
    let (raw, scores): (Vec<f64>, Vec<f64>) = (raw.collect(), scores.collect());
    let mean = raw.iter().sum::<f64>() / 3.0;
    let deviation = (raw.iter().map(|reward| (reward - mean).powi(2)).sum::<f64>() / 2.0).sqrt();
    assert!(deviation > 1e-6, "three different replies: {raw:?}");
    for (reward, score) in raw.iter().zip(scores) {
        let expected = (reward - mean) / deviation;
        assert!((score - expected).abs() < 1e-9, "{score} and not {expected}");
    }
    assert_eq!(rewards(&mut judge, &["Alone.", ""], z).await, [Some(0.0), None]);
    assert_eq!(rewards(&mut judge, &["Twice.", "Twice.", "Twice."], z).await, [Some(0.0); 3]);
    assert_eq!(rewards(&mut judge, &["", ""], z).await, [None; 2]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_shaping_that_cannot_be_is_refused_with_its_field_before_anything_is_judged() {
    use pb::Aggregation::{Geometric, Mean};
    use pb::RewardSignal::{Evidence, Margin};
    let Some((_folder, server)) = tiny(&[]).await else { return };
    let mut judge = server.judge().await;
    for (shaping, field) in [
        (shaping(Some([1.0, -1.0, 1.0]), Mean, Evidence), "shaping.weights.interpersonal_stance"),
        (shaping(Some([1.0, 1.0, f64::NAN]), Mean, Evidence), "shaping.weights.linguistic_style"),
        (shaping(Some([f64::INFINITY, 1.0, 1.0]), Mean, Evidence), "shaping.weights.task_framing"),
        (shaping(Some([0.0; 3]), Mean, Evidence), "shaping.weights"),
        (shaping(None, Geometric, Margin), "shaping.aggregation"),
        (pb::Shaping { aggregation: 4, ..pb::Shaping::default() }, "shaping.aggregation"),
        (pb::Shaping { signal: 3, ..pb::Shaping::default() }, "shaping.signal"),
    ] {
        assert_eq!(fields(&judge.score(shaped("Never judged.", shaping)).await.unwrap_err()), [field]);
        assert_eq!(fields(&judge.score_group(group(&["Never judged."], shaping)).await.unwrap_err()), [field]);
    }
    let z = pb::Shaping { group_z_score: true, ..pb::Shaping::default() };
    assert_eq!(fields(&judge.score(shaped("Never judged.", z)).await.unwrap_err()), ["shaping.group_z_score"]);
    let judged = judge.score(request("Never judged.")).await.unwrap().into_inner().verdict.unwrap();
    assert!(!judged.cached);
}

/// The words that the log has for the shapings of three calls; and what a replay says of their records.
#[tokio::test(flavor = "multi_thread")]
async fn a_reward_is_in_the_log_by_a_word_and_in_the_audit_with_all_that_it_takes_to_make_it_again() {
    let folder = tempfile::tempdir().unwrap();
    let Some(model) = tiny_model(folder.path()) else { return };
    let audit = folder.path().join("audit.jsonl");
    let [model, audit_file] = [model.to_str().unwrap(), audit.to_str().unwrap()];
    let flags = ["--audit-file", audit_file, "--log-level", "debug"];
    let ports = ["--listen", "127.0.0.1:0", "--http-listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0"];
    let args = [&["serve", "--model", model], &ports[..]].concat();
    let server = Server::of(&mut binary(&[&args[..], &flags].concat())).ready().await;
    let mut judge = server.judge().await;
    judge.score(request("Yes!")).await.unwrap();
    let min = shaping(Some([0.1, 0.0, 0.3]), pb::Aggregation::Min, pb::RewardSignal::Margin);
    judge.score(shaped("Yes!", min)).await.unwrap();
    let geometric = shaping(Some([0.1, 0.2, 0.3]), pb::Aggregation::Geometric, pb::RewardSignal::Evidence);
    let z = pb::Shaping { group_z_score: true, ..geometric };
    let reply = judge.score_group(group(&["Yes!", "", "No.", "Perhaps."], z)).await.unwrap().into_inner();
    server.signal("TERM");
    let lines = std::iter::from_fn(|| server.log.recv().ok());
    let calls = lines.filter_map(|line| serde_json::from_str::<Value>(&line).ok());
    let words: Vec<String> = calls
        .filter(|line| line["message"] == "call" && line["method"] != "other")
        .map(|line| line["shaping"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(words, ["", "min_margin", "geometric_evidence_z"]);

    let text = std::fs::read_to_string(&audit).unwrap();
    // The server's self-check comes before.
    let records: Vec<&str> = text.lines().filter(|line| line.contains("\"method\":\"Score")).collect();
    let [plain, one, of_group] = records[..] else { panic!("{text}") };
    assert!(!plain.contains("shaping") && !plain.contains("reward"), "{plain}");
    let one: Value = serde_json::from_str(one).unwrap();
    let told = &one["record"]["shaping"];
    assert_eq!((&told["aggregation"], &told["signal"]), (&"min".into(), &"margin".into()));
    assert_eq!(told["weights"]["linguistic_style"]["bits"], format!("{:016x}", 0.3_f64.to_bits()));
    let of_group: Value = serde_json::from_str(of_group).unwrap();
    let recorded: Vec<Value> = of_group["record"]["results"].as_array().unwrap().clone();
    for (recorded, result) in recorded.iter().zip(&reply.results) {
        let bits = result.reward.map(|reward| format!("{:016x}", reward.to_bits()));
        assert_eq!(recorded["reward"]["bits"].as_str(), bits.as_deref());
    }

    let replay = || {
        let output = run(&["replay", "--json", "--model", model, audit_file], b"");
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        (output.status.code(), report)
    };
    let (status, report) = replay();
    assert_eq!((status, &report["different"]), (Some(0), &0.into()), "{report}");
    // A forger who can seal the line again changes one reward by one bit.
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let last = lines.pop().unwrap();
    let mut line = open_line(&last).unwrap();
    let Record::Call(call) = &mut line.record else { panic!("{last}") };
    let reward = call.results[2].reward.as_mut().unwrap();
    *reward = Real(reward.0.next_up());
    let before = Link { seq: line.link.seq - 1, digest: line.prev.unwrap() };
    let mut sealed = (lines.join("\n") + "\n").into_bytes();
    seal(&serde_json::to_string(&line.record).unwrap(), Some(before), &mut sealed);
    std::fs::write(&audit, sealed).unwrap();
    let (status, report) = replay();
    assert_eq!((status, &report["different"]), (Some(2), &1.into()), "{report}");
    let differences = report["findings"][0]["differences"].as_array().unwrap();
    assert_eq!(differences.len(), 1, "{report}");
    let found = &differences[0];
    assert_eq!((&found["id"], &found["field"], &found["ulps"]), (&"c2".into(), &"reward".into(), &1.into()));
}
