//! Reads a file or standard input line by line, on a thread of its own so that Ctrl-C never waits for a line.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use super::CliError;
use super::interrupt::Interrupt;
use crate::eval::BadLine;

/// Longest line, in bytes. A group of 10,000 candidates of 4 kB each fits.
const LINE_LIMIT: u64 = 64 << 20;

/// Lines that are read ahead of the work: few, because each may be long.
const AHEAD: usize = 2;

/// What the reader sends.
pub enum Event {
    Line(Line),
    /// The input is at its end.
    End,
    Failed(io::Error),
    /// Ctrl-C was pressed.
    Interrupt,
}

/// One line that is not blank.
pub struct Line {
    /// From 1; blank lines count.
    pub number: usize,
    /// The text without its line end and, on line 1, without a byte order mark.
    pub text: Result<String, BadLine>,
    /// Bytes of the input up to the end of this line.
    pub read: u64,
}

/// A file or standard input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    Stdin,
    File(PathBuf),
}

impl Source {
    /// `-` is standard input.
    pub fn new(path: &Path) -> Self {
        if path == Path::new("-") { Self::Stdin } else { Self::File(path.to_owned()) }
    }

    pub fn name(&self) -> String {
        match self {
            Self::Stdin => "-".to_owned(),
            Self::File(path) => path.display().to_string(),
        }
    }

    /// Tells at once, before a model is loaded, that a file cannot be read.
    pub fn check(&self) -> Result<(), CliError> {
        let Self::File(path) = self else { return Ok(()) };
        let file = std::fs::metadata(path).map_err(|error| CliError::file(path, &error))?;
        if file.is_dir() {
            return Err(CliError::Failed(format!("{}: is a folder, not a file", path.display())));
        }
        Ok(())
    }

    /// Size in bytes, if it is known before reading.
    pub fn size(&self) -> Option<u64> {
        match self {
            Self::Stdin => None,
            Self::File(path) => path.metadata().ok().filter(|file| file.is_file()).map(|file| file.len()),
        }
    }

    /// Opens the source and starts to read it.
    pub fn lines(&self, interrupt: &Interrupt) -> Result<Receiver<Event>, CliError> {
        let reader: Box<dyn Read + Send> = match self {
            Self::Stdin => Box::new(io::stdin()),
            Self::File(path) => {
                self.check()?;
                Box::new(File::open(path).map_err(|error| CliError::file(path, &error))?)
            }
        };
        let (sender, receiver) = sync_channel(AHEAD);
        interrupt.wake(sender.clone());
        thread::Builder::new()
            .name("reader".to_owned())
            .spawn(move || read(BufReader::new(reader), &sender))
            .map_err(|error| CliError::Failed(format!("cannot start the reader: {error}")))?;
        Ok(receiver)
    }
}

/// Sends every line until the end, an error, or a receiver that is gone.
fn read(mut reader: impl BufRead, sender: &SyncSender<Event>) {
    let (mut number, mut read) = (0, 0);
    loop {
        number += 1;
        let line = match next(&mut reader, number, &mut read) {
            Ok(Some(text)) => Event::Line(Line { number, text, read }),
            Ok(None) => Event::End,
            Err(error) => Event::Failed(error),
        };
        let blank = matches!(&line, Event::Line(Line { text: Ok(text), .. }) if text.trim().is_empty());
        let last = !matches!(line, Event::Line(_));
        if (!blank && sender.send(line).is_err()) || last {
            return;
        }
    }
}

/// The next line, or None at the end.
fn next(reader: &mut impl BufRead, number: usize, read: &mut u64) -> io::Result<Option<Result<String, BadLine>>> {
    let mut bytes = Vec::new();
    let length = reader.by_ref().take(LINE_LIMIT).read_until(b'\n', &mut bytes)? as u64;
    if length == 0 {
        return Ok(None);
    }
    *read += length;
    let bad = |message| BadLine { id: None, line: number, message };
    if length == LINE_LIMIT && !bytes.ends_with(b"\n") {
        *read += reader.skip_until(b'\n')? as u64;
        return Ok(Some(Err(bad(format!("the line is longer than {} MiB; split the group", LINE_LIMIT >> 20)))));
    }
    let mut text = &bytes[..];
    if number == 1 {
        text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
    }
    text = text.strip_suffix(b"\n").unwrap_or(text);
    text = text.strip_suffix(b"\r").unwrap_or(text);
    let text = match std::str::from_utf8(text) {
        Ok(text) => Ok(text.to_owned()),
        Err(error) => Err(bad(format!("not UTF-8 from byte {} of the line on", error.valid_up_to() + 1))),
    };
    Ok(Some(text))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use super::*;

    fn lines(input: &[u8]) -> Vec<(usize, Result<String, String>)> {
        let (sender, receiver) = sync_channel(100);
        read(input, &sender);
        drop(sender);
        receiver
            .into_iter()
            .filter_map(|event| match event {
                Event::Line(line) => Some((line.number, line.text.map_err(|bad| bad.message))),
                _ => None,
            })
            .collect()
    }

    #[test]
    fn blank_lines_count_but_are_not_sent_and_line_ends_are_dropped() {
        let expected = [(1, Ok("a".to_owned())), (3, Ok("b".to_owned())), (4, Ok("c".to_owned()))];
        assert_eq!(lines(b"\xef\xbb\xbfa\r\n \t\r\nb\nc"), expected);
        assert_eq!(lines(b""), []);
    }

    #[test]
    fn a_line_that_is_not_text_is_an_error_of_that_line_alone() {
        let found = lines(b"ab\xff\nok\n");
        assert_eq!(found[0], (1, Err("not UTF-8 from byte 3 of the line on".to_owned())));
        assert_eq!(found[1], (2, Ok("ok".to_owned())));
    }

    #[test]
    fn a_line_over_the_limit_is_skipped_to_its_end() {
        let mut input = vec![b'x'; LINE_LIMIT as usize + 5];
        input.extend_from_slice(b"\nok\n");
        let found = lines(&input);
        assert!(found[0].1.as_ref().is_err_and(|message| message.contains("64 MiB")));
        assert_eq!(found[1], (2, Ok("ok".to_owned())));
    }
}
