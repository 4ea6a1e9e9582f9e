//! An order of candidates by a value, best first.

/// Where a candidate stands.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Place {
    /// Its index in what was ranked.
    pub index: usize,
    /// 1 is best; 1 more than the number of candidates that are better.
    pub rank: usize,
    pub value: f64,
    /// `value` less that of the next place; 0 for the last one.
    pub margin: f64,
}

/// Orders finite values, best first. Equal ones keep their order and share a rank; what has no value has no place.
pub fn rank(values: &[Option<f64>]) -> Vec<Place> {
    // 0 and -0 are equal.
    let valued = values.iter().enumerate().filter_map(|(index, value)| Some((index, value.as_ref()? + 0.0)));
    let mut order: Vec<(usize, f64)> = valued.collect();
    order.sort_by(|(_, one), (_, other)| other.total_cmp(one));
    let mut places: Vec<Place> = Vec::with_capacity(order.len());
    for (at, (index, value)) in order.iter().copied().enumerate() {
        let rank = match places.last() {
            Some(last) if last.value == value => last.rank,
            _ => at + 1,
        };
        let margin = order.get(at + 1).map_or(0.0, |(_, next)| value - next);
        places.push(Place { index, rank, value, margin });
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(values: &[Option<f64>]) -> Vec<(usize, usize, f64)> {
        rank(values).into_iter().map(|place| (place.index, place.rank, place.margin)).collect()
    }

    #[test]
    fn the_best_comes_first_and_margins_lead_to_the_next() {
        let values = [Some(0.25), Some(1.0), Some(0.5)];
        assert_eq!(places(&values), [(1, 1, 0.5), (2, 2, 0.25), (0, 3, 0.0)]);
        assert_eq!(rank(&values)[0].value, 1.0);
    }

    #[test]
    fn equal_values_keep_their_order_and_share_a_rank_that_the_next_one_does_not_follow() {
        let values = [Some(0.5), Some(0.75), Some(0.5), Some(0.25), Some(0.5)];
        assert_eq!(places(&values), [(1, 1, 0.25), (0, 2, 0.0), (2, 2, 0.0), (4, 2, 0.25), (3, 5, 0.0)]);
        assert_eq!(places(&[Some(-0.0), Some(0.0)]), [(0, 1, 0.0), (1, 1, 0.0)]);
    }

    #[test]
    fn what_has_no_value_has_no_place() {
        assert_eq!(places(&[None, Some(-1.0), None, Some(-0.5)]), [(3, 1, 0.5), (1, 2, 0.0)]);
        assert_eq!(places(&[None]), []);
        assert_eq!(places(&[]), []);
    }
}
