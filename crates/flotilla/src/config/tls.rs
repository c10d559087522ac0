//! `hub.tls`: the certificate, and whether the port also speaks in the clear.

use anyhow::{Context, Result, bail};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TlsConfig {
    /// The certificate and the ones that vouch for it, as a PEM file. Read again on SIGHUP.
    pub certificate: PathBuf,
    /// Its private key, as a PEM file.
    pub key: PathBuf,
    /// Also serves requests in the clear on the same port; without it they are told to use https.
    #[serde(default)]
    pub allow_plain: bool,
}

impl TlsConfig {
    /// Reads the files; what is wrong with them is said with their names.
    pub fn acceptor(&self) -> Result<TlsAcceptor> {
        let chain = certificates(&self.certificate)?;
        let key = PrivateKeyDer::from_pem_file(&self.key).with_context(|| {
            format!("hub.tls.key: reading {} (it must hold one private key as PEM)", self.key.display())
        })?;
        let mut config = ServerConfig::builder()
            .with_no_client_auth()
            .with_single_cert(chain, key)
            .context("hub.tls: the key does not fit the certificate")?;
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(TlsAcceptor::from(Arc::new(config)))
    }
}

fn certificates(file: &Path) -> Result<Vec<CertificateDer<'static>>> {
    let reading = || format!("hub.tls.certificate: reading {} (it must hold certificates as PEM)", file.display());
    let chain: Vec<_> =
        CertificateDer::pem_file_iter(file).with_context(reading)?.collect::<Result<_, _>>().with_context(reading)?;
    if chain.is_empty() {
        bail!("hub.tls.certificate: {} holds no certificate", file.display());
    }
    Ok(chain)
}
