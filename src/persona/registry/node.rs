//! A value of a file, whether it was TOML, YAML or JSON.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};

use super::id;

/// What the `toml` crate calls the only key of a date.
const DATE: &str = "$__toml_private_datetime";

/// The fields of a table, in the order of their names.
pub type Table = BTreeMap<String, Node>;

/// A value. Only texts mean something to a persona: of others the kind is kept, for messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Node {
    Nothing,
    Boolean,
    Number,
    Date,
    Text(String),
    List(Vec<Node>),
    Table(Table),
}

impl Node {
    /// In words, with an article.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Nothing => "empty",
            Self::Boolean => "true or false",
            Self::Number => "a number",
            Self::Date => "a date or a time",
            Self::Text(_) => "a text",
            Self::List(_) => "a list",
            Self::Table(_) => "a table",
        }
    }

    /// Whether nothing is said: no value, an empty text, list or table.
    pub fn is_empty(&self) -> bool {
        match self {
            Self::Nothing => true,
            Self::Boolean | Self::Number | Self::Date => false,
            Self::Text(text) => text.trim().is_empty(),
            Self::List(items) => items.is_empty(),
            Self::Table(table) => table.is_empty(),
        }
    }
}

/// From JSON and TOML. A key that stands twice in a table is an error: a persona must not be lost in silence.
impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Any)
    }
}

struct Any;

impl<'de> Visitor<'de> for Any {
    type Value = Node;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_unit<E: Error>(self) -> Result<Node, E> {
        Ok(Node::Nothing)
    }

    fn visit_none<E: Error>(self) -> Result<Node, E> {
        Ok(Node::Nothing)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Node, D::Error> {
        Node::deserialize(deserializer)
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<Node, E> {
        Ok(Node::Boolean)
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<Node, E> {
        Ok(Node::Number)
    }

    fn visit_i128<E: Error>(self, _: i128) -> Result<Node, E> {
        Ok(Node::Number)
    }

    fn visit_u64<E: Error>(self, _: u64) -> Result<Node, E> {
        Ok(Node::Number)
    }

    fn visit_u128<E: Error>(self, _: u128) -> Result<Node, E> {
        Ok(Node::Number)
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<Node, E> {
        Ok(Node::Number)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Node, E> {
        Ok(Node::Text(text.to_owned()))
    }

    fn visit_string<E: Error>(self, text: String) -> Result<Node, E> {
        Ok(Node::Text(text))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Node, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(Node::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Node, A::Error> {
        let mut table = Table::new();
        while let Some(key) = fields.next_key::<String>()? {
            if key == DATE {
                fields.next_value::<Node>()?;
                return Ok(Node::Date);
            }
            let value = fields.next_value()?;
            if table.contains_key(&key) {
                return Err(A::Error::custom(format_args!("{} stands there twice", id::shown(&key))));
            }
            table.insert(key, value);
        }
        Ok(Node::Table(table))
    }
}
