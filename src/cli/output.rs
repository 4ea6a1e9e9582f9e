//! Where results go, and the JSON of a failed judgement.

use std::fmt::Display;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use serde_json::{Value, json};

use super::CliError;
use crate::service::JudgeError;

/// Standard output, or a file that is replaced.
pub fn writer(path: Option<&Path>) -> Result<Box<dyn Write>, CliError> {
    match path {
        None => Ok(Box::new(BufWriter::new(io::stdout().lock()))),
        Some(path) => {
            let file = File::create(path).map_err(|error| CliError::file(path, &error))?;
            Ok(Box::new(BufWriter::new(file)))
        }
    }
}

/// Refuses to replace the input by what `flag` writes.
pub fn refuse_input(flag: &str, output: &Path, input: &Path) -> Result<(), CliError> {
    match (input.canonicalize(), output.canonicalize()) {
        (Ok(input), Ok(output)) if input == output => {
            Err(CliError::Setting(format!("{flag} {} is the input itself; choose another file", output.display())))
        }
        _ => Ok(()),
    }
}

/// Writes a finished text to standard output.
pub fn print(text: &str) -> Result<(), CliError> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()).map_err(|error| CliError::write(&error))
}

/// Tells people something on standard error. Nobody may be there to read it, which must not end the work as `eprintln!`
/// would.
pub fn tell(text: &dyn Display) {
    let _ = writeln!(io::stderr(), "{text}");
}

/// Writes one value as one line.
pub fn line(writer: &mut dyn Write, value: &impl serde::Serialize) -> io::Result<()> {
    serde_json::to_writer(&mut *writer, value)?;
    writer.write_all(b"\n")
}

/// The error object of one response.
pub fn error(id: &str, line: usize, error: &JudgeError) -> Value {
    json!({"id": id, "line": line, "error": {"code": error.code, "message": message(error)}})
}

/// The message of an error, led by the field at fault. A caller of the command line wrote lines, not requests: the
/// place in the request's candidates means nothing there.
pub fn message(error: &JudgeError) -> String {
    let Some(field) = error.field.as_deref() else { return error.message.clone() };
    let field = match field.strip_prefix("candidates[").and_then(|rest| rest.split_once("].")) {
        Some((_, field)) => field,
        None => field,
    };
    if error.message.contains(field) { error.message.clone() } else { format!("{field}: {}", error.message) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::service::ErrorCode;

    #[test]
    fn an_error_names_the_field_of_the_line() {
        let invalid = JudgeError::invalid("candidates[3].response", "is empty");
        assert_eq!(
            error("a", 2, &invalid).to_string(),
            r#"{"id":"a","line":2,"error":{"code":"invalid_argument","message":"response: is empty"}}"#
        );
        assert_eq!(message(&JudgeError::invalid("persona", "persona has no traits")), "persona has no traits");
        assert_eq!(message(&JudgeError::new(ErrorCode::Internal, "x")), "x");
    }
}
