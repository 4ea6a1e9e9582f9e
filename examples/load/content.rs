//! Texts to judge: prose of our own, the same for the same seed.

use prism_judge::server::pb;

/// SplitMix64, by Sebastiano Vigna (public domain).
#[derive(Clone, Debug)]
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// In [0, 1).
    pub fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    pub fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit as u64) as usize
    }
}

/// Sentences to draw from.
pub struct Prose(Vec<String>);

impl Default for Prose {
    fn default() -> Self {
        let paragraphs = include_str!("../../scripts/peers/llama_cpp/paragraphs.json");
        let paragraphs: Vec<String> = serde_json::from_str(paragraphs).unwrap_or_default();
        Self(paragraphs.iter().flat_map(|text| text.split_inclusive(". ")).map(|text| text.trim().to_owned()).collect())
    }
}

impl Prose {
    /// A text of exactly `count` words.
    pub fn words(&self, random: &mut Random, count: usize) -> String {
        let mut words: Vec<&str> = Vec::new();
        while words.len() < count {
            words.extend(self.0[random.below(self.0.len())].split_whitespace());
        }
        words[..count].join(" ")
    }
}

pub fn persona(random: &mut Random) -> Option<pb::Persona> {
    let target = pb::TraitTarget { r#trait: 1 + random.below(5) as i32, polarity: 1 + random.below(2) as i32 };
    Some(pb::Persona { traits: vec![target], ..pb::Persona::default() })
}

/// A dialogue that ends with the user, of about 30 words a turn.
pub fn context(prose: &Prose, random: &mut Random, words: usize) -> Vec<pb::Turn> {
    let count = (words / 30) | 1;
    let speaker = |turn: usize| if turn.is_multiple_of(2) { "User" } else { "Agent" };
    let text = |turn: usize| words / count + usize::from(turn < words % count);
    (0..count)
        .map(|turn| pb::Turn { speaker: speaker(turn).to_owned(), text: prose.words(random, text(turn)) })
        .collect()
}
