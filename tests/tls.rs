//! TLS and mutual TLS, with certificates that change while the server runs.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use hyper_util::rt::TokioIo;
use prism_judge::server::pb;
use prism_judge::server::pb::judge_service_client::JudgeServiceClient;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use support::cli::{run, stderr};
use support::server::{Server, tiny_model};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};
use tonic::transport::{Channel, Endpoint, Uri};

/// An authority and the folder where the server's files are.
struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
}

/// A certificate with its key, in PEM.
struct Pair {
    certificate: String,
    key: String,
}

impl Authority {
    fn new() -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        Self { issuer: CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap() }
    }

    fn sign(&self, name: &str) -> Pair {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        Pair { certificate: certificate.pem(), key: key.serialize_pem() }
    }

    fn client(&self, shows: Option<&Pair>) -> TlsConnector {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(self.issuer.pem().as_bytes()).unwrap()).unwrap();
        let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots);
        let mut config = match shows {
            Some(pair) => {
                let chain = vec![CertificateDer::from_pem_slice(pair.certificate.as_bytes()).unwrap()];
                builder.with_client_auth_cert(chain, PrivateKeyDer::from_pem_slice(pair.key.as_bytes()).unwrap())
            }
            None => Ok(builder.with_no_client_auth()),
        }
        .unwrap();
        config.alpn_protocols = vec![b"h2".to_vec()];
        TlsConnector::from(Arc::new(config))
    }
}

impl Pair {
    fn write(&self, folder: &Path) -> (PathBuf, PathBuf) {
        let files = (folder.join("cert.pem"), folder.join("key.pem"));
        std::fs::write(&files.0, &self.certificate).unwrap();
        std::fs::write(&files.1, &self.key).unwrap();
        files
    }

    fn der(&self) -> CertificateDer<'static> {
        CertificateDer::from_pem_slice(self.certificate.as_bytes()).unwrap()
    }
}

async fn shake(client: TlsConnector, address: String) -> std::io::Result<TlsStream<TcpStream>> {
    let stream = TcpStream::connect(address).await?;
    client.connect(ServerName::try_from("judge.test").unwrap(), stream).await
}

/// What the server shows.
async fn shown(client: TlsConnector, server: &Server) -> CertificateDer<'static> {
    let stream = shake(client, server.address.clone()).await.unwrap();
    stream.get_ref().1.peer_certificates().unwrap()[0].clone().into_owned()
}

async fn channel(client: TlsConnector, server: &Server) -> Result<Channel, tonic::transport::Error> {
    let address = server.address.clone();
    let connector = tower::service_fn(move |_: Uri| {
        let (client, address) = (client.clone(), address.clone());
        async move { shake(client, address).await.map(TokioIo::new) }
    });
    Endpoint::from_static("http://judge.test").connect_with_connector(connector).await
}

