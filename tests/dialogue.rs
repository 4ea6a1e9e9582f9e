//! Dialogues: every turn of the agent is judged as a response of its own, for one pass over the text that they share.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use std::collections::HashSet;

use prism_judge::engine::{Prompt, Read};
use prism_judge::persona::{Persona, Polarity, Trait, TraitTarget};
use prism_judge::prism::{Calibration, Candidate, EvidenceKind, Group, LabelOrder, Layout, TextCounts, Turn, Verdict};
use prism_judge::server::pb;
use prism_judge::service::{
    CacheControl, Call, Dialogue, ErrorCode, Judge, JudgeError, OptionOverrides, ScoredDialogue,
};
use serde_json::Value;
use support::cli::{json_lines, run, stderr};
use support::judge::{JUDGE, LABEL_SLOT, LIKELIHOOD, bits, overrides, uncached};
use support::server::{Server, tiny_model};
use tonic::Code;
use tonic_types::StatusExt as _;

/// Our own writing: an extravert who is worn down.
const TURNS: [(&str, &str); 9] = [
    ("User", "Are you coming to the party tonight?"),
    ("Ada", "Of course! Who else is in? I'll bring everyone from work!"),
    ("User", "About twenty people, I think. It may get loud."),
    ("Ada", "Twenty? Make it forty! Loud is how I like it."),
    ("User", "My sister was hoping for a quiet evening, to be honest."),
    ("Ada", "Well, we could keep it smaller, if she would rather have that."),
    ("User", "Would you mind if we just read a little and went to bed early?"),
    ("Ada", "I would not mind. I might stay at home then."),
    ("User", "Good night!"),
];

fn ada() -> Persona {
    let traits = vec![TraitTarget::new(Trait::Extraversion, Polarity::High)];
    Persona { name: Some("Ada".to_owned()), traits, ..Persona::default() }
}

fn dialogue(turns: &[(&str, &str)]) -> Dialogue {
    let turn = |(speaker, text): &(&str, &str)| Turn { speaker: (*speaker).to_owned(), text: (*text).to_owned() };
    Dialogue { persona: ada(), turns: turns.iter().map(turn).collect(), agent: String::new() }
}

/// The turn at `at` as the only candidate of a group.
fn alone(dialogue: &Dialogue, at: usize) -> Group {
    let candidates = vec![Candidate { id: at.to_string(), response: dialogue.turns[at].text.clone() }];
    Group { persona: dialogue.persona.clone(), context: dialogue.turns[..at].to_vec(), candidates }
}

fn of(tenant: &str) -> Call {
    Call { tenant: tenant.to_owned(), ..Call::default() }
}

fn score(judge: &Judge, dialogue: &Dialogue, overrides: &OptionOverrides, call: &Call) -> ScoredDialogue {
    judge.score_dialogue_blocking(dialogue.clone(), overrides, call).unwrap()
}

/// Prefixes after which something is read or that lead there, each once: what a model must compute at least.
fn distinct(prompts: &[Prompt]) -> usize {
    let seen = |prompt: &Prompt| match &prompt.read {
        Read::Next(_) => prompt.ids.len(),
        Read::Span(span) => span.end - 1,
    };
    let prefixes = prompts.iter().flat_map(|prompt| (1..=seen(prompt)).map(|length| &prompt.ids[..length]));
    prefixes.collect::<HashSet<_>>().len()
}

