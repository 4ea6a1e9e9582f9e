#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::sync::Arc;

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;

use super::*;
use crate::audit::{CallRecord, Chain, Gap, Redact};
use crate::numerics::Numerics;
use crate::persona::{Persona, Polarity, Trait, TraitTarget};
use crate::prism::*;
use crate::service::{CacheControl, ErrorCode, Finished, JudgeError, Lane, OptionOverrides};

/// Any text, and texts that look like a line's own end or that JSON has trouble with.
fn text() -> impl Strategy<Value = String> {
    let odd = ["", "\0\"\\\u{2028}\u{feff}\r\n\t\u{7f}", "\",\"digest\":\"", "\"}\n", "\u{10ffff}é\u{301}", "null"];
    prop_oneof![any::<String>(), select(odd.to_vec()).prop_map(str::to_owned)]
}

/// Any bits, NaN and subnormal numbers among them.
fn number() -> impl Strategy<Value = f64> {
    any::<u64>().prop_map(f64::from_bits)
}

fn dimension() -> impl Strategy<Value = DimensionVerdict> {
    let orders = vec(select([Label::ALL, [Label::Contradictory, Label::Aligned, Label::Indeterminate]].to_vec()), 0..6);
    ([number(), number(), number(), number()], option::of(number()), orders).prop_map(
        |(numbers, label_mass, label_order)| {
            let [aligned, indeterminate, contradictory, evidence] = numbers;
            let posterior = Posterior { aligned, indeterminate, contradictory };
            DimensionVerdict { posterior, evidence, label_mass, label_order }
        },
    )
}

fn judge() -> Provenance {
    Provenance {
        model: "m.gguf".to_owned(),
        model_digest: Digest::of_bytes(b"model"),
        prompt_digest: Digest::of_bytes(b"prompt"),
        label_space_digest: Digest::of_bytes(b"labels"),
        evidence: EvidenceKind::LabelSlot,
        layout: Layout::Shared,
        label_order: LabelOrder::All,
        calibration: Calibration::None,
        numerics: Numerics::Int8,
    }
}

fn counts() -> impl Strategy<Value = TextCounts> {
    any::<[u64; 4]>().prop_map(|[control, bidi, invisible, special_tokens]| TextCounts {
        control,
        bidi,
        invisible,
        special_tokens,
    })
}

fn result() -> impl Strategy<Value = Result<Verdict, JudgeError>> {
    let dimensions =
        [dimension(), dimension(), dimension()].prop_map(|[task_framing, interpersonal_stance, linguistic_style]| {
            DimensionVerdicts { task_framing, interpersonal_stance, linguistic_style }
        });
    let verdict = (text(), number(), dimensions, any::<[u64; 2]>(), any::<bool>(), [counts(), counts()]).prop_map(
        |(id, s_prism, dimensions, [prompt, computed], cached, [response, request])| {
            Ok(Verdict {
                id,
                s_prism,
                dimensions,
                weakest_dimension: Dimension::LinguisticStyle,
                judge: judge(),
                tokens: TokenCounts { prompt, computed },
                cached,
                warnings: TextWarnings { response, request },
            })
        },
    );
    prop_oneof![verdict, error().prop_map(Err)]
}

fn error() -> impl Strategy<Value = JudgeError> {
    let codes = [ErrorCode::InvalidArgument, ErrorCode::NonFinite, ErrorCode::Cancelled, ErrorCode::DeadlineExceeded];
    (select(codes.to_vec()), option::of(text()), text())
        .prop_map(|(code, field, message)| JudgeError { field, ..JudgeError::new(code, message) })
}

fn finished() -> impl Strategy<Value = Finished> {
    let persona = (option::of(text()), text(), vec(text(), 0..3)).prop_map(|(name, description, facts)| Persona {
        name,
        traits: vec![TraitTarget::new(Trait::Openness, Polarity::Low)],
        description,
        facts,
    });
    let turns = vec((text(), text()).prop_map(|(speaker, text)| Turn { speaker, text }), 0..3);
    let candidates = vec((text(), text(), result()), 0..4);
    let whole = option::of(error());
    let after = any::<bool>();
    let shaping = option::of((0.1..9.0f64, select(vec![Aggregation::Mean, Aggregation::Min]), any::<bool>()).prop_map(
        |(weight, aggregation, z)| {
            Shaping::new([weight, 1.0 / 3.0, 0.0], aggregation, RewardSignal::Margin, z).unwrap()
        },
    ));
    let options = (number(), number(), option::of(number()), option::of(any::<bool>()));
    (persona, turns, candidates, whole, options, [text(), text()], (after, shaping)).prop_map(
        |(
            persona,
            context,
            candidates,
            whole,
            (t, b, asked, persona_block),
            [request_id, tenant],
            (after, shaping),
        )| {
            let (candidates, results): (Vec<_>, Vec<_>) =
                candidates.into_iter().map(|(id, response, result)| (Candidate { id, response }, result)).unzip();
            let after = after.then(|| vec![context.len(); candidates.len()].into());
            Finished {
                request_id,
                tenant,
                method: "ScoreGroup",
                lane: Lane::Guard,
                cache: CacheControl::Refresh,
                group: Arc::new(Group { persona, context, candidates }),
                after,
                overrides: OptionOverrides { likelihood_t: asked, persona_block, ..OptionOverrides::default() },
                options: Options {
                    evidence: EvidenceKind::LabelSlot,
                    layout: Layout::Shared,
                    label_order: LabelOrder::All,
                    calibration: Calibration::None,
                    persona_block: true,
                    scale: LikelihoodScale { t, b },
                },
                judge: judge(),
                answer_slot: [" A", " B", " C"],
                shaping,
                scored: whole.map_or(Ok(results), Err),
            }
        },
    )
}

