//! A recorded verdict against one that was made again: every number, bit by bit.

use serde::Serialize;

use super::Real;
use super::call::{DimensionRecord, VerdictRecord};
use crate::prism::{Dimension, Label};

/// A field that is not what it was.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// Index of the candidate; None for the call as a whole.
    pub candidate: Option<usize>,
    /// The candidate's id.
    pub id: String,
    pub field: String,
    pub recorded: String,
    pub replayed: String,
    /// Numbers that lie between the two; None for what is not a number.
    pub ulps: Option<u64>,
}

/// The fields in which two verdicts of one candidate differ. What belongs to one call alone, computed tokens and whether
/// it came from the cache, does not count, nor do the counts of odd characters, which led to no number.
pub(super) fn differences(
    candidate: (usize, &str),
    recorded: &VerdictRecord,
    replayed: &VerdictRecord,
) -> Vec<Difference> {
    let mut found = Found { candidate, all: Vec::new() };
    found.number("s_prism", recorded.s_prism, replayed.s_prism);
    for dimension in Dimension::ALL {
        found.dimension(dimension.name(), recorded.dimension(dimension), replayed.dimension(dimension));
    }
    found.text("weakest_dimension", recorded.weakest_dimension.name(), replayed.weakest_dimension.name());
    found.text("tokens.prompt", &recorded.tokens.prompt.to_string(), &replayed.tokens.prompt.to_string());
    found.all
}

/// What differs about the rewards of one candidate.
pub(super) fn reward(candidate: (usize, &str), recorded: Option<Real>, replayed: Option<Real>) -> Option<Difference> {
    let mut found = Found { candidate, all: Vec::new() };
    found.optional("reward", recorded, replayed);
    found.all.pop()
}

struct Found<'a> {
    candidate: (usize, &'a str),
    all: Vec<Difference>,
}

