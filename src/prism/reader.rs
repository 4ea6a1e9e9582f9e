//! Strict reading of a TOML file: every missing, unknown or misshapen key is collected with its path.

use toml::{Table, Value};

/// What is wrong with a file, one line a problem.
#[derive(Debug, Default)]
pub(super) struct Problems(pub Vec<String>);

/// One table of the file. The getters note a problem and give an empty value; the caller asks `Problems` at the end.
pub(super) struct Reader<'a> {
    path: String,
    table: Option<&'a Table>,
}

impl<'a> Reader<'a> {
    pub fn root(table: &'a Table) -> Self {
        Self { path: String::new(), table: Some(table) }
    }

    fn at(&self, key: &str) -> String {
        if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) }
    }

    /// The value of a key; None with a problem noted when it is missing. Silent inside a table that is itself missing.
    fn get(&self, key: &str, what: &str, problems: &mut Problems) -> Option<&'a Value> {
        let value = self.table?.get(key);
        if value.is_none() {
            problems.0.push(format!("`{}` is missing: give {what}", self.at(key)));
        }
        value
    }

    fn shape(&self, key: &str, what: &str, found: &Value, problems: &mut Problems) {
        problems.0.push(format!("`{}` must be {what}, not a {}", self.at(key), found.type_str()));
    }

    pub fn child(&self, key: &str, problems: &mut Problems) -> Self {
        let value = self.get(key, "a table", problems);
        let table = value.and_then(Value::as_table);
        if let (Some(value), None) = (value, table) {
            self.shape(key, "a table", value, problems);
        }
        Self { path: self.at(key), table }
    }

    /// A text that may be empty.
    pub fn text_or_empty(&self, key: &str, problems: &mut Problems) -> String {
        let Some(value) = self.get(key, "a text", problems) else { return String::new() };
        value.as_str().map_or_else(
            || {
                self.shape(key, "a text", value, problems);
                String::new()
            },
            str::to_owned,
        )
    }

    /// A text that is not blank.
    pub fn text(&self, key: &str, problems: &mut Problems) -> String {
        let before = problems.0.len();
        let text = self.text_or_empty(key, problems);
        if self.table.is_some() && problems.0.len() == before && text.trim().is_empty() {
            problems.0.push(format!("`{}` is empty: give a text", self.at(key)));
        }
        text
    }

    /// A list of at least one text.
    pub fn texts(&self, key: &str, problems: &mut Problems) -> Vec<String> {
        let what = "a list of at least one non-empty text";
        let Some(value) = self.get(key, what, problems) else { return Vec::new() };
        let texts: Option<Vec<String>> = value.as_array().and_then(|items| {
            items.iter().map(|item| item.as_str().filter(|text| !text.trim().is_empty()).map(str::to_owned)).collect()
        });
        texts.filter(|texts| !texts.is_empty()).unwrap_or_else(|| {
            problems.0.push(format!("`{}` must be {what}", self.at(key)));
            Vec::new()
        })
    }

    /// An integer of at least 1.
    pub fn count(&self, key: &str, problems: &mut Problems) -> usize {
        let what = "an integer of at least 1";
        let Some(value) = self.get(key, what, problems) else { return 0 };
        value.as_integer().and_then(|number| usize::try_from(number).ok()).filter(|number| *number > 0).unwrap_or_else(
            || {
                problems.0.push(format!("`{}` must be {what}, found {value}", self.at(key)));
                0
            },
        )
    }

    /// Notes every key that is not allowed here.
    pub fn only(&self, allowed: &[&str], problems: &mut Problems) {
        for key in self.table.into_iter().flat_map(|table| table.keys()) {
            if !allowed.contains(&key.as_str()) {
                problems.0.push(format!("`{}` is unknown: allowed here are {}", self.at(key), allowed.join(", ")));
            }
        }
    }
}
