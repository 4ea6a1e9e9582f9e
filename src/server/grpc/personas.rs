//! ListPersonas.

use super::Scorer;
use crate::persona::Named;
use crate::server::pb;

pub fn list<S: Scorer>(judge: &S) -> pb::ListPersonasResponse {
    let persona = |named: &Named| pb::NamedPersona {
        id: named.id.clone(),
        name: named.name.clone().unwrap_or_default(),
        digest: named.digest.to_string(),
    };
    pb::ListPersonasResponse { personas: judge.personas().iter().map(persona).collect() }
}