#[test]
fn what_the_turns_of_a_dialogue_share_is_computed_once() {
    let Some(judge) = JUDGE.as_ref() else { return };
    for (name, overrides) in [
        ("likelihood", LIKELIHOOD),
        ("label slot", LABEL_SLOT),
        ("label slot, all orders", overrides(EvidenceKind::LabelSlot, Some(LabelOrder::All))),
    ] {
        let dialogue = dialogue(&TURNS);
        let prompts: Vec<Vec<Prompt>> = [1, 3, 5, 7]
            .map(|at| {
                let prompts = judge.prompts(&alone(&dialogue, at), &overrides).unwrap();
                prompts.into_iter().map(|prompt| prompt.prompt).collect()
            })
            .to_vec();
        let scored = score(judge, &dialogue, &overrides, &of(name));
        let counts: Vec<_> = scored.turns.iter().map(|(_, result)| result.as_ref().unwrap().tokens).collect();
        let computed: u64 = counts.iter().map(|tokens| tokens.computed).sum();
        assert_eq!(computed, distinct(&prompts.concat()) as u64, "{name}");
        for (tokens, prompts) in counts.iter().zip(&prompts) {
            let all: usize = prompts.iter().map(|prompt| prompt.ids.len()).sum();
            assert_eq!(tokens.prompt, all as u64, "{name}");
        }
        let separately: usize = prompts.iter().map(|prompts| distinct(prompts)).sum();
        let each: u64 = counts.iter().map(|tokens| tokens.prompt).sum();
        println!("{name}: {computed} tokens for four turns, {separately} turn by turn, {each} prompt by prompt");
        assert!(computed < separately as u64 && (separately as u64) < each, "{name}");
    }
}

#[test]
fn a_turn_has_the_bits_that_it_has_alone() {
    let Some(judge) = JUDGE.as_ref() else { return };
    let released = overrides(EvidenceKind::LabelSlot, Some(LabelOrder::Released));
    for overrides in [
        LIKELIHOOD,
        LABEL_SLOT,
        OptionOverrides { layout: Some(Layout::Released), persona_block: Some(true), ..released },
        OptionOverrides { calibration: Some(Calibration::Contextual), ..LABEL_SLOT },
        OptionOverrides { calibration: Some(Calibration::Contextual), ..LIKELIHOOD },
    ] {
        let mut dialogue = dialogue(&TURNS);
        // What is odd about a text is told of the texts before a turn and of the turn itself.
        dialogue.turns[2].text.push('\u{200b}');
        dialogue.turns[5].text.push('\u{202e}');
        let scored = score(judge, &dialogue, &overrides, &uncached());
        assert_eq!(scored.turns.iter().map(|(turn, _)| *turn).collect::<Vec<_>>(), [1, 3, 5, 7]);
        for (turn, result) in scored.turns {
            let together = result.unwrap();
            let group = alone(&dialogue, turn);
            let mut results = judge.score_blocking(&group, &overrides, &uncached()).unwrap();
            let expected = results.remove(0).unwrap();
            assert_eq!(bits(&together), bits(&expected), "turn {turn}, {overrides:?}");
            // The second one finds the first one's keys and values.
            assert_eq!(Verdict { tokens: expected.tokens, ..together }, expected);
        }
    }
    // The last one was an example of both kinds.
    let mut odd = dialogue(&TURNS[..4]);
    odd.turns[2].text.push('\u{200b}');
    let scored = score(judge, &odd, &LIKELIHOOD, &uncached());
    let requests: Vec<TextCounts> =
        scored.turns.iter().map(|(_, result)| result.as_ref().unwrap().warnings.request).collect();
    assert_eq!(requests, [TextCounts::default(), TextCounts { invisible: 1, ..TextCounts::default() }]);
}

#[test]
fn a_dialogue_that_has_grown_costs_its_new_turn_alone_and_meets_the_verdicts_of_score() {
    let Some(judge) = JUDGE.as_ref() else { return };
    let call = of("grows");
    let told = |scored: &ScoredDialogue| -> Vec<(bool, bool)> {
        let verdicts = scored.turns.iter().map(|(_, result)| result.as_ref().unwrap());
        verdicts.map(|verdict| (verdict.cached, verdict.tokens.computed == 0)).collect()
    };
    let (mine, cached) = ((false, false), (true, true));
    assert_eq!(told(&score(judge, &dialogue(&TURNS[..4]), &LIKELIHOOD, &call)), [mine, mine]);
    assert_eq!(told(&score(judge, &dialogue(&TURNS[..6]), &LIKELIHOOD, &call)), [cached, cached, mine]);
    // Turns after the last one of the agent are nobody's context.
    assert_eq!(told(&score(judge, &dialogue(&TURNS[..7]), &LIKELIHOOD, &call)), [cached; 3]);
    let last = alone(&dialogue(&TURNS), 7);
    let verdict = judge.score_blocking(&last, &LIKELIHOOD, &call).unwrap().remove(0).unwrap();
    assert!(!verdict.cached);
    let whole = score(judge, &dialogue(&TURNS), &LIKELIHOOD, &call);
    assert_eq!(told(&whole), [cached; 4]);
    assert_eq!(bits(whole.turns[3].1.as_ref().unwrap()), bits(&verdict));
    let refresh = Call { cache: CacheControl::Refresh, ..call };
    let renewed = score(judge, &dialogue(&TURNS), &LIKELIHOOD, &refresh);
    assert!(renewed.turns.iter().all(|(_, result)| !result.as_ref().unwrap().cached));
    assert_eq!(renewed.drift, whole.drift);
}

