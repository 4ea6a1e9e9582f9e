//! Personas by their ids: the same judgements as inline, reload, near names, the list, and `personas check`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use prism_judge::persona::{CueKind, Form, Registry};
use prism_judge::server::pb;
use serde_json::{Value, json};
use support::cli::{json_lines, run, s_prism, stderr};
use support::server::{Server, tiny_model};
use tonic::Code;
use tonic_types::StatusExt as _;

/// A tiny model and a folder of personas beside it.
struct Place {
    folder: tempfile::TempDir,
    model: String,
}

impl Place {
    fn new() -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let model = tiny_model(folder.path())?.to_str().unwrap().to_owned();
        let place = Self { folder, model };
        fs::create_dir(place.personas()).unwrap();
        place.put("pirate.toml", "name = 'Ada'\ndescription = 'Personality: proud'\nfacts = ['owns a parrot']\n");
        place.put("pilot.txt", "Personality: calm\n");
        Some(place)
    }

    fn personas(&self) -> PathBuf {
        self.folder.path().join("personas")
    }

    /// Writes a file as a careful writer does: whole, and then into its place.
    fn put(&self, name: &str, text: &str) {
        let (new, place) = (self.folder.path().join("new"), self.personas().join(name));
        fs::write(&new, text).unwrap();
        fs::rename(new, place).unwrap();
    }

    /// The flags that name both.
    fn flags<'a>(&'a self, personas: &'a str) -> [&'a str; 4] {
        ["--model", &self.model, "--personas", personas]
    }

    async fn serve(&self) -> Server {
        let personas = self.personas();
        let flags = self.flags(personas.to_str().unwrap());
        Server::start(&[&flags[..], &["--reload-s", "1"]].concat()).ready().await
    }
}

fn ask(persona_id: &str, persona: Option<pb::Persona>) -> pb::ScoreRequest {
    pb::ScoreRequest {
        persona_id: persona_id.to_owned(),
        persona,
        context: vec![pb::Turn { speaker: "User".into(), text: "Land ahead?".into() }],
        candidate: Some(pb::Candidate { id: "c".into(), response: "Mine, all of it.".into() }),
        ..pb::ScoreRequest::default()
    }
}

fn pirate() -> pb::Persona {
    pb::Persona {
        name: Some("Ada".into()),
        description: "Personality: proud".into(),
        facts: vec!["owns a parrot".into()],
        ..pb::Persona::default()
    }
}

async fn list(server: &Server) -> Vec<pb::NamedPersona> {
    server.judge().await.list_personas(pb::ListPersonasRequest {}).await.unwrap().into_inner().personas
}

