//! The role-play prompt of the likelihood estimator: persona as system turn, context as turns, response as the
//! assistant's turn.

use super::{LabelSpaceError, LabelSpaces, Message, Role, Turn};

/// The turns between the system turn and the response, with user and assistant in turn, the user first and last.
///
/// A speaker is the agent when it bears the persona's name (any case) or one of the file's `agent_speakers`; all others
/// are users. When two or more users speak, each of their turns keeps its name. Neighbouring turns of one role are
/// joined by a newline. Where the agent speaks first or last, the file's `opening` or `continuation` stands in for the
/// user.
pub(super) fn turns(
    spaces: &LabelSpaces,
    name: Option<&str>,
    context: &[Turn],
) -> Result<Vec<Message>, LabelSpaceError> {
    let wording = &spaces.wording.roleplay;
    let same = |a: &str, b: &str| a.trim().to_lowercase() == b.trim().to_lowercase();
    let is_agent = |speaker: &str| {
        name.is_some_and(|name| same(name, speaker)) || wording.agent_speakers.iter().any(|agent| same(agent, speaker))
    };
    let mut users: Vec<String> =
        context.iter().filter(|turn| !is_agent(&turn.speaker)).map(|turn| turn.speaker.trim().to_lowercase()).collect();
    users.sort();
    users.dedup();

    let mut messages: Vec<Message> = Vec::new();
    for turn in context {
        let role = if is_agent(&turn.speaker) { Role::Assistant } else { Role::User };
        let text = if role == Role::User && users.len() > 1 {
            spaces.named_turn(&turn.speaker, &turn.text)?
        } else {
            turn.text.clone()
        };
        match messages.last_mut() {
            Some(last) if last.role == role => {
                last.text.push('\n');
                last.text.push_str(&text);
            }
            _ => messages.push(Message { role, text }),
        }
    }
    if messages.first().is_none_or(|first| first.role == Role::Assistant) {
        messages.insert(0, Message { role: Role::User, text: wording.opening.clone() });
    }
    if messages.last().is_some_and(|last| last.role == Role::Assistant) {
        messages.push(Message { role: Role::User, text: wording.continuation.clone() });
    }
    Ok(messages)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use super::*;

    fn map(name: Option<&str>, context: &[(&str, &str)]) -> Vec<(Role, String)> {
        let context: Vec<Turn> = context
            .iter()
            .map(|(speaker, text)| Turn { speaker: (*speaker).to_owned(), text: (*text).to_owned() })
            .collect();
        let spaces = LabelSpaces::load(None).unwrap();
        turns(&spaces, name, &context).unwrap().into_iter().map(|message| (message.role, message.text)).collect()
    }

    fn user(text: &str) -> (Role, String) {
        (Role::User, text.to_owned())
    }

    fn assistant(text: &str) -> (Role, String) {
        (Role::Assistant, text.to_owned())
    }

    #[test]
    fn the_persona_by_name_and_the_usual_agent_names_are_the_assistant() {
        for speaker in ["Teodor", "TEODOR ", "Agent", "assistant", "BOT", "ai", "Char"] {
            let turns = map(Some("Teodor"), &[("Priya", "a"), (speaker, "b"), ("Priya", "c")]);
            assert_eq!(turns, [user("a"), assistant("b"), user("c")], "{speaker}");
        }
    }

    #[test]
    fn neighbours_of_one_role_are_joined() {
        assert_eq!(map(None, &[("Priya", "a"), ("Priya", "b")]), [user("a\nb")]);
    }

    #[test]
    fn several_users_keep_their_names() {
        let turns = map(Some("T"), &[("Ann", "a"), ("Bo", "b"), ("T", "c"), ("Ann", "d")]);
        assert_eq!(turns, [user("Ann: a\nBo: b"), assistant("c"), user("Ann: d")]);
    }

    #[test]
    fn user_and_assistant_alternate_whoever_starts_and_ends() {
        let roles = |context: &[(&str, &str)]| map(None, context).into_iter().map(|(role, _)| role).collect::<Vec<_>>();
        assert_eq!(roles(&[]), [Role::User]);
        assert_eq!(roles(&[("agent", "a")]), [Role::User, Role::Assistant, Role::User]);
        assert_eq!(roles(&[("u", "a"), ("agent", "b")]), [Role::User, Role::Assistant, Role::User]);
    }
}
