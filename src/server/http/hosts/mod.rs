//! The routes that hosts call as they are: one file a host, which knows its JSON and nothing of judging. Fields that a
//! host adds later are left alone.

pub mod classify;
pub mod fms;
pub mod litellm;
pub mod llama_factory;
pub mod memory;
pub mod moderations;
pub mod nemo_gym;
pub mod openrlhf;
pub mod promptfoo;
pub mod slime;

use std::hash::{BuildHasher as _, Hasher as _, RandomState};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::batch::Judged;
use crate::prism::Dimension;
use crate::server::pb;

/// The dimensions' names, in their order.
pub const DIMENSIONS: [Dimension; 3] = Dimension::ALL;

/// The evidence of each dimension.
pub fn evidence(verdict: &pb::Verdict) -> [f64; 3] {
    dimensions(verdict).map(|dimension| dimension.evidence)
}

/// The dimensions, which every verdict has.
pub fn dimensions(verdict: &pb::Verdict) -> [pb::DimensionVerdict; 3] {
    let pb::DimensionVerdicts { task_framing, interpersonal_stance, linguistic_style } =
        verdict.dimensions.clone().unwrap_or_default();
    [task_framing, interpersonal_stance, linguistic_style].map(Option::unwrap_or_default)
}

/// Values by the names of the dimensions.
pub fn by_dimension<T: Into<Value>>(values: [T; 3]) -> Map<String, Value> {
    DIMENSIONS.iter().map(|dimension| dimension.name().to_owned()).zip(values.map(Into::into)).collect()
}

/// S and the evidence of each reply of a list; null where it could not be judged, or the number that stands for it.
pub struct Scores {
    pub scores: Vec<Option<f64>>,
    pub evidence: [Vec<Option<f64>>; 3],
    errors: Vec<ItemError>,
}

/// Why a reply of a list has no score.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ItemError {
    index: usize,
    code: &'static str,
    message: String,
    field: String,
}

impl ItemError {
    /// `field` is the host's list.
    pub fn of(index: usize, error: &pb::JudgeError, field: &str) -> Self {
        let code = error.code().as_str_name().trim_start_matches("ERROR_CODE_");
        Self { index, code, message: error.message.clone(), field: format!("{field}[{index}]") }
    }
}

impl Scores {
    /// `field` is the host's list of replies; `stand_in` is the number for a reply that could not be judged.
    pub fn of(judged: &[Judged], field: &str, stand_in: Option<f64>) -> Self {
        let mut all = Self { scores: Vec::new(), evidence: Default::default(), errors: Vec::new() };
        for (index, result) in judged.iter().enumerate() {
            let evidence = match result {
                Ok(verdict) => {
                    all.scores.push(Some(verdict.s_prism));
                    evidence(verdict).map(Some)
                }
                Err(error) => {
                    all.scores.push(stand_in);
                    all.errors.push(ItemError::of(index, error, field));
                    [stand_in; 3]
                }
            };
            for (list, value) in all.evidence.iter_mut().zip(evidence) {
                list.push(value);
            }
        }
        all
    }

    /// Adds why replies have no score to an answer, if any has none.
    pub fn explain(self, mut answer: Value) -> Value {
        if let (Some(fields), false) = (answer.as_object_mut(), self.errors.is_empty()) {
            fields.insert("errors".to_owned(), json!(self.errors));
        }
        answer
    }
}

/// One text or several.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(untagged, expecting = "it must be a text or a list of texts")]
pub enum Texts {
    One(String),
    Many(Vec<String>),
}

impl Texts {
    pub fn into_list(self) -> Vec<String> {
        match self {
            Self::One(text) => vec![text],
            Self::Many(texts) => texts,
        }
    }
}

/// A name for an answer, which nothing refers to.
pub fn fresh_id(prefix: &str) -> String {
    let random = || RandomState::new().build_hasher().finish();
    format!("{prefix}-{:016x}{:016x}", random(), random())
}
