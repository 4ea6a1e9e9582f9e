#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::fs::File;
use std::io::Read as _;
use std::os::fd::AsRawFd as _;
use std::path::Path;
use std::process::Command;

use super::*;
use crate::audit::{Chain, Line, Record, Text, open_line};
use crate::digest::Digest;
use crate::numerics::Numerics;
use crate::persona::Persona;
use crate::prism::*;
use crate::service::{CacheControl, Lane, OptionOverrides};

/// How long a test waits for what must come.
const SOON: Duration = Duration::from_secs(60);

fn settings(path: &Path) -> AuditSettings {
    let rotation = Rotation { bytes: None, keep: 0 };
    AuditSettings { path: path.to_owned(), sample: 1.0, redact: Redact::None, rotation, required: false }
}

fn group(response: String) -> Arc<Group> {
    let candidates = vec![Candidate { id: "c".to_owned(), response }];
    Arc::new(Group { persona: Persona::default(), context: Vec::new(), candidates })
}

fn failed(request_id: &str, group: &Arc<Group>) -> Finished {
    let digest = Digest::of_bytes(b"");
    let scale = LikelihoodScale::default();
    let (evidence, layout) = (EvidenceKind::Likelihood, Layout::Shared);
    let (label_order, calibration) = (LabelOrder::Content, Calibration::None);
    Finished {
        request_id: request_id.to_owned(),
        tenant: String::new(),
        method: "Score",
        lane: Lane::Train,
        cache: CacheControl::Use,
        group: Arc::clone(group),
        after: None,
        overrides: OptionOverrides::default(),
        options: Options { evidence, layout, label_order, calibration, persona_block: false, scale },
        judge: Provenance {
            model: "m".to_owned(),
            model_digest: digest,
            prompt_digest: digest,
            label_space_digest: digest,
            evidence,
            layout,
            label_order,
            calibration,
            numerics: Numerics::F32,
        },
        answer_slot: ["A", "B", "C"],
        shaping: None,
        scored: Err(JudgeError::new(ErrorCode::DeadlineExceeded, "late")),
    }
}

fn judged(request_id: &str, group: &Arc<Group>) -> Finished {
    let finished = failed(request_id, group);
    let posterior = Posterior { aligned: 0.5, indeterminate: 0.25, contradictory: 0.25 };
    let dimension = DimensionVerdict { posterior, evidence: 0.5, label_mass: None, label_order: Vec::new() };
    let verdict = Verdict {
        id: "c".to_owned(),
        s_prism: 0.5,
        dimensions: DimensionVerdicts {
            task_framing: dimension.clone(),
            interpersonal_stance: dimension.clone(),
            linguistic_style: dimension,
        },
        weakest_dimension: Dimension::TaskFraming,
        judge: finished.judge.clone(),
        tokens: TokenCounts { prompt: 1, computed: 1 },
        cached: false,
        warnings: TextWarnings::default(),
    };
    Finished { scored: Ok(vec![Ok(verdict)]), ..finished }
}

/// Hands a record in. Where it need not be waited for, that is all.
fn hand_in(audit: &Audit, finished: Finished) {
    drop(audit.record(finished));
}

/// All lines, which must be intact and in order.
fn lines(text: &str) -> Vec<Line> {
    let mut chain = Chain::default();
    let lines = text.lines().filter(|line| !line.is_empty()).map(|line| open_line(line).unwrap());
    lines.inspect(|line| chain.follow(line).unwrap()).collect()
}

fn ids(lines: &[Line]) -> Vec<String> {
    let id = |line: &Line| match &line.record {
        Record::Call(call) => match &call.request_id {
            Text::Plain(id) => id.clone(),
            Text::Redacted { .. } => "redacted".to_owned(),
        },
        Record::Gap(gap) => format!("gap of {} and {}", gap.queue_full, gap.not_written),
    };
    lines.iter().map(id).collect()
}

#[test]
fn calls_from_many_threads_give_whole_lines_and_closing_writes_the_last_of_them() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("audit.jsonl");
    let (audit, guard) = Audit::open(settings(&path)).unwrap();
    let group = group("é\"\n".repeat(500));
    std::thread::scope(|scope| {
        for thread in 0..64 {
            let (audit, group) = (&audit, &group);
            scope.spawn(move || (0..20).for_each(|call| hand_in(audit, judged(&format!("{thread}/{call}"), group))));
        }
    });
    let counts = guard.close(SOON).unwrap();
    let mut found = ids(&lines(&std::fs::read_to_string(&path).unwrap()));
    found.sort();
    let mut expected: Vec<_> = (0..64).flat_map(|a| (0..20).map(move |b| format!("{a}/{b}"))).collect();
    expected.sort();
    assert_eq!(found, expected);
    let bytes = std::fs::metadata(&path).unwrap().len();
    assert_eq!(counts, AuditCounts { written: 1280, bytes, ..AuditCounts::default() });
    assert_eq!(audit.queued_bytes(), 0);
    // Afterwards nothing is taken, and that is counted.
    hand_in(&audit, judged("late", &group));
    assert_eq!(audit.counts().lost(), 1);
}

#[test]
fn a_guard_that_is_dropped_closes_too() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("audit.jsonl");
    let (audit, guard) = Audit::open(settings(&path)).unwrap();
    hand_in(&audit, judged("a", &group("Yes".to_owned())));
    drop(guard);
    assert_eq!(ids(&lines(&std::fs::read_to_string(&path).unwrap())), ["a"]);
}

/// A pipe under a name, and its end for reading.
fn pipe() -> (PathBuf, std::io::PipeReader, std::io::PipeWriter) {
    let (reader, writer) = std::io::pipe().unwrap();
    (format!("/proc/self/fd/{}", writer.as_raw_fd()).into(), reader, writer)
}

