#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use super::*;

fn space() -> LabelSpace {
    LabelSpace {
        dimension: Dimension::TaskFraming,
        name: "task framing".to_owned(),
        released_key: "agenda_pattern".to_owned(),
        question: "What fits?".to_owned(),
        descriptions: ["Aligned one.", "Neither.", "Opposite."].map(str::to_owned),
        role: Default::default(),
        note: Default::default(),
    }
}

fn render(template: &PromptTemplate, layout: Layout, persona: Value, response: &str) -> String {
    let turns = [("User", "Hello <b>\n"), ("Agent", "  Hi & bye")]
        .map(|(speaker, text)| Turn { speaker: speaker.to_owned(), text: text.to_owned() });
    template
        .render(&PromptInput {
            layout,
            space: &space(),
            order: [Label::Contradictory, Label::Aligned, Label::Indeterminate],
            context: context_value(&turns),
            persona,
            response,
            case_id: "case-7",
        })
        .unwrap()
}

fn error(text: &str) -> String {
    PromptTemplate::parse("the file", text).unwrap_err().to_string()
}

/// A toy of the published kind: instruction, key, labels and rules first; then context and response; then the cue.
#[test]
fn a_users_template_gives_exactly_its_bytes() {
    let source = "Do it.\n\nKey: {{ dimension.released_key }} ({{ case_id }})\n{% for label in labels %}\
                  {{ label.letter }}: {{ label.description }}\n{% endfor %}Rules:\n- one\n\n\
                  {% for turn in context %}[{{ turn.speaker }}] {{ turn.text }}\n{% endfor %}\n\
                  Candidate: {{ response }}\r\n\nAnswer:\n\n";
    let template = PromptTemplate::parse("the file", source).unwrap();
    let expected = "Do it.\n\nKey: agenda_pattern (case-7)\nA: Opposite.\nB: Aligned one.\nC: Neither.\nRules:\n- one\n\n\
                    [User] Hello <b>\n\n[Agent]   Hi & bye\n\nCandidate: {{ response }} {% x %}\r\n\nAnswer:\n";
    for layout in [Layout::Shared, Layout::Released] {
        assert_eq!(render(&template, layout, Value::from(()), "{{ response }} {% x %}"), expected);
    }
}

#[test]
fn the_built_in_shared_layout_puts_what_is_common_first() {
    let template = PromptTemplate::load(None).unwrap();
    assert_eq!(
        render(&template, Layout::Shared, Value::from(()), "Sure."),
        "Dialogue:\nUser: Hello <b>\n\nAgent:   Hi & bye\n\nResponse:\nSure.\n\nWhat fits?\nA. Opposite.\n\
         B. Aligned one.\nC. Neither.\nAnswer with one letter."
    );
    let persona = context! { name => "Bo", traits => ["high openness", "low neuroticism"], text => "A cat." };
    let text = render(&template, Layout::Shared, persona, "Sure.");
    assert!(text.starts_with("Persona (Bo):\nhigh openness, low neuroticism\nA cat.\n\nDialogue:\n"), "{text}");
}

#[test]
fn the_built_in_released_layout_puts_the_labels_first() {
    let template = PromptTemplate::load(None).unwrap();
    assert_eq!(
        render(&template, Layout::Released, Value::from(()), "Sure."),
        "What fits?\nA. Opposite.\nB. Aligned one.\nC. Neither.\n\nDialogue:\nUser: Hello <b>\n\nAgent:   Hi & bye\n\n\
         Response:\nSure.\n\nAnswer with one letter."
    );
}

#[test]
fn a_template_that_cannot_judge_is_refused_at_load() {
    let labels = "{% for label in labels %}{{ label.description }}{% endfor %}";
    assert!(error("{{ respnse }}").contains("unknown variable(s) respnse: allowed are layout, dimension, labels, "));
    assert!(error(&format!("{labels}{{{{ response }}}}{{{{ dimension.nam }}}}")).contains("undefined"));
    assert!(error(labels).contains("leaves out `response`"));
    assert!(error("{{ response }} {{ labels[0].description }}").contains("leaves out <second label>"));
    assert!(error("{% for %}").contains("syntax error"));
    let endless = "{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}";
    assert!(error(&format!("{endless}{labels}{{{{ response }}}}")).contains("shorten its loops"));
    assert!(error(&format!("{labels}{{{{ response }}}}{{{{ persona.name }}}}")).contains("undefined"));
}

#[test]
fn a_missing_file_is_named() {
    let error = PromptTemplate::load(Some(Path::new("no/such.jinja"))).unwrap_err().to_string();
    assert!(error.starts_with("the prompt template no/such.jinja cannot be read: "), "{error}");
}

#[test]
fn a_template_tells_whether_its_prompts_may_depend_on_the_id() {
    let labels = "{{ response }}{% for label in labels %}{{ label.description }}{% endfor %}";
    let shows = |text: &str| PromptTemplate::parse("the file", &format!("{labels}{text}")).unwrap().shows_id();
    assert!(!shows("") && !PromptTemplate::load(None).unwrap().shows_id());
    assert!(shows("{{ case_id }}") && shows("{% if case_id == 'x' %}y{% endif %}") && shows("{{ debug() }}"));
}
