//! Collects the scores of a benchmark and computes its metrics.

use std::collections::HashMap;

use serde::Serialize;

use super::metrics::{self, Diagnosis, GroupScores, Violated};
use super::rows::{Role, Violation};
use crate::prism::{Dimension, Verdict};

/// The scores of one response: S_PRISM, then the evidences in the order of [`Dimension::ALL`].
type Scores = [f64; 4];

/// One judged response of a benchmark; `scores` is None if it failed.
pub struct ScoreRow<'a> {
    /// The group that it belongs to.
    pub key: &'a str,
    pub role: &'a Role,
    pub violated: Option<Violation>,
    pub verdict: Option<&'a Verdict>,
}

#[derive(Default)]
struct Group {
    positives: Vec<Scores>,
    negatives: Vec<Scores>,
}

/// Scores so far. Holds four numbers per response and nothing of its text.
#[derive(Default)]
pub struct Collector {
    groups: Vec<Group>,
    index: HashMap<String, usize>,
    violated: Vec<Violated>,
    rows: usize,
    failed: usize,
    unlabelled: usize,
}

/// AUC, P-AUC and G-Acc of one score.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Ranking {
    pub auc: Option<f64>,
    pub p_auc: Option<f64>,
    pub g_acc: Option<f64>,
}

/// Counts and metrics of one file, or of all.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report {
    pub groups: usize,
    /// Responses read, failed ones included.
    pub rows: usize,
    /// Responses without a score; no metric counts them.
    pub failed: usize,
    /// Scored responses that the file calls neither positive nor negative; no metric counts them.
    pub unlabelled: usize,
    pub s_prism: Ranking,
    pub task_framing: Ranking,
    pub interpersonal_stance: Ranking,
    pub linguistic_style: Ranking,
    /// None if no negative says which dimension it breaks.
    pub diagnosis: Option<Diagnosis>,
}

impl Report {
    /// The rankings by name, S_PRISM first.
    pub fn rankings(&self) -> [(&'static str, Ranking); 4] {
        let [task, stance, style] = Dimension::ALL.map(Dimension::name);
        [
            ("s_prism", self.s_prism),
            (task, self.task_framing),
            (stance, self.interpersonal_stance),
            (style, self.linguistic_style),
        ]
    }
}

impl Collector {
    pub fn add(&mut self, row: &ScoreRow<'_>) {
        self.rows += 1;
        let Some(verdict) = row.verdict else {
            self.failed += 1;
            return;
        };
        let evidence = Dimension::ALL.map(|dimension| verdict.dimensions.get(dimension).evidence);
        let scores = [verdict.s_prism, evidence[0], evidence[1], evidence[2]];
        match row.role {
            Role::Single => self.unlabelled += 1,
            Role::Positive => self.group(row.key).positives.push(scores),
            Role::Negative => self.group(row.key).negatives.push(scores),
        }
        if let Some(dimension) = row.violated {
            self.violated.push(Violated { dimension, evidence });
        }
    }

    /// Counts a line that could not be read as one failed response.
    pub fn add_bad_line(&mut self) {
        self.rows += 1;
        self.failed += 1;
    }

    /// Joins another file's scores; groups of different files stay apart even if their keys are equal.
    pub fn merge(&mut self, other: Self) {
        self.groups.extend(other.groups);
        self.violated.extend(other.violated);
        self.rows += other.rows;
        self.failed += other.failed;
        self.unlabelled += other.unlabelled;
        self.index.clear();
    }

    pub fn report(&self) -> Report {
        Report {
            groups: self.groups.len(),
            rows: self.rows,
            failed: self.failed,
            unlabelled: self.unlabelled,
            s_prism: self.ranking(0),
            task_framing: self.ranking(1),
            interpersonal_stance: self.ranking(2),
            linguistic_style: self.ranking(3),
            diagnosis: metrics::diagnose(&self.violated),
        }
    }

    fn group(&mut self, key: &str) -> &mut Group {
        let index = match self.index.get(key) {
            Some(&index) => index,
            None => {
                self.index.insert(key.to_owned(), self.groups.len());
                self.groups.push(Group::default());
                self.groups.len() - 1
            }
        };
        &mut self.groups[index]
    }

    fn ranking(&self, score: usize) -> Ranking {
        let pick = |rows: &[Scores]| rows.iter().map(|row| row[score]).collect::<Vec<f64>>();
        let groups: Vec<GroupScores> = self
            .groups
            .iter()
            .map(|group| GroupScores { positives: pick(&group.positives), negatives: pick(&group.negatives) })
            .collect();
        let positives: Vec<f64> = groups.iter().flat_map(|group| group.positives.iter().copied()).collect();
        let negatives: Vec<f64> = groups.iter().flat_map(|group| group.negatives.iter().copied()).collect();
        Ranking {
            auc: metrics::auc(&positives, &negatives),
            p_auc: metrics::pair_auc(&groups),
            g_acc: metrics::group_accuracy(&groups),
        }
    }
}
