//! docs/openapi.json: it has every route with its parameters and no other, its messages are those of the gRPC contract, and
//! what is sent and answered is as it says.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use prost::Message as _;
use prost_types::field_descriptor_proto::{Label, Type};
use prost_types::{DescriptorProto, EnumDescriptorProto, FieldDescriptorProto, FileDescriptorProto, FileDescriptorSet};
use serde_json::{Map, Value, json};

use super::Harness;
use crate::server::http::openapi::DOCUMENT;
use crate::server::http::route::Route;
use crate::server::pb;

const PACKAGE: &str = ".prism.judge.v1.";

/// Messages of our own routes; what they are made of is found from there.
const ROOTS: [&str; 12] = [
    "ScoreRequest",
    "ScoreResponse",
    "ScoreGroupRequest",
    "ScoreGroupResponse",
    "ScoreDialogueRequest",
    "ScoreDialogueResponse",
    "CheckRequest",
    "CheckResponse",
    "RankRequest",
    "RankResponse",
    "ListPersonasResponse",
    "GetJudgeInfoResponse",
];

fn document() -> Value {
    serde_json::from_str(DOCUMENT).unwrap()
}

fn contract() -> FileDescriptorProto {
    let files = FileDescriptorSet::decode(pb::DESCRIPTORS).unwrap().file;
    files.into_iter().find(|file| file.package() == "prism.judge.v1").unwrap()
}

/// The schemas of the contract's messages, as the JSON mapping writes them.
struct Schemas {
    file: FileDescriptorProto,
    comments: BTreeMap<Vec<i32>, String>,
    made: BTreeMap<String, Value>,
}

impl Schemas {
    fn of(roots: &[&str]) -> BTreeMap<String, Value> {
        let file = contract();
        let places = file.source_code_info.iter().flat_map(|info| &info.location);
        let text = |comment: &str| comment.lines().map(str::trim).collect::<Vec<_>>().join(" ").trim().to_owned();
        let comments = places.map(|place| (place.path.clone(), text(place.leading_comments()))).collect();
        let mut schemas = Self { file, comments, made: BTreeMap::new() };
        for root in roots {
            schemas.make(root);
        }
        schemas.made
    }

    fn make(&mut self, name: &str) {
        if self.made.contains_key(name) {
            return;
        }
        let messages = self.file.message_type.clone();
        let schema = match messages.iter().position(|message| message.name() == name) {
            Some(at) => {
                self.made.insert(name.to_owned(), Value::Null);
                self.message(at, &messages[at])
            }
            None => {
                let enums = self.file.enum_type.clone();
                let at = enums.iter().position(|found| found.name() == name).unwrap();
                self.names(at, &enums[at])
            }
        };
        self.made.insert(name.to_owned(), schema);
    }

    fn message(&mut self, at: usize, message: &DescriptorProto) -> Value {
        let at = i32::try_from(at).unwrap();
        let mut properties = Map::new();
        for (index, field) in message.field.iter().enumerate() {
            let mut schema = self.field(field);
            let comment = &self.comments[&vec![4, at, 2, i32::try_from(index).unwrap()]];
            schema["description"] = json!(comment);
            properties.insert(field.name().to_owned(), schema);
        }
        let description = &self.comments[&vec![4, at]];
        json!({"type": "object", "description": description, "properties": properties, "additionalProperties": false})
    }

    fn field(&mut self, field: &FieldDescriptorProto) -> Value {
        let schema = match field.r#type() {
            Type::String => json!({"type": "string"}),
            Type::Bool => json!({"type": "boolean"}),
            Type::Double => json!({"type": "number"}),
            Type::Uint32 => json!({"type": "integer", "minimum": 0}),
            // Written as a text, because many readers of JSON hold numbers as doubles.
            Type::Uint64 => json!({"type": ["string", "integer"], "pattern": "^[0-9]+$"}),
            Type::Message | Type::Enum => {
                let name = field.type_name().strip_prefix(PACKAGE).unwrap().to_owned();
                self.make(&name);
                json!({"$ref": format!("#/components/schemas/{name}")})
            }
            other => panic!("{}: a type without a schema: {other:?}", field.name()),
        };
        match field.label() {
            Label::Repeated => json!({"type": "array", "items": schema}),
            _ => schema,
        }
    }

    fn names(&self, at: usize, values: &EnumDescriptorProto) -> Value {
        let names: Vec<&str> = values.value.iter().map(|value| value.name()).collect();
        json!({"type": "string", "description": self.comments[&vec![5, i32::try_from(at).unwrap()]], "enum": names})
    }
}