impl Found<'_> {
    fn dimension(&mut self, name: &str, recorded: &DimensionRecord, replayed: &DimensionRecord) {
        for (field, of) in [
            ("aligned", (|it| it.aligned) as fn(&DimensionRecord) -> Real),
            ("indeterminate", |it| it.indeterminate),
            ("contradictory", |it| it.contradictory),
            ("evidence", |it| it.evidence),
        ] {
            self.number(&format!("dimensions.{name}.{field}"), of(recorded), of(replayed));
        }
        self.optional(&format!("dimensions.{name}.label_mass"), recorded.label_mass, replayed.label_mass);
        let orders = |orders: &[[Label; 3]]| {
            orders.iter().map(|order| order.map(Label::name).join(" ")).collect::<Vec<_>>().join(", ")
        };
        let field = format!("dimensions.{name}.label_order");
        self.text(&field, &orders(&recorded.label_order), &orders(&replayed.label_order));
    }

    fn number(&mut self, field: &str, recorded: Real, replayed: Real) {
        if recorded != replayed {
            self.push(field, recorded.to_string(), replayed.to_string(), Some(recorded.ulps(replayed)));
        }
    }

    fn optional(&mut self, field: &str, recorded: Option<Real>, replayed: Option<Real>) {
        match (recorded, replayed) {
            (Some(recorded), Some(replayed)) => self.number(field, recorded, replayed),
            (recorded, replayed) => {
                let shown = |number: Option<Real>| number.map_or("none".to_owned(), |number| number.to_string());
                self.text(field, &shown(recorded), &shown(replayed));
            }
        }
    }

    fn text(&mut self, field: &str, recorded: &str, replayed: &str) {
        if recorded != replayed {
            self.push(field, recorded.to_owned(), replayed.to_owned(), None);
        }
    }

    fn push(&mut self, field: &str, recorded: String, replayed: String, ulps: Option<u64>) {
        let (candidate, id) = (Some(self.candidate.0), self.candidate.1.to_owned());
        self.all.push(Difference { candidate, id, field: field.to_owned(), recorded, replayed, ulps });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audit::call::DimensionRecords;
    use crate::prism::{TextCounts, TextWarnings, TokenCounts};

    fn verdict() -> VerdictRecord {
        let dimension = DimensionRecord {
            aligned: Real(0.5),
            indeterminate: Real(0.25),
            contradictory: Real(0.25),
            evidence: Real(0.5),
            label_mass: None,
            label_order: vec![Label::ALL],
        };
        VerdictRecord {
            s_prism: Real(0.5),
            dimensions: DimensionRecords {
                task_framing: dimension.clone(),
                interpersonal_stance: dimension.clone(),
                linguistic_style: dimension,
            },
            weakest_dimension: Dimension::TaskFraming,
            tokens: TokenCounts { prompt: 9, computed: 3 },
            cached: false,
            warnings: Some(TextWarnings::default()),
        }
    }

    #[test]
    fn what_belongs_to_one_call_alone_and_what_led_to_no_number_makes_no_difference() {
        let tokens = TokenCounts { prompt: 9, computed: 0 };
        let response = TextCounts { bidi: 1, ..TextCounts::default() };
        let odd = TextWarnings { response, ..TextWarnings::default() };
        for warnings in [None, Some(odd)] {
            let other = VerdictRecord { tokens, cached: true, warnings, ..verdict() };
            assert_eq!(differences((0, "a"), &verdict(), &other), []);
        }
    }

    #[test]
    fn a_reward_is_compared_bit_by_bit() {
        let found = |recorded, replayed| {
            let found = reward((3, "a"), recorded, replayed);
            found.map(|found| (found.field, found.recorded, found.replayed, found.ulps))
        };
        let half = || Some(Real(0.5));
        assert_eq!(found(None, None), None);
        assert_eq!(found(half(), half()), None);
        let told = ("0.5 (3fe0000000000000)".to_owned(), "0.5000000000000001 (3fe0000000000001)".to_owned());
        assert_eq!(
            found(half(), Some(Real(0.5_f64.next_up()))),
            Some(("reward".to_owned(), told.0.clone(), told.1, Some(1)))
        );
        assert_eq!(found(half(), None), Some(("reward".to_owned(), told.0, "none".to_owned(), None)));
    }

    #[test]
    fn every_other_field_makes_one_and_is_named() {
        type Change = fn(&mut VerdictRecord);
        let changes: [(&str, Option<u64>, Change); 9] = [
            ("s_prism", Some(1), |it| it.s_prism = Real(0.5_f64.next_up())),
            ("dimensions.task_framing.aligned", Some(2), |it| {
                it.dimensions.task_framing.aligned = Real(0.5_f64.next_up().next_up());
            }),
            ("dimensions.task_framing.indeterminate", Some(1), |it| {
                it.dimensions.task_framing.indeterminate = Real(0.25_f64.next_down());
            }),
            ("dimensions.interpersonal_stance.contradictory", Some(1), |it| {
                it.dimensions.interpersonal_stance.contradictory = Real(0.25_f64.next_up());
            }),
            ("dimensions.linguistic_style.evidence", Some(1), |it| {
                it.dimensions.linguistic_style.evidence = Real(0.5_f64.next_up());
            }),
            ("dimensions.linguistic_style.label_mass", None, |it| {
                it.dimensions.linguistic_style.label_mass = Some(Real(0.5));
            }),
            ("dimensions.task_framing.label_order", None, |it| it.dimensions.task_framing.label_order.clear()),
            ("weakest_dimension", None, |it| it.weakest_dimension = Dimension::LinguisticStyle),
            ("tokens.prompt", None, |it| it.tokens.prompt = 10),
        ];
        for (field, ulps, change) in changes {
            let mut changed = verdict();
            change(&mut changed);
            let found = differences((3, "a"), &verdict(), &changed);
            let named: Vec<_> = found.iter().map(|one| (one.candidate, one.field.as_str(), one.ulps)).collect();
            assert_eq!(named, [(Some(3), field, ulps)]);
        }
    }
}
