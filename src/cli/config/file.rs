//! Settings as a TOML file: flat, one key a setting.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use toml::de::{DeTable, DeValue};

use super::Found;
use super::key::{Key, short};
use super::kind::Kind;
use crate::near;

/// Bytes of a file, at most: what is longer is another file that was named by mistake.
const LONGEST: u64 = 1 << 20;

/// Keys of a table that are named, at most.
const SHOWN: usize = 3;

/// Reads the file at `path`.
pub fn read(path: &Path, keys: &[Key]) -> Found {
    let name = path.display().to_string();
    match text(path) {
        Ok(text) => parse(&name, &text, keys),
        Err(problem) => Found { problems: vec![format!("{name}: {problem}")], ..Found::default() },
    }
}

/// The text of a configuration file, or why there is none.
pub fn text(path: &Path) -> Result<String, String> {
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(|error| error.to_string())?;
    file.take(LONGEST + 1).read_to_end(&mut bytes).map_err(|error| error.to_string())?;
    if bytes.len() as u64 > LONGEST {
        return Err(format!("it is longer than {LONGEST} bytes; is it a configuration file?"));
    }
    String::from_utf8(bytes).map_err(|_| "it is not UTF-8".to_owned())
}

/// Reads the text of a file that is called `name`.
pub fn parse(name: &str, text: &str, keys: &[Key]) -> Found {
    let line = |start: usize| text.bytes().take(start).filter(|byte| *byte == b'\n').count() + 1;
    let (table, errors) = DeTable::parse_recoverable(text);
    let mut found = Found::default();
    // The line itself is not shown: it may hold a secret.
    found.problems.extend(errors.iter().map(|error| {
        let line = error.span().map_or_else(String::new, |span| format!(":{}", line(span.start)));
        format!("{name}{line}: {}", error.message())
    }));
    if !errors.is_empty() {
        return found;
    }
    let mut entries: Vec<_> = table.get_ref().iter().collect();
    entries.sort_by_key(|(word, _)| word.span().start);
    for (word, value) in entries {
        let place = format!("{name}:{}", line(word.span().start));
        match read_one(word.get_ref(), value.get_ref(), keys) {
            Ok(value) => _ = found.values.insert(word.get_ref().to_string(), value),
            Err(problem) => found.problems.push(format!("{place}: {problem}")),
        }
    }
    found
}

/// The value of one entry as a flag would be given it.
fn read_one(word: &str, value: &DeValue<'_>, keys: &[Key]) -> Result<OsString, String> {
    if let DeValue::Table(table) = value {
        return Err(flat(word, table, keys));
    }
    let Some(key) = keys.iter().find(|key| key.word() == word) else {
        let meant = near::meant(word, keys.iter().map(Key::word));
        return Err(format!("there is no key {}; nearest: {meant}", short(word)));
    };
    let (text, kind, fits) = match value {
        DeValue::String(text) => (text.to_string(), "a text", matches!(key.kind(), Kind::Text | Kind::Own)),
        DeValue::Integer(number) => {
            // Other bases are for readers; flags take decimal numbers.
            let decimal = i128::from_str_radix(number.as_str(), number.radix()).map(|number| number.to_string());
            let fits = matches!(key.kind(), Kind::Whole | Kind::Number | Kind::Own);
            (decimal.unwrap_or_else(|_| number.to_string()), "a whole number", fits)
        }
        DeValue::Float(number) => {
            (number.to_string(), "a number with a fraction", matches!(key.kind(), Kind::Number | Kind::Own))
        }
        DeValue::Boolean(value) => (value.to_string(), "true or false", key.kind() == Kind::Boolean),
        DeValue::Datetime(date) => (date.to_string(), "a date or a time", false),
        DeValue::Array(_) => ("[...]".to_owned(), "a list", false),
        DeValue::Table(_) => ("{...}".to_owned(), "a table", false),
    };
    let text = OsString::from(text);
    // Where the kind is wrong, the parser may still know best what is allowed.
    let reason = match key.check(&text) {
        Ok(()) if fits => return Ok(text),
        Ok(()) if key.kind() == Kind::Text => "it must be a text in quotes".to_owned(),
        Ok(()) => format!("it must be {}", key.kind().described()),
        Err(reason) => reason,
    };
    let quote = if matches!(value, DeValue::String(_)) { "\"" } else { "" };
    Err(format!("{word} = {quote}{}{quote} ({kind}): {reason}", key.shown_short(OsStr::new(&text))))
}

/// Says where the keys of a table belong.
fn flat(word: &str, table: &DeTable<'_>, keys: &[Key]) -> String {
    let known = |word: &String| keys.iter().any(|key| key.word() == word);
    let inner = table.iter().map(|(inner, _)| inner.get_ref());
    let meant: Vec<String> = inner
        .filter_map(|inner| [format!("{word}_{inner}"), inner.to_string()].into_iter().find(known))
        .take(SHOWN)
        .collect();
    let meant = if meant.is_empty() { String::new() } else { format!("; write {}", meant.join(", ")) };
    format!("{} is a table, but keys stand at the top, without sections{meant}", short(word))
}
