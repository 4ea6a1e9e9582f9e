//! The flags that bound the parts of one request.

use std::fmt;

use clap::Args;

use super::values::whole;
use crate::service::LimitSettings;

const LIMITS: LimitSettings = LimitSettings::DEFAULT;

/// Most bytes or things that a limit may be.
const MOST: usize = 1 << 30;

/// How large the parts of a request may be; a request beyond a limit is refused with the field, its size and the limit.
#[derive(Clone, Copy, Debug, Args)]
#[command(next_help_heading = "Limits of a request")]
pub struct LimitArgs {
    /// Bytes of a response; auto: eight for each token of the longest prompt that the model reads.
    #[arg(long, value_name = "N|auto")]
    #[arg(default_value_t = Limit(None), value_parser = limit)]
    max_response_bytes: Limit,
    /// Bytes of a persona: name, description and facts together; auto as above.
    #[arg(long, value_name = "N|auto")]
    #[arg(default_value_t = Limit(None), value_parser = limit)]
    max_persona_bytes: Limit,
    /// Bytes of a context: speakers and texts of all turns together; auto as above.
    #[arg(long, value_name = "N|auto")]
    #[arg(default_value_t = Limit(None), value_parser = limit)]
    max_context_bytes: Limit,
    /// Turns of a context.
    #[arg(long, value_name = "N")]
    #[arg(default_value_t = LIMITS.turns, value_parser = whole(1, MOST))]
    max_turns: usize,
    /// Candidates of one request.
    #[arg(long, value_name = "N")]
    #[arg(default_value_t = LIMITS.candidates, value_parser = whole(1, MOST))]
    max_candidates: usize,
}

impl LimitArgs {
    pub fn settings(&self) -> LimitSettings {
        LimitSettings {
            response_bytes: self.max_response_bytes.0,
            persona_bytes: self.max_persona_bytes.0,
            context_bytes: self.max_context_bytes.0,
            turns: self.max_turns,
            candidates: self.max_candidates,
        }
    }
}

/// A number, or what suits the model.
#[derive(Clone, Copy, Debug)]
struct Limit(Option<usize>);

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(number) => number.fmt(f),
            None => f.write_str("auto"),
        }
    }
}

fn limit(text: &str) -> Result<Limit, String> {
    match text.parse() {
        _ if text == "auto" => Ok(Limit(None)),
        Ok(number) if (1..=MOST).contains(&number) => Ok(Limit(Some(number))),
        _ => Err(format!("it must be a whole number from 1 to {MOST}, or auto")),
    }
}
