//! Every reward replays (promise 2): calls are recorded, the process ends, and another one finds the same bits. And what
//! happens to records that were changed, lost, redacted, or that another judge made.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use prism_judge::audit::{Audit, AuditCounts, AuditSettings, Outcome, Real, Record, Redact, Rotation, open_line, seal};
use prism_judge::persona::{Persona, Polarity, Trait, TraitTarget};
use prism_judge::prism::{Calibration, Candidate, EvidenceKind, Group, LabelOrder, Layout, Turn};
use prism_judge::server::pb;
use prism_judge::server::pb::judge_service_client::JudgeServiceClient;
use prism_judge::service::{CacheControl, Call, Cancel, ErrorCode, Judge, Lane, OptionOverrides};
use serde_json::Value;
use support::cli::{binary, run, stderr};
use support::judge::{config, party};
use support::tiny::{Random, Tiny};
use tempfile::TempDir;
use tonic::transport::Channel;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;

/// How long a test waits for what must come.
const SOON: Duration = Duration::from_secs(60);

/// A folder with a tiny model, and where its audit goes.
struct Desk {
    folder: TempDir,
    model: PathBuf,
    audit: PathBuf,
}

impl Desk {
    /// None where the backbone, whose tokenizer the tiny model has, is missing.
    fn new() -> Option<Self> {
        let backbone = support::backbone()?;
        let folder = tempfile::tempdir().unwrap();
        let [model, audit] = ["tiny.gguf", "audit.jsonl"].map(|name| folder.path().join(name));
        Tiny::speaking_as(&backbone, 12).write(&model);
        Some(Self { folder, model, audit })
    }

    fn settings(&self) -> AuditSettings {
        AuditSettings {
            path: self.audit.clone(),
            sample: 1.0,
            redact: Redact::None,
            rotation: Rotation { bytes: None, keep: 0 },
            required: false,
        }
    }

    /// Lets `work` use a recorded judge, which is closed then.
    fn recorded(&self, settings: AuditSettings, work: impl FnOnce(&Judge)) -> AuditCounts {
        let (audit, guard) = Audit::open(settings).unwrap();
        let judge = Judge::open(&config(self.model.clone())).unwrap().recorded_by(audit);
        work(&judge);
        drop(judge);
        guard.close(SOON).unwrap()
    }

    /// A few calls of a judge that is then closed.
    fn few(&self, settings: AuditSettings) {
        self.recorded(settings, |judge| {
            for call in 0..5 {
                let group = party(&[&format!("Yes, at {call}!"), "No."]);
                let call = Call { request_id: format!("request {call}"), ..Call::default() };
                judge.score_blocking(&group, &OptionOverrides::default(), &call).unwrap();
            }
        });
    }

    /// Every file of the audit, in order.
    fn files(&self) -> Vec<PathBuf> {
        let mut files: Vec<PathBuf> =
            std::fs::read_dir(self.folder.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
        files.retain(|file| file.to_str().unwrap().contains("audit.jsonl"));
        files.sort();
        files
    }

    /// Replays the whole audit in a process of its own.
    fn replay(&self, flags: &[&str]) -> Replayed {
        let files = self.files();
        let files: Vec<&str> = files.iter().map(|file| file.to_str().unwrap()).collect();
        replay(&[&["--model", self.model.to_str().unwrap()], flags, &files].concat())
    }

    /// Replaces line `number`, from 0, of the only file.
    fn change(&self, number: usize, change: impl FnOnce(&str) -> String) {
        let text = std::fs::read_to_string(&self.audit).unwrap();
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        lines[number] = change(&lines[number]);
        std::fs::write(&self.audit, lines.join("\n") + "\n").unwrap();
    }
}

struct Replayed {
    status: Option<i32>,
    report: Value,
}

impl Replayed {
    fn count(&self, name: &str) -> u64 {
        self.report[name].as_u64().unwrap_or_else(|| panic!("no {name} in {}", self.report))
    }