/// The line without its line end.
fn line(record: &Record, after: Option<Link>) -> (String, Link) {
    let mut lines = Vec::new();
    let link = seal(&serde_json::to_string(record).unwrap(), after, &mut lines);
    let text = String::from_utf8(lines).unwrap();
    (text.strip_suffix('\n').unwrap().to_owned(), link)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn a_record_comes_back_from_its_line_as_it_was(
        finished in finished(),
        redact in select([Redact::None, Redact::Text, Redact::All].to_vec()),
        sample in number(),
        seq in 0..u64::MAX,
    ) {
        let record = CallRecord::new(&finished, "2026-11-30T04:00:00.000000Z".to_owned(), sample, redact);
        let group = record.group();
        let after = finished.after.as_deref().filter(|after| !after.is_empty());
        let recorded = record.after();
        prop_assert_eq!(recorded.as_deref(), after);
        prop_assert_eq!(record.shaping.map(Shaping::try_from), finished.shaping.map(Ok));
        match redact {
            Redact::None => prop_assert_eq!(group.as_ref(), Some(&*finished.group)),
            Redact::Text | Redact::All => prop_assert_eq!(group, None),
        }
        let record = Record::Call(Box::new(record));
        let before = Link { seq, digest: Digest::of_bytes(b"before") };
        let (text, link) = line(&record, Some(before));
        prop_assert!(!text.contains('\n'));
        let expected = Line { record, link, prev: Some(before.digest) };
        prop_assert_eq!(open_line(&text), Ok(expected));
        prop_assert_eq!(link.seq, seq + 1);
    }
}

fn gap(number: u64) -> Record {
    Record::Gap(Gap { schema: SCHEMA, time: "2026-11-30T04:00:00Z".to_owned(), queue_full: number, not_written: 0 })
}

#[test]
fn the_digest_is_that_of_the_bytes_before_it_and_can_be_checked_with_other_tools() {
    // printf '%s' '{"record":{},"seq":0,"prev":null' | sha256sum
    let mut lines = Vec::new();
    seal("{}", None, &mut lines);
    assert_eq!(
        String::from_utf8(lines).unwrap(),
        "{\"record\":{},\"seq\":0,\"prev\":null,\"digest\":\
         \"001032713c9c1dcfb36f397bd8a27fa99748aeb4d02a21d8de377d1886c20234\"}\n"
    );
}

#[test]
fn no_byte_of_a_line_can_be_changed_and_no_end_be_cut_off_unnoticed() {
    let (text, _) = line(&gap(7), None);
    assert!(open_line(&text).is_ok());
    for at in 0..text.len() {
        assert!(open_line(&text[..at]).is_err(), "cut after {at} bytes");
        for byte in [b'0', b'1', b'"', b' '] {
            let mut changed = text.clone().into_bytes();
            if std::mem::replace(&mut changed[at], byte) != byte {
                let changed = String::from_utf8(changed).unwrap();
                assert!(open_line(&changed).is_err(), "{changed}");
            }
        }
    }
}

#[test]
fn a_line_that_was_taken_out_moved_or_doubled_breaks_the_chain_and_a_damaged_one_hides_only_itself() {
    let mut lines = Vec::new();
    let mut last = None;
    for number in 0..4 {
        let (text, link) = line(&gap(number), last);
        last = Some(link);
        lines.push(open_line(&text).unwrap());
    }
    let follow = |order: &[usize]| {
        let mut chain = Chain::default();
        order
            .iter()
            .filter_map(|at| chain.follow(&lines[*at]).err())
            .map(|gap| (gap.expected, gap.found))
            .collect::<Vec<_>>()
    };
    assert_eq!(follow(&[0, 1, 2, 3]), []);
    // The oldest files may have been removed.
    assert_eq!(follow(&[2, 3]), []);
    assert_eq!(follow(&[0, 2, 3]), [(1, 2)]);
    assert_eq!(follow(&[0, 2, 1, 3]), [(1, 2), (3, 1), (2, 3)]);
    assert_eq!(follow(&[0, 1, 1, 2]), [(2, 1)]);
    let mut chain = Chain::default();
    chain.follow(&lines[0]).unwrap();
    chain.damaged();
    assert_eq!(chain.follow(&lines[2]), Ok(()));
    assert_eq!(chain.follow(&lines[3]), Ok(()));
}

#[test]
fn a_record_of_a_later_schema_is_named_and_one_without_its_fields_too() {
    let sealed = |record: &str| {
        let mut lines = Vec::new();
        seal(record, None, &mut lines);
        String::from_utf8(lines).unwrap().trim_end().to_owned()
    };
    let later = sealed(r#"{"kind":"call","schema":3,"new":true}"#);
    assert_eq!(open_line(&later), Err(Damage::Schema(3)));
    let poor = sealed(r#"{"kind":"call","schema":1}"#);
    assert!(matches!(open_line(&poor), Err(Damage::Unreadable(message)) if message.contains("missing field")));
}
