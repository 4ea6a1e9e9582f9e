//! Log lines on standard error.

use std::io::{self, IsTerminal as _, Write};

use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use tracing::level_filters::LevelFilter;
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt as _};
use tracing_subscriber::util::{SubscriberInitExt as _, TryInitError};
use tracing_subscriber::{EnvFilter, fmt, registry};

use super::catalogue::{LOG_FAILURES, LOG_LINES};

/// The program's own code, as targets name it.
const OURS: &str = "prism_judge";

/// How a log line looks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "snake_case")]
#[value(rename_all = "snake_case")]
pub enum LogFormat {
    /// `pretty` on a terminal, `json` elsewhere.
    #[default]
    Auto,
    /// For people.
    Pretty,
    /// One JSON object a line.
    Json,
}

/// Why there is no log.
#[derive(Debug, thiserror::Error)]
#[error("the log cannot be set up: {0}")]
pub struct LogError(#[from] TryInitError);

/// The variable that goes before the setting of the level.
pub const VARIABLE: &str = "RUST_LOG";

/// What the variable says, if it is set.
///
/// # Errors
/// It is not what [`filter`] takes.
pub fn by_variable() -> Result<Option<String>, String> {
    let Some(value) = std::env::var(VARIABLE).ok().filter(|value| !value.is_empty()) else { return Ok(None) };
    filter(&value).map_err(|reason| format!("{VARIABLE} is {value:?}: {reason}"))?;
    Ok(Some(value))
}

/// Starts the log of what passes the filter.
pub fn init(format: LogFormat, filter: EnvFilter) -> Result<(), LogError> {
    let json = match format {
        LogFormat::Auto => !io::stderr().is_terminal(),
        LogFormat::Pretty => false,
        LogFormat::Json => true,
    };
    // It would report failed writes on standard error, by a panic if that is what failed.
    let lines = fmt::layer().with_writer(|| Lines).log_internal_errors(false);
    let lines = if json {
        lines.json().flatten_event(true).with_current_span(false).with_span_list(false).boxed()
    } else {
        lines.with_ansi(io::stderr().is_terminal()).boxed()
    };
    Ok(registry().with(filter).with(Count).with(lines).try_init()?)
}

/// What is logged, by a level or a list of `target=level`. A bare level is one for this program's own code: libraries, which would log what they send and
/// receive, stay at `info` unless they are named.
pub fn filter(directives: &str) -> Result<EnvFilter, String> {
    const ALLOWED: &str = "it must be error, warn, info, debug, trace or off, or a list of target=level";
    let (mut levels, mut named) = (Vec::new(), Vec::new());
    for directive in directives.split(',').map(str::trim).filter(|directive| !directive.is_empty()) {
        match directive.parse::<LevelFilter>() {
            Ok(level) => levels.extend([level.min(LevelFilter::INFO).to_string(), format!("{OURS}={level}")]),
            // It would be the name of a target that nobody has, and nothing would be logged.
            Err(_) if !directive.contains(['=', '[']) => return Err(format!("{directive:?} is no level; {ALLOWED}")),
            Err(_) => named.push(directive.to_owned()),
        }
    }
    // Of two for the same target the later one counts.
    levels.extend(named);
    EnvFilter::try_new(levels.join(",")).map_err(|error| format!("{error}; {ALLOWED}"))
}

/// Standard error; what cannot be written is counted.
struct Lines;

impl Write for Lines {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        io::stderr().write(line).inspect_err(|_| LOG_FAILURES.increment([]))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Counts lines by level.
struct Count;

impl<S: Subscriber> Layer<S> for Count {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        LOG_LINES.increment([match *event.metadata().level() {
            Level::ERROR => "error",
            Level::WARN => "warn",
            Level::INFO => "info",
            Level::DEBUG => "debug",
            Level::TRACE => "trace",
        }]);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::expect_used)]

    use super::*;

    /// The loudest level that is let through, of a target of ours and of a library's.
    fn loudest(directives: &str) -> [&'static str; 2] {
        tracing::subscriber::with_default(registry().with(filter(directives).expect(directives)), || {
            macro_rules! loudest {
                ($target:literal) => {
                    [
                        ("trace", tracing::enabled!(target: $target, Level::TRACE)),
                        ("debug", tracing::enabled!(target: $target, Level::DEBUG)),
                        ("info", tracing::enabled!(target: $target, Level::INFO)),
                        ("warn", tracing::enabled!(target: $target, Level::WARN)),
                        ("error", tracing::enabled!(target: $target, Level::ERROR)),
                    ]
                    .into_iter()
                    .find(|(_, enabled)| *enabled)
                    .map_or("off", |(name, _)| name)
                };
            }
            [loudest!("prism_judge::server"), loudest!("h2::proto")]
        })
    }

    #[test]
    fn a_bare_level_leaves_libraries_at_info_at_most() {
        assert_eq!(loudest("trace"), ["trace", "info"]);
        assert_eq!(loudest("debug"), ["debug", "info"]);
        assert_eq!(loudest("info"), ["info", "info"]);
        assert_eq!(loudest("warn"), ["warn", "warn"]);
        assert_eq!(loudest("off"), ["off", "off"]);
    }

    #[test]
    fn a_library_that_is_named_has_its_level() {
        assert_eq!(loudest("info,h2=trace"), ["info", "trace"]);
        assert_eq!(loudest("prism_judge=trace,warn"), ["trace", "warn"]);
        assert_eq!(loudest("warn,prism_judge=debug"), ["debug", "warn"]);
    }

    #[test]
    fn a_level_that_is_none_says_what_is_allowed() {
        for wrong in ["verbose", "h2=loud", "prism_judge=1.5", "a=b=c"] {
            let reason = filter(wrong).map(drop).expect_err(wrong);
            assert!(reason.contains("error, warn, info, debug, trace or off"), "{reason}");
        }
    }
}
