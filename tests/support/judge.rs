//! The judge on the default backbone, and what tests ask it.

use std::path::PathBuf;
use std::sync::LazyLock;

use prism_judge::model::registry::DEFAULT_MODEL;
use prism_judge::persona::{Persona, Polarity, Trait, TraitTarget};
use prism_judge::prism::{Candidate, Dimension, EvidenceKind, Group, LabelOrder, Turn, Verdict};
use prism_judge::service::{
    AnswerSlot, CacheControl, CacheSettings, Call, EngineSettings, Judge, JudgeConfig, JudgeError, LimitSettings,
    Numerics, OptionOverrides,
};

/// One judge for all tests of a file; None where the backbone is missing.
pub static JUDGE: LazyLock<Option<Judge>> = LazyLock::new(|| Some(open(config(super::backbone()?))));

/// A judge of the model at `path` as it is without any setting.
pub fn config(path: PathBuf) -> JudgeConfig {
    JudgeConfig {
        model_name: DEFAULT_MODEL.to_owned(),
        model_path: path,
        label_spaces: None,
        prompt_template: None,
        threads: None,
        numerics: Numerics::F32,
        answer_slot: AnswerSlot::Auto,
        overrides: OptionOverrides::default(),
        engine: EngineSettings::default(),
        cache: CacheSettings::default(),
        redis: None,
        limits: LimitSettings::default(),
    }
}

/// Opens a judge on a thread of its own: opening blocks, and the test may be inside an async runtime.
pub fn open(config: JudgeConfig) -> Judge {
    std::thread::scope(|scope| scope.spawn(|| Judge::open(&config).unwrap()).join().unwrap())
}

pub const LIKELIHOOD: OptionOverrides = overrides(EvidenceKind::Likelihood, None);
pub const LABEL_SLOT: OptionOverrides = overrides(EvidenceKind::LabelSlot, None);

pub const fn overrides(evidence: EvidenceKind, label_order: Option<LabelOrder>) -> OptionOverrides {
    OptionOverrides {
        evidence: Some(evidence),
        layout: None,
        label_order,
        calibration: None,
        persona_block: None,
        likelihood_t: None,
        likelihood_b: None,
    }
}

pub fn extravert() -> Persona {
    let traits = vec![TraitTarget::new(Trait::Extraversion, Polarity::High)];
    Persona { traits, ..Persona::default() }
}

/// Candidates `c0`, `c1` and so on after one turn of context.
pub fn group(persona: Persona, context: &str, responses: &[&str]) -> Group {
    let candidate =
        |(index, response): (usize, &&str)| Candidate { id: format!("c{index}"), response: (*response).to_owned() };
    Group {
        persona,
        context: vec![Turn { speaker: "User".to_owned(), text: context.to_owned() }],
        candidates: responses.iter().enumerate().map(candidate).collect(),
    }
}

pub fn party(responses: &[&str]) -> Group {
    group(extravert(), "Are you coming to the party?", responses)
}

/// A call that the verdict cache has no part in: what is compared with it was really computed.
pub fn uncached() -> Call {
    Call { cache: CacheControl::Off, ..Call::default() }
}

/// The judgement of a group that is not refused as a whole, past the verdict cache.
pub fn score(judge: &Judge, group: &Group, overrides: &OptionOverrides) -> Vec<Result<Verdict, JudgeError>> {
    judge.score_blocking(group, overrides, &uncached()).unwrap()
}

/// Every number of a verdict that the model made, as bits.
pub fn bits(verdict: &Verdict) -> Vec<u64> {
    let mut numbers = vec![verdict.s_prism];
    for dimension in Dimension::ALL {
        let dimension = verdict.dimensions.get(dimension);
        let posterior = dimension.posterior;
        numbers.extend([posterior.aligned, posterior.indeterminate, posterior.contradictory, dimension.evidence]);
        numbers.extend(dimension.label_mass);
    }
    numbers.into_iter().map(f64::to_bits).collect()
}

/// A verdict whose numbers are what they claim to be.
pub fn check(verdict: &Verdict) {
    assert!((0.0..=1.0).contains(&verdict.s_prism), "{verdict:?}");
    let mut sum = 0.0;
    for dimension in Dimension::ALL {
        let dimension = verdict.dimensions.get(dimension);
        let posterior = dimension.posterior;
        let shares = [posterior.aligned, posterior.indeterminate, posterior.contradictory];
        assert!(shares.iter().all(|share| (0.0..=1.0).contains(share)), "{verdict:?}");
        assert!((shares.iter().sum::<f64>() - 1.0).abs() < 1e-12, "{verdict:?}");
        assert!(dimension.label_mass.is_none_or(|mass| (0.0..=1.0).contains(&mass)), "{verdict:?}");
        sum += dimension.evidence;
    }
    assert!((verdict.s_prism - sum / 3.0).abs() < 1e-12, "{verdict:?}");
}
