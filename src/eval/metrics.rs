//! Ranking metrics of arXiv 2608.26674 (Eq. 4-7, Appendix D.2), by the published implementation's rules.
//!
//! Scores are finite. A response without a score is left out before it comes here. A metric over nothing is `None`.

use serde::Serialize;

use crate::prism::Dimension;

/// The scores of one group.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GroupScores {
    pub positives: Vec<f64>,
    pub negatives: Vec<f64>,
}

/// 1 when `a` is above `b`, one half on a tie, 0 otherwise (Eq. 4).
pub fn phi(a: f64, b: f64) -> f64 {
    if a > b {
        1.0
    } else if a == b {
        0.5
    } else {
        0.0
    }
}

/// Mean of [`phi`] over all pairs of a positive and a negative, in O(n log n).
pub fn auc(positives: &[f64], negatives: &[f64]) -> Option<f64> {
    if positives.is_empty() || negatives.is_empty() {
        return None;
    }
    let mut sorted = negatives.to_vec();
    sorted.sort_by(f64::total_cmp);
    // Twice the wins, so that ties stay whole numbers and no order of summing matters.
    let doubled: u128 = positives
        .iter()
        .map(|positive| {
            let below = sorted.partition_point(|negative| negative < positive);
            let not_above = sorted.partition_point(|negative| negative <= positive);
            (below + not_above) as u128
        })
        .sum();
    Some(doubled as f64 / (2.0 * positives.len() as f64 * negatives.len() as f64))
}

/// P-AUC: mean of [`phi`] over the pairs inside groups. A group with several positives counts its best one.
pub fn pair_auc(groups: &[GroupScores]) -> Option<f64> {
    let (mut wins, mut pairs) = (0.0, 0_usize);
    for group in groups {
        let Some(best) = group.positives.iter().copied().reduce(f64::max) else { continue };
        wins += group.negatives.iter().map(|&negative| phi(best, negative)).sum::<f64>();
        pairs += group.negatives.len();
    }
    (pairs > 0).then(|| wins / pairs as f64)
}

/// G-Acc: share of the groups whose every positive is strictly above every negative. Groups that lack one of the two
/// are left out.
pub fn group_accuracy(groups: &[GroupScores]) -> Option<f64> {
    let (mut hits, mut total) = (0_usize, 0_usize);
    for group in groups {
        let worst = group.positives.iter().copied().reduce(f64::min);
        let strongest = group.negatives.iter().copied().reduce(f64::max);
        if let (Some(worst), Some(strongest)) = (worst, strongest) {
            total += 1;
            hits += usize::from(worst > strongest);
        }
    }
    (total > 0).then(|| hits as f64 / total as f64)
}

/// A response that breaks one known dimension, and its evidences in the order of [`Dimension::ALL`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Violated {
    pub dimension: Dimension,
    pub evidence: [f64; 3],
}

/// How well the dimension of least evidence points at the one that is broken (Appendix D.2).
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Diagnosis {
    pub rows: usize,
    /// Share of the rows whose weakest dimension is the broken one.
    pub top_1: f64,
    /// Share of the rows whose broken dimension is among the two weakest.
    pub top_2_recall: f64,
    /// Mean F1 over the broken dimensions that occur, of the weakest dimension as the prediction.
    pub macro_f1: f64,
}

/// Ranks the dimensions by ascending evidence; ties keep canonical order.
pub fn diagnose(rows: &[Violated]) -> Option<Diagnosis> {
    if rows.is_empty() {
        return None;
    }
    let (mut first, mut second) = (0_usize, 0_usize);
    // confusion[broken][predicted]
    let mut confusion = [[0_usize; 3]; 3];
    for row in rows {
        let broken = row.dimension as usize;
        let mut ranked = [0, 1, 2];
        ranked.sort_by(|&a, &b| row.evidence[a].total_cmp(&row.evidence[b]));
        confusion[broken][ranked[0]] += 1;
        first += usize::from(ranked[0] == broken);
        second += usize::from(ranked[..2].contains(&broken));
    }
    let scores: Vec<f64> = (0..3).filter_map(|dimension| f1(&confusion, dimension)).collect();
    let share = |count: usize| count as f64 / rows.len() as f64;
    Some(Diagnosis {
        rows: rows.len(),
        top_1: share(first),
        top_2_recall: share(second),
        macro_f1: scores.iter().sum::<f64>() / scores.len() as f64,
    })
}

