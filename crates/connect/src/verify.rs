//! The check of the server's certificate. rustls calls it "dangerous" to bring one's own; the reasons:
//! sslmode=require and weaker do not check the certificate, verify-ca does not check the name, and
//! verify-full takes the common name where there is no alternative one. The signature of the handshake is
//! checked in every mode (the server owns the certificate's key).

use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{verify_server_cert_signed_by_trust_anchor, verify_server_name};
use rustls::crypto::{
    CryptoProvider, WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature,
};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, DigitallySignedStruct, OtherError, RootCertStore, SignatureScheme};

use super::certificate::{Certificate, Names};

/// Checks of the certificate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Check {
    /// Nothing: allow, prefer, require without roots.
    Nothing,
    /// A trusted authority must have signed it: verify-ca.
    Chain,
    /// And that it is for the host asked for: verify-full.
    ChainAndName,
}

/// Certificates of the trusted authorities.
#[derive(Debug)]
pub(super) struct Roots {
    /// The certificates as authorities.
    pub(super) store: RootCertStore,
    /// The same, byte for byte: a server may present a root itself (self-signed), which libpq accepts.
    pub(super) exact: Vec<CertificateDer<'static>>,
}

impl Default for Roots {
    fn default() -> Self {
        Self { store: RootCertStore::empty(), exact: Vec::new() }
    }
}

/// A name that is not the certificate's.
#[derive(Debug, thiserror::Error)]
#[error("it is valid for {presented}, not for \"{host}\"")]
pub(super) struct NameMismatch {
    pub(super) host: String,
    pub(super) presented: Names,
}

/// The check of certificates that rustls calls.
#[derive(Debug)]
pub(super) struct Verifier {
    check: Check,
    roots: Roots,
    algorithms: WebPkiSupportedAlgorithms,
}

impl Verifier {
    pub(super) fn new(check: Check, roots: Roots, provider: &CryptoProvider) -> Self {
        Self { check, roots, algorithms: provider.signature_verification_algorithms }
    }

    fn verify_chain(
        &self,
        der: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<(), rustls::Error> {
        if self.roots.exact.iter().any(|root| root.as_ref() == der.as_ref()) {
            let valid = Certificate::parse(der).is_some_and(|certificate| certificate.is_valid_at(now));
            return if valid { Ok(()) } else { Err(CertificateError::Expired.into()) };
        }
        let parsed = ParsedCertificate::try_from(der)?;
        let algorithms = self.algorithms.all;
        verify_server_cert_signed_by_trust_anchor(&parsed, &self.roots.store, intermediates, now, algorithms)
    }
}

fn verify_name(der: &CertificateDer<'_>, name: &ServerName<'_>) -> Result<(), rustls::Error> {
    if ParsedCertificate::try_from(der).and_then(|parsed| verify_server_name(&parsed, name)).is_ok() {
        return Ok(());
    }
    let host = name.to_str().into_owned();
    let presented = Certificate::parse(der).map(|certificate| certificate.names()).unwrap_or_default();
    if presented.common_name_matches(&host) {
        return Ok(());
    }
    let mismatch = NameMismatch { host, presented };
    Err(CertificateError::Other(OtherError(Arc::new(mismatch))).into())
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        if self.check != Check::Nothing {
            self.verify_chain(end_entity, intermediates, now)?;
        }
        if self.check == Check::ChainAndName {
            verify_name(end_entity, server_name)?;
        }
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, cert, signature, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, cert, signature, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
    use std::time::Duration;

    struct Authority {
        der: CertificateDer<'static>,
        issuer: Issuer<'static, KeyPair>,
    }

    impl Authority {
        /// Also a server certificate for the name, as `openssl req -x509 -subj /CN=…` makes it.
        fn new(name: &str) -> Self {
            let mut params = CertificateParams::default();
            params.distinguished_name.push(DnType::CommonName, name);
            params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
            let key = KeyPair::generate().unwrap();
            let der = params.self_signed(&key).unwrap().der().clone();
            Self { der, issuer: Issuer::new(params, key) }
        }

        fn sign(&self, common: &str, names: &[&str]) -> CertificateDer<'static> {
            let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
            let mut params = CertificateParams::new(names).unwrap();
            params.distinguished_name.push(DnType::CommonName, common);
            let key = KeyPair::generate().unwrap();
            params.signed_by(&key, &self.issuer).unwrap().der().clone()
        }

        fn check(&self, check: Check, der: &CertificateDer<'_>, host: &str, now: UnixTime) -> String {
            let mut roots = Roots { exact: vec![self.der.clone()], ..Roots::default() };
            roots.store.add(self.der.clone()).unwrap();
            let verifier = Verifier::new(check, roots, &rustls::crypto::ring::default_provider());
            let host = ServerName::try_from(host).unwrap();
            let verdict = verifier.verify_server_cert(der, &[], &host, &[], now);
            verdict.map_or_else(|error| error.to_string(), |_| "ok".to_owned())
        }
    }

    #[test]
    fn names_as_libpq_compares_them() {
        let authority = Authority::new("authority");
        let now = UnixTime::now();
        let cases: &[(&str, &[&str], &str, bool)] = &[
            ("db", &[], "db", true),
            ("*.example.com", &[], "db.example.com", true),
            ("db", &["other"], "db", false),
            ("db", &["other", "*.example.com"], "a.example.com", true),
            ("db", &["10.0.0.1"], "10.0.0.1", true),
            ("10.0.0.1", &[], "10.0.0.1", true),
            ("db", &["10.0.0.1"], "10.0.0.2", false),
        ];
        for (common, names, host, fits) in cases {
            let der = authority.sign(common, names);
            let verdict = authority.check(Check::ChainAndName, &der, host, now);
            assert_eq!(verdict == "ok", *fits, "{common} {names:?} {host}: {verdict}");
            assert_eq!(authority.check(Check::Chain, &der, host, now), "ok");
        }
    }

    #[test]
    fn chains() {
        let (authority, stranger) = (Authority::new("db"), Authority::new("db"));
        let now = UnixTime::now();
        // The server presents the trusted certificate itself.
        assert_eq!(authority.check(Check::ChainAndName, &authority.der, "db", now), "ok");
        let long_ago = UnixTime::since_unix_epoch(Duration::from_secs(0));
        assert!(authority.check(Check::Chain, &authority.der, "db", long_ago).contains("Expired"));
        let foreign = stranger.sign("db", &["db"]);
        for (der, name) in [(&stranger.der, "itself"), (&foreign, "signed")] {
            assert_ne!(authority.check(Check::Chain, der, "db", now), "ok", "{name}");
            assert_eq!(authority.check(Check::Nothing, der, "other", now), "ok");
        }
    }
}
