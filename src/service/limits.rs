//! How large the parts of a request may be: checked before anything of it is hashed, rendered or tokenised.
//!
//! What is tokenised is bounded once more, in tokens, by the longest prompt (`tokens.rs`).

use super::JudgeError;
use crate::persona::Persona;
use crate::prism::{Candidate, Group, Turn};
use crate::telemetry::catalogue::LIMIT_REFUSALS;

/// Bytes of a text for each token that the model can read at once; of running text a token is four or fewer.
const BYTES_PER_TOKEN: usize = 8;

/// Bytes of what only names something: a persona's name, a speaker, a candidate's id.
const NAME_BYTES: usize = 1024;

/// Facts of a persona.
const FACTS: usize = 4096;

/// Traits of a persona; there are five, and whoever reads the persona refuses repeats.
const TRAITS: usize = 64;

/// The limits that can be set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LimitSettings {
    /// Bytes of a response; None: eight for each token of the longest prompt.
    pub response_bytes: Option<usize>,
    /// Bytes of a persona's name, description and facts together; None as above.
    pub persona_bytes: Option<usize>,
    /// Bytes of a context's speakers and texts together; None as above.
    pub context_bytes: Option<usize>,
    /// Turns of a context.
    pub turns: usize,
    /// Candidates of a group.
    pub candidates: usize,
}

impl LimitSettings {
    pub const DEFAULT: Self =
        Self { response_bytes: None, persona_bytes: None, context_bytes: None, turns: 4096, candidates: 10_000 };
}

impl Default for LimitSettings {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// The limits of one judge.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    response_bytes: usize,
    persona_bytes: usize,
    context_bytes: usize,
    turns: usize,
    candidates: usize,
}

impl Limits {
    /// The limits of a judge that reads prompts of at most so many tokens.
    pub fn new(settings: &LimitSettings, longest_prompt: usize) -> Self {
        let readable = longest_prompt.saturating_mul(BYTES_PER_TOKEN);
        Self {
            response_bytes: settings.response_bytes.unwrap_or(readable),
            persona_bytes: settings.persona_bytes.unwrap_or(readable),
            context_bytes: settings.context_bytes.unwrap_or(readable),
            turns: settings.turns,
            candidates: settings.candidates,
        }
    }

    /// What all candidates share, and how many they are.
    ///
    /// # Errors
    /// The first field that is too large, with its size and the limit.
    pub fn check_group(&self, group: &Group) -> Result<(), JudgeError> {
        self.group(group).map_err(TooLarge::refused)
    }

    /// The same without what the turns of the context hold, which concerns those alone that come after them.
    ///
    /// # Errors
    /// As [`Limits::check_group`].
    pub fn check_dialogue(&self, group: &Group) -> Result<(), JudgeError> {
        self.dialogue(group).map_err(TooLarge::refused)
    }

    /// For each part of a context, the first `after` turns of it in rising order, the error that
    /// [`Limits::check_group`] has for it.
    pub fn check_parts(&self, context: &[Turn], after: &[usize]) -> Vec<Option<JudgeError>> {
        let (mut checked, mut all, mut wrong) = (0, 0, None);
        let check = |turns: &usize| {
            for (index, turn) in context.iter().enumerate().take(*turns).skip(checked) {
                wrong = wrong.take().or_else(|| self.turn(index, turn).map_err(TooLarge::refused).err());
                all += size(turn);
            }
            checked = *turns;
            wrong.clone().or_else(|| self.context(all).map_err(TooLarge::refused).err())
        };
        after.iter().map(check).collect()
    }

    fn group(&self, group: &Group) -> Result<(), TooLarge> {
        self.dialogue(group)?;
        let context = &group.context;
        context.iter().enumerate().try_for_each(|(index, turn)| self.turn(index, turn))?;
        self.context(context.iter().map(size).sum())
    }

    fn dialogue(&self, group: &Group) -> Result<(), TooLarge> {
        let Group { persona, context, candidates } = group;
        count("candidates", ("candidates", "candidates"), candidates.len(), self.candidates)?;
        self.persona(persona)?;
        count("turns", ("context", "turns"), context.len(), self.turns)
    }

    fn turn(&self, index: usize, turn: &Turn) -> Result<(), TooLarge> {
        bytes("context_bytes", || format!("context[{index}].speaker"), turn.speaker.len(), NAME_BYTES)?;
        bytes("context_bytes", || format!("context[{index}].text"), turn.text.len(), self.context_bytes)
    }

    fn context(&self, size: usize) -> Result<(), TooLarge> {
        bytes("context_bytes", || "context".to_owned(), size, self.context_bytes)
    }