    fn findings(&self) -> Vec<(&str, u64)> {
        let findings = self.report["findings"].as_array().unwrap();
        findings.iter().map(|one| (one["finding"].as_str().unwrap(), one["line"].as_u64().unwrap())).collect()
    }
}

fn replay(args: &[&str]) -> Replayed {
    let output = run(&[&["replay", "--json"], args].concat(), b"");
    let report = serde_json::from_slice(&output.stdout);
    let report = report.unwrap_or_else(|error| panic!("{error}: {}", stderr(&output)));
    Replayed { status: output.status.code(), report }
}

/// A call with everything that a caller may choose, among few texts so that caches and prefixes are hit.
fn random_call(random: &mut Random, number: usize) -> (Group, OptionOverrides, Call) {
    let mut pick = |texts: &[&str]| texts[random.below(texts.len())].to_owned();
    let responses =
        ["Yes!", "No.", "Who else is in?", "I'd rather read é\u{301} 𝄞.", "", "Perhaps, if it is quiet.", "Sure"];
    let persona = Persona {
        name: Some(pick(&["Ada", "Bo"])),
        traits: vec![TraitTarget::new(Trait::Extraversion, [Polarity::High, Polarity::Low][number % 2])],
        description: pick(&["", "A pirate who loves the sea.", "Big Five focus: Openness = high"]),
        facts: vec![pick(&["i ride horses", "i keep \"two\" cats"])],
    };
    let context =
        vec![Turn { speaker: "User".to_owned(), text: pick(&["Are you coming?", "Tell me a story\nplease"]) }];
    let candidates = (0..=random.below(4))
        .map(|at| Candidate { id: format!("{number}/{at}"), response: responses[random.below(7)].to_owned() })
        .collect();
    let evidence = [None, Some(EvidenceKind::Likelihood), Some(EvidenceKind::LabelSlot)][random.below(3)];
    let orders = [LabelOrder::Content, LabelOrder::Cyclic, LabelOrder::All, LabelOrder::Released];
    let overrides = OptionOverrides {
        evidence,
        label_order: Some(orders[random.below(4)]),
        layout: [None, Some(Layout::Released)][random.below(2)],
        calibration: [None, Some(Calibration::Contextual)][usize::from(random.below(8) == 0)],
        persona_block: [None, Some(true)][random.below(2)],
        likelihood_t: [None, Some(0.1 + 0.2), Some(-1.0)][[0, 0, 0, 1, 1, 1, 1, 2][random.below(8)]],
        likelihood_b: [None, Some(1.0 / 3.0)][random.below(2)],
    };
    let call = Call {
        lane: Lane::ALL[random.below(3)],
        cache: [CacheControl::Use, CacheControl::Use, CacheControl::Refresh, CacheControl::Off][random.below(4)],
        tenant: format!("tenant {}", random.below(2)),
        request_id: format!("request {number}"),
        method: "ScoreGroup",
        ..Call::default()
    };
    (Group { persona, context, candidates }, overrides, call)
}

#[test]
fn a_thousand_recorded_calls_have_the_same_bits_in_another_process() {
    let Some(desk) = Desk::new() else { return };
    let settings = AuditSettings { rotation: Rotation { bytes: Some(1 << 20), keep: 0 }, ..desk.settings() };
    let mut cached = 0;
    let counts = desk.recorded(settings, |judge| {
        let calls = |thread: usize| {
            // Two and two ask the same.
            let mut random = Random(thread as u64 % 2);
            let mut cached = 0;
            for number in 0..250 {
                let (group, overrides, call) = random_call(&mut random, thread * 250 + number);
                let results = judge.score_blocking(&group, &overrides, &call).unwrap_or_default();
                cached += results.iter().flatten().filter(|verdict| verdict.cached).count();
            }
            cached
        };
        cached = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4).map(|thread| scope.spawn(move || calls(thread))).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).sum()
        });
    });
    assert_eq!((counts.written, counts.lost()), (1000, 0));
    assert!(cached > 200, "{cached} verdicts came from the cache");
    assert!(counts.rotations >= 2, "{counts:?}");

    let replayed = desk.replay(&[]);
    assert_eq!(replayed.status, Some(0), "{}", replayed.report);
    assert_eq!((replayed.count("records"), replayed.count("replayed"), replayed.count("equal")), (1000, 1000, 1000));
    assert!(replayed.count("judgements_equal") > 1500, "{}", replayed.report);
    println!("{} judgements, {cached} of them cached, replayed with equal bits", replayed.count("judgements_equal"));
    // Other flags of the process change nothing: the options come from the records.
    let others = ["--evidence", "label_slot", "--likelihood-t", "3", "--threads", "1"];
    assert_eq!(desk.replay(&others).count("equal"), 1000);
}