#[test]
fn a_turn_that_cannot_be_judged_leaves_the_others_alone() {
    let Some(judge) = JUDGE.as_ref() else { return };
    let clean = score(judge, &dialogue(&TURNS), &LIKELIHOOD, &uncached());
    let verdict = |scored: &ScoredDialogue, at: usize| bits(scored.turns[at].1.as_ref().unwrap());
    let refused = |result: &Result<Verdict, JudgeError>| {
        let error = result.as_ref().unwrap_err();
        assert_eq!(error.code, ErrorCode::InvalidArgument);
        error.field.clone().unwrap()
    };
    for overrides in [LIKELIHOOD, OptionOverrides { calibration: Some(Calibration::Contextual), ..LIKELIHOOD }] {
        let mut silent = dialogue(&TURNS);
        silent.turns[3].text = " \n".to_owned();
        let scored = score(judge, &silent, &overrides, &uncached());
        assert_eq!(refused(&scored.turns[1].1), "turns[3].text");
        assert_eq!(scored.turns.iter().filter(|(_, result)| result.is_ok()).count(), 3);
        let drift = scored.drift.unwrap();
        assert!([1, 5, 7].contains(&drift.s_prism.lowest_turn), "{drift:?}");
    }
    // A turn that is wrong takes those along that come after it.
    type Change = fn(&mut Turn);
    let changes: [(Change, &str); 3] = [
        (|turn| turn.speaker = " ".to_owned(), "turns[4].speaker"),
        (|turn| turn.speaker = "s".repeat(1025), "turns[4].speaker"),
        (|turn| turn.text = "t".repeat(1 << 20), "turns[4].text"),
    ];
    for (change, field) in changes {
        let mut wrong = dialogue(&TURNS);
        change(&mut wrong.turns[4]);
        let scored = score(judge, &wrong, &LIKELIHOOD, &uncached());
        assert_eq!([0, 1].map(|at| verdict(&scored, at)), [0, 1].map(|at| verdict(&clean, at)));
        assert_eq!([2, 3].map(|at| refused(&scored.turns[at].1)), [field; 2]);
    }
    // One that is longer than the model reads, though not than a context may be.
    let mut long = dialogue(&TURNS);
    long.turns[5].text = "word ".repeat(9_000);
    let scored = score(judge, &long, &LIKELIHOOD, &uncached());
    assert_eq!([0, 1].map(|at| verdict(&scored, at)), [0, 1].map(|at| verdict(&clean, at)));
    assert_eq!(refused(&scored.turns[2].1), "turns[5].text");
    assert_eq!(refused(&scored.turns[3].1), "turns[7].text");
    // Nothing is left of it.
    let mut none = dialogue(&TURNS[..2]);
    none.turns[1].text.clear();
    let scored = score(judge, &none, &LIKELIHOOD, &uncached());
    assert_eq!((scored.turns.len(), scored.drift), (1, None));
}

#[test]
fn what_is_wrong_with_the_whole_dialogue_is_one_error() {
    let Some(judge) = JUDGE.as_ref() else { return };
    let refused = |dialogue: Dialogue, overrides: &OptionOverrides| {
        let error = judge.score_dialogue_blocking(dialogue, overrides, &uncached()).unwrap_err();
        assert_eq!(error.code, ErrorCode::InvalidArgument, "{error}");
        error.field.unwrap()
    };
    let nobody = Dialogue { persona: Persona { traits: Vec::new(), ..ada() }, ..dialogue(&TURNS) };
    assert_eq!(refused(nobody, &LIKELIHOOD), "persona");
    let scale = OptionOverrides { likelihood_t: Some(0.0), ..LIKELIHOOD };
    assert_eq!(refused(dialogue(&TURNS), &scale), "options.likelihood_t");
    assert_eq!(refused(Dialogue { agent: "Eve".to_owned(), ..dialogue(&TURNS) }, &LIKELIHOOD), "agent");
    assert_eq!(refused(dialogue(&[]), &LIKELIHOOD), "turns");
    assert_eq!(refused(dialogue(&TURNS.repeat(500)), &LIKELIHOOD), "turns");
}