    /// A persona of a file, which no call has sent.
    ///
    /// # Errors
    /// The first field that is too large, with its size and the limit.
    pub fn check_persona(&self, persona: &Persona) -> Result<(), String> {
        self.persona(persona).map_err(|TooLarge { error, .. }| {
            let field = error.field.unwrap_or_default();
            format!("{}: {}", field.trim_start_matches("persona."), error.message)
        })
    }

    fn persona(&self, persona: &Persona) -> Result<(), TooLarge> {
        let Persona { name, traits, description, facts } = persona;
        let name = name.as_deref().map_or(0, str::len);
        bytes("persona_bytes", || "persona.name".to_owned(), name, NAME_BYTES)?;
        count("other", ("persona.traits", "traits"), traits.len(), TRAITS)?;
        count("other", ("persona.facts", "facts"), facts.len(), FACTS)?;
        bytes("persona_bytes", || "persona.description".to_owned(), description.len(), self.persona_bytes)?;
        let mut all = name + description.len();
        for (index, fact) in facts.iter().enumerate() {
            bytes("persona_bytes", || format!("persona.facts[{index}]"), fact.len(), self.persona_bytes)?;
            all += fact.len();
        }
        bytes("persona_bytes", || "persona".to_owned(), all, self.persona_bytes)
    }

    /// One candidate, which alone fails.
    ///
    /// # Errors
    /// As [`Limits::check_group`].
    pub fn check_candidate(&self, index: usize, candidate: &Candidate) -> Result<(), JudgeError> {
        self.candidate(index, candidate).map_err(TooLarge::refused)
    }

    fn candidate(&self, index: usize, candidate: &Candidate) -> Result<(), TooLarge> {
        bytes("id_bytes", || format!("candidates[{index}].id"), candidate.id.len(), NAME_BYTES)?;
        bytes(
            "response_bytes",
            || format!("candidates[{index}].response"),
            candidate.response.len(),
            self.response_bytes,
        )
    }
}

/// Whether a persona is one that a judge can take whatever its model: its name and the number of its parts.
///
/// # Errors
/// The first field that is too large, with its size and the limit.
pub fn check_persona(persona: &Persona) -> Result<(), String> {
    Limits::new(&LimitSettings::DEFAULT, usize::MAX).check_persona(persona)
}

/// The id of a request, which front ends echo and the judge never sees.
///
/// # Errors
/// The field, its size and the limit.
pub fn check_request_id(id: &str) -> Result<(), JudgeError> {
    bytes("id_bytes", || "request_id".to_owned(), id.len(), NAME_BYTES).map_err(TooLarge::refused)
}

/// What is too large, and which limit says so.
struct TooLarge {
    /// As the metric calls it.
    limit: &'static str,
    error: JudgeError,
}

impl TooLarge {
    /// The error of a call that is refused for it.
    fn refused(self) -> JudgeError {
        LIMIT_REFUSALS.increment([self.limit]);
        self.error
    }
}

/// Bytes of a turn.
fn size(turn: &Turn) -> usize {
    turn.speaker.len() + turn.text.len()
}

fn bytes(limit_name: &'static str, field: impl FnOnce() -> String, size: usize, limit: usize) -> Result<(), TooLarge> {
    if size <= limit {
        return Ok(());
    }
    let message = format!("it has {size} bytes and this judge takes at most {limit}: shorten it");
    Err(TooLarge { limit: limit_name, error: JudgeError::invalid(field(), message) })
}

