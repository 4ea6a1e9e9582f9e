//! Which known names are nearest to one that nobody knows.

/// `known`, nearest first: by single edits, capitals aside.
pub fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    let name = name.to_lowercase();
    let mut known: Vec<&str> = known.into_iter().collect();
    known.sort_by_cached_key(|known| distance(&name, &known.to_lowercase()));
    known
}

/// Those of `known` that may have been meant, as a list: the nearest, and up to two that are hardly further away.
pub fn meant<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    const FEW: usize = 3;
    const HARDLY: usize = 2;
    let far = |known: &str| distance(&name.to_lowercase(), &known.to_lowercase());
    let mut known = nearest(name, known);
    let limit = known.first().map_or(0, |first| far(first) + HARDLY);
    known.truncate(FEW);
    known.retain(|known| far(known) <= limit);
    known.join(", ")
}

/// Levenshtein distance in characters.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, from) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, to) in b.iter().enumerate() {
            let substituted = diagonal + usize::from(from != *to);
            diagonal = row[j + 1];
            row[j + 1] = substituted.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distance_counts_single_edits() {
        assert_eq!(distance("", "abc"), 3);
        assert_eq!(distance("kitten", "sitting"), 3);
        assert_eq!(distance("é", "e"), 1);
    }

    #[test]
    fn few_names_are_offered_and_none_that_is_far_off() {
        let known = ["listen", "chunk_tokens", "queue_a", "queue_b", "queue_c", "queue_d"];
        assert_eq!(meant("chunk_token", known), "chunk_tokens");
        assert_eq!(meant("QUEUE", known), "queue_a, queue_b, queue_c");
        assert_eq!(meant("x", []), "");
    }

    #[test]
    fn the_nearest_name_comes_first_whatever_its_capitals() {
        assert_eq!(nearest("CHUNK_TOKEN", ["threads", "chunk_tokens", "model"])[0], "chunk_tokens");
    }
}
