//! Whether calls are served, for every probe: one state, one place that sets it.

use serde::Serialize;
use tokio::sync::watch;

use crate::service::Health;
use crate::telemetry::catalogue;

/// How the model stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Model {
    /// Weights are read, and the self-check has not passed yet.
    Loading,
    Ready,
    Restarting,
    Dead,
}

impl Model {
    fn name(self) -> &'static str {
        match self {
            Self::Loading => "loading",
            Self::Ready => "ready",
            Self::Restarting => "restarting",
            Self::Dead => "dead",
        }
    }
}

impl From<Health> for Model {
    fn from(health: Health) -> Self {
        match health {
            Health::Ready => Self::Ready,
            Health::Restarting => Self::Restarting,
            Health::Dead => Self::Dead,
        }
    }
}

/// What probes are told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct State {
    pub model: Model,
    pub stopping: bool,
}

impl State {
    pub fn is_ready(self) -> bool {
        self.model == Model::Ready && !self.stopping
    }

    /// A model that has failed twice does not come back: only a new process helps.
    pub fn is_alive(self) -> bool {
        self.model != Model::Dead
    }

    /// One line for each thing that a probe asks for.
    pub fn lines(self) -> String {
        let stopping = if self.stopping { "stopping" } else { "serving" };
        format!("model: {}\nserver: {stopping}\n", self.model.name())
    }
}

/// The one who sets the state.
pub struct Readiness(watch::Sender<State>);

impl Readiness {
    pub fn new() -> Self {
        let readiness = Self(watch::Sender::new(State { model: Model::Loading, stopping: false }));
        readiness.publish();
        readiness
    }

    pub fn model(&self, model: Model) -> State {
        self.0.send_modify(|state| state.model = model);
        self.publish()
    }

    pub fn stopping(&self) -> State {
        self.0.send_modify(|state| state.stopping = true);
        self.publish()
    }

    pub fn watch(&self) -> watch::Receiver<State> {
        self.0.subscribe()
    }

    fn publish(&self) -> State {
        let state = *self.0.borrow();
        catalogue::READY.set([], f64::from(u8::from(state.is_ready())));
        catalogue::DRAINING.set([], f64::from(u8::from(state.stopping)));
        catalogue::MODEL_HEALTH.only(state.model.name());
        state
    }
}
