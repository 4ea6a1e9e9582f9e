//! YAML as a value, without what makes a small file large or means something else than it says: aliases, tags and further
//! documents are refused, and every plain word is a text (the failsafe schema), so that `no` is "no" and `7` is "7".

use std::borrow::Cow;

use granit_parser::{ErrorKind, Event, Parser, ScalarStyle, ScanError, Span, Tag};

use super::id;
use super::node::{Node, Table};

/// How deep tables and lists may stand in each other.
const DEPTH: usize = 64;

const ALIAS: &str = "aliases (`*name`) are not taken; write the text out";

/// The only document of a text.
///
/// # Errors
/// The line, and what is wrong there.
pub fn parse(text: &str) -> Result<Node, String> {
    let mut reader = Reader(Parser::new_from_str(text));
    let mut document = None;
    loop {
        match reader.next()? {
            (Event::StreamEnd, _) => return Ok(document.unwrap_or(Node::Nothing)),
            (Event::StreamStart | Event::DocumentStart(..) | Event::DocumentEnd, _) => {}
            (_, line) if document.is_some() => return Err(at(line, "there is more than one document (`---`)")),
            (event, line) => document = Some(reader.node(event, line, DEPTH)?),
        }
    }
}

struct Reader<I>(I);

impl<'a, I: Iterator<Item = Result<(Event<'a>, Span), ScanError>>> Reader<I> {
    /// The next event and its line. The stream ends with an event of its own.
    fn next(&mut self) -> Result<(Event<'a>, usize), String> {
        match self.0.next() {
            Some(Ok((event, span))) => Ok((event, span.start.line())),
            Some(Err(error)) => {
                let line = error.marker().line();
                let unknown = matches!(error.kind(), ErrorKind::UnknownAnchor);
                // The parser's words quote no text but single characters.
                Err(if unknown { at(line, ALIAS) } else { at(line, &error.info()) })
            }
            None => Ok((Event::StreamEnd, 0)),
        }
    }

    /// The value that begins with an event.
    fn node(&mut self, event: Event<'a>, line: usize, depth: usize) -> Result<Node, String> {
        if depth == 0 {
            return Err(at(line, "tables and lists are nested too deeply"));
        }
        match event {
            Event::Scalar(text, style, _, tag) => untagged(tag, line).map(|()| scalar(text, style)),
            Event::SequenceStart(_, _, tag) => {
                untagged(tag, line)?;
                let mut items = Vec::new();
                loop {
                    match self.next()? {
                        (Event::SequenceEnd, _) => return Ok(Node::List(items)),
                        (event, line) => items.push(self.node(event, line, depth - 1)?),
                    }
                }
            }
            Event::MappingStart(_, _, tag) => {
                untagged(tag, line)?;
                let mut table = Table::new();
                loop {
                    let (key, line) = match self.next()? {
                        (Event::MappingEnd, _) => return Ok(Node::Table(table)),
                        (Event::Scalar(key, _, _, tag), line) => untagged(tag, line).map(|()| (key, line))?,
                        (_, line) => return Err(at(line, "a key must be a text")),
                    };
                    let (event, of_value) = self.next()?;
                    let value = self.node(event, of_value, depth - 1)?;
                    if table.contains_key(&*key) {
                        return Err(at(line, &format!("{} stands there twice", id::shown(&key))));
                    }
                    table.insert(key.into_owned(), value);
                }
            }
            Event::Alias(_) => Err(at(line, ALIAS)),
            _ => Err(at(line, "it is not understood")),
        }
    }
}

/// A plain word that stands for nothing is nothing; all others are texts.
fn scalar(text: Cow<'_, str>, style: ScalarStyle) -> Node {
    let nothing = style == ScalarStyle::Plain && matches!(&*text, "" | "~" | "null" | "Null" | "NULL");
    if nothing { Node::Nothing } else { Node::Text(text.into_owned()) }
}

fn untagged(tag: Option<Cow<'_, Tag>>, line: usize) -> Result<(), String> {
    tag.map_or(Ok(()), |_| Err(at(line, "tags (`!name`) are not taken")))
}

fn at(line: usize, reason: &str) -> String {
    format!("line {line}: this is not YAML that is taken here: {reason}")
}
