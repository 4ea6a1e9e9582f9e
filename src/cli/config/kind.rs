//! What a value looks like in a file.

use std::any::TypeId;

use clap::Arg;

/// What the parser of a flag makes of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Boolean,
    Whole,
    Number,
    Text,
    /// A type of our own: its parser says what it takes.
    Own,
}

impl Kind {
    pub fn of(arg: &Arg) -> Self {
        let parser = arg.get_value_parser();
        let made = |types: &[TypeId]| types.iter().any(|of| parser.type_id() == *of);
        if made(&[TypeId::of::<bool>()]) {
            return Self::Boolean;
        }
        if made(&[TypeId::of::<f64>(), TypeId::of::<f32>()]) {
            return Self::Number;
        }
        let unsigned = [TypeId::of::<usize>(), TypeId::of::<u64>(), TypeId::of::<u32>(), TypeId::of::<u16>()];
        if made(&unsigned) || made(&[TypeId::of::<u8>(), TypeId::of::<i64>(), TypeId::of::<i32>()]) {
            return Self::Whole;
        }
        let texts = [TypeId::of::<String>(), TypeId::of::<std::path::PathBuf>(), TypeId::of::<std::ffi::OsString>()];
        if made(&texts) || parser.possible_values().is_some() { Self::Text } else { Self::Own }
    }

    /// Whether a value may start with a minus, so that `--key -5` is a wrong value and not a flag.
    pub fn may_be_negative(self) -> bool {
        matches!(self, Self::Whole | Self::Number | Self::Own)
    }

    /// What a value must be.
    pub fn described(self) -> &'static str {
        match self {
            Self::Boolean => "true or false",
            Self::Whole => "a whole number",
            Self::Number => "a number",
            Self::Text => "a text",
            Self::Own => "a text or a number",
        }
    }

    /// How a file says `value`.
    pub fn literal(self, value: &str) -> String {
        let bare = match self {
            Self::Boolean => value.parse().ok().map(|value: bool| value.to_string()),
            Self::Whole => value.parse().ok().map(|value: i128| value.to_string()),
            Self::Number => number(value),
            Self::Text => None,
            // Only as it would be read again, letter for letter.
            Self::Own => {
                let whole = value.parse().ok().map(|value: i64| value.to_string());
                whole.or_else(|| number(value)).filter(|bare| bare == value)
            }
        };
        bare.unwrap_or_else(|| toml::Value::String(value.to_owned()).to_string())
    }
}

fn number(value: &str) -> Option<String> {
    value.parse().ok().filter(|value: &f64| value.is_finite()).map(|value| format!("{value:?}"))
}

#[cfg(test)]
mod tests {
    use clap::builder::ValueParser;
    use clap::value_parser;

    use super::*;

    #[test]
    fn a_kind_is_read_off_the_parser() {
        let kind = |parser: ValueParser| Kind::of(&Arg::new("x").value_parser(parser));
        assert_eq!(kind(value_parser!(bool)), Kind::Boolean);
        assert_eq!(kind(value_parser!(u16).range(1..).into()), Kind::Whole);
        assert_eq!(kind(value_parser!(f64).into()), Kind::Number);
        assert_eq!(kind(value_parser!(std::path::PathBuf)), Kind::Text);
        assert_eq!(kind(["a", "b"].into()), Kind::Text);
        assert_eq!(kind(ValueParser::new(|text: &str| text.parse::<std::net::IpAddr>())), Kind::Own);
        assert_eq!(Kind::of(&Arg::new("x")), Kind::Text);
    }

    #[test]
    fn a_literal_is_toml_that_says_the_same() {
        for (kind, value, literal) in [
            (Kind::Boolean, "true", "true"),
            (Kind::Whole, "007", "7"),
            (Kind::Whole, "[redacted]", "\"[redacted]\""),
            (Kind::Number, ".5", "0.5"),
            (Kind::Number, "-1", "-1.0"),
            (Kind::Number, "1e-9", "1e-9"),
            (Kind::Text, "7", "\"7\""),
            (Kind::Own, "30", "30"),
            (Kind::Own, "030", "\"030\""),
            (Kind::Own, "0.5", "0.5"),
            (Kind::Own, "int8", "\"int8\""),
        ] {
            assert_eq!(kind.literal(value), literal, "{kind:?} {value}");
        }
    }

    #[test]
    fn any_text_survives_quoting() {
        for text in ["", "a\"b", "it's", "'''\"\"\"", "line\nline\r\n", "\\", "\u{0}\u{7f}\u{1b}[31m", "# no comment"] {
            let file = format!("x = {} # comment", Kind::Text.literal(text));
            let table: toml::Table = toml::from_str(&file).unwrap_or_default();
            assert_eq!(table.get("x").and_then(toml::Value::as_str), Some(text), "{file}");
        }
    }
}
