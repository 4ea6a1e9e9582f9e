//! A dialogue: every turn of one speaker is judged with the turns before it as its context, in one piece of work.

use super::score::blocking;
use super::subject::Subject;
use super::{Call, Judge, JudgeError, OptionOverrides};
use crate::persona::Persona;
use crate::prism::{Candidate, DialogueDrift, Group, PlanError, Turn, Verdict};

/// Speakers that an error lists.
const LISTED: usize = 16;

/// A dialogue whose agent is judged.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Dialogue {
    pub persona: Persona,
    /// All turns, oldest first.
    pub turns: Vec<Turn>,
    /// The speaker whose turns are judged, in any case; empty: the persona's name.
    pub agent: String,
}

/// What became of a dialogue.
#[derive(Clone, Debug)]
pub struct ScoredDialogue {
    /// The agent's turns in order, each with its place in the dialogue.
    pub turns: Vec<(usize, Result<Verdict, JudgeError>)>,
    /// None if no turn has a verdict.
    pub drift: Option<DialogueDrift>,
}

impl Judge {
    /// Judges every turn of the agent. Each verdict has the bits of that of a group whose context is the turns before it,
    /// and its id is the turn's place in the dialogue. A turn that fails leaves the others alone. Needs what
    /// [`Judge::score`] needs.
    ///
    /// # Errors
    /// What concerns the whole dialogue: the persona, the agent, the options, and what ends a call.
    pub async fn score_dialogue(
        &self,
        dialogue: Dialogue,
        overrides: &OptionOverrides,
        call: &Call,
    ) -> Result<ScoredDialogue, JudgeError> {
        let judged = dialogue.judged()?;
        let subject = dialogue.subject(&judged)?;
        let scored = self.ask(subject, overrides, call).await.map_err(|error| in_dialogue(error, &judged))?;
        let own = |result: Result<Verdict, JudgeError>| result.map_err(|error| in_dialogue(error, &judged));
        let turns: Vec<_> = judged.iter().copied().zip(scored.into_iter().map(own)).collect();
        let curve: Vec<_> = turns.iter().map(|(turn, result)| (*turn, result.as_ref().ok())).collect();
        let drift = DialogueDrift::of(&curve);
        Ok(ScoredDialogue { turns, drift })
    }

    /// The same, for callers outside an async runtime; blocks.
    pub fn score_dialogue_blocking(
        &self,
        dialogue: Dialogue,
        overrides: &OptionOverrides,
        call: &Call,
    ) -> Result<ScoredDialogue, JudgeError> {
        blocking(self.score_dialogue(dialogue, overrides, call))
    }
}

impl Dialogue {
    /// The places of the turns that are judged.
    fn judged(&self) -> Result<Vec<usize>, JudgeError> {
        if self.turns.is_empty() {
            return Err(JudgeError::invalid("turns", "there is no turn: give the whole dialogue"));
        }
        let agent = self.agent()?;
        let wanted = same(&agent);
        let judged: Vec<usize> = (0..self.turns.len()).filter(|at| same(&self.turns[*at].speaker) == wanted).collect();
        if judged.is_empty() {
            let message = format!("no turn is spoken by {agent:?}; the speakers are {}", self.speakers());
            return Err(JudgeError::invalid("agent", message));
        }
        Ok(judged)
    }

    /// Whose turns are judged.
    fn agent(&self) -> Result<String, JudgeError> {
        if !self.agent.trim().is_empty() {
            return Ok(self.agent.clone());
        }
        let profile = self.persona.profile().map_err(PlanError::from)?;
        profile.name.ok_or_else(|| {
            let speakers = self.speakers();
            JudgeError::invalid(
                "agent",
                format!("it is empty and the persona has no name; the speakers are {speakers}"),
            )
        })
    }

    fn speakers(&self) -> String {
        let mut speakers: Vec<String> = Vec::new();
        for turn in &self.turns {
            let speaker = format!("{:?}", turn.speaker.trim());
            if !speakers.contains(&speaker) {
                speakers.push(speaker);
            }
            if speakers.len() > LISTED {
                speakers[LISTED] = "others".to_owned();
                break;
            }
        }
        speakers.join(", ")
    }

    /// The candidates at `judged`. Nothing is asked about the turns after the last of them.
    fn subject(self, judged: &[usize]) -> Result<Subject, JudgeError> {
        let Self { persona, turns: mut context, .. } = self;
        let candidates = judged
            .iter()
            .map(|turn| Candidate { id: turn.to_string(), response: context[*turn].text.clone() })
            .collect();
        context.truncate(judged.last().copied().unwrap_or(0));
        Subject::of_dialogue(Group { persona, context, candidates }, judged.to_vec())
    }
}

/// Speakers are the same in any case, as for the role-play prompts.
fn same(speaker: &str) -> String {
    speaker.trim().to_lowercase()
}

