//! The label-slot prompt: one user message, rendered from a template file.

use std::path::{Path, PathBuf};

use minijinja::{Environment, Value, context};

use super::{Dimension, Label, LabelSpace, Layout, Turn, jinja};
use crate::digest::Digest;
use crate::persona::Profile;

const BUILT_IN: &str = include_str!("../../data/prompt.jinja");
const NAME: &str = "prompt";
const VARIABLES: [&str; 7] = ["layout", "dimension", "labels", "context", "response", "persona", "case_id"];

/// A prompt template that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TemplateError {
    #[error("the prompt template {path} cannot be read: {source}")]
    Read { path: PathBuf, source: std::io::Error },
    #[error("{origin} is not usable: {message}")]
    Invalid { origin: String, message: String },
    #[error("the prompt template cannot be rendered: {0}")]
    Render(String),
}

/// The template, compiled. Its variables and its rules of white space are described in the built-in file.
#[derive(Debug)]
pub struct PromptTemplate {
    environment: Environment<'static>,
    digest: Digest,
    shows_id: bool,
}

/// What one prompt is made from.
pub(super) struct PromptInput<'a> {
    pub layout: Layout,
    pub space: &'a LabelSpace,
    /// The displayed order.
    pub order: [Label; 3],
    /// From [`context_value`].
    pub context: Value,
    /// From [`persona_value`], or none.
    pub persona: Value,
    pub response: &'a str,
    pub case_id: &'a str,
}

/// Letters of the labels, in displayed order.
pub(super) const LETTERS: [&str; 3] = ["A", "B", "C"];

impl PromptTemplate {
    /// Loads a file, or the built-in template for None.
    ///
    /// # Errors
    /// [`TemplateError`]: the file cannot be read or parsed, uses an unknown variable, fails on sample values, or leaves
    /// out the response or a label's description.
    pub fn load(path: Option<&Path>) -> Result<Self, TemplateError> {
        let Some(path) = path else { return Self::parse("the built-in prompt template", BUILT_IN) };
        let text =
            std::fs::read_to_string(path).map_err(|source| TemplateError::Read { path: path.to_owned(), source })?;
        Self::parse(&format!("the prompt template {}", path.display()), &text)
    }

    /// Reads a template's text; `origin` names it in errors.
    ///
    /// # Errors
    /// As [`PromptTemplate::load`].
    pub fn parse(origin: &str, text: &str) -> Result<Self, TemplateError> {
        let invalid = |message| TemplateError::Invalid { origin: origin.to_owned(), message };
        let mut environment = jinja::environment();
        environment.add_template_owned(NAME, text.to_owned()).map_err(|error| invalid(jinja::message(&error)))?;
        let template = environment.get_template(NAME).map_err(|error| invalid(jinja::message(&error)))?;
        let unknown = jinja::unknown_variables(&template, &VARIABLES);
        if !unknown.is_empty() {
            let (unknown, allowed) = (unknown.join(", "), VARIABLES.join(", "));
            return Err(invalid(format!("it uses the unknown variable(s) {unknown}: allowed are {allowed}")));
        }
        // `debug()` prints all variables.
        let used = template.undeclared_variables(false);
        let shows_id = used.contains("case_id") || used.contains("debug");
        let prompt = Self { environment, digest: Digest::of_bytes(text.as_bytes()), shows_id };
        prompt.try_out().map_err(invalid)?;
        Ok(prompt)
    }

    /// SHA-256 of the file's bytes.
    pub fn digest(&self) -> Digest {
        self.digest
    }

    /// Whether a prompt may depend on the candidate's id.
    pub fn shows_id(&self) -> bool {
        self.shows_id
    }

    /// Renders the user message.
    pub(super) fn render(&self, input: &PromptInput) -> Result<String, TemplateError> {
        let space = input.space;
        let labels = input.order.iter().zip(LETTERS).map(|(label, letter)| {
            context! { letter, label => label.name(), description => space.description(*label) }
        });
        let variables = context! {
            layout => match input.layout { Layout::Shared => "shared", Layout::Released => "released" },
            dimension => context! {
                name => &space.name,
                key => space.dimension.name(),
                released_key => &space.released_key,
                question => &space.question,
            },
            labels => labels.collect::<Vec<Value>>(),
            context => input.context.clone(),
            persona => input.persona.clone(),
            response => input.response,
            case_id => input.case_id,
        };
        let render = |template: minijinja::Template| template.render(variables);
        self.environment
            .get_template(NAME)
            .and_then(render)
            .map_err(|error| TemplateError::Render(jinja::message(&error)))
    }

    /// Renders sample values in both layouts, with and without a persona block and a context.
    fn try_out(&self) -> Result<(), String> {
        let space = LabelSpace {
            dimension: Dimension::TaskFraming,
            name: "name".to_owned(),
            released_key: "key".to_owned(),
            question: "question".to_owned(),
            descriptions: ["<first label>", "<second label>", "<third label>"].map(str::to_owned),
            role: Default::default(),
            note: Default::default(),
        };
        let turns = [Turn { speaker: "speaker".to_owned(), text: "text".to_owned() }];
        let persona = context! { name => "name", traits => ["trait"], text => "text" };
        let unnamed = context! { name => (), traits => Vec::<Value>::new(), text => "text" };
        for layout in [Layout::Shared, Layout::Released] {
            for persona in [Value::from(()), persona.clone(), unnamed.clone()] {
                for context in [&turns[..], &[]] {
                    let text = self
                        .render(&PromptInput {
                            layout,
                            space: &space,
                            order: Label::ALL,
                            context: context_value(context),
                            persona: persona.clone(),
                            response: "<the response>",
                            case_id: "case",
                        })
                        .map_err(|error| error.to_string())?;
                    if !text.contains("<the response>") {
                        return Err("it leaves out `response`: print {{ response }}".to_owned());
                    }
                    if let Some(missing) = space.descriptions.iter().find(|description| !text.contains(*description)) {
                        return Err(format!("it leaves out {missing}: print the description of every label"));
                    }
                }
            }
        }
        Ok(())
    }
}

/// The context as template values.
pub(super) fn context_value(context: &[Turn]) -> Value {
    context.iter().map(|turn| context! { speaker => &turn.speaker, text => &turn.text }).collect()
}

/// The persona block as template values.
pub(super) fn persona_value(profile: &Profile) -> Value {
    let traits: Vec<String> =
        profile.traits.iter().map(|target| format!("{} {}", target.polarity, target.trait_)).collect();
    context! { name => profile.name.as_deref(), traits, text => profile.text() }
}

#[cfg(test)]
mod tests;
