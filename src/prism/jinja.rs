//! The template engine's settings, the same for prompt templates and label-space texts.

use minijinja::{AutoEscape, Environment, ErrorKind, UndefinedBehavior};

/// Steps that one rendering may take, about a second of them: a prompt that fits into a model takes thousands.
const STEPS: u64 = 10_000_000;

/// No escaping, and an error instead of work without end. An undefined variable is an error wherever it is printed,
/// tested or passed on.
pub(super) fn environment() -> Environment<'static> {
    let mut environment = Environment::new();
    environment.set_auto_escape_callback(|_| AutoEscape::None);
    environment.set_fuel(Some(STEPS));
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment
}

/// The whole chain of an error, in one line.
pub(super) fn message(error: &minijinja::Error) -> String {
    if error.kind() == ErrorKind::OutOfFuel {
        return format!("it takes more than {STEPS} steps: shorten its loops");
    }
    let mut text = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}

/// Names that the template uses and that are not in `allowed`, sorted.
pub(super) fn unknown_variables(template: &minijinja::Template<'_, '_>, allowed: &[&str]) -> Vec<String> {
    let globals = ["range", "dict", "namespace", "debug", "cycler", "joiner", "lipsum"];
    let mut unknown: Vec<String> = template.undeclared_variables(false).into_iter().collect();
    unknown.retain(|name| !allowed.contains(&name.as_str()) && !globals.contains(&name.as_str()));
    unknown.sort();
    unknown
}