/// An error of a group as that of the dialogue that it was made of.
fn in_dialogue(error: JudgeError, judged: &[usize]) -> JudgeError {
    let field = |field: String| {
        let turn = field.strip_prefix("candidates[").and_then(|rest| rest.split_once(']')).and_then(|(index, part)| {
            let turn = judged.get(index.parse::<usize>().ok()?)?;
            Some(format!("turns[{turn}]{}", part.replace(".response", ".text")))
        });
        turn.unwrap_or_else(|| match field.as_str() {
            "candidates" => "turns".to_owned(),
            _ => match field.strip_prefix("context") {
                Some(rest) => format!("turns{rest}"),
                None => field,
            },
        })
    };
    JudgeError { field: error.field.map(field), ..error }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use super::*;

    fn dialogue(agent: &str, speakers: &[&str]) -> Dialogue {
        let turn = |speaker: &&str| Turn { speaker: (*speaker).to_owned(), text: "Hi.".to_owned() };
        let persona = Persona { name: Some("Ada".to_owned()), description: "Kind.".to_owned(), ..Persona::default() };
        Dialogue { persona, turns: speakers.iter().map(turn).collect(), agent: agent.to_owned() }
    }

    fn refused(dialogue: &Dialogue) -> String {
        let error = dialogue.judged().unwrap_err();
        format!("{}: {error}", error.field.as_deref().unwrap())
    }

    #[test]
    fn the_agent_is_a_speaker_in_any_case_or_else_the_persona_by_name() {
        let speakers = ["User", "Ada", "user", " ADA ", "Bo"];
        assert_eq!(dialogue("ada", &speakers).judged().unwrap(), [1, 3]);
        assert_eq!(dialogue("USER ", &speakers).judged().unwrap(), [0, 2]);
        assert_eq!(dialogue("", &speakers).judged().unwrap(), [1, 3]);
        let mut card = dialogue(" ", &speakers);
        card.persona = Persona { description: "Name: Bo\nPersonality: kind".to_owned(), ..Persona::default() };
        assert_eq!(card.judged().unwrap(), [4]);
    }

    #[test]
    fn an_agent_that_does_not_speak_is_refused_with_those_who_do() {
        let told = refused(&dialogue("Eve", &["User", "Ada", "User"]));
        assert_eq!(told, "agent: no turn is spoken by \"Eve\"; the speakers are \"User\", \"Ada\"");
        let mut nameless = dialogue("", &["User", "Ada"]);
        nameless.persona.name = None;
        let told = refused(&nameless);
        assert_eq!(told, "agent: it is empty and the persona has no name; the speakers are \"User\", \"Ada\"");
        assert_eq!(refused(&dialogue("Ada", &[])), "turns: there is no turn: give the whole dialogue");
        let crowd: Vec<String> = (0..40).map(|speaker| format!("S{speaker}")).collect();
        let crowd: Vec<&str> = crowd.iter().map(String::as_str).collect();
        assert!(refused(&dialogue("Eve", &crowd)).ends_with("\"S14\", \"S15\", others"));
    }

    #[test]
    fn a_turn_answers_the_turns_before_it_and_what_comes_after_the_last_one_is_left_out() {
        let dialogue = dialogue("Ada", &["Ada", "User", "Ada", "User", "User"]);
        let judged = dialogue.judged().unwrap();
        let subject = dialogue.clone().subject(&judged).unwrap();
        assert_eq!((subject.group.context.len(), subject.context(0).len(), subject.context(1).len()), (2, 0, 2));
        let ids: Vec<&str> = subject.group.candidates.iter().map(|candidate| candidate.id.as_str()).collect();
        assert_eq!(ids, ["0", "2"]);
        let last = subject.only(&[1]);
        assert_eq!((last.group.candidates.len(), last.context(0)), (1, &dialogue.turns[..2]));
        let groups: Vec<_> = subject.groups().map(|(first, group)| (first, group.into_owned())).collect();
        assert_eq!(groups.len(), 2);
        assert_eq!((groups[1].0, &groups[1].1.context[..]), (1, &dialogue.turns[..2]));
    }

    #[test]
    fn errors_name_the_turns_of_the_dialogue() {
        let field = |field: &str| in_dialogue(JudgeError::invalid(field, "m"), &[1, 4]).field.unwrap();
        assert_eq!(field("candidates[1].response"), "turns[4].text");
        assert_eq!(field("candidates[0]"), "turns[1]");
        assert_eq!(field("candidates"), "turns");
        assert_eq!(field("context[3].speaker"), "turns[3].speaker");
        assert_eq!(field("context"), "turns");
        assert_eq!(field("persona.name"), "persona.name");
        assert_eq!(in_dialogue(JudgeError::internal("m"), &[1]), JudgeError::internal("m"));
    }
}
