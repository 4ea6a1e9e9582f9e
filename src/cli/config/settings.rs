//! The settings that hold, where each is from, and the file that would give the same.

use std::ffi::{OsStr, OsString};
use std::fmt::Write as _;
use std::path::PathBuf;

use super::Found;
use super::key::{Key, short};

/// What each source gives, first the one that goes before the others.
#[derive(Debug, Default)]
pub struct Sources {
    pub flags: Found,
    pub variables: Found,
    pub file: Option<(Found, PathBuf)>,
}

/// Where a value is from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    Flag,
    Variable,
    File,
    Default,
    /// A variable that is not one of ours and goes before all others.
    Foreign(&'static str),
}

/// All settings of a subcommand, in the order of its help.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    settings: Vec<Setting>,
    file: Option<PathBuf>,
}

#[derive(Clone, Debug)]
struct Setting {
    key: Key,
    /// None: not set, and no default.
    value: Option<OsString>,
    source: Source,
}

impl Settings {
    pub(super) fn of(keys: Vec<Key>, sources: Sources) -> Self {
        let Sources { mut flags, mut variables, file } = sources;
        let (mut found, path) = file.map_or_else(Default::default, |(found, path)| (found, Some(path)));
        let setting = |key: Key| {
            let take = |source: &mut Found, name| Some((source.values.remove(key.word())?, name));
            let given = take(&mut flags, Source::Flag)
                .or_else(|| take(&mut variables, Source::Variable))
                .or_else(|| take(&mut found, Source::File));
            let (value, source) = match given {
                Some((value, source)) => (Some(value), source),
                None => (key.default().map(OsStr::to_owned), Source::Default),
            };
            Setting { key, value, source }
        };
        Self { settings: keys.into_iter().map(setting).collect(), file: path }
    }

    /// What the environment and the file set, as flags.
    pub(super) fn beside_flags(&self) -> Vec<OsString> {
        let beside = self.settings.iter().filter(|it| matches!(it.source, Source::Variable | Source::File));
        beside.filter_map(|it| it.value.as_deref().map(|value| it.key.flag(value))).collect()
    }

    /// The same, but that the setting `word` has another value, from a variable that is not one of ours.
    pub fn overruled(mut self, word: &str, value: &str, variable: &'static str) -> Self {
        for setting in self.settings.iter_mut().filter(|it| it.key.word() == word) {
            (setting.value, setting.source) = (Some(value.into()), Source::Foreign(variable));
        }
        self
    }

    /// How many settings a source gives.
    pub fn count(&self, source: Source) -> usize {
        self.settings.iter().filter(|it| it.source == source).count()
    }

    /// A configuration file that gives these settings, without the secrets; each line says where its value is from.
    pub fn to_toml(&self) -> String {
        let mut text = format!(
            "# The settings of prism-judge {} as they hold. A file with these lines gives the same:\n\
             #   prism-judge serve --config FILE\n",
            env!("CARGO_PKG_VERSION")
        );
        let mut heading = "";
        for setting in &self.settings {
            if setting.key.heading() != heading {
                heading = setting.key.heading();
                let _ = write!(text, "\n# {heading}\n");
            }
            text.push_str(&self.line(setting));
        }
        text
    }

    fn line(&self, Setting { key, value, source }: &Setting) -> String {
        let word = key.word();
        let Some(value) = value else { return format!("# {word} =  # not set: {}\n", key.summary()) };
        let literal = key.kind().literal(&key.shown(value));
        let from = match (source, &self.file) {
            (Source::Flag, _) => format!("flag --{}", key.long()),
            (Source::Variable, _) => format!("environment {}", key.variable()),
            (Source::File, Some(path)) => format!("file {}", short(&path.to_string_lossy())),
            (Source::File, None) => "file".to_owned(),
            (Source::Default, _) => "default".to_owned(),
            (Source::Foreign(variable), _) => format!("environment {variable}"),
        };
        match value.to_str() {
            Some(_) => format!("{word} = {literal}  # {from}\n"),
            None => format!("# {word} = {literal}  # {from}; not UTF-8, which a file cannot say\n"),
        }
    }
}