fn count(limit_name: &'static str, (field, what): (&str, &str), size: usize, limit: usize) -> Result<(), TooLarge> {
    if size <= limit {
        return Ok(());
    }
    let message = format!("there are {size} {what} and this judge takes at most {limit}: send fewer");
    Err(TooLarge { limit: limit_name, error: JudgeError::invalid(field, message) })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use super::*;
    use crate::persona::{Polarity, Trait, TraitTarget};
    use crate::prism::Turn;

    const SMALL: LimitSettings = LimitSettings {
        response_bytes: Some(10),
        persona_bytes: Some(20),
        context_bytes: Some(30),
        turns: 3,
        candidates: 4,
    };

    fn group() -> Group {
        let turn = Turn { speaker: "ab".to_owned(), text: "x".repeat(8) };
        Group {
            persona: Persona {
                name: Some("n".repeat(4)),
                description: "d".repeat(8),
                facts: vec!["f".repeat(4), "g".repeat(4)],
                ..Persona::default()
            },
            context: vec![turn; 3],
            candidates: vec![Candidate { id: "i".to_owned(), response: "r".repeat(10) }; 4],
        }
    }

    /// The first error of a group or of a candidate, as field and message.
    fn refusal(limits: &LimitSettings, group: &Group) -> Option<(String, String)> {
        let limits = Limits::new(limits, 1000);
        let candidates = || {
            let checked = group.candidates.iter().enumerate().map(|(at, one)| limits.check_candidate(at, one));
            checked.collect::<Result<Vec<()>, _>>()
        };
        let error = limits.check_group(group).err().or_else(|| candidates().err())?;
        Some((error.field.unwrap(), error.message))
    }

    #[test]
    fn what_is_exactly_as_large_as_its_limit_passes() {
        assert_eq!(refusal(&SMALL, &group()), None);
    }

    #[test]
    fn one_byte_or_one_thing_too_many_is_named_with_its_size_and_its_limit() {
        type Change = fn(&mut Group);
        let long =
            |count: usize| format!("it has {count} bytes and this judge takes at most {}: shorten it", count - 1);
        let changes: [(Change, &str, String); 13] = [
            (|g| g.persona.name = Some("n".repeat(1025)), "persona.name", long(1025)),
            (|g| g.persona.description.push_str(&"d".repeat(13)), "persona.description", long(21)),
            (|g| g.persona.facts[1] = "f".repeat(21), "persona.facts[1]", long(21)),
            (|g| g.persona.facts.push("f".to_owned()), "persona", long(21)),
            (|g| g.context[1].speaker = "s".repeat(1025), "context[1].speaker", long(1025)),
            (|g| g.context[2].text = "t".repeat(31), "context[2].text", long(31)),
            (|g| g.context[0].text.push('t'), "context", long(31)),
            (|g| g.candidates[3].id = "i".repeat(1025), "candidates[3].id", long(1025)),
            (|g| g.candidates[2].response.push('r'), "candidates[2].response", long(11)),
            (
                |g| g.context.push(g.context[0].clone()),
                "context",
                "there are 4 turns and this judge takes at most 3: send fewer".to_owned(),
            ),
            (
                |g| g.candidates.push(g.candidates[0].clone()),
                "candidates",
                "there are 5 candidates and this judge takes at most 4: send fewer".to_owned(),
            ),
            (
                |g| g.persona.facts = vec![String::new(); 4097],
                "persona.facts",
                "there are 4097 facts and this judge takes at most 4096: send fewer".to_owned(),
            ),
            (
                |g| g.persona.traits = vec![TraitTarget::new(Trait::Openness, Polarity::High); 65],
                "persona.traits",
                "there are 65 traits and this judge takes at most 64: send fewer".to_owned(),
            ),
        ];
        for (change, field, message) in changes {
            let mut changed = group();
            change(&mut changed);
            assert_eq!(refusal(&SMALL, &changed), Some((field.to_owned(), message)));
        }
    }

    #[test]
    fn a_part_of_a_context_has_the_error_that_it_has_alone() {
        let turn = |text: usize| Turn { speaker: "s".to_owned(), text: "t".repeat(text) };
        let limits = Limits::new(&LimitSettings { turns: 9, ..SMALL }, 1000);
        for sizes in [[5, 5, 5, 5, 5, 5], [5, 31, 0, 0, 0, 0], [9, 9, 9, 31, 0, 2], [29, 0, 0, 0, 0, 0]] {
            let context: Vec<Turn> = sizes.into_iter().map(turn).collect();
            let alone = |turns: usize| {
                let part = Group { context: context[..turns].to_vec(), ..group() };
                limits.check_group(&part).err()
            };
            for after in [vec![0, 1, 2, 3, 4, 5, 6], vec![2, 2, 5], vec![6], vec![]] {
                let expected: Vec<_> = after.iter().map(|turns| alone(*turns)).collect();
                assert_eq!(limits.check_parts(&context, &after), expected, "{sizes:?}");
            }
        }
    }

    #[test]
    fn limits_that_are_not_set_follow_what_the_model_reads() {
        let mut group = group();
        group.candidates[0].response = "r".repeat(8000);
        group.context[0].text = "t".repeat(8000 - 2 - 20);
        group.persona.description = "d".repeat(8000 - 12);
        assert_eq!(refusal(&LimitSettings::DEFAULT, &group), None);
        group.candidates[0].response.push('r');
        assert_eq!(refusal(&LimitSettings::DEFAULT, &group).unwrap().0, "candidates[0].response");
        group.context[0].text.push('t');
        assert_eq!(refusal(&LimitSettings::DEFAULT, &group).unwrap().0, "context");
        group.persona.description.push('d');
        assert_eq!(refusal(&LimitSettings::DEFAULT, &group).unwrap().0, "persona");
    }
}