#[test]
fn the_messages_in_the_document_are_those_of_the_contract() {
    let made = Schemas::of(&ROOTS);
    let mut document = document();
    let schemas = document["components"]["schemas"].as_object_mut().unwrap();
    if std::env::var_os("UPDATE_DOCS").is_some() {
        let all = contract();
        let of_contract: BTreeSet<&str> = all
            .message_type
            .iter()
            .map(DescriptorProto::name)
            .chain(all.enum_type.iter().map(EnumDescriptorProto::name))
            .collect();
        schemas.retain(|name, _| !of_contract.contains(name.as_str()));
        schemas.extend(made);
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/openapi.json");
        std::fs::write(path, format!("{:#}\n", document)).unwrap();
        return;
    }
    for (name, schema) in &made {
        assert_eq!(schemas.get(name), Some(schema), "{name}: run `make docs`");
    }
}

/// Follows a reference.
fn resolved<'a>(document: &'a Value, value: &'a Value) -> &'a Value {
    match value.get("$ref").and_then(Value::as_str) {
        None => value,
        Some(place) => {
            let found = document.pointer(place.strip_prefix('#').unwrap());
            resolved(document, found.unwrap_or_else(|| panic!("{place} is not there")))
        }
    }
}

#[test]
fn every_route_is_in_the_document_with_its_parameters_and_no_other() {
    let document = document();
    let paths = document["paths"].as_object().unwrap();
    let documented: Vec<(String, String)> = paths
        .iter()
        .flat_map(|(path, verbs)| verbs.as_object().unwrap().keys().map(move |verb| (path.clone(), verb.clone())))
        .collect();
    let served = Route::ALL.map(|route| (route.path().to_owned(), route.verb().as_str().to_ascii_lowercase()));
    assert_eq!(BTreeSet::from_iter(documented), BTreeSet::from_iter(served));
    for route in Route::ALL {
        let operation = &paths[route.path()][route.verb().as_str().to_ascii_lowercase()];
        let parameters = operation["parameters"].as_array().into_iter().flatten();
        let parameters: Vec<&Value> = parameters.map(|parameter| resolved(&document, parameter)).collect();
        let of = |place: &str| -> Vec<&str> {
            let here = parameters.iter().filter(|parameter| parameter["in"] == place);
            here.map(|parameter| parameter["name"].as_str().unwrap()).collect()
        };
        let named: Vec<&str> = route.parameters().iter().map(|parameter| parameter.name()).collect();
        assert_eq!(of("query"), named, "{}", route.path());
        assert_eq!(of("header").contains(&"x-timeout-ms"), route.method().is_some(), "{}", route.path());
        assert_eq!(operation["security"] == json!([]), route.is_open(), "{}", route.path());
    }
}