/// The value of a line of /metrics.
fn metric(server: &Server, series: &str) -> f64 {
    let (_, metrics) = server.get("/metrics");
    let value = metrics.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' ')?.parse().ok());
    value.unwrap_or_else(|| panic!("{series} is not in\n{metrics}"))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_persona_by_its_id_and_inline_has_the_same_bits_and_the_same_place_in_the_cache() {
    let Some(place) = Place::new() else { return };
    let server = place.serve().await;
    let mut judge = server.judge().await;
    let mut verdict =
        async |request: pb::ScoreRequest| judge.score(request).await.unwrap().into_inner().verdict.unwrap();
    let inline = verdict(ask("", Some(pirate()))).await;
    let named = verdict(ask("pirate", None)).await;
    assert!(!inline.cached && named.cached);
    assert_eq!((named.s_prism, &named.dimensions), (inline.s_prism, &inline.dimensions));
    // Computed again, not only read again.
    let cache = pb::CacheControl::Off as i32;
    let computed = verdict(pb::ScoreRequest { cache, ..ask("pirate", None) }).await;
    assert!(!computed.cached && computed.s_prism == inline.s_prism && computed.dimensions == inline.dimensions);
    assert_ne!(verdict(ask("pilot", None)).await.s_prism, inline.s_prism);

    let group = pb::ScoreGroupRequest {
        persona_id: "pirate".into(),
        context: ask("", None).context,
        candidates: ask("", None).candidate.into_iter().collect(),
        ..pb::ScoreGroupRequest::default()
    };
    let results = judge.score_group(group).await.unwrap().into_inner().results;
    let Some(pb::candidate_result::Result::Verdict(grouped)) = results[0].result.clone() else { panic!("{results:?}") };
    assert!(grouped.cached && grouped.s_prism == inline.s_prism);

    // And on the command line, by the flag and by the line.
    let personas = place.personas();
    let flags = place.flags(personas.to_str().unwrap());
    let row = json!({"context": "Land ahead?", "response": "Mine, all of it."});
    let by_line = json!({"persona_id": "pirate", "context": "Land ahead?", "response": "Mine, all of it."});
    for (row, more) in [(row, &["--persona-id", "pirate"][..]), (by_line, &["--persona-id", "pilot"][..])] {
        let output = run(&[&["score"], &flags[..], more].concat(), row.to_string().as_bytes());
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        assert_eq!(s_prism(std::str::from_utf8(&output.stdout).unwrap()), inline.s_prism);
    }
    let explain = ["explain", "--persona-id", "pirate", "--context", "Land ahead?", "--response", "Mine, all of it."];
    let output = run(&[&explain[..], &flags[..], &["--json"]].concat(), b"");
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(s_prism(&text.replace("\": ", "\":").replace("\n", "")), inline.s_prism, "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_changed_folder_is_used_without_a_restart_and_a_bad_one_not_at_all() {
    let Some(place) = Place::new() else { return };
    let server = place.serve().await;
    let ids = async || list(&server).await.into_iter().map(|named| named.id).collect::<Vec<_>>();
    let before = list(&server).await;
    assert_eq!(ids().await, ["pilot", "pirate"]);
    assert_eq!((before[1].name.as_str(), before[0].name.as_str()), ("Ada", ""));
    assert_eq!(metric(&server, "prism_judge_personas"), 2.0);

    // A file that breaks beside one that is new: the whole set stays.
    place.put("cook.toml", "facts = ['feeds all']\n");
    place.put("pirate.toml", "description = 'a secret");
    let told = server.logged("new personas cannot be used, the old ones stay: ");
    assert!(told.contains("pirate.toml: line 1: this is not TOML") && !told.contains("secret"), "{told}");
    assert_eq!(list(&server).await, before);
    assert!(server.judge().await.score(ask("pirate", None)).await.is_ok());
    assert_eq!(metric(&server, "prism_judge_personas"), 2.0);

    place.put("pirate.toml", "name = 'Ada'\ndescription = 'Personality: shy'\n");
    server.logged("new personas are in use");
    assert_eq!(ids().await, ["cook", "pilot", "pirate"]);
    let after = list(&server).await;
    assert_eq!(after[1].digest, before[0].digest);
    assert_ne!(after[2].digest, before[1].digest);
    assert_eq!(metric(&server, "prism_judge_personas"), 3.0);
    assert!(metric(&server, "prism_judge_persona_reloads_total{result=\"failed\"}") >= 1.0);

    // One that is gone is not known, and a persona may not become larger than those of requests.
    fs::remove_file(place.personas().join("cook.toml")).unwrap();
    server.logged("new personas are in use");
    assert_eq!(server.judge().await.score(ask("cook", None)).await.unwrap_err().code(), Code::NotFound);
    place.put("pilot.txt", &"calm ".repeat(1 << 16));
    let told = server.logged("new personas cannot be used, the old ones stay: ");
    assert!(told.contains("pilot.txt: pilot: description: it has 327679 bytes and this judge takes at most"), "{told}");
    assert_eq!(metric(&server, "prism_judge_limit_refusals_total{limit=\"persona_bytes\"}"), 0.0);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_id_is_not_found_and_says_which_ids_are_near() {
    let Some(place) = Place::new() else { return };
    let server = place.serve().await;
    let mut judge = server.judge().await;
    let text = "no persona is called \"pirat\"; nearest: pirate, pilot";
    let status = judge.score(ask("pirat", None)).await.unwrap_err();
    assert_eq!((status.code(), status.message()), (Code::NotFound, &*format!("persona_id: {text}")));
    assert_eq!(status.get_details_error_info().unwrap().reason, "NOT_FOUND");
    let status = judge.score(ask("pirate", Some(pirate()))).await.unwrap_err();
    assert_eq!(status.code(), Code::InvalidArgument);
    let long = judge.score(ask(&"p".repeat(1 << 20), None)).await.unwrap_err();
    assert_eq!(long.code(), Code::NotFound);
    assert!(long.message().len() < 200, "{}", long.message());

    // The command line says the same.
    let personas = place.personas();
    let flags = place.flags(personas.to_str().unwrap());
    let row = json!({"persona_id": "pirat", "context": [], "response": "x"}).to_string();
    let output = run(&[&["score"], &flags[..]].concat(), row.as_bytes());
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    assert_eq!(json_lines(&output)[0]["error"]["message"], format!("persona_id: {text}"));
    let output = run(&[&["score"], &flags[..], &["--persona-id", "pirat"]].concat(), b"");
    assert_eq!(output.status.code(), Some(64));
    assert!(stderr(&output).contains(&format!("--persona-id: {text}")), "{}", stderr(&output));

    // Where there are none at all.
    let server = Server::start(&["--model", &place.model]).ready().await;
    let status = server.judge().await.score(ask("pirate", None)).await.unwrap_err();
    let none = "persona_id: no persona is known by an id: nothing was given as --personas";
    assert_eq!((status.code(), status.message()), (Code::NotFound, none));
    assert!(list(&server).await.is_empty());
}

#[test]
fn personas_that_are_wrong_or_too_large_end_the_start_as_a_wrong_setting() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_str().unwrap();
    fs::write(folder.path().join("ada.toml"), "facts = 7").unwrap();
    fs::write(folder.path().join("bo.json"), "{").unwrap();
    for args in [&["serve", "--personas", path][..], &["score", "--personas", path]] {
        let output = run(args, b"");
        let told = stderr(&output);
        assert_eq!(output.status.code(), Some(64), "{args:?}: {told}");
        assert!(told.contains("2 things are wrong"), "{told}");
        assert!(told.contains("ada.toml: facts: it is a number; it must be a list of texts"), "{told}");
        assert!(told.contains("bo.json: line 1: this is not JSON"), "{told}");
    }
    let output = run(&["serve", "--personas", "nowhere"], b"");
    assert_eq!(output.status.code(), Some(64));
    assert!(stderr(&output).contains("nowhere: "), "{}", stderr(&output));

    let Some(place) = Place::new() else { return };
    let personas = place.personas();
    let flags = place.flags(personas.to_str().unwrap());
    let listen = [
        "serve",
        "--listen",
        "127.0.0.1:0",
        "--http-listen",
        "off",
        "--admin-listen",
        "off",
        "--max-persona-bytes",
        "20",
    ];
    let output = run(&[&listen[..], &flags[..]].concat(), b"");
    assert_eq!(output.status.code(), Some(64), "{}", stderr(&output));
    let told = stderr(&output);
    assert!(told.contains("pirate: persona: it has 34 bytes and this judge takes at most 20: shorten it"), "{told}");
}

#[test]
fn a_check_lists_what_the_judge_reads_and_names_all_that_is_wrong() {
    let folder = tempfile::tempdir().unwrap();
    let put = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
    let path = folder.path().to_str().unwrap();
    put("ada.txt", &format!("Name: Ada\nPersonality: {}\nDialogue Style: booming\n", "x".repeat(400)));
    put("bo.json", r#"{"spec":"chara_card_v2","data":{"name":"Bo","description":"A baker.","creator_notes":"x"}}"#);
    put("cy.toml", "[[traits]]\ntrait = 'openness'\npolarity = 'low'\n");
    put("notes.pdf", "");
    let output = run(&["personas", "check", path], b"");
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let text = String::from_utf8(output.stdout).unwrap();
    for line in [
        "ada".to_owned(),
        format!("  file                  {path}/ada.txt (plain text)"),
        "  task framing          Personality, the first 360 of 400 characters".to_owned(),
        "  linguistic style      Dialogue Style, 7 characters".to_owned(),
        format!("  file                  {path}/bo.json (character card V2)"),
        "  interpersonal stance  the whole text, 8 characters".to_owned(),
        "  not used              creator_notes".to_owned(),
        "  traits                openness low".to_owned(),
        format!("skipped {path}/notes.pdf: its name does not end in .toml, .yaml, .yml, .json, .txt or .md"),
        "personas: 3".to_owned(),
    ] {
        assert!(text.lines().any(|have| have == line), "{line} is not in\n{text}");
    }

    put("dee.yaml", "name: no\nfacts: yes please\n");
    put("eve.toml", &format!("name = '{}'\nfacts = ['x']\n", "n".repeat(1025)));
    let output = run(&["personas", "check", path, "--json"], b"");
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    let ids: Vec<&str> = found["personas"].as_array().unwrap().iter().map(|one| one["id"].as_str().unwrap()).collect();
    assert_eq!(ids, ["ada", "bo", "cy", "eve"]);
    let style = json!({"section": "Dialogue Style", "characters": 7, "used": 7});
    assert_eq!(found["personas"][0]["cues"]["linguistic_style"], style);
    assert_eq!((&found["personas"][1]["form"], &found["personas"][2]["cues"]), (&json!("card_v2"), &json!({})));
    let problems = json!([
        {"file": format!("{path}/dee.yaml"), "field": "facts", "message": "it is a text; it must be a list of texts"},
        {"file": format!("{path}/eve.toml"), "field": "eve", "message":
            "name: it has 1025 bytes and this judge takes at most 1024: shorten it"},
    ]);
    assert_eq!(found["problems"], problems);
    let told = stderr(&run(&["personas", "check", path], b""));
    assert!(told.contains("error: ") && told.contains("dee.yaml: facts: it is a text"), "{told}");

    let output = run(&["personas", "check", "nowhere"], b"");
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
}

#[test]
fn lines_and_flags_name_one_persona_or_none() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("ada.txt"), "A pirate.").unwrap();
    let path = folder.path().to_str().unwrap();
    for args in [
        &["score", "--persona-id", "ada"][..],
        &["explain", "--persona-id", "ada", "--persona", "x", "--personas", path, "--response", "x"],
        &["explain", "--personas", path, "--response", "x"],
        &["explain", "--persona-id", "ada", "--personas", path],
    ] {
        let output = run(args, b"");
        assert_eq!(output.status.code(), Some(64), "{args:?}: {}", stderr(&output));
    }
    let Some(place) = Place::new() else { return };
    let rows = [
        json!({"persona_id": "ada", "profile": "A pirate.", "context": [], "response": "x"}),
        json!({"persona_id": 7, "context": [], "response": "x"}),
        json!({"context": [], "response": "x"}),
        json!({"persona_id": "ada", "context": [], "positive": "x", "negatives": [{"text": "y", "persona_id": "bo"}]}),
    ];
    let rows: String = rows.iter().map(|row| format!("{row}\n")).collect();
    let output = run(&["score", "--model", &place.model, "--personas", path], rows.as_bytes());
    let messages: Vec<String> = json_lines(&output)
        .iter()
        .map(|line| line["error"]["message"].as_str().unwrap_or_default().to_owned())
        .collect();
    let starts = [
        "persona_id and profile are both set; keep one",
        "persona_id is a number; it must be a string",
        "persona is missing",
        "negatives[0].persona_id: no persona is called \"bo\"; nearest: ada",
    ];
    assert_eq!(messages.len(), starts.len(), "{messages:#?}");
    for (message, start) in messages.iter().zip(starts) {
        assert!(message.starts_with(start), "{message}");
    }
}

#[test]
fn the_examples_are_in_order_and_show_every_form() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/personas");
    let registry = Registry::load(&folder).unwrap_or_else(|error| panic!("{error}"));
    let forms: BTreeMap<&str, Form> = registry.iter().map(|named| (named.id.as_str(), named.form)).collect();
    let expected = [
        ("harbour-cat", Form::Text),
        ("lighthouse-keeper", Form::Toml),
        ("navigator", Form::Yaml),
        ("night-librarian", Form::CardV2),
        ("optimist", Form::Json),
        ("ship-cook", Form::Yaml),
    ];
    assert_eq!(forms, BTreeMap::from(expected));
    for named in registry.iter().filter(|named| named.id != "optimist") {
        // Each has a part of its own for personality and for style.
        let profile = named.persona.profile().unwrap();
        let header = |kind| profile.cue_section(kind).map(|section| section.header.as_str());
        let headers = (header(CueKind::Personality), header(CueKind::DialogueStyle));
        assert_eq!(headers, (Some("Personality"), Some("Dialogue Style")), "{}", named.id);
        assert!(!named.persona.description.contains("{{"), "{}", named.id);
        assert!(named.name.is_some(), "{}", named.id);
    }
}
