//! What a gateway told before its model answered, for when the answer comes without it: bounded in bytes and in time, and
//! never shared between tenants.

use std::sync::Arc;
use std::time::Duration;

use moka::policy::EvictionPolicy;
use moka::sync::Cache;

use crate::server::http::who::Who;
use crate::server::pb;

/// Bytes that are remembered, of all tenants.
const BYTES: u64 = 64 << 20;

/// Bytes that an entry takes besides its texts.
const OVERHEAD: usize = 512;

/// How long a model may take to answer.
const LONGEST: Duration = Duration::from_secs(3600);

/// A conversation before its answer.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Remembered {
    /// The persona that the system message describes.
    pub who: Option<Who>,
    pub turns: Vec<pb::Turn>,
}

/// Conversations by tenant and call.
pub struct Memory(Cache<(Arc<str>, String), Arc<Remembered>>);

impl Memory {
    pub fn new() -> Self {
        let cache =
            Cache::builder().max_capacity(BYTES).time_to_live(LONGEST).eviction_policy(EvictionPolicy::lru()).weigher(
                |(_, call): &(Arc<str>, String), remembered: &Arc<Remembered>| {
                    u32::try_from(call.len() + bytes(remembered)).unwrap_or(u32::MAX)
                },
            );
        Self(cache.build())
    }

    pub fn keep(&self, tenant: &Arc<str>, call: &str, remembered: Remembered) {
        self.0.insert((Arc::clone(tenant), call.to_owned()), Arc::new(remembered));
    }

    pub fn recall(&self, tenant: &Arc<str>, call: &str) -> Option<Arc<Remembered>> {
        self.0.get(&(Arc::clone(tenant), call.to_owned()))
    }
}

fn bytes(remembered: &Remembered) -> usize {
    let turns = remembered.turns.iter().map(|turn| size_of::<pb::Turn>() + turn.speaker.len() + turn.text.len());
    let persona = match &remembered.who {
        Some(Who::Inline(persona)) => persona.description.len(),
        Some(Who::Id(id)) => id.len(),
        None => 0,
    };
    OVERHEAD + turns.sum::<usize>() + persona
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(text: &str) -> Remembered {
        Remembered { who: None, turns: vec![pb::Turn { speaker: "User".into(), text: text.into() }] }
    }

    #[test]
    fn a_call_is_remembered_for_its_own_tenant() {
        let memory = Memory::new();
        let (a, b): (Arc<str>, Arc<str>) = ("a".into(), "b".into());
        memory.keep(&a, "1", said("hi"));
        memory.keep(&a, "1", said("ho"));
        assert_eq!(memory.recall(&a, "1").as_deref(), Some(&said("ho")));
        assert_eq!(memory.recall(&b, "1"), None);
        assert_eq!(memory.recall(&a, "2"), None);
    }

    #[test]
    fn it_forgets_what_was_used_least_recently_before_it_grows_beyond_its_bytes() {
        let memory = Memory::new();
        let tenant: Arc<str> = "a".into();
        let count = 3 * BYTES / (1 << 20);
        for call in 0..count {
            memory.keep(&tenant, &call.to_string(), said(&"x".repeat(1 << 20)));
        }
        memory.0.run_pending_tasks();
        assert!(memory.0.weighted_size() <= BYTES);
        assert!(memory.0.entry_count() > count / 4);
        assert!(memory.recall(&tenant, &(count - 1).to_string()).is_some());
        assert!(memory.recall(&tenant, "0").is_none());
    }
}