#[test]
fn a_changed_byte_is_named_by_its_line_and_the_rest_replays() {
    let Some(desk) = Desk::new() else { return };
    desk.few(desk.settings());
    desk.change(2, |line| line.replacen("party", "Party", 1));
    let replayed = desk.replay(&[]);
    assert_eq!((replayed.status, replayed.count("equal")), (Some(2), 4));
    assert_eq!(replayed.findings(), [("damaged", 3)]);
    // A line that is taken out is missed.
    let text = std::fs::read_to_string(&desk.audit).unwrap();
    let rest: Vec<&str> = text.lines().enumerate().filter(|(at, _)| *at != 2).map(|(_, line)| line).collect();
    std::fs::write(&desk.audit, rest.join("\n")).unwrap();
    let replayed = desk.replay(&[]);
    assert_eq!((replayed.status, replayed.findings()), (Some(2), vec![("out_of_order", 3)]));
}

#[test]
fn a_line_that_a_crash_cut_off_is_named_and_the_next_process_goes_on_after_it() {
    let Some(desk) = Desk::new() else { return };
    desk.few(desk.settings());
    let text = std::fs::read(&desk.audit).unwrap();
    std::fs::write(&desk.audit, &text[..text.len() - 30]).unwrap();
    let replayed = desk.replay(&[]);
    assert_eq!((replayed.status, replayed.count("equal")), (Some(2), 4));
    assert_eq!(replayed.findings(), [("damaged", 5)]);
    desk.few(desk.settings());
    let replayed = desk.replay(&[]);
    assert_eq!((replayed.status, replayed.count("equal")), (Some(2), 9));
    assert_eq!(replayed.findings(), [("damaged", 5)]);
}

/// A forger who knows the format can seal the line again; the judge still says what it says.
#[test]
fn a_number_that_was_changed_with_its_digest_is_told_with_both_values_and_their_distance() {
    let Some(desk) = Desk::new() else { return };
    desk.few(desk.settings());
    desk.change(4, |text| {
        let mut line = open_line(text).unwrap();
        let Record::Call(call) = &mut line.record else { panic!("{line:?}") };
        let Outcome::Verdict(verdict) = &mut call.results[1].outcome else { panic!("{call:?}") };
        verdict.s_prism = Real(verdict.s_prism.0.next_up());
        let before = prism_judge::audit::Link { seq: 3, digest: line.prev.unwrap() };
        let mut sealed = Vec::new();
        seal(&serde_json::to_string(&line.record).unwrap(), Some(before), &mut sealed);
        String::from_utf8(sealed).unwrap().trim_end().to_owned()
    });
    let replayed = desk.replay(&[]);
    assert_eq!((replayed.status, replayed.count("equal"), replayed.count("different")), (Some(2), 4, 1));
    let found = &replayed.report["findings"][0];
    assert_eq!((&found["finding"], &found["line"]), (&"different".into(), &5.into()));
    let difference = &found["differences"][0];
    assert_eq!((&difference["id"], &difference["field"]), (&"c1".into(), &"s_prism".into()));
    assert_eq!((&difference["candidate"], &difference["ulps"]), (&1.into(), &1.into()));
    assert_eq!(found["differences"].as_array().unwrap().len(), 1);
    // For people the same, by line.
    let output = run(&["replay", "--model", desk.model.to_str().unwrap(), desk.audit.to_str().unwrap()], b"");
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("audit.jsonl:5: different") && text.contains("c1 s_prism: 0."), "{text}");
    assert!(text.contains("now, 1 ulp\n"), "{text}");
    assert!(text.contains("5 records: 5 replayed, 4 equal, 1 different (9 judgements with the same bits)"), "{text}");
}

