//! What may stand after the `?` of a route. What a route does not take is refused, so that a misspelt switch is not one
//! that is left out.

use super::Switches;
use super::error::Failure;

/// A parameter's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parameter {
    PersonaId,
    Format,
    Threshold,
    OnError,
    ErrorScore,
    StripPrompt,
    StripMarkers,
    StripEnd,
    StripThink,
}

impl Parameter {
    pub fn name(self) -> &'static str {
        match self {
            Self::PersonaId => "persona_id",
            Self::Format => "format",
            Self::Threshold => "threshold",
            Self::OnError => "on_error",
            Self::ErrorScore => "error_score",
            Self::StripPrompt => "strip_prompt",
            Self::StripMarkers => "strip_markers",
            Self::StripEnd => "strip_end",
            Self::StripThink => "strip_think",
        }
    }
}

/// The parameters of a request.
#[derive(Clone, Debug, PartialEq)]
pub struct Query {
    /// Under which persona everything in the request is judged.
    pub persona_id: Option<String>,
    /// Whether a single score comes as an object.
    pub dict: bool,
    /// Least S_PRISM that a guardrail lets pass.
    pub threshold: f64,
    /// Whether a guardrail blocks what could not be judged.
    pub block_on_error: bool,
    /// The number that stands for a reply that could not be judged, where the caller cannot do without.
    pub error_score: Option<f64>,
    /// What is taken off replies.
    pub(super) strip: Overrides,
}

/// Switches that the request sets; the others are as its route has them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Overrides {
    prompt: Option<bool>,
    markers: Option<bool>,
    end: Option<bool>,
    think: Option<bool>,
}

/// Where a guardrail draws the line if nobody says.
pub const THRESHOLD: f64 = 0.5;

/// Nothing was said.
impl Default for Query {
    fn default() -> Self {
        let strip = Overrides::default();
        Self { persona_id: None, dict: false, threshold: THRESHOLD, block_on_error: false, error_score: None, strip }
    }
}

impl Query {
    /// What is taken off replies, where a route does what `default` says.
    pub fn strip(&self, default: Switches) -> Switches {
        Switches {
            prompt: self.strip.prompt.unwrap_or(default.prompt),
            markers: self.strip.markers.unwrap_or(default.markers),
            end: self.strip.end.unwrap_or(default.end),
            think: self.strip.think.unwrap_or(default.think),
        }
    }

    /// Takes the parameters in `pairs` that a route with `allowed` ones was given.
    ///
    /// # Errors
    /// The parameter at fault, with what is allowed.
    pub fn read(mut self, pairs: &[(String, String)], allowed: &[Parameter]) -> Result<Self, Failure> {
        for (name, value) in pairs {
            let known = allowed.iter().find(|parameter| parameter.name() == name);
            let Some(parameter) = known else {
                let names: Vec<&str> = allowed.iter().map(|parameter| parameter.name()).collect();
                let names = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
                return Err(Failure::invalid(name, format!("this route has no such parameter; it has {names}")));
            };
            self.take(*parameter, value).map_err(|allowed| Failure::invalid(name, format!("it must be {allowed}")))?;
        }
        Ok(self)
    }

    fn take(&mut self, parameter: Parameter, value: &str) -> Result<(), &'static str> {
        match parameter {
            Parameter::PersonaId if value.is_empty() => return Err("the id of a persona"),
            Parameter::PersonaId => self.persona_id = Some(value.to_owned()),
            Parameter::Format => self.dict = one_of(value, [("float", false), ("dict", true)], "float or dict")?,
            Parameter::Threshold => self.threshold = threshold(value)?,
            Parameter::OnError => {
                self.block_on_error = one_of(value, [("allow", false), ("block", true)], "allow or block")?;
            }
            Parameter::ErrorScore => self.error_score = Some(finite(value).ok_or("a finite number")?),
            Parameter::StripPrompt => self.strip.prompt = Some(switch(value)?),
            Parameter::StripMarkers => self.strip.markers = Some(switch(value)?),
            Parameter::StripEnd => self.strip.end = Some(switch(value)?),
            Parameter::StripThink => self.strip.think = Some(switch(value)?),
        }
        Ok(())
    }
}

fn one_of(value: &str, values: [(&str, bool); 2], allowed: &'static str) -> Result<bool, &'static str> {
    values.iter().find(|(name, _)| *name == value).map(|(_, means)| *means).ok_or(allowed)
}

fn switch(value: &str) -> Result<bool, &'static str> {
    one_of(value, [("true", true), ("false", false)], "true or false")
}

fn threshold(value: &str) -> Result<f64, &'static str> {
    finite(value).filter(|number| (0.0..=1.0).contains(number)).ok_or("a number from 0 to 1")
}

fn finite(value: &str) -> Option<f64> {
    value.parse().ok().filter(|number: &f64| number.is_finite())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use super::*;
    use crate::server::http::route::Route;

    fn read(route: Route, pairs: &[(&str, &str)]) -> Result<Query, Failure> {
        let pairs: Vec<_> = pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        Query::default().read(&pairs, route.parameters())
    }

    #[test]
    fn every_parameter_is_read() {
        let query = read(Route::GetReward, &[("strip_think", "false"), ("error_score", "-1"), ("persona_id", "teo")]);
        let query = query.unwrap();
        assert_eq!((query.error_score, query.persona_id.as_deref()), (Some(-1.0), Some("teo")));
        assert_eq!(query.strip(Switches::ALL), Switches { think: false, ..Switches::ALL });
        let query = read(Route::Score, &[("strip_end", "true")]).unwrap();
        assert_eq!(query.strip(Switches::NONE), Switches { end: true, ..Switches::NONE });
        let query = read(Route::BasicGuardrail, &[("threshold", "0.25"), ("on_error", "block")]).unwrap();
        assert_eq!((query.threshold, query.block_on_error), (0.25, true));
        assert!(read(Route::Reward, &[("format", "dict")]).unwrap().dict);
    }

    #[test]
    fn what_a_route_does_not_take_and_wrong_values_are_refused_by_name() {
        for (route, name, value) in [
            (Route::Reward, "strip_thinks", "true"),
            (Route::Reward, "threshold", "0.5"),
            (Route::Info, "format", "dict"),
            (Route::Reward, "strip_think", "yes"),
            (Route::Reward, "format", "list"),
            (Route::Reward, "error_score", "NaN"),
            (Route::Reward, "persona_id", ""),
            (Route::Moderations, "threshold", "1.5"),
            (Route::Moderations, "on_error", "ask"),
        ] {
            assert_eq!(read(route, &[(name, value)]).unwrap_err().field(), Some(name));
        }
    }
}