fn wire(dialogue: &Dialogue) -> pb::ScoreDialogueRequest {
    let target = pb::TraitTarget { r#trait: pb::Trait::Extraversion as i32, polarity: pb::Polarity::High as i32 };
    let turn = |turn: &Turn| pb::Turn { speaker: turn.speaker.clone(), text: turn.text.clone() };
    pb::ScoreDialogueRequest {
        persona: Some(pb::Persona { name: Some("Ada".into()), traits: vec![target], ..pb::Persona::default() }),
        turns: dialogue.turns.iter().map(turn).collect(),
        agent: dialogue.agent.clone(),
        request_id: "r".into(),
        ..pb::ScoreDialogueRequest::default()
    }
}

fn verdict(result: &pb::TurnResult) -> &pb::Verdict {
    match &result.result {
        Some(pb::turn_result::Result::Verdict(verdict)) => verdict,
        other => panic!("no verdict but {other:?}"),
    }
}

/// The line of least squares by its normal equations.
fn slope(points: &[(f64, f64)]) -> f64 {
    let n = points.len() as f64;
    let sum = |term: fn(&(f64, f64)) -> f64| points.iter().map(term).sum::<f64>();
    let (x, y, xx, xy) = (sum(|p| p.0), sum(|p| p.1), sum(|p| p.0 * p.0), sum(|p| p.0 * p.1));
    (n * xy - x * y) / (n * xx - x * x)
}

#[tokio::test(flavor = "multi_thread")]
async fn the_server_tells_the_curve_of_what_it_judged_and_its_record_replays() {
    let folder = tempfile::tempdir().unwrap();
    let Some(model) = tiny_model(folder.path()) else { return };
    let audit = folder.path().join("audit.jsonl");
    let [model, audit] = [model.to_str().unwrap(), audit.to_str().unwrap()];
    let server = Server::start(&["--model", model, "--audit-file", audit]).ready().await;
    let mut judge = server.judge().await;
    let mut whole = dialogue(&TURNS);
    whole.turns[3].text.clear();
    let reply = judge.score_dialogue(wire(&whole)).await.unwrap().into_inner();
    assert_eq!(reply.request_id, "r");
    assert_eq!(reply.results.iter().map(|result| result.turn).collect::<Vec<_>>(), [1, 3, 5, 7]);
    let Some(pb::turn_result::Result::Error(error)) = &reply.results[1].result else { panic!("{reply:?}") };
    assert_eq!((error.code(), error.field.as_str()), (pb::ErrorCode::InvalidArgument, "turns[3].text"));

    // The second of Ada's turns failed and keeps its place on the line.
    let judged = [0, 2, 3].map(|at| (at as f64, reply.results[at].turn, verdict(&reply.results[at])));
    let drift = reply.drift.unwrap();
    type Curve = (pb::Drift, fn(&pb::Verdict) -> f64);
    let curves: [Curve; 4] = [
        (drift.s_prism.unwrap(), |it| it.s_prism),
        (drift.task_framing.unwrap(), |it| it.dimensions.as_ref().unwrap().task_framing.as_ref().unwrap().evidence),
        (drift.interpersonal_stance.unwrap(), |it| {
            it.dimensions.as_ref().unwrap().interpersonal_stance.as_ref().unwrap().evidence
        }),
        (drift.linguistic_style.unwrap(), |it| {
            it.dimensions.as_ref().unwrap().linguistic_style.as_ref().unwrap().evidence
        }),
    ];
    for (drift, value) in curves {
        let points: Vec<(f64, f64)> = judged.iter().map(|(x, _, verdict)| (*x, value(verdict))).collect();
        let close = |found: f64, expected: f64| assert!((found - expected).abs() < 1e-12, "{found} not {expected}");
        close(drift.mean, points.iter().map(|(_, y)| y).sum::<f64>() / 3.0);
        close(drift.slope, slope(&points));
        close(drift.change, points[2].1 - points[0].1);
        let lowest = points.iter().map(|(_, y)| *y).fold(f64::INFINITY, f64::min);
        let first = judged.iter().find(|(.., verdict)| value(verdict) == lowest).unwrap().1;
        assert_eq!((drift.lowest, drift.lowest_turn), (lowest, first));
    }

    let named = pb::ScoreDialogueRequest { agent: "user".into(), ..wire(&whole) };
    let reply = judge.score_dialogue(named).await.unwrap().into_inner();
    assert_eq!(reply.results.iter().map(|result| result.turn).collect::<Vec<_>>(), [0, 2, 4, 6, 8]);
    assert_eq!(verdict(&reply.results[1]).id, "2");
    let unknown = pb::ScoreDialogueRequest { agent: "Eve".into(), ..wire(&whole) };
    let status = judge.score_dialogue(unknown).await.unwrap_err();
    assert_eq!(status.code(), Code::InvalidArgument);
    let violation = &status.get_details_bad_request().unwrap().field_violations[0];
    assert_eq!(
        (violation.field.as_str(), violation.description.as_str()),
        ("agent", "no turn is spoken by \"Eve\"; the speakers are \"User\", \"Ada\"")
    );

    server.signal("TERM");
    assert_eq!(server.end().code(), Some(0));
    let text = std::fs::read_to_string(audit).unwrap();
    assert_eq!(text.matches("\"method\":\"ScoreDialogue\"").count(), 2);
    // The dialogue's text is there once for each call, however many turns it has.
    assert_eq!(
        text.matches(TURNS[0].1).count(),
        2 + 1,
        "as context of Ada's turns, as context and as a turn of the user's"
    );
    let output = run(&["replay", "--json", "--model", model, audit], b"");
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((output.status.code(), &report["different"]), (Some(0), &0.into()), "{report}");
    assert!(report["replayed"].as_u64().unwrap() >= 2, "{report}");
}

#[test]
fn the_command_line_draws_the_curve_and_has_the_bits_of_score() {
    let Some(_) = support::backbone() else { return };
    let turns: Vec<Value> =
        TURNS.iter().map(|(speaker, text)| serde_json::json!({"speaker": speaker, "text": text})).collect();
    let persona = serde_json::json!({"name": "Ada", "traits": [{"trait": "extraversion", "polarity": "high"}]});
    let line = serde_json::json!({"id": "worn", "persona": persona, "dialogue": turns}).to_string();
    let input = format!("{line}\n{{\"profile\":\"kind\"}}\n");
    let output = run(&["dialogue", "--json"], input.as_bytes());
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    let lines = json_lines(&output);
    assert_eq!((&lines[0]["id"], &lines[1]["line"]), (&"worn".into(), &2.into()));
    let places: Vec<_> = lines[0]["turns"].as_array().unwrap().iter().map(|turn| turn["turn"].as_u64()).collect();
    assert_eq!(places, [Some(1), Some(3), Some(5), Some(7)]);
    let row = serde_json::json!({"persona": persona, "context": turns[..7], "response": TURNS[7].1});
    let alone = json_lines(&run(&["score"], row.to_string().as_bytes())).remove(0);
    let last = &lines[0]["turns"][3]["verdict"];
    assert_eq!((&last["s_prism"], &last["dimensions"]), (&alone["s_prism"], &alone["dimensions"]));
    assert!(lines[0]["drift"]["s_prism"]["slope"].is_f64());

    let output = run(&["dialogue", "--ascii", "--agent", "USER"], line.as_bytes());
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.starts_with("Dialogue worn\n"), "{text}");
    for (turn, (_, said)) in TURNS.iter().enumerate().step_by(2) {
        assert!(text.contains(&format!("\n  {turn}      0.")) && text.contains(&said[..10]), "{text}");
    }
    assert_eq!(text.matches(" a turn ").count(), 4, "{text}");
}