#[test]
fn a_redacted_audit_holds_no_text_and_says_that_it_cannot_be_replayed() {
    const CANARY: &str = "canary";
    let Some(desk) = Desk::new() else { return };
    let text = |place: &str| format!("{CANARY} {place} {{\"");
    let persona = Persona {
        name: Some(text("name")),
        description: text("description"),
        facts: vec![text("fact")],
        ..Persona::default()
    };
    // Its error quotes it.
    let quoted = Persona { description: format!("Big Five focus: {CANARY}"), ..Persona::default() };
    let group = |persona: &Persona| Group {
        persona: persona.clone(),
        context: vec![Turn { speaker: text("speaker"), text: text("turn") }],
        candidates: vec![Candidate { id: "id".to_owned(), response: text("response") }],
    };
    for (redact, ids) in [(Redact::Text, 4), (Redact::All, 0)] {
        desk.recorded(AuditSettings { redact, ..desk.settings() }, |judge| {
            let call = Call { request_id: "whose-id".to_owned(), tenant: "whose-tenant".to_owned(), ..Call::default() };
            let none = OptionOverrides::default();
            judge.score_blocking(&group(&persona), &none, &call).unwrap();
            let error = judge.score_blocking(&group(&quoted), &none, &call).unwrap_err();
            assert!(error.message.contains(CANARY), "{error}");
        });
        let written = std::fs::read_to_string(&desk.audit).unwrap();
        assert_eq!(written.matches(CANARY).count(), 0);
        assert_eq!(written.matches("whose-").count(), ids);
        let digest = prism_judge::digest::Digest::of_bytes(text("response").as_bytes());
        assert!(written.contains(&format!("\"response\":{{\"sha256\":\"{digest}\"}}")), "{written}");
        let replayed = desk.replay(&[]);
        assert_eq!((replayed.status, replayed.count("redacted"), replayed.count("replayed")), (Some(2), 2, 0));
        assert_eq!(replayed.findings(), [("redacted", 1), ("redacted", 2)]);
        // What judged is known all the same.
        let replayed = desk.replay(&["--numerics", "int8"]);
        assert_eq!((replayed.count("redacted"), replayed.count("other_judge")), (0, 2));
        std::fs::remove_file(&desk.audit).unwrap();
    }
}

