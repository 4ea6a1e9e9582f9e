//! The flags that choose a judge, shared by all subcommands that open one.

use std::path::{Path, PathBuf};

use clap::builder::{NonEmptyStringValueParser, RangedU64ValueParser};
use clap::{Args, ValueEnum};

use super::limit_args::LimitArgs;
use super::values::{above_zero, finite};
use super::{CliError, output};
use crate::model::Progress;
use crate::model::registry::{self, Cache, DEFAULT_MODEL};
use crate::prism::{Calibration, EvidenceKind, LabelOrder, Layout};
use crate::service::{AnswerSlot, CacheSettings, EngineSettings, Judge, JudgeConfig, Numerics, OptionOverrides};

/// Most threads that may be asked for.
const THREAD_LIMIT: u64 = 1024;

/// Which model judges, with which wording and options.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Judge")]
pub struct JudgeArgs {
    /// The judge's model: a name that `prism-judge models list` shows, or a GGUF file.
    #[arg(long, value_name = "NAME|PATH", default_value = DEFAULT_MODEL)]
    #[arg(value_parser = NonEmptyStringValueParser::new())]
    model: String,
    /// Label descriptions to use instead of the built-in ones (TOML).
    #[arg(long, value_name = "FILE")]
    pub label_spaces: Option<PathBuf>,
    /// Prompt template to use instead of the built-in one (minijinja).
    #[arg(long, value_name = "FILE")]
    pub prompt_template: Option<PathBuf>,
    /// How the posterior is estimated; left out: the one that measured better for the model.
    #[arg(long, value_enum, value_name = "KIND")]
    pub evidence: Option<EvidenceKind>,
    /// Order of the parts inside the prompt.
    #[arg(long, value_enum)]
    pub layout: Option<Layout>,
    /// Which displayed orders of the labels are scored.
    #[arg(long, value_enum, value_name = "ORDER")]
    pub label_order: Option<LabelOrder>,
    /// What is subtracted from the log-scores.
    #[arg(long, value_enum, value_name = "KIND")]
    pub calibration: Option<Calibration>,
    /// Whether the persona itself stands in the prompt (label slot only).
    #[arg(long, value_name = "BOOL")]
    pub persona_block: Option<bool>,
    /// Scale of the likelihood contrast, per nat, above zero.
    #[arg(long, value_name = "T", value_parser = above_zero)]
    pub likelihood_t: Option<f64>,
    /// Log-score of the indeterminate label, in nats (likelihood only).
    #[arg(long, value_name = "B", value_parser = finite)]
    pub likelihood_b: Option<f64>,
    /// Spelling of the label letters where the answer is read (label slot only).
    #[arg(long, value_enum, value_name = "SPELLING", default_value = "auto")]
    pub answer_slot: AnswerSlot,
    /// Arithmetic of the model: int8 is faster, takes less memory and moves scores a little (docs/int8.md).
    #[arg(long, value_name = "f32|int8", default_value = "f32", value_parser = numerics)]
    numerics: Numerics,
    /// Threads that run the model; left out: as many as this process may use.
    #[arg(long, value_name = "N", value_parser = RangedU64ValueParser::<usize>::new().range(1..=THREAD_LIMIT))]
    pub threads: Option<usize>,
    #[command(flatten)]
    limits: LimitArgs,
}

impl JudgeArgs {
    /// What can be said without any file: a model that has neither a known name nor that of a file cannot be meant.
    pub fn check(&self) -> Result<(), CliError> {
        let model = &self.model;
        let found = registry::known(model).is_some() || registry::is_path(model) || Path::new(model).exists();
        if found { Ok(()) } else { Err(registry::unknown(model).into()) }
    }

    /// The configuration of a judge whose model is on this machine; another one is an error that says how to get it.
    pub fn config(&self) -> Result<JudgeConfig, CliError> {
        match registry::resolve(&self.model) {
            Ok(path) => Ok(self.with_model(path)),
            // The name is right, only the file is not here: not a wrong setting.
            Err(error) if registry::known(&self.model).is_some() => Err(CliError::Failed(error.to_string())),
            Err(error) => Err(error.into()),
        }
    }

    /// The same, but a known model that is missing is fetched first.
    pub fn config_fetched(&self) -> Result<JudgeConfig, CliError> {
        let (Err(_), Some(model)) = (registry::resolve(&self.model), registry::known(&self.model)) else {
            return self.config();
        };
        let path = Cache::from_environment()?.fetch(model, &mut |step| {
            if step == Progress::Download {
                output::tell(&format_args!("fetching {} ({} MB), once", model.name, model.bytes / 1_000_000));
            }
        })?;
        Ok(self.with_model(path))
    }

    /// Loads the model.
    pub fn open(&self) -> Result<Judge, CliError> {
        Ok(Judge::open(&self.config()?)?)
    }

    fn with_model(&self, path: PathBuf) -> JudgeConfig {
        // A file that is given by its path may lie anywhere: its name says enough.
        let file = path.file_name().map(|name| name.to_string_lossy().into_owned());
        let named = registry::known(&self.model).map(|model| model.name.to_owned());
        JudgeConfig {
            model_name: named.or(file).unwrap_or_else(|| self.model.clone()),
            model_path: path,
            label_spaces: self.label_spaces.clone(),
            prompt_template: self.prompt_template.clone(),
            threads: self.threads,
            numerics: self.numerics,
            answer_slot: self.answer_slot,
            overrides: OptionOverrides {
                evidence: self.evidence,
                layout: self.layout,
                label_order: self.label_order,
                calibration: self.calibration,
                persona_block: self.persona_block,
                likelihood_t: self.likelihood_t,
                likelihood_b: self.likelihood_b,
            },
            engine: EngineSettings::default(),
            cache: CacheSettings::default(),
            redis: None,
            limits: self.limits.settings(),
        }
    }
}

fn numerics(text: &str) -> Result<Numerics, String> {
    Numerics::from_str(text, false).map_err(|_| "it must be f32 or int8".to_owned())
}
