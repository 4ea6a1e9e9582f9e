//! Moderations as OpenAI answers them, which OGX and others ask for. A category is a dimension, its score 1 - evidence; a
//! text is flagged where S is below the threshold, for the dimensions that are below it too.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::response::Json;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{ItemError, Texts, by_dimension, evidence, fresh_id};
use crate::server::grpc::Scorer;
use crate::server::http::Http;
use crate::server::http::batch::{Item, Judged};
use crate::server::http::call::Ask;
use crate::server::http::clean::{self, Switches};
use crate::server::http::error::Failure;
use crate::server::http::guard;
use crate::server::http::query::Query;
use crate::server::http::route::Route;
use crate::server::http::who::Hints;
use crate::server::pb;

#[derive(Deserialize)]
pub struct Body {
    input: Texts,
    #[serde(default)]
    model: Option<String>,
}

pub async fn moderations<S: Scorer>(
    State(http): State<Arc<Http<S>>>,
    request: Request,
) -> Result<Json<Value>, Failure> {
    let (ask, Body { input, model }) = Ask::read::<Body>(Route::Moderations, request).await?;
    let strip = ask.query.strip(Switches::NONE);
    let mut items = Vec::new();
    for text in input.into_list() {
        let who = http.who(&ask, Hints { own: None, field: "model", model: model.as_deref() })?;
        items.push(Ok(Item { who, context: Vec::new(), reply: clean::reply(&text, strip).to_owned() }));
    }
    let judged = http.judge(&ask, pb::Lane::Guard, items).await?;
    let results = judged.iter().enumerate().map(|(at, result)| moderation(at, result, &ask.query));
    let results: Vec<Value> = results.collect();
    let model = model.unwrap_or_else(|| http.grpc.model());
    Ok(Json(json!({"id": fresh_id("modr"), "model": model, "results": results})))
}

fn moderation(index: usize, judged: &Judged, query: &Query) -> Value {
    let flagged = guard::rule(judged, query).is_block();
    match judged {
        Ok(verdict) => {
            let evidence = evidence(verdict);
            json!({
                "flagged": flagged,
                "categories": by_dimension(evidence.map(|evidence| flagged && evidence < query.threshold)),
                "category_scores": by_dimension(evidence.map(|evidence| 1.0 - evidence)),
            })
        }
        // Neither a category nor a number.
        Err(error) => json!({
            "flagged": flagged,
            "categories": {},
            "category_scores": {},
            "error": ItemError::of(index, error, "input"),
        }),
    }
}