async fn answers(channel: Channel) -> bool {
    JudgeServiceClient::new(channel).get_judge_info(pb::GetJudgeInfoRequest {}).await.is_ok()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_pair_is_taken_only_when_it_goes_together_and_calls_go_on() {
    let folder = tempfile::tempdir().unwrap();
    let Some(model) = tiny_model(folder.path()) else { return };
    let authority = Authority::new();
    let (first, second) = (authority.sign("judge.test"), authority.sign("judge.test"));
    let (certificate, key) = first.write(folder.path());
    let server = Server::start(&[
        "--model",
        model.to_str().unwrap(),
        "--tls-cert",
        certificate.to_str().unwrap(),
        "--tls-key",
        key.to_str().unwrap(),
        "--reload-s",
        "1",
    ])
    .ready()
    .await;
    let open = channel(authority.client(None), &server).await.unwrap();
    assert!(answers(open.clone()).await);
    assert_eq!(shown(authority.client(None), &server).await, first.der());
    // Plain text is not answered.
    let plain = Endpoint::from_shared(format!("http://{}", server.address)).unwrap().connect().await;
    assert!(match plain {
        Ok(channel) => !answers(channel).await,
        Err(_) => true,
    });

    // A certificate without its key, as in the middle of a change; then no certificate at all; then the pair.
    std::fs::write(&certificate, &second.certificate).unwrap();
    assert!(server.logged("new certificates cannot be used").contains("is not the key of"));
    assert_eq!(shown(authority.client(None), &server).await, first.der());
    std::fs::write(&certificate, "nothing").unwrap();
    assert!(server.logged("new certificates cannot be used").contains("no certificate in PEM form"));
    assert_eq!(shown(authority.client(None), &server).await, first.der());
    second.write(folder.path());
    server.logged("new certificates are in use");
    assert_eq!(shown(authority.client(None), &server).await, second.der());
    assert!(answers(open).await, "the connection from before goes on");
}

#[tokio::test(flavor = "multi_thread")]
async fn with_mutual_tls_only_clients_of_the_authority_are_answered() {
    let folder = tempfile::tempdir().unwrap();
    let Some(model) = tiny_model(folder.path()) else { return };
    let (authority, other) = (Authority::new(), Authority::new());
    let (certificate, key) = authority.sign("judge.test").write(folder.path());
    let ca = folder.path().join("ca.pem");
    std::fs::write(&ca, authority.issuer.pem()).unwrap();
    let server = Server::start(&[
        "--model",
        model.to_str().unwrap(),
        "--tls-cert",
        certificate.to_str().unwrap(),
        "--tls-key",
        key.to_str().unwrap(),
        "--tls-client-ca",
        ca.to_str().unwrap(),
    ])
    .ready()
    .await;
    let known = authority.sign("client");
    assert!(answers(channel(authority.client(Some(&known)), &server).await.unwrap()).await);
    for shows in [None, Some(other.sign("client"))] {
        // TLS 1.3 clients learn of it when they read.
        let refused = match channel(authority.client(shows.as_ref()), &server).await {
            Ok(channel) => !answers(channel).await,
            Err(_) => true,
        };
        assert!(refused);
    }
    // Probes stay open.
    assert_eq!(server.get("/readyz").0, 200);
}

#[test]
fn wrong_files_are_named_before_a_port_opens() {
    let folder = tempfile::tempdir().unwrap();
    let authority = Authority::new();
    let (certificate, key) = authority.sign("judge.test").write(folder.path());
    let foreign = folder.path().join("foreign.pem");
    std::fs::write(&foreign, authority.sign("judge.test").key).unwrap();
    let text = |path: &Path| path.to_str().unwrap().to_owned();
    let (certificate, key, foreign) = (text(&certificate), text(&key), text(&foreign));
    let none = text(&folder.path().join("none.pem"));
    let cases: [(&[&str], &str); 6] = [
        (&["--tls-cert", &certificate], "--tls-cert needs --tls-key"),
        (&["--tls-key", &key], "--tls-key needs --tls-cert"),
        (&["--tls-client-ca", &certificate], "--tls-client-ca needs"),
        (&["--tls-cert", &certificate, "--tls-key", &foreign], "foreign.pem: is not the key of"),
        (&["--tls-cert", &key, "--tls-key", &key], "key.pem: no certificate in PEM form"),
        (&["--tls-cert", &none, "--tls-key", &key], "none.pem: No such file"),
    ];
    for (flags, expected) in cases {
        let output = run(
            &[&["serve", "--listen", "127.0.0.1:0", "--http-listen", "off", "--admin-listen", "off"], flags].concat(),
            b"",
        );
        assert_eq!(output.status.code(), Some(64), "{flags:?}: {}", stderr(&output));
        assert!(stderr(&output).contains(expected), "{flags:?}: {}", stderr(&output));
    }
}

#[test]
fn an_address_that_others_reach_needs_protection_or_a_decision() {
    for flag in ["--listen", "--http-listen"] {
        for address in ["0.0.0.0:0", "[::]:0"] {
            let output = run(&["serve", flag, address], b"");
            assert_eq!(output.status.code(), Some(64));
            let told = stderr(&output);
            assert!(told.contains("--allow-insecure") && told.contains(&format!("{flag} {address}")), "{told}");
        }
    }
}