/// F1 of one dimension; None if no row breaks it.
fn f1(confusion: &[[usize; 3]; 3], dimension: usize) -> Option<f64> {
    let broken: usize = confusion[dimension].iter().sum();
    let predicted: usize = confusion.iter().map(|row| row[dimension]).sum();
    let hits = confusion[dimension][dimension];
    (broken > 0).then(|| 2.0 * hits as f64 / (broken + predicted) as f64)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use proptest::prelude::*;

    use super::*;

    fn group(positives: &[f64], negatives: &[f64]) -> GroupScores {
        GroupScores { positives: positives.to_vec(), negatives: negatives.to_vec() }
    }

    #[test]
    fn auc_counts_ties_as_half() {
        assert_eq!(auc(&[0.9, 0.5], &[0.5, 0.1]), Some((1.0 + 1.0 + 0.5 + 1.0) / 4.0));
        assert_eq!(auc(&[], &[0.5]), None);
        assert_eq!(auc(&[0.0], &[-0.0]), Some(0.5));
    }

    #[test]
    fn pair_auc_compares_inside_groups_only() {
        let groups = [group(&[0.2], &[0.1, 0.2]), group(&[0.9], &[0.95]), group(&[0.5], &[])];
        assert_eq!(pair_auc(&groups), Some(1.5 / 3.0));
        assert_eq!(pair_auc(&[group(&[], &[0.1])]), None);
    }

    #[test]
    fn several_positives_follow_the_published_rule() {
        let groups = [group(&[0.9, 0.1], &[0.5])];
        assert_eq!(pair_auc(&groups), Some(1.0), "P-AUC takes the best positive");
        assert_eq!(group_accuracy(&groups), Some(0.0), "G-Acc takes the worst");
    }

    #[test]
    fn a_tie_is_not_an_accurate_group() {
        assert_eq!(group_accuracy(&[group(&[0.5], &[0.5]), group(&[0.6], &[0.5, 0.4])]), Some(0.5));
        assert_eq!(group_accuracy(&[group(&[0.5], &[])]), None);
    }

    #[test]
    fn diagnosis_reads_the_weakest_dimensions() {
        use Dimension::{InterpersonalStance as Stance, LinguisticStyle as Style, TaskFraming as Task};
        let rows = [
            Violated { dimension: Task, evidence: [0.1, 0.5, 0.9] },
            Violated { dimension: Stance, evidence: [0.1, 0.2, 0.9] },
            Violated { dimension: Style, evidence: [0.1, 0.2, 0.9] },
            Violated { dimension: Task, evidence: [0.3, 0.3, 0.3] },
        ];
        let diagnosis = diagnose(&rows).unwrap();
        assert_eq!((diagnosis.rows, diagnosis.top_1, diagnosis.top_2_recall), (4, 0.5, 0.75));
        // Task: 2 hits, 2 broken, 4 predicted: F1 = 4/6. Stance and style: 0.
        assert!((diagnosis.macro_f1 - 4.0 / 6.0 / 3.0).abs() < 1e-12);
        assert_eq!(diagnose(&[]), None);
    }

    proptest! {
        #[test]
        fn auc_equals_all_pairs(
            positives in prop::collection::vec(0_u8..20, 1..60),
            negatives in prop::collection::vec(0_u8..20, 1..60),
        ) {
            let positives: Vec<f64> = positives.into_iter().map(|x| f64::from(x) / 7.0).collect();
            let negatives: Vec<f64> = negatives.into_iter().map(|x| f64::from(x) / 7.0).collect();
            let pairs = positives.iter().flat_map(|&a| negatives.iter().map(move |&b| phi(a, b)));
            let brute = pairs.sum::<f64>() / (positives.len() * negatives.len()) as f64;
            prop_assert!((auc(&positives, &negatives).unwrap() - brute).abs() < 1e-12);
        }
    }
}