#[test]
fn another_judge_is_told_by_its_parts_with_both_digests_and_never_as_a_difference() {
    let Some(desk) = Desk::new() else { return };
    desk.few(desk.settings());
    let file = |name: &str, text: &str| {
        let path = desk.folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let template = file("prompt.jinja", &(include_str!("../data/prompt.jinja").to_owned() + "{# changed #}"));
    let labels = file("labels.toml", &(include_str!("../data/label_spaces.toml").to_owned() + "\n# changed\n"));
    let model = desk.folder.path().join("other.gguf");
    Tiny::speaking_as(&support::backbone().unwrap(), 13).write(&model);
    for (part, flags) in [
        ("prompt", ["--prompt-template", &template]),
        ("label_spaces", ["--label-spaces", &labels]),
        ("model", ["--model", model.to_str().unwrap()]),
        ("numerics", ["--numerics", "int8"]),
    ] {
        let files = [desk.audit.to_str().unwrap()];
        let own = ["--model", desk.model.to_str().unwrap()];
        let own = if part == "model" { &own[..0] } else { &own[..] };
        let replayed = replay(&[own, &flags[..], &files[..]].concat());
        assert_eq!((replayed.status, replayed.count("different")), (Some(2), 0), "{part}");
        assert_eq!((replayed.count("other_judge"), replayed.count("replayed")), (5, 0), "{part}");
        assert_eq!(replayed.report["other"][part], 5, "{}", replayed.report);
        let mismatch = &replayed.report["findings"][0]["mismatches"][0];
        assert_eq!(mismatch["part"], part);
        assert_ne!(mismatch["recorded"], mismatch["here"]);
    }
}

#[test]
fn calls_that_failed_by_circumstances_are_left_out_and_wrong_ones_fail_again() {
    let Some(desk) = Desk::new() else { return };
    desk.recorded(desk.settings(), |judge| {
        let none = OptionOverrides::default();
        let cancel = Cancel::default();
        cancel.cancel();
        let stopped = Call { cancel, ..Call::default() };
        assert_eq!(judge.score_blocking(&party(&["Yes!"]), &none, &stopped).unwrap_err().code, ErrorCode::Cancelled);
        let nobody = Group { persona: Persona::default(), ..party(&["Yes!"]) };
        let wrong = judge.score_blocking(&nobody, &none, &Call::default()).unwrap_err();
        assert_eq!(wrong.code, ErrorCode::InvalidArgument);
        let results = judge.score_blocking(&party(&["Yes!", ""]), &none, &Call::default()).unwrap();
        assert!(results[0].is_ok() && results[1].is_err());
    });
    let replayed = desk.replay(&[]);
    assert_eq!((replayed.status, replayed.findings()), (Some(0), vec![]));
    assert_eq!((replayed.count("records"), replayed.count("equal")), (3, 2));
    assert_eq!(replayed.report["no_verdict"]["cancelled"], 1);
}

/// `prism-judge serve` on a free port; ends with the test.
struct Server {
    child: Child,
    channel: Channel,
    log: std::thread::JoinHandle<String>,
}

impl Server {
    async fn start(args: &[&str]) -> Self {
        let mut command = binary(
            &[&["serve", "--listen", "127.0.0.1:0", "--http-listen", "off", "--admin-listen", "off"], args].concat(),
        );
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        let (sender, address) = mpsc::channel();
        let mut stderr = BufReader::new(child.stderr.take().unwrap());
        let log = std::thread::spawn(move || {
            let mut log = String::new();
            while stderr.read_line(&mut log).unwrap() > 0 {
                if let Some((_, rest)) = log.lines().last().unwrap().split_once("listening on ") {
                    let _ = sender.send(rest.split(',').next().unwrap().to_owned());
                }
            }
            log
        });
        let address = tokio::task::spawn_blocking(move || address.recv().expect("the server names its port"));
        let endpoint = Channel::from_shared(format!("http://{}", address.await.unwrap())).unwrap();
        let channel = endpoint.connect().await.unwrap();
        let request = HealthCheckRequest { service: "prism.judge.v1.JudgeService".into() };
        let mut watch = HealthClient::new(channel.clone()).watch(request).await.unwrap().into_inner();
        while watch.message().await.unwrap().unwrap().status() != ServingStatus::Serving {}
        Self { child, channel, log }
    }

    /// SIGTERM; the exit status and the log.
    fn terminate(mut self) -> (Option<i32>, String) {
        assert!(Command::new("kill").arg(self.child.id().to_string()).status().unwrap().success());
        (self.child.wait().unwrap().code(), self.log.join().unwrap())
    }

    async fn score(&self, response: String, lane: pb::Lane) -> Result<pb::Verdict, tonic::Status> {
        let target = pb::TraitTarget { r#trait: pb::Trait::Extraversion as i32, polarity: pb::Polarity::High as i32 };
        let request = pb::ScoreRequest {
            persona: Some(pb::Persona { traits: vec![target], ..pb::Persona::default() }),
            context: vec![pb::Turn { speaker: "User".into(), text: "Are you coming to the party tonight?".into() }],
            candidate: Some(pb::Candidate { id: response.clone(), response }),
            lane: lane as i32,
            ..pb::ScoreRequest::default()
        };
        let reply = JudgeServiceClient::new(self.channel.clone()).score(request).await?;
        Ok(reply.into_inner().verdict.unwrap())
    }

    /// Scores `count` responses at once, a third of them twice, in all lanes.
    async fn score_many(&self, count: usize) {
        let lanes = [pb::Lane::Guard, pb::Lane::Train, pb::Lane::Batch];
        let calls = (0..count).map(|call| self.score(format!("At {} it is!", call % (count * 2 / 3)), lanes[call % 3]));
        let mut waiting: Vec<_> = calls.map(Box::pin).collect();
        // All are on their way before the first is waited for.
        let done = std::future::poll_fn(|context| {
            let polled = waiting.iter_mut().map(|call| call.as_mut().poll(context)).collect::<Vec<_>>();
            std::task::Poll::Ready(polled)
        })
        .await;
        for (call, first) in waiting.into_iter().zip(done) {
            match first {
                std::task::Poll::Ready(verdict) => verdict.unwrap(),
                std::task::Poll::Pending => call.await.unwrap(),
            };
        }
    }
}

#[tokio::test]
async fn a_server_with_the_default_model_is_stopped_and_its_verdicts_replay() {
    let (Some(backbone), folder) = (support::backbone(), tempfile::tempdir().unwrap()) else { return };
    let audit = folder.path().join("audit.jsonl");
    served_and_replayed(&backbone, &audit, 24).await;
}

#[tokio::test]
async fn sixty_four_calls_at_once_are_sixty_four_whole_lines() {
    let Some(desk) = Desk::new() else { return };
    served_and_replayed(&desk.model, &desk.audit, 64).await;
}

async fn served_and_replayed(model: &Path, audit: &Path, calls: usize) {
    let [model, audit] = [model, audit].map(|path| path.to_str().unwrap());
    let server = Server::start(&["--model", model, "--audit-file", audit, "--audit-required"]).await;
    server.score_many(calls).await;
    let (status, log) = server.terminate();
    assert_eq!(status, Some(0));
    assert!(log.contains(&format!("{calls} records written, 0 lost")), "{log}");
    let replayed = replay(&["--model", model, audit]);
    assert_eq!((replayed.status, replayed.count("equal")), (Some(0), calls as u64), "{}", replayed.report);
    assert_eq!(std::fs::read_to_string(audit).unwrap().lines().count(), calls);
}

#[tokio::test]
#[cfg(target_os = "linux")]
async fn a_full_disk_is_loud_and_where_records_are_required_no_verdict_goes_out() {
    let Some(desk) = Desk::new() else { return };
    let model = desk.model.to_str().unwrap();
    for (flags, required) in [(&[][..], false), (&["--audit-required"][..], true)] {
        let server = Server::start(&[&["--model", model, "--audit-file", "/dev/full"], flags].concat()).await;
        for call in 0..3 {
            match server.score(format!("Yes, at {call}!"), pb::Lane::Guard).await {
                Ok(_) => assert!(!required),
                Err(status) => {
                    assert!(required);
                    assert_eq!(status.code(), tonic::Code::Unavailable);
                    assert!(status.message().contains("withheld"), "{status}");
                }
            }
        }
        // A wrong request is told as ever.
        let wrong = server.score(String::new(), pb::Lane::Guard).await.unwrap_err();
        assert_eq!(wrong.code(), tonic::Code::InvalidArgument);
        let (status, log) = server.terminate();
        assert_eq!(status, Some(0));
        assert!(log.contains("/dev/full takes no records: No space left on device"), "{log}");
        assert!(log.contains("0 records written, 4 lost"), "{log}");
    }
}

#[tokio::test]
async fn a_file_that_is_deleted_under_the_server_is_loud_and_the_next_records_replay_from_a_new_one() {
    let Some(desk) = Desk::new() else { return };
    let [model, audit] = [&desk.model, &desk.audit].map(|path| path.to_str().unwrap());
    let server = Server::start(&["--model", model, "--audit-file", audit, "--audit-required"]).await;
    server.score("Before.".to_owned(), pb::Lane::Guard).await.unwrap();
    std::fs::remove_file(audit).unwrap();
    let odd = "Aft\u{200b}er\u{202e}.".to_owned();
    let verdict = server.score(odd, pb::Lane::Guard).await.unwrap();
    let (status, log) = server.terminate();
    assert_eq!(status, Some(0));
    assert!(
        log.contains("was deleted, moved or replaced by another process after line number 0 with the digest"),
        "{log}"
    );
    assert!(log.contains("2 records written, 0 lost"), "{log}");
    let replayed = desk.replay(&[]);
    assert_eq!((replayed.status, replayed.count("equal")), (Some(0), 1), "{}", replayed.report);
    // What the verdict says of the text is in its record.
    let told = verdict.warnings.unwrap().response.unwrap();
    assert_eq!((told.invisible, told.bidi), (1, 1));
    let line: Value = serde_json::from_str(std::fs::read_to_string(audit).unwrap().trim_end()).unwrap();
    let recorded = &line["record"]["results"][0]["verdict"]["warnings"]["response"];
    assert_eq!((&recorded["invisible"], &recorded["bidi"]), (&1.into(), &1.into()), "{line}");
}

#[test]
fn wrong_settings_are_told_before_anything_starts() {
    let refused = |flags: &[&str]| -> Output {
        let mut command = binary(
            &[
                &[
                    "serve",
                    "--listen",
                    "127.0.0.1:0",
                    "--http-listen",
                    "off",
                    "--admin-listen",
                    "off",
                    "--model",
                    "Cargo.toml",
                ],
                flags,
            ]
            .concat(),
        );
        command.output().unwrap()
    };
    for (flags, expected) in [
        (vec!["--audit-required"], "--audit-file FILE"),
        (vec!["--audit-file", "a", "--audit-sample", "0"], "above 0 and at most 1"),
        (vec!["--audit-file", "a", "--audit-sample", "nan"], "above 0 and at most 1"),
        (vec!["--audit-file", "a", "--audit-redact", "some"], "none, text or all"),
        (vec!["--audit-file", "a", "--audit-rotate-mb", "much"], "--audit-rotate-mb"),
        (vec!["--audit-file", "a", "--audit-keep", "few"], "from 0 to"),
    ] {
        let output = refused(&flags);
        assert_eq!(output.status.code(), Some(64), "{flags:?}: {}", stderr(&output));
        assert!(stderr(&output).contains(expected), "{flags:?}: {}", stderr(&output));
    }
    let output = refused(&["--audit-file", "no-such-folder/audit.jsonl"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("no-such-folder/audit.jsonl"), "{}", stderr(&output));
    let empty = binary(&[
        "serve",
        "--listen",
        "127.0.0.1:0",
        "--http-listen",
        "off",
        "--admin-listen",
        "off",
        "--model",
        "Cargo.toml",
    ])
    .envs(
        ["FILE", "SAMPLE", "REDACT", "ROTATE_MB", "KEEP", "REQUIRED"]
            .map(|key| (format!("PRISM_JUDGE_AUDIT_{key}"), "")),
    )
    .output()
    .unwrap();
    // An empty variable is none; the next thing that is wrong is the model.
    assert_eq!(empty.status.code(), Some(1), "{}", stderr(&empty));
    assert!(stderr(&empty).contains("Cargo.toml"), "{}", stderr(&empty));
}

#[test]
fn a_replay_reads_standard_input_too() {
    let Some(desk) = Desk::new() else { return };
    desk.few(desk.settings());
    let text = std::fs::read(&desk.audit).unwrap();
    let output = run(&["replay", "--json", "--model", desk.model.to_str().unwrap(), "-"], &text);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
}