#[test]
#[cfg(target_os = "linux")]
fn records_that_find_the_queue_full_are_counted_and_the_file_tells_how_many() {
    let (path, mut reader, writer) = pipe();
    let (audit, guard) = Audit::open(settings(&path)).unwrap();
    drop(writer);
    // The queue holds 64 MiB and nobody reads yet: three of these with their verdicts, and no fourth.
    let large = group("x".repeat(16 << 20));
    for call in 0..10 {
        hand_in(&audit, judged(&call.to_string(), &large));
    }
    assert_eq!(audit.counts().queue_full, 7);
    let text = std::thread::spawn(move || {
        let mut text = String::new();
        reader.read_to_string(&mut text).unwrap();
        text
    });
    assert_eq!(guard.close(SOON).unwrap().written, 3);
    let lines = lines(&text.join().unwrap());
    let lost: u64 = lines
        .iter()
        .map(|line| match &line.record {
            Record::Gap(gap) => gap.queue_full,
            Record::Call(_) => 0,
        })
        .sum();
    assert_eq!(lost, 7);
    let calls: Vec<_> = ids(&lines).into_iter().filter(|id| !id.starts_with("gap")).collect();
    assert_eq!(calls, ["0", "1", "2"]);
}

#[test]
#[cfg(target_os = "linux")]
fn a_disk_that_hangs_does_not_hold_the_end_of_the_process() {
    let (path, reader, writer) = pipe();
    let (audit, guard) = Audit::open(settings(&path)).unwrap();
    drop(writer);
    hand_in(&audit, judged("large", &group("x".repeat(1 << 20))));
    assert!(matches!(guard.close(Duration::from_millis(20)), Err(AuditError::Late { .. })));
    drop(reader);
}

#[tokio::test]
async fn where_records_are_required_a_verdict_goes_out_only_with_one_and_an_error_waits_for_none() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("fifo");
    assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
    let group = group("Yes".to_owned());
    // Either end of a named pipe waits for the other one.
    let open = |path: PathBuf| std::thread::spawn(move || File::open(path).unwrap());
    let reader = open(path.clone());
    let (audit, guard) = Audit::open(AuditSettings { required: true, ..settings(&path) }).unwrap();
    let reader = reader.join().unwrap();
    assert_eq!(audit.record(judged("a", &group)).await, Ok(()));
    // Nobody reads any more: the file takes nothing.
    drop(reader);
    for _ in 0..3 {
        let error = audit.record(judged("b", &group)).await.unwrap_err();
        assert_eq!(error.code, ErrorCode::Unavailable);
        assert!(error.message.contains("withheld") && !error.message.contains("fifo"), "{error}");
    }
    assert_eq!(audit.counts().withheld, 3);
    // And now somebody does again.
    let mut reader = open(path).join().unwrap();
    assert_eq!(audit.record(failed("c", &group)).await, Ok(()));
    assert_eq!(audit.record(judged("d", &group)).await, Ok(()));
    let counts = guard.close(SOON).unwrap();
    assert_eq!((counts.written, counts.not_written, counts.withheld), (3, 3, 3));
    let mut text = String::new();
    reader.read_to_string(&mut text).unwrap();
    // The pipe kept what nobody had read.
    assert_eq!(ids(&lines(&text)), ["a", "gap of 0 and 3", "c", "d"]);
}

#[tokio::test]
async fn where_the_file_is_deleted_records_go_to_a_new_one_and_none_counts_that_has_no_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("audit.jsonl");
    let group = group("Yes".to_owned());
    let (audit, guard) = Audit::open(AuditSettings { required: true, ..settings(&path) }).unwrap();
    assert_eq!(audit.record(judged("a", &group)).await, Ok(()));
    std::fs::remove_file(&path).unwrap();
    assert_eq!(audit.record(judged("b", &group)).await, Ok(()));
    assert_eq!(ids(&lines(&std::fs::read_to_string(&path).unwrap())), ["b"]);
    std::fs::remove_file(&path).unwrap();
    std::fs::create_dir(&path).unwrap();
    assert_eq!(audit.record(judged("c", &group)).await.unwrap_err().code, ErrorCode::Unavailable);
    std::fs::remove_dir(&path).unwrap();
    assert_eq!(audit.record(judged("d", &group)).await, Ok(()));
    assert_eq!(ids(&lines(&std::fs::read_to_string(&path).unwrap())), ["gap of 0 and 1", "d"]);
    let counts = guard.close(SOON).unwrap();
    assert_eq!((counts.written, counts.not_written, counts.withheld), (3, 1, 1));
}

#[test]
fn a_sample_is_taken_by_the_digest_of_each_record() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("audit.jsonl");
    let (audit, guard) = Audit::open(AuditSettings { sample: 0.25, ..settings(&path) }).unwrap();
    let group = group("Yes".to_owned());
    (0..2000).for_each(|call| hand_in(&audit, judged(&call.to_string(), &group)));
    let counts = guard.close(SOON).unwrap();
    assert_eq!(counts.written + counts.sampled_out, 2000);
    // Seven standard deviations of a fair draw.
    assert!((365..=635).contains(&counts.written), "{}", counts.written);
    let text = std::fs::read_to_string(&path).unwrap();
    assert_eq!(lines(&text).len() as u64, counts.written);
    for line in text.lines() {
        let record = line.strip_prefix("{\"record\":").unwrap().rsplit_once(",\"seq\":").unwrap().0;
        // The first two of 64 bits are 0 in a quarter of all digests.
        assert!(Digest::of_bytes(record.as_bytes()).as_bytes()[0] < 64, "{record}");
    }
}
