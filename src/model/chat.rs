//! The model's own chat template, rendered as Hugging Face transformers renders it.

use std::borrow::Cow;

use minijinja::syntax::SyntaxConfig;
use minijinja::value::Kwargs;
use minijinja::{Environment, Error, ErrorKind, Value, context};

use super::{Gguf, ModelError, Tokenizer};

const NAME: &str = "chat_template";

/// One message of a conversation. The text is untrusted; the role is the caller's own word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChatMessage<'a> {
    pub role: &'a str,
    pub text: &'a str,
}

/// A turn as the template sees it.
#[derive(Clone, Debug)]
pub(super) struct Turn<'a> {
    pub role: &'a str,
    pub text: Cow<'a, str>,
}

impl<'a> Turn<'a> {
    /// The same turn with another text.
    pub fn with_text(&self, text: impl Into<Cow<'a, str>>) -> Self {
        Self { role: self.role, text: text.into() }
    }
}

/// A compiled chat template.
///
/// Deterministic: a template that asks for today's date (`strftime_now`) always gets 26 July 2024, the date that
/// Llama 3's template falls back to. Templates that can switch a thinking phase off (`enable_thinking`) have it off,
/// because the answer slot must follow at once.
pub struct ChatTemplate {
    environment: Environment<'static>,
    source: String,
    bos: String,
    eos: String,
    system: SystemTurn,
}

/// What becomes of a leading system message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SystemTurn {
    /// The template has a place for it.
    Own,
    /// The template refuses or drops it: its text goes before the first user message, with an empty line between.
    MergedIntoUser,
}

impl ChatTemplate {
    /// Reads `tokenizer.chat_template`.
    pub fn from_gguf(gguf: &Gguf, tokenizer: &Tokenizer) -> Result<Self, ModelError> {
        let source = gguf.string("tokenizer.chat_template").map_err(|_| {
            ModelError::ChatTemplate(
                "the file has none (tokenizer.chat_template); use an instruction-tuned model".to_owned(),
            )
        })?;
        let text = |id: Option<u32>| id.map(|id| tokenizer.token_text(id)).unwrap_or_default();
        Self::new(source, text(tokenizer.bos()), text(tokenizer.eos()))
    }

    /// Compiles `source` and finds out, with harmless texts, whether it has a place for a system message.
    pub fn new(source: &str, bos: String, eos: String) -> Result<Self, ModelError> {
        let mut environment = Environment::new();
        environment.set_syntax(
            SyntaxConfig::builder()
                .trim_blocks(true)
                .lstrip_blocks(true)
                .build()
                .map_err(|error| ModelError::ChatTemplate(error.to_string()))?,
        );
        // A template that loops without end is an error; a conversation that fits into a model takes thousands of steps.
        environment.set_fuel(Some(10_000_000));
        environment.set_unknown_method_callback(minijinja_contrib::pycompat::unknown_method_callback);
        environment.add_function("raise_exception", raise_exception);
        environment.add_function("strftime_now", strftime_now);
        environment.add_filter("tojson", tojson);
        environment
            .add_template_owned(NAME, source.to_owned())
            .map_err(|error| ModelError::ChatTemplate(format!("does not compile: {}", chain(&error))))?;
        let mut template = Self { environment, source: source.to_owned(), bos, eos, system: SystemTurn::Own };
        if let Err(refusal) = template.try_system_turn() {
            template.system = SystemTurn::MergedIntoUser;
            template.try_system_turn().map_err(|_| ModelError::ChatTemplate(refusal))?;
        }
        Ok(template)
    }

    fn try_system_turn(&self) -> Result<(), String> {
        let messages =
            [ChatMessage { role: "system", text: "guidance" }, ChatMessage { role: "user", text: "question" }];
        let text = self.render(&self.arrange(&messages), true)?;
        if text.contains("guidance") && text.contains("question") {
            Ok(())
        } else {
            Err("drops the text of a system or user message".to_owned())
        }
    }

    /// The turns of a conversation, after a system message found its place.
    pub(super) fn arrange<'a>(&self, messages: &[ChatMessage<'a>]) -> Vec<Turn<'a>> {
        let turn = |message: &ChatMessage<'a>| Turn { role: message.role, text: Cow::Borrowed(message.text) };
        match (self.system, messages) {
            (SystemTurn::MergedIntoUser, [system, rest @ ..]) if system.role == "system" => match rest {
                [user, rest @ ..] if user.role == "user" => {
                    let merged = Turn { role: "user", text: Cow::Owned(format!("{}\n\n{}", system.text, user.text)) };
                    std::iter::once(merged).chain(rest.iter().map(turn)).collect()
                }
                _ => std::iter::once(Turn { role: "user", ..turn(system) }).chain(rest.iter().map(turn)).collect(),
            },
            _ => messages.iter().map(turn).collect(),
        }
    }

    /// Renders turns; the error is the template's own message.
    pub(super) fn render(&self, turns: &[Turn<'_>], add_generation_prompt: bool) -> Result<String, String> {
        let message = |turn: &Turn<'_>| context! { role => turn.role, content => turn.text.as_ref() };
        let messages = Value::from_iter(turns.iter().map(message));
        let context = context! {
            messages,
            add_generation_prompt,
            bos_token => self.bos.as_str(),
            eos_token => self.eos.as_str(),
            // transformers passes both as None, and templates test `is not none`.
            tools => (),
            documents => (),
            enable_thinking => false,
        };
        self.environment.get_template(NAME).and_then(|template| template.render(context)).map_err(|error| chain(&error))
    }

    /// The template's source.
    pub fn source(&self) -> &str {
        &self.source
    }
}

