//! Certificates: read whole, checked as a pair, and exchanged while the server runs.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::{Error, RootCertStore, ServerConfig};

use crate::digest::Digest;
use crate::watched::Watched;

/// Where the certificates are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    /// The server's chain, its own certificate first (PEM).
    pub certificate: PathBuf,
    /// The private key of the first certificate (PEM: PKCS #8, PKCS #1 or SEC 1).
    pub key: PathBuf,
    /// Who signs the certificates that clients must show (PEM); None: clients show none.
    pub client_ca: Option<PathBuf>,
}

/// Why certificates are not used; those before them stay.
#[derive(Debug, thiserror::Error)]
#[error("{file}: {reason}")]
pub struct TlsError {
    file: String,
    reason: String,
}

impl TlsError {
    fn new(file: &Path, reason: impl ToString) -> Self {
        Self { file: file.display().to_string(), reason: reason.to_string() }
    }
}

/// The server's side of TLS.
pub struct Tls {
    files: TlsFiles,
    loaded: Watched<Loaded>,
}

struct Loaded {
    grpc: Arc<ServerConfig>,
    http: Arc<ServerConfig>,
    expires: SystemTime,
}

/// What the files hold.
struct Contents {
    certificate: Vec<u8>,
    key: Vec<u8>,
    client_ca: Option<Vec<u8>>,
}

impl Tls {
    pub fn open(files: TlsFiles) -> Result<Self, TlsError> {
        let contents = Contents::read(&files)?;
        let loaded = contents.load(&files)?;
        Ok(Self { files, loaded: Watched::new(loaded, contents.digest()) })
    }

    /// For the next connection to the gRPC port.
    pub fn grpc(&self) -> TlsAcceptor {
        TlsAcceptor::from(Arc::clone(&self.loaded.now().grpc))
    }

    /// For the next connection to the HTTP port.
    pub fn http(&self) -> TlsAcceptor {
        TlsAcceptor::from(Arc::clone(&self.loaded.now().http))
    }

    /// When the server's certificate ends.
    pub fn expires(&self) -> SystemTime {
        self.loaded.now().expires
    }

    /// Takes what the files hold now, for connections from now on; whether that was something new. Blocks.
    ///
    /// # Errors
    /// The files are unreadable or do not go together: once for each change, and what was there stays. A pair that is
    /// being written is such a case, and the next look finds it whole.
    pub fn reload(&self) -> Result<bool, TlsError> {
        let contents = Contents::read(&self.files)?;
        self.loaded.renew(contents.digest(), |_| contents.load(&self.files))
    }
}

impl Contents {
    fn read(files: &TlsFiles) -> Result<Self, TlsError> {
        let read = |path: &Path| std::fs::read(path).map_err(|error| TlsError::new(path, error));
        Ok(Self {
            certificate: read(&files.certificate)?,
            key: read(&files.key)?,
            client_ca: files.client_ca.as_deref().map(read).transpose()?,
        })
    }

    fn digest(&self) -> Digest {
        let digest = Digest::builder("prism-judge tls 1").field("certificate", &self.certificate);
        let digest = digest.field("key", &self.key);
        match &self.client_ca {
            Some(client_ca) => digest.field("client_ca", client_ca).finish(),
            None => digest.finish(),
        }
    }

    fn load(&self, files: &TlsFiles) -> Result<Loaded, TlsError> {
        let chain = certificates(&files.certificate, &self.certificate)?;
        let expires = expires(&chain[0]).map_err(|reason| TlsError::new(&files.certificate, reason))?;
        let key = PrivateKeyDer::from_pem_slice(&self.key)
            .map_err(|error| TlsError::new(&files.key, format!("no private key in PEM form: {error}")))?;
        let provider = Arc::new(ring::default_provider());
        let unusable = |error: &dyn std::fmt::Display| TlsError::new(&files.certificate, error.to_string());
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(|error| unusable(&error))?;
        let builder = match (&files.client_ca, &self.client_ca) {
            (Some(path), Some(pem)) => {
                let mut roots = RootCertStore::empty();
                for certificate in certificates(path, pem)? {
                    roots.add(certificate).map_err(|error| TlsError::new(path, error))?;
                }
                let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider)
                    .build()
                    .map_err(|error| TlsError::new(path, error))?;
                builder.with_client_cert_verifier(verifier)
            }
            _ => builder.with_no_client_auth(),
        };
        let mut config = builder.with_single_cert(chain, key).map_err(|error| {
            TlsError::new(&files.key, format!("is not the key of {}: {error}", files.certificate.display()))
        })?;
        config.alpn_protocols = vec![b"h2".to_vec()];
        let mut http = config.clone();
        http.alpn_protocols.push(b"http/1.1".to_vec());
        Ok(Loaded { grpc: Arc::new(config), http: Arc::new(http), expires })
    }
}

/// Why a handshake failed, as the metrics call it.
pub fn reason(error: &std::io::Error) -> &'static str {
    match error.get_ref().and_then(|error| error.downcast_ref::<Error>()) {
        Some(Error::NoCertificatesPresented | Error::InvalidCertificate(_)) => "client_certificate",
        Some(_) => "protocol",
        None => "other",
    }
}

/// At least one certificate.
fn certificates(path: &Path, pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    match certificates {
        Ok(certificates) if certificates.is_empty() => Err(TlsError::new(path, "no certificate in PEM form")),
        Ok(certificates) => Ok(certificates),
        Err(error) => Err(TlsError::new(path, format!("no certificate in PEM form: {error}"))),
    }
}

fn expires(certificate: &CertificateDer<'_>) -> Result<SystemTime, String> {
    let (_, parsed) = x509_parser::parse_x509_certificate(certificate).map_err(|error| error.to_string())?;
    let seconds = u64::try_from(parsed.validity().not_after.timestamp()).unwrap_or(0);
    Ok(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds))
}
