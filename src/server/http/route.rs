//! Every route of the port, once: its path, what it amounts to and which parameters it takes. The router, the metrics and
//! the OpenAPI document are checked against this.

use axum::http::Method;

use super::query::Parameter;
use super::query::Parameter::{
    ErrorScore, Format, OnError, PersonaId, StripEnd, StripMarkers, StripPrompt, StripThink, Threshold,
};

/// A route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Route {
    Score,
    ScoreGroup,
    ScoreDialogue,
    Check,
    Rank,
    Info,
    Personas,
    /// OpenRLHF.
    GetReward,
    /// slime.
    Reward,
    /// LLaMA-Factory.
    ScoreEvaluation,
    /// NeMo-Gym.
    Verify,
    /// LiteLLM.
    BasicGuardrail,
    /// The classifiers of vLLM.
    Classify,
    /// FMS detectors.
    TextContents,
    /// Moderations as OpenAI answers them.
    Moderations,
    Promptfoo,
    Health,
    OpenApi,
    Page,
    /// A file of the page.
    PageFile,
}

const CLEAN: &[Parameter] = &[StripMarkers, StripEnd, StripThink];
const TRAINER: &[Parameter] = &[PersonaId, StripMarkers, StripEnd, StripThink, ErrorScore];
const GUARD: &[Parameter] = &[PersonaId, StripMarkers, StripEnd, StripThink, Threshold, OnError];

impl Route {
    pub const ALL: [Self; 20] = [
        Self::Score,
        Self::ScoreGroup,
        Self::ScoreDialogue,
        Self::Check,
        Self::Rank,
        Self::Info,
        Self::Personas,
        Self::GetReward,
        Self::Reward,
        Self::ScoreEvaluation,
        Self::Verify,
        Self::BasicGuardrail,
        Self::Classify,
        Self::TextContents,
        Self::Moderations,
        Self::Promptfoo,
        Self::Health,
        Self::OpenApi,
        Self::Page,
        Self::PageFile,
    ];

    /// As the router and the OpenAPI document write it.
    pub fn path(self) -> &'static str {
        match self {
            Self::Score => "/v1/score",
            Self::ScoreGroup => "/v1/score_group",
            Self::ScoreDialogue => "/v1/score_dialogue",
            Self::Check => "/v1/check",
            Self::Rank => "/v1/rank",
            Self::Info => "/v1/info",
            Self::Personas => "/v1/personas",
            Self::GetReward => "/get_reward",
            Self::Reward => "/reward",
            Self::ScoreEvaluation => "/v1/score/evaluation",
            Self::Verify => "/verify",
            Self::BasicGuardrail => "/beta/litellm_basic_guardrail_api",
            Self::Classify => "/classify",
            Self::TextContents => "/api/v1/text/contents",
            Self::Moderations => "/v1/moderations",
            Self::Promptfoo => "/promptfoo",
            Self::Health => "/health",
            Self::OpenApi => "/openapi.json",
            Self::Page => "/",
            Self::PageFile => "/page/{file}",
        }
    }

    /// The route of a request's path.
    pub fn of(path: &str) -> Option<Self> {
        let file = |route: &Self| *route == Self::PageFile && path.starts_with("/page/");
        Self::ALL.into_iter().find(|route| route.path() == path || file(route))
    }

    /// As the metrics call it.
    pub fn label(self) -> &'static str {
        match self {
            Self::PageFile => Self::Page.path(),
            route => route.path(),
        }
    }

    pub fn verb(self) -> Method {
        match self {
            Self::Info | Self::Personas | Self::Health | Self::OpenApi | Self::Page | Self::PageFile => Method::GET,
            _ => Method::POST,
        }
    }

    /// The method of the gRPC service that a request amounts to; None: it asks the judge nothing.
    pub fn method(self) -> Option<&'static str> {
        match self {
            Self::Score => Some("Score"),
            Self::ScoreGroup
            | Self::GetReward
            | Self::Reward
            | Self::ScoreEvaluation
            | Self::Verify
            | Self::BasicGuardrail
            | Self::Classify
            | Self::TextContents
            | Self::Moderations
            | Self::Promptfoo => Some("ScoreGroup"),
            Self::ScoreDialogue => Some("ScoreDialogue"),
            Self::Check => Some("Check"),
            Self::Rank => Some("Rank"),
            Self::Info => Some("GetJudgeInfo"),
            Self::Personas => Some("ListPersonas"),
            Self::Health | Self::OpenApi | Self::Page | Self::PageFile => None,
        }
    }

    /// Whether it asks for no key: what it answers is the same for everybody, and browsers and probes have none.
    pub fn is_open(self) -> bool {
        self.method().is_none()
    }

    /// What may stand after the `?`.
    pub fn parameters(self) -> &'static [Parameter] {
        match self {
            Self::Score | Self::ScoreGroup | Self::Check | Self::Rank => CLEAN,
            Self::GetReward => &[PersonaId, StripPrompt, StripMarkers, StripEnd, StripThink, ErrorScore],
            Self::Reward => &[PersonaId, Format, StripMarkers, StripEnd, StripThink, ErrorScore],
            Self::ScoreEvaluation | Self::Verify => TRAINER,
            Self::BasicGuardrail | Self::Moderations => GUARD,
            Self::Classify | Self::TextContents => &[PersonaId, StripMarkers, StripEnd, StripThink],
            Self::Promptfoo => &[PersonaId, StripMarkers, StripEnd, StripThink, Threshold],
            Self::ScoreDialogue
            | Self::Info
            | Self::Personas
            | Self::Health
            | Self::OpenApi
            | Self::Page
            | Self::PageFile => &[],
        }
    }

    /// All paths but those of the page, for those who look for one.
    pub fn list() -> String {
        let told = Self::ALL.into_iter().filter(|route| *route != Self::PageFile);
        told.map(|route| format!("{} {}", route.verb(), route.path())).collect::<Vec<_>>().join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::telemetry::ROUTES;

    #[test]
    fn every_route_is_found_by_its_path_and_is_a_value_of_its_label() {
        for route in Route::ALL {
            assert_eq!(Route::of(route.path()), Some(route));
        }
        let mut labels: Vec<&str> = Route::ALL.iter().map(|route| route.label()).collect();
        labels.dedup();
        labels.push("other");
        assert_eq!(labels, ROUTES);
        assert_eq!(Route::of("/page/style.css"), Some(Route::PageFile));
        for unknown in ["", "/v1", "/v1/score/", "/page", "/V1/SCORE"] {
            assert_eq!(Route::of(unknown), None, "{unknown}");
        }
    }
}
