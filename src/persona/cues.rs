//! Cues: the part of a profile that speaks about one dimension.
//!
//! As published, the cue is cut to a number of characters (not bytes, not tokens): 360 of the `Personality:` section
//! for task framing and stance, 380 of the `Dialogue Style:` section for style; where a section is missing, the
//! personality stands in, and then the whole profile with its facts. The cut is part of the published method and its
//! length is a setting of the label-space file; [`Cue::cut`] says when it was made. It touches the label descriptions
//! only: the persona block and the role-play prompts carry the profile whole.

use super::card::{DIALOGUE_STYLE, PERSONALITY};
use super::{Profile, Section};

/// Which section of a card is looked for first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CueKind {
    /// `Personality:`, then the whole profile.
    Personality,
    /// `Dialogue Style:`, then `Personality:`, then the whole profile.
    DialogueStyle,
}

/// A cue, at most as long as its limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cue {
    pub text: String,
    /// Whether the source was longer than the limit.
    pub cut: bool,
}

impl Profile {
    /// The section that a cue of a kind is taken from; None: the whole profile.
    pub fn cue_section(&self, kind: CueKind) -> Option<&Section> {
        let personality = self.card.find(&PERSONALITY);
        match kind {
            CueKind::Personality => personality,
            CueKind::DialogueStyle => self.card.find(&DIALOGUE_STYLE).or(personality),
        }
    }

    /// The cue of a kind, cut to its first `limit` characters; white space at its ends is dropped.
    pub fn cue(&self, kind: CueKind, limit: usize) -> Cue {
        let source = self.cue_section(kind).map_or_else(|| self.text(), |section| section.body.clone());
        let source = source.trim();
        match source.char_indices().nth(limit) {
            None => Cue { text: source.to_owned(), cut: false },
            Some((end, _)) => Cue { text: source.get(..end).unwrap_or(source).trim_end().to_owned(), cut: true },
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use super::*;
    use crate::persona::Persona;

    fn profile(description: &str, facts: &[&str]) -> Profile {
        let facts = facts.iter().map(|fact| (*fact).to_owned()).collect();
        Persona { description: description.to_owned(), facts, ..Persona::default() }.profile().unwrap()
    }

    #[test]
    fn each_kind_reads_its_section() {
        let profile = profile("Personality: proud\nDialogue Style: booming", &[]);
        assert_eq!(profile.cue(CueKind::Personality, 360).text, "proud");
        assert_eq!(profile.cue(CueKind::DialogueStyle, 380).text, "booming");
    }

    #[test]
    fn style_falls_back_to_personality_and_then_to_everything() {
        assert_eq!(profile("Personality: proud\nAge: 3", &[]).cue(CueKind::DialogueStyle, 380).text, "proud");
        let free = profile("A pirate.", &["owns a parrot", "fears geese"]);
        for kind in [CueKind::Personality, CueKind::DialogueStyle] {
            assert_eq!(free.cue(kind, 360).text, "A pirate.\nowns a parrot\nfears geese");
        }
    }

    #[test]
    fn the_cut_counts_characters() {
        let long = profile(&"é🦀".repeat(400), &[]);
        let cue = long.cue(CueKind::Personality, 360);
        assert_eq!(cue.text.chars().count(), 360);
        assert!(cue.cut);
        let exact = profile(&"é".repeat(360), &[]);
        assert_eq!(exact.cue(CueKind::Personality, 360), Cue { text: "é".repeat(360), cut: false });
    }
}