fn raise_exception(message: String) -> Result<Value, Error> {
    Err(Error::new(ErrorKind::InvalidOperation, message))
}

/// A fixed 26 July 2024, midnight: prompts must not change with the calendar.
fn strftime_now(format: String) -> Result<String, Error> {
    let mut out = String::new();
    let mut chars = format.chars();
    while let Some(char) = chars.next() {
        if char != '%' {
            out.push(char);
            continue;
        }
        out.push_str(match chars.next() {
            Some('d' | 'e') => "26",
            Some('m') => "07",
            Some('b' | 'h') => "Jul",
            Some('B') => "July",
            Some('y') => "24",
            Some('Y') => "2024",
            Some('a') => "Fri",
            Some('A') => "Friday",
            Some('F') => "2024-07-26",
            Some('H' | 'M' | 'S') => "00",
            Some('%') => "%",
            other => {
                let directive = other.map(String::from).unwrap_or_default();
                let message = format!("strftime_now does not know %{directive}");
                return Err(Error::new(ErrorKind::InvalidOperation, message));
            }
        });
    }
    Ok(out)
}

/// transformers' `tojson`: `json.dumps(..., ensure_ascii=False)`, without the HTML escapes of Jinja's own filter.
fn tojson(value: &Value, indent: Option<Value>, options: Kwargs) -> Result<String, Error> {
    let escaped = minijinja::filters::tojson(value, indent, options)?.to_string();
    let mut out = String::with_capacity(escaped.len());
    let mut rest = escaped.as_str();
    while let Some(at) = rest.find('\\') {
        let (before, escape) = rest.split_at(at);
        out.push_str(before);
        let plain = [("\\u003c", '<'), ("\\u003e", '>'), ("\\u0026", '&'), ("\\u0027", '\'')];
        if let Some((code, char)) = plain.iter().find(|(code, _)| escape.starts_with(code)) {
            out.push(*char);
            rest = &escape[code.len()..];
        } else {
            // The backslash and what it escapes, which is ASCII.
            let end = escape.len().min(2);
            out.push_str(&escape[..end]);
            rest = &escape[end..];
        }
    }
    out.push_str(rest);
    Ok(out)
}

/// A template error with its causes, on one line.
fn chain(error: &Error) -> String {
    let mut text = error.detail().map_or_else(|| error.to_string(), str::to_owned);
    let mut source = std::error::Error::source(error);
    while let Some(error) = source {
        text = format!("{text}: {error}");
        source = error.source();
    }
    text
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use super::*;

    fn render(source: &str, messages: &[(&str, &str)]) -> Result<String, String> {
        let template = ChatTemplate::new(source, "<s>".into(), "</s>".into()).map_err(|error| error.to_string())?;
        let messages: Vec<_> = messages.iter().map(|(role, text)| ChatMessage { role, text }).collect();
        template.render(&template.arrange(&messages), true)
    }

    const GEMMA: &str = "{{ bos_token }}{% if messages[0]['role'] == 'system' %}{{ raise_exception('System role not supported') }}{% endif %}\
        {% for message in messages %}{{ '[' + message['role'] + '] ' + message['content'].strip() + '\\n' }}{% endfor %}";

    #[test]
    fn a_template_that_refuses_a_system_message_gets_it_in_the_first_user_message() {
        let text = render(GEMMA, &[("system", "Be brief."), ("user", " Hi "), ("assistant", "Yo")]).unwrap();
        assert_eq!(text, "<s>[user] Be brief.\n\n Hi\n[assistant] Yo\n");
        assert_eq!(render(GEMMA, &[("system", "S"), ("assistant", "Yo")]).unwrap(), "<s>[user] S\n[assistant] Yo\n");
    }

    #[test]
    fn a_template_that_drops_a_system_message_gets_it_in_the_first_user_message() {
        let source = "{% for m in messages if m.role != 'system' %}{{ m.content }}|{% endfor %}";
        assert_eq!(render(source, &[("system", "S"), ("user", "U")]).unwrap(), "S\n\nU|");
    }

    #[test]
    fn a_template_that_renders_nothing_is_refused_with_the_reason() {
        let error = render("{{ raise_exception('never') }}", &[]).unwrap_err();
        assert!(error.contains("never"), "{error}");
        assert!(render("{% if %}", &[]).unwrap_err().contains("does not compile"));
    }

    #[test]
    fn blocks_are_trimmed_as_transformers_trims_them() {
        let source =
            "{% for m in messages %}\n    {% if true %}\n{{ m.content }},\n    {% endif %}\n{% endfor %}\nend\n";
        assert_eq!(render(source, &[("user", "a"), ("user", "b")]).unwrap(), "a,\nb,\nend");
    }

    #[test]
    fn the_date_never_changes_and_json_is_pythons() {
        let source = "{{ strftime_now('%d %b %Y') }} {{ {'a': messages[0].content, 'b': [1, 2]} | tojson }}{{ messages[1].content }}";
        let text = render(source, &[("user", "<it's> & \"\\u003c\" é"), ("user", "")]).unwrap();
        assert_eq!(text, "26 Jul 2024 {\"a\": \"<it's> & \\\"\\\\u003c\\\" é\", \"b\": [1, 2]}");
        let error = render("{{ strftime_now('%Q') }}", &[]).unwrap_err();
        assert!(error.contains("%Q"), "{error}");
    }
}
