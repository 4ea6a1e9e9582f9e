//! Who may call the HTTP port: keys, lanes, tenants, TLS.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use std::path::Path;
use std::sync::Arc;

use rcgen::{CertificateParams, KeyPair};
use serde_json::{Value, json};
use support::cli::run;
use support::http::{get, post, request, talk};
use support::server::{Server, tiny_model};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

/// Makes a key as its owner would; its entry is added to `entries`.
fn key(entries: &mut String, args: &[&str]) -> String {
    let output = run(&[&["keys", "new"], args].concat(), b"");
    assert!(output.status.success());
    entries.push_str(&String::from_utf8(output.stdout).unwrap());
    String::from_utf8(output.stderr).unwrap().trim().to_owned()
}

async fn serve(folder: &Path, keys: &str) -> Option<Server> {
    let model = tiny_model(folder)?;
    let file = folder.join("keys.toml");
    std::fs::write(&file, keys).unwrap();
    Some(Server::start(&["--model", model.to_str().unwrap(), "--api-keys", file.to_str().unwrap()]).ready().await)
}

fn one_item() -> Value {
    json!({"prompt": "Coming?", "response": "Yes!", "label": {"description": "A kind person."}})
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_key_nothing_answers_but_what_is_the_same_for_everybody() {
    let folder = tempfile::tempdir().unwrap();
    let mut entries = String::new();
    let known = format!("Bearer {}", key(&mut entries, &["--tenant", "rl"]));
    let Some(server) = serve(folder.path(), &entries).await else { return };
    for (shown, reason) in [(None, "NO_KEY"), (Some("Bearer no"), "UNKNOWN_KEY"), (Some("Basic no"), "NO_KEY")] {
        let headers: Vec<_> = shown.iter().map(|shown| ("authorization", *shown)).collect();
        let mut refused = vec![get(&server.http, "/v1/info", &headers), get(&server.http, "/nowhere", &headers)];
        for path in
            ["/reward", "/get_reward", "/v1/score", "/classify", "/nowhere", "/beta/litellm_basic_guardrail_api"]
        {
            refused.push(post(&server.http, path, &headers, &one_item()));
        }
        for reply in refused {
            assert_eq!((reply.status, reply.header("www-authenticate")), (401, Some("bearer")), "{}", reply.body);
            assert_eq!(reply.json()["error"]["reason"], reason);
        }
        for path in ["/", "/openapi.json", "/health"] {
            assert_eq!(get(&server.http, path, &headers).status, 200, "{path}");
        }
    }
    let headers = [("authorization", known.as_str())];
    assert_eq!(post(&server.http, "/reward", &headers, &one_item()).status, 200);
    assert_eq!(get(&server.http, "/nowhere", &headers).status, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_opens_its_lanes_and_a_share_that_is_used_up_is_429() {
    let folder = tempfile::tempdir().unwrap();
    let mut entries = String::new();
    let chat = format!("Bearer {}", key(&mut entries, &["--tenant", "chat", "--lane", "guard"]));
    let small = format!("Bearer {}", key(&mut entries, &["--tenant", "small"]));
    entries.push_str("[tenants.small]\ntokens_per_second = 1\nburst_tokens = 10\n");
    let Some(server) = serve(folder.path(), &entries).await else { return };
    let headers = [("authorization", chat.as_str())];
    let trains = post(&server.http, "/reward", &headers, &one_item());
    assert_eq!((trains.status, &trains.json()["error"]["reason"]), (403, &json!("LANE_NOT_ALLOWED")));
    let persona = json!({"persona": {"description": "A kind person."}});
    let guards = json!({"input_type": "response", "texts": ["Yes!"], "additional_provider_specific_params": persona});
    assert_eq!(post(&server.http, "/beta/litellm_basic_guardrail_api", &headers, &guards).status, 200);

    let headers = [("authorization", small.as_str())];
    assert_eq!(
        post(&server.http, "/reward", &headers, &one_item()).status,
        200,
        "more than the burst, from a full bucket"
    );
    let mut other = one_item();
    other["response"] = json!("No!");
    let used_up = post(&server.http, "/reward", &headers, &other);
    assert_eq!((used_up.status, &used_up.json()["error"]["reason"]), (429, &json!("OVER_QUOTA")));
    // A judgement has some hundred tokens, at one token a second.
    assert!((30..3600).contains(&used_up.header("retry-after").unwrap().parse::<u64>().unwrap()), "{used_up:?}");
}

/// A conversation that one tenant's gateway told is not there for another's, whatever the call is called.
#[tokio::test(flavor = "multi_thread")]
async fn tenants_remember_no_conversation_of_each_other() {
    let folder = tempfile::tempdir().unwrap();
    let mut entries = String::new();
    let keys = ["a", "b"].map(|tenant| format!("Bearer {}", key(&mut entries, &["--tenant", tenant])));
    let Some(server) = serve(folder.path(), &entries).await else { return };
    let path = "/beta/litellm_basic_guardrail_api";
    let before = json!({"input_type": "request", "litellm_call_id": "1", "structured_messages": [{"role": "system", "content": "You are Teodor, a kind person."}]});
    let after = json!({"input_type": "response", "litellm_call_id": "1", "texts": ["Yes!"]});
    assert_eq!(post(&server.http, path, &[("authorization", &keys[0])], &before).status, 200);
    assert_eq!(post(&server.http, path, &[("authorization", &keys[0])], &after).status, 200);
    assert_eq!(post(&server.http, path, &[("authorization", &keys[1])], &after).status, 400, "it knows of no persona");
}

#[tokio::test(flavor = "multi_thread")]
async fn with_certificates_the_port_speaks_tls_and_either_http() {
    let folder = tempfile::tempdir().unwrap();
    let Some(model) = tiny_model(folder.path()) else { return };
    let pair = KeyPair::generate().unwrap();
    let certificate = CertificateParams::new(vec!["judge.test".to_owned()]).unwrap().self_signed(&pair).unwrap();
    let (cert, key) = (folder.path().join("cert.pem"), folder.path().join("key.pem"));
    std::fs::write(&cert, certificate.pem()).unwrap();
    std::fs::write(&key, pair.serialize_pem()).unwrap();
    let files = ["--tls-cert", cert.to_str().unwrap(), "--tls-key", key.to_str().unwrap()];
    let server = Server::start(&[&["--model", model.to_str().unwrap()], &files[..]].concat()).ready().await;

    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(certificate.pem().as_bytes()).unwrap()).unwrap();
    let client = |offered: &[&str]| {
        let mut config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots.clone())
            .with_no_client_auth();
        config.alpn_protocols = offered.iter().map(|name| name.as_bytes().to_vec()).collect();
        TlsConnector::from(Arc::new(config))
    };
    for (offered, chosen) in [(&["http/1.1"][..], Some("http/1.1")), (&["h2", "http/1.1"], Some("h2")), (&[], None)] {
        let stream = TcpStream::connect(&server.http).await.unwrap();
        let stream = client(offered).connect(ServerName::try_from("judge.test").unwrap(), stream).await.unwrap();
        let spoken = stream.get_ref().1.alpn_protocol().map(|name| std::str::from_utf8(name).unwrap().to_owned());
        assert_eq!(spoken.as_deref(), chosen);
        if chosen != Some("h2") {
            assert_eq!(talk(stream, &request("/reward", &[], &one_item())).await.status, 200);
        }
    }
    // The gRPC port has no use for a client of HTTP/1.1.
    let stream = TcpStream::connect(&server.address).await.unwrap();
    assert!(client(&["http/1.1"]).connect(ServerName::try_from("judge.test").unwrap(), stream).await.is_err());
}
