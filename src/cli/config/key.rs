//! One setting: its names, what it takes, and how its value may be shown.

use std::error::Error as _;
use std::ffi::{OsStr, OsString};

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, Command};

use super::environment::PREFIX;
use super::kind::Kind;
use super::redact;

/// Most characters of a wrong value that are shown.
const SHOWN: usize = 80;

/// A flag that is a setting, whatever it is given by.
#[derive(Clone, Debug)]
pub struct Key {
    arg: Arg,
    long: String,
    word: String,
}

impl Key {
    /// None for what has no long name.
    pub fn of(arg: &Arg) -> Option<Self> {
        let long = arg.get_long()?;
        Some(Self { arg: arg.clone(), long: long.to_owned(), word: long.replace('-', "_") })
    }

    /// Its name in a file.
    pub fn word(&self) -> &str {
        &self.word
    }

    pub fn variable(&self) -> String {
        format!("{PREFIX}{}", self.word.to_uppercase())
    }

    pub fn long(&self) -> &str {
        &self.long
    }

    /// clap's name of the flag.
    pub fn id(&self) -> &str {
        self.arg.get_id().as_str()
    }

    /// The flag with a value.
    pub fn flag(&self, value: &OsStr) -> OsString {
        let mut flag = OsString::from(format!("--{}=", self.long));
        flag.push(value);
        flag
    }

    /// The flag as help shows it. (clap can only write one that is part of a finished command.)
    pub fn usage(&self) -> String {
        let name = self.arg.get_value_names().and_then(<[_]>::first);
        name.map_or_else(|| format!("--{}", self.long), |name| format!("--{} <{name}>", self.long))
    }

    pub fn kind(&self) -> Kind {
        Kind::of(&self.arg)
    }

    /// The value that holds where nobody gives one.
    pub fn default(&self) -> Option<&OsStr> {
        self.arg.get_default_values().first().map(|value| &**value)
    }

    /// Heading in the help.
    pub fn heading(&self) -> &str {
        self.arg.get_help_heading().unwrap_or("Server")
    }

    /// The first sentence of the help, without its full stop.
    pub fn summary(&self) -> String {
        let help = self.arg.get_help().map(ToString::to_string).unwrap_or_default();
        let words: Vec<&str> = help.split_whitespace().collect();
        let help = words.join(" ");
        let sentence = help.split(". ").next().unwrap_or_default();
        sentence.trim_end_matches('.').to_owned()
    }

    /// The value as anybody may see it: that of a flag with `hide_env_values` is a secret, of a URL its login and its parameters.
    pub fn shown(&self, value: &OsStr) -> String {
        let text = value.to_string_lossy();
        let secret = self.arg.is_hide_env_values_set() && !redact::is_url(&text);
        if secret { redact::MARK.to_owned() } else { redact::url(&text) }
    }

    /// The same on one line and not too long, for messages.
    pub fn shown_short(&self, value: &OsStr) -> String {
        short(&self.shown(value))
    }

    /// Whether the flag's own parser takes the value; if not, what is allowed.
    pub fn check(&self, value: &OsStr) -> Result<(), String> {
        const PROBE: &str = "probe";
        if redact::is_redacted(&value.to_string_lossy()) {
            return Err(format!("its secret was taken out when it was printed; put it in place of {}", redact::MARK));
        }
        // By itself: what other flags it needs or excludes is no matter of the value.
        let parser = self.arg.get_value_parser().clone();
        let probe = Arg::new(PROBE).long(PROBE).value_parser(parser).ignore_case(self.arg.is_ignore_case_set());
        let mut flag = OsString::from("--probe=");
        flag.push(value);
        let command = Command::new(PROBE).no_binary_name(true).disable_help_flag(true).arg(probe);
        command.try_get_matches_from([flag]).map(drop).map_err(|error| self.reason(&error, value))
    }

    fn reason(&self, error: &clap::Error, value: &OsStr) -> String {
        let reason = match (error.source(), error.get(ContextKind::ValidValue)) {
            _ if error.kind() == ErrorKind::InvalidUtf8 => "it must be UTF-8".to_owned(),
            (Some(source), _) => source.to_string(),
            (_, Some(ContextValue::Strings(allowed))) if !allowed.is_empty() => {
                format!("it must be one of: {}", allowed.join(", "))
            }
            _ => "it must not be empty".to_owned(),
        };
        let (text, shown) = (value.to_string_lossy(), self.shown(value));
        let reason = if shown == text || text.is_empty() { reason } else { reason.replace(&*text, &shown) };
        match self.kind() {
            // Parsers that are not ours tell what they met, not what they take.
            kind @ (Kind::Boolean | Kind::Whole | Kind::Number) if !reason.starts_with("it must") => {
                format!("it must be {}: {reason}", kind.described())
            }
            _ => reason,
        }
    }
}

/// A value on one line, cut where it is long.
pub fn short(value: &str) -> String {
    let mut short: String = value.chars().take(SHOWN).flat_map(char::escape_debug).collect();
    if value.chars().nth(SHOWN).is_some() {
        short.push('…');
    }
    short
}
