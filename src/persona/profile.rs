//! A persona that was read: what the label spaces are made from.

use super::{Card, Persona, PersonaError, Place, TraitTarget, focus};

/// A usable persona. At least one of `traits`, `description` and `facts` is not empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Profile {
    pub name: Option<String>,
    /// Declared traits, then those of focus phrases; one target for each trait.
    pub traits: Vec<TraitTarget>,
    /// The description's sections; without any for free text.
    pub card: Card,
    /// The description without its focus phrases, trimmed.
    pub description: String,
    /// Without empty ones, trimmed.
    pub facts: Vec<String>,
    /// Whether the description held a focus phrase: what stands beside it is then its gloss, as published.
    focused: bool,
}

impl Persona {
    /// Reads the persona.
    ///
    /// # Errors
    /// [`PersonaError`] when nothing usable is there, a trait has two polarities or stands twice in the list, or a focus
    /// phrase cannot be read.
    pub fn profile(&self) -> Result<Profile, PersonaError> {
        let focus = focus::parse(&self.description)?;
        let declared = self.traits.iter().enumerate().map(|(index, target)| (*target, Place::List(index)));
        let found = focus.targets.iter().map(|target| (*target, Place::Focus));
        let traits = merge(declared.chain(found))?;
        let facts: Vec<String> =
            self.facts.iter().map(|fact| fact.trim().to_owned()).filter(|fact| !fact.is_empty()).collect();
        let card = Card::parse(&focus.rest);
        let name = self.name.as_deref().map(str::trim).filter(|name| !name.is_empty());
        if traits.is_empty() && focus.rest.is_empty() && facts.is_empty() {
            return Err(if name.is_some() { PersonaError::OnlyName } else { PersonaError::Empty });
        }
        let name = name.or(card.name()).map(str::to_owned);
        let focused = !focus.targets.is_empty();
        Ok(Profile { name, traits, card, description: focus.rest, facts, focused })
    }
}

/// Puts the list's traits and those of focus phrases together; a phrase may restate a trait.
///
/// # Errors
/// Two polarities of one trait, or a trait that stands twice in the list, with both places.
fn merge(targets: impl Iterator<Item = (TraitTarget, Place)>) -> Result<Vec<TraitTarget>, PersonaError> {
    let mut kept: Vec<(TraitTarget, Place)> = Vec::new();
    for (target, place) in targets {
        let trait_ = target.trait_;
        match kept.iter().find(|(other, _)| other.trait_ == trait_) {
            None => kept.push((target, place)),
            Some(&(other, first_place)) if other.polarity != target.polarity => {
                return Err(PersonaError::Contradiction {
                    trait_,
                    first: other.polarity,
                    first_place,
                    second: target.polarity,
                    second_place: place,
                });
            }
            Some((_, first)) if place != Place::Focus => {
                return Err(PersonaError::Repeated { trait_, first: *first, second: place });
            }
            Some(_) => {}
        }
    }
    Ok(kept.into_iter().map(|(target, _)| target).collect())
}

impl Profile {
    /// The persona in words: the description (without focus phrases), then one fact a line. Empty for a persona of
    /// traits alone.
    pub fn text(&self) -> String {
        let description = Some(self.description.as_str()).filter(|text| !text.is_empty());
        description.into_iter().chain(self.facts.iter().map(String::as_str)).collect::<Vec<_>>().join("\n")
    }

    /// Whether the persona is (also) an open-ended character: a card, facts, or free text. Free text beside a focus
    /// phrase does not count: in the published form it only restates the trait.
    pub fn is_character(&self) -> bool {
        self.card.is_card() || !self.facts.is_empty() || (!self.description.is_empty() && !self.focused)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use super::*;
    use crate::persona::{Polarity, Trait};

    fn read(json: &str) -> Result<Profile, PersonaError> {
        serde_json::from_str::<Persona>(json).unwrap().profile()
    }

    #[test]
    fn declared_and_found_traits_are_merged() {
        let profile = read(
            r#"{"traits":[{"trait":"openness","polarity":"high"}],
                "description":"Big Five focus: Openness = high, Neuroticism = low. Likes art."}"#,
        )
        .unwrap();
        let expected =
            [TraitTarget::new(Trait::Openness, Polarity::High), TraitTarget::new(Trait::Neuroticism, Polarity::Low)];
        assert_eq!(profile.traits, expected);
        assert_eq!(profile.description, "Likes art.");
        assert!(!profile.is_character());
    }

    #[test]
    fn two_polarities_of_one_trait_name_both_places() {
        let error = read(
            r#"{"traits":[{"trait":"openness","polarity":"high"}],"description":"Big Five focus: openness = low"}"#,
        )
        .unwrap_err();
        assert_eq!(error.field(), "persona.traits");
        assert_eq!(
            error.to_string(),
            "the trait `openness` is high in persona.traits[0] and low in the description's focus; keep one polarity for \
             each trait"
        );
    }

    #[test]
    fn a_trait_twice_in_the_list_names_both_places_and_a_focus_may_restate_one() {
        let [open, calm] = [r#"{"trait":"openness","polarity":"high"}"#, r#"{"trait":"neuroticism","polarity":"low"}"#];
        let error = read(&format!(r#"{{"traits":[{open},{calm},{open}]}}"#)).unwrap_err();
        assert_eq!(error.field(), "persona.traits");
        assert_eq!(
            error.to_string(),
            "the trait `openness` is in persona.traits[0] and again in persona.traits[2]; give each trait once"
        );
        let focus = "Big Five focus: openness = high. Big Five focus: neuroticism = low, openness = high.";
        let restated = read(&format!(r#"{{"traits":[{open},{calm}],"description":"{focus}"}}"#)).unwrap();
        let expected =
            [TraitTarget::new(Trait::Openness, Polarity::High), TraitTarget::new(Trait::Neuroticism, Polarity::Low)];
        assert_eq!(restated.traits, expected);
    }

    #[test]
    fn nothing_usable_is_an_error_that_says_what_would_do() {
        assert_eq!(read("{}"), Err(PersonaError::Empty));
        assert_eq!(read(r#"{"description":" \n","facts":["", " "]}"#), Err(PersonaError::Empty));
        assert_eq!(read(r#"{"name":"Ada"}"#), Err(PersonaError::OnlyName));
        assert!(PersonaError::Empty.to_string().contains("give at least one trait"));
    }

    #[test]
    fn facts_alone_are_a_character() {
        let profile = read(r#"{"facts":[" i ride horses "]}"#).unwrap();
        assert!(profile.is_character());
        assert_eq!(profile.text(), "i ride horses");
    }

    #[test]
    fn the_name_may_come_from_the_card() {
        assert_eq!(read(r#"{"description":"Name: Ada\nAge: 36"}"#).unwrap().name.as_deref(), Some("Ada"));
        assert_eq!(read(r#"{"name":"Bo","description":"Name: Ada"}"#).unwrap().name.as_deref(), Some("Bo"));
    }

    #[test]
    fn a_card_beside_a_focus_is_a_character_too() {
        let profile = read(r#"{"description":"Big Five focus: Openness = low\nPersonality: gruff"}"#).unwrap();
        assert!(profile.is_character());
        assert_eq!(profile.card.personality(), Some("gruff"));
    }
}
