//! The judge that every front end calls: what it is made of, and how it is opened.

use std::sync::Arc;

use tokio::sync::watch;

use super::limits::Limits;
use super::pool::Pool;
use super::score::Shared;
use super::slot;
use super::wording::Wording;
use super::{ErrorCode, Health, JudgeConfig, JudgeError, OpenError, Recorder, RedisTier, arithmetic, config};
use crate::cache::VerdictCache;
use crate::digest::{self, Digest};
use crate::engine::Engine;
use crate::model::{Decoder, Gguf, TextModel};
use crate::numerics::Numerics;
use crate::persona::{Persona, Personas, Registry, RegistryError, UnknownPersona};
use crate::prism::{LabelSpaces, Options, PromptTemplate, Provenance};

/// Tokens that a prompt may have whatever the budget of keys and values: persona, a few turns and a response.
const SHORTEST_CONTEXT: usize = 512;

/// Threads that prepare requests, at most: one is enough to keep a model busy.
const PREPARE_THREADS: usize = 4;

/// Calls of one lane that may wait to be prepared. The queue's tokens refuse long before that unless they are set high.
const PREPARE_WAITING: usize = 8192;

/// One model, one label space, one template: `Send + Sync`, shared by all front ends.
pub struct Judge {
    pub(super) wording: Arc<Wording>,
    pub(super) options: Options,
    pub(super) limits: Limits,
    pub(super) identity: Identity,
    pub(super) cache: VerdictCache<Shared>,
    pub(super) pool: Pool,
    pub(super) engine: Engine,
    pub(super) health: watch::Receiver<Health>,
    pub(super) recorder: Option<Arc<dyn Recorder>>,
    personas: Option<Personas>,
}

/// What makes this judge this judge.
pub(super) struct Identity {
    pub model: String,
    pub model_digest: Digest,
    pub parameters: u64,
    pub numerics: Numerics,
    pub threads: usize,
    /// The part of the prompt digest that no option changes.
    prompt: digest::Builder,
}

impl Judge {
    /// Loads and checks everything: wording, model, answer slot. Blocks for about a second a gigabyte of weights.
    pub fn open(config: &JudgeConfig) -> Result<Self, OpenError> {
        let spaces = LabelSpaces::load(config.label_spaces.as_deref())?;
        let template = PromptTemplate::load(config.prompt_template.as_deref())?;
        let threads = match config.threads {
            Some(0) => return Err(OpenError::Threads),
            Some(threads) => threads,
            // On Linux this is the least of the affinity mask and the cgroup's CPU quota (v1 and v2), rounded down.
            None => std::thread::available_parallelism().map_or(1, usize::from),
        };
        let gguf = Gguf::open(&config.model_path)?;
        let decoder = Decoder::load(&gguf, config.numerics, threads)?;
        let text = TextModel::from_gguf(&gguf)?;
        let model_digest = Digest::of_bytes(gguf.bytes());
        drop(gguf);
        let parameters = decoder.parameters();
        let engine = Engine::start(decoder, config.engine).map_err(OpenError::Thread)?;
        if engine.longest_prompt() < SHORTEST_CONTEXT.min(engine.config().context_length) {
            let least = engine.kv_bytes_for(SHORTEST_CONTEXT).div_ceil(1 << 20);
            return Err(OpenError::KvBudget { have: config.engine.kv_bytes >> 20, least, tokens: SHORTEST_CONTEXT });
        }
        let slot = slot::choose(&engine, &text, (&spaces, &template), config.answer_slot)?;
        let prompt = Digest::builder("prism-judge prompt 1")
            .field("template", template.digest().as_bytes())
            .field("chat_template", text.template().source().as_bytes())
            .field("answer_slot", slot.letters.concat().as_bytes());
        let model = config.model_name.clone();
        let identity = Identity { model, model_digest, parameters, threads, numerics: config.numerics, prompt };
        let limit = engine.longest_prompt();
        let redis = match &config.redis {
            Some(redis) => Some(RedisTier::start(redis, arithmetic::fingerprint(&engine)?).map_err(OpenError::Thread)?),
            None => None,
        };
        Ok(Self {
            wording: Arc::new(Wording { text, spaces, template, slot, limit }),
            options: config.overrides.over(&config::defaults(parameters)),
            limits: Limits::new(&config.limits, limit),
            identity,
            cache: VerdictCache::new(config.cache, redis),
            pool: Pool::start(threads.min(PREPARE_THREADS), PREPARE_WAITING).map_err(OpenError::Thread)?,
            health: engine.health(),
            engine,
            recorder: None,
            personas: None,
        })
    }

    /// The same judge, and `recorder` is told of every call from now on.
    pub fn recorded_by(self, recorder: Arc<dyn Recorder>) -> Self {
        Self { recorder: Some(recorder), ..self }
    }

    /// The same judge, and requests may name these personas by their ids.
    ///
    /// # Errors
    /// Personas that are larger than a request's may be, all of them.
    pub fn knowing(self, personas: Personas) -> Result<Self, RegistryError> {
        personas.now().check(|persona| self.limits.check_persona(persona))?;
        Ok(Self { personas: Some(personas), ..self })
    }

    /// The persona that this judge knows by `id`.
    ///
    /// # Errors
    /// NOT_FOUND, with ids that are near.
    pub fn persona(&self, id: &str) -> Result<Persona, JudgeError> {
        let found = match &self.personas {
            Some(personas) => personas.now().get(id).map(|named| named.persona.clone()),
            None => Err(UnknownPersona::NoPersonas),
        };
        found.map_err(|unknown| {
            let error = JudgeError::new(ErrorCode::NotFound, format!("persona_id: {unknown}"));
            JudgeError { field: Some("persona_id".to_owned()), ..error }
        })
    }

    /// All personas that this judge knows by an id.
    pub fn personas(&self) -> Arc<Registry> {
        self.personas.as_ref().map(Personas::now).unwrap_or_default()
    }

    /// Takes what the files of the personas hold now, for calls from now on; whether that was something new. None where
    /// there are no such files. Blocks.
    ///
    /// # Errors
    /// What is wrong with them, once for each change; all personas stay as they were.
    pub fn reload_personas(&self) -> Option<Result<bool, RegistryError>> {
        let check = |persona: &Persona| self.limits.check_persona(persona);
        self.personas.as_ref().map(|personas| personas.reload(check))
    }

    /// Whether the model answers, now and from now on.
    pub fn health(&self) -> watch::Receiver<Health> {
        self.health.clone()
    }

    /// The second tier of the verdict cache, where there is one.
    pub fn redis(&self) -> Option<&RedisTier> {
        self.cache.second()
    }

    /// The digest of everything between a request and its numbers that no other field of the provenance names.
    pub(super) fn prompt_digest(&self, options: &Options) -> Digest {
        let prompt = self.identity.prompt.clone();
        prompt
            .field("persona_block", &[u8::from(options.persona_block)])
            .field("likelihood_t", &options.scale.t.to_bits().to_le_bytes())
            .field("likelihood_b", &options.scale.b.to_bits().to_le_bytes())
            .finish()
    }

    /// What a verdict under these options would name as its judge.
    pub fn provenance(&self, options: &Options) -> Provenance {
        Provenance {
            model: self.identity.model.clone(),
            model_digest: self.identity.model_digest,
            prompt_digest: self.prompt_digest(options),
            label_space_digest: self.wording.spaces.digest(),
            evidence: options.evidence,
            layout: options.layout,
            label_order: options.label_order,
            calibration: options.calibration,
            numerics: self.identity.numerics,
        }
    }
}
