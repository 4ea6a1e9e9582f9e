//! What a judge must get right before it is let near callers.

use super::{CacheControl, Call, ErrorCode, Judge, JudgeError, Lane, OptionOverrides};
use crate::persona::{Persona, Polarity, Trait, TraitTarget};
use crate::prism::{Calibration, Candidate, Dimension, EvidenceKind, Group, Turn, Verdict};

/// S_PRISM of the two replies by the likelihood of a judge that everybody may have, with the built-in wording: what this
/// version gave where it was made. Other judges have no known values.
struct Known {
    model: &'static str,
    prompt: &'static str,
    labels: &'static str,
    s_prism: [f64; 2],
}

/// The default model.
const KNOWN: [Known; 1] = [Known {
    model: "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    prompt: "18293feef53e8c41aff01e3b8eeb6c8d26640308184dc0e4b3a9213cef996b24",
    labels: "b0aad3d63149129ee5d48aa14e3adcc3f7bd253e4cf30cf8d64acc47946277f3",
    s_prism: [0.520_760_627, 0.052_210_355],
}];

/// Instruction sets round differently in the seventh digit and int8 in the fourth; a wrong kernel or file is off by
/// tenths.
const TOLERANCE: f64 = 0.005;

impl Judge {
    /// Judges a built-in group together and each of its replies alone, which must give the same bits, and values that are
    /// known for this judge, if there are any. Blocks for as long as three calls; the model is warm then.
    pub fn self_check(&self) -> Result<(), JudgeError> {
        let together = self.checked(group(&REPLIES))?;
        for (reply, in_group) in REPLIES.iter().zip(&together) {
            let alone = self.checked(group(&[reply]))?;
            if alone.iter().map(bits).ne([bits(in_group)]) {
                let message = "a reply alone and the same reply in a group get different verdicts on this machine";
                return Err(JudgeError::internal(message));
            }
        }
        let Some(first) = together.first() else { return Ok(()) };
        let judge = &first.judge;
        let digests =
            [judge.model_digest, judge.prompt_digest, judge.label_space_digest].map(|digest| digest.to_string());
        let known = KNOWN.iter().find(|known| digests == [known.model, known.prompt, known.labels]);
        let known =
            known.filter(|_| judge.evidence == EvidenceKind::Likelihood && judge.calibration == Calibration::None);
        for (verdict, expected) in together.iter().zip(known.map_or([f64::NAN; 2], |known| known.s_prism)) {
            if (verdict.s_prism - expected).abs() > TOLERANCE {
                return Err(JudgeError::internal(format!(
                    "the model gives S = {} where {expected} is known: this build does not compute it rightly here",
                    verdict.s_prism
                )));
            }
        }
        Ok(())
    }

    fn checked(&self, group: Group) -> Result<Vec<Verdict>, JudgeError> {
        let call = Call { lane: Lane::Batch, cache: CacheControl::Off, ..Call::default() };
        let verdicts: Vec<Verdict> =
            self.score_blocking(&group, &OptionOverrides::default(), &call)?.into_iter().collect::<Result<_, _>>()?;
        for verdict in &verdicts {
            for dimension in Dimension::ALL.map(|dimension| verdict.dimensions.get(dimension)) {
                let posterior = dimension.posterior;
                let sum = posterior.aligned + posterior.indeterminate + posterior.contradictory;
                if (sum - 1.0).abs() > 1e-9 || dimension.evidence.to_bits() != posterior.aligned.to_bits() {
                    return Err(JudgeError::new(ErrorCode::NonFinite, format!("a posterior sums to {sum}")));
                }
            }
        }
        Ok(verdicts)
    }
}

const REPLIES: [&str; 2] =
    ["Yes! I'll bring everyone I know, and we can dance all night!", "I would rather stay in and read by myself."];

fn group(replies: &[&str]) -> Group {
    let traits = vec![TraitTarget { trait_: Trait::Extraversion, polarity: Polarity::High }];
    let candidate = |response: &&str| Candidate { id: String::new(), response: (*response).to_owned() };
    Group {
        persona: Persona { traits, ..Persona::default() },
        context: vec![Turn { speaker: "User".to_owned(), text: "Are you coming to the party tonight?".to_owned() }],
        candidates: replies.iter().map(candidate).collect(),
    }
}

fn bits(verdict: &Verdict) -> [u64; 10] {
    let mut bits = [verdict.s_prism.to_bits(); 10];
    for (dimension, bits) in Dimension::ALL.into_iter().zip(bits[1..].chunks_exact_mut(3)) {
        let posterior = verdict.dimensions.get(dimension).posterior;
        let numbers = [posterior.aligned, posterior.indeterminate, posterior.contradictory];
        bits.copy_from_slice(&numbers.map(f64::to_bits));
    }
    bits
}