/// Whether a value is as its schema says: the parts of JSON Schema 2020-12 that the document uses. A schema that uses
/// another part is an error too.
fn check(document: &Value, schema: &Value, value: &Value, place: &str) -> Result<(), String> {
    let wrong = |why: &str| Err(format!("{place}: {why}: {value}"));
    for (keyword, said) in schema.as_object().unwrap() {
        match keyword.as_str() {
            "description" => {}
            "$ref" => check(document, resolved(document, schema), value, place)?,
            "type" => {
                let kinds = said.as_array().cloned().unwrap_or_else(|| vec![said.clone()]);
                let is = |kind: &Value| match kind.as_str().unwrap() {
                    "object" => value.is_object(),
                    "array" => value.is_array(),
                    "string" => value.is_string(),
                    "boolean" => value.is_boolean(),
                    "null" => value.is_null(),
                    "integer" => value.is_i64() || value.is_u64(),
                    "number" => value.is_number(),
                    other => panic!("{other}"),
                };
                if !kinds.iter().any(is) {
                    return wrong("wrong type");
                }
            }
            "const" if said != value => return wrong("another constant"),
            "enum" if !said.as_array().unwrap().contains(value) => return wrong("none of its values"),
            "const" | "enum" => {}
            "pattern" => {
                assert_eq!(said, "^[0-9]+$");
                let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
                if value.as_str().is_some_and(|text| !digits(text)) {
                    return wrong("no digits");
                }
            }
            "minimum" => {
                if value.as_f64().is_some_and(|number| number < said.as_f64().unwrap()) {
                    return wrong("too small");
                }
            }
            "items" => {
                for (index, item) in value.as_array().into_iter().flatten().enumerate() {
                    check(document, said, item, &format!("{place}[{index}]"))?;
                }
            }
            "anyOf" => {
                let fits = |schema: &Value| check(document, schema, value, place).is_ok();
                if !said.as_array().unwrap().iter().any(fits) {
                    return wrong("none of its forms");
                }
            }
            "required" => {
                for name in said.as_array().unwrap() {
                    if value.is_object() && value.get(name.as_str().unwrap()).is_none() {
                        return wrong(&format!("{name} is missing"));
                    }
                }
            }
            "properties" => {
                for (name, value) in value.as_object().into_iter().flatten() {
                    if let Some(schema) = said.get(name) {
                        check(document, schema, value, &format!("{place}.{name}"))?;
                    }
                }
            }
            "additionalProperties" => {
                assert_eq!(said, &json!(false));
                let known = schema["properties"].as_object().unwrap();
                if let Some(name) =
                    value.as_object().into_iter().flat_map(Map::keys).find(|name| !known.contains_key(*name))
                {
                    return wrong(&format!("{name} is not known"));
                }
            }
            other => panic!("{place}: the check does not know {other}"),
        }
    }
    Ok(())
}

#[test]
fn the_check_of_schemas_finds_what_is_wrong() {
    let document = document();
    let schema = &document["components"]["schemas"]["GetRewardResponse"];
    let logs = json!({"task_framing": [0.5], "interpersonal_stance": [0.5], "linguistic_style": [null]});
    let right = json!({"rewards": [0.5], "scores": [null], "extra_logs": logs});
    assert_eq!(check(&document, schema, &right, ""), Ok(()));
    let changes: [fn(&mut Value); 5] = [
        |value| value["rewards"][0] = json!("0.5"),
        |value| value["extra"] = json!(1),
        |value| _ = value.as_object_mut().unwrap().remove("scores"),
        |value| value["extra_logs"]["linguistic_style"] = json!(0.5),
        |value| value["errors"] = json!([{"index": -1, "code": "", "message": "", "field": ""}]),
    ];
    for change in changes {
        let mut wrong = right.clone();
        change(&mut wrong);
        assert!(check(&document, schema, &wrong, "").is_err(), "{wrong}");
    }
}

/// The examples are sent to the server as they stand.
#[tokio::test]
async fn every_example_is_as_its_schema_says_and_so_is_what_the_server_answers() {
    let document = document();
    let harness = Harness::with(Default::default()).await;
    for route in Route::ALL.into_iter().filter(|route| route.method().is_some()) {
        let operation = &document["paths"][route.path()][route.verb().as_str().to_ascii_lowercase()];
        let answered = &operation["responses"]["200"]["content"]["application/json"];
        check(&document, &answered["schema"], &answered["example"], route.path()).unwrap();
        let reply = if route.verb() == "POST" {
            let asked = &operation["requestBody"]["content"]["application/json"];
            check(&document, &asked["schema"], &asked["example"], route.path()).unwrap();
            harness.post(route.path(), &asked["example"]).await
        } else {
            harness.get(route.path()).await
        };
        if reply.status == 501 {
            // Documented before its method was there.
            continue;
        }
        assert_eq!(reply.status, 200, "{}: {}", route.path(), reply.body);
        check(&document, &answered["schema"], &reply.json(), route.path()).unwrap();
    }
    let error = harness.post("/v1/score?x=1", &json!({})).await;
    check(&document, &document["components"]["schemas"]["Error"], &error.json(), "error").unwrap();
    let health = harness.get("/health").await;
    check(&document, &document["components"]["schemas"]["Health"], &health.json(), "/health").unwrap();
}
