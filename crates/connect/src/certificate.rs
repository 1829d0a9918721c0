//! Facts about a server's certificate that pgrig needs besides the checks of the TLS library.

use std::net::IpAddr;

use rustls::pki_types::UnixTime;
use sha2::{Digest, Sha256, Sha384, Sha512};
use x509_cert::Certificate as X509;
use x509_cert::der::oid::ObjectIdentifier;
use x509_cert::der::oid::db::{rfc4519, rfc5912 as oid};
use x509_cert::der::{Decode, Encode};
use x509_cert::ext::pkix::SubjectAltName;
use x509_cert::ext::pkix::name::GeneralName;

/// A parsed certificate.
pub(super) struct Certificate(X509);

/// The names a certificate is for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Names {
    pub(super) dns: Vec<String>,
    pub(super) addresses: Vec<IpAddr>,
    pub(super) common: Option<String>,
}

impl Certificate {
    pub(super) fn parse(der: &[u8]) -> Option<Self> {
        X509::from_der(der).ok().map(Self)
    }

    /// Whether `now` lies within its validity.
    pub(super) fn is_valid_at(&self, now: UnixTime) -> bool {
        let validity = &self.0.tbs_certificate.validity;
        let (from, to) = (validity.not_before.to_unix_duration(), validity.not_after.to_unix_duration());
        (from.as_secs()..=to.as_secs()).contains(&now.as_secs())
    }

    pub(super) fn names(&self) -> Names {
        let mut names = Names { common: self.common_name(), ..Names::default() };
        let Ok(Some((_, SubjectAltName(alternatives)))) = self.0.tbs_certificate.get::<SubjectAltName>()
        else {
            return names;
        };
        for name in alternatives {
            match name {
                GeneralName::DnsName(dns) => names.dns.push(dns.to_string()),
                GeneralName::IpAddress(bytes) => names.addresses.extend(address(bytes.as_bytes())),
                _ => {}
            }
        }
        names
    }

    fn common_name(&self) -> Option<String> {
        let mut parts = self.0.tbs_certificate.subject.0.iter().flat_map(|part| part.0.iter());
        let common = parts.rfind(|part| part.oid == rfc4519::CN)?;
        String::from_utf8(common.value.value().to_vec()).ok()
    }

    /// The hash of the certificate that SCRAM-SHA-256-PLUS binds to (`tls-server-end-point`, RFC 5929
    /// section 4.1): with the hash of its signature, SHA-256 instead of MD5 and SHA-1. `None` where the
    /// signature has no hash of its own (Ed25519): the RFC then defines no binding.
    pub(super) fn end_point(&self) -> Option<Vec<u8>> {
        let der = self.0.to_der().ok()?;
        match self.0.signature_algorithm.oid {
            oid::SHA_1_WITH_RSA_ENCRYPTION
            | oid::SHA_256_WITH_RSA_ENCRYPTION
            | oid::ECDSA_WITH_SHA_256
            | ECDSA_WITH_SHA_1 => Some(Sha256::digest(der).to_vec()),
            oid::SHA_384_WITH_RSA_ENCRYPTION | oid::ECDSA_WITH_SHA_384 => Some(Sha384::digest(der).to_vec()),
            oid::SHA_512_WITH_RSA_ENCRYPTION | oid::ECDSA_WITH_SHA_512 => Some(Sha512::digest(der).to_vec()),
            _ => None,
        }
    }
}

const ECDSA_WITH_SHA_1: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.10045.4.1");

fn address(bytes: &[u8]) -> Option<IpAddr> {
    let v4 = <[u8; 4]>::try_from(bytes).map(IpAddr::from);
    v4.or_else(|_| <[u8; 16]>::try_from(bytes).map(IpAddr::from)).ok()
}

impl Names {
    /// libpq's rule for certificates without an alternative name of the host's type: the common name, in
    /// which `*.` stands for exactly one label. (The TLS library knows only alternative names, but the
    /// certificates that PostgreSQL's documentation teaches to make have none.)
    pub(super) fn common_name_matches(&self, host: &str) -> bool {
        let Some(common) = &self.common else { return false };
        let is_address = host.parse::<IpAddr>().is_ok();
        if !self.dns.is_empty() || (is_address && !self.addresses.is_empty()) {
            return false;
        }
        if common.eq_ignore_ascii_case(host) {
            return true;
        }
        match (common.strip_prefix('*'), host.find('.')) {
            (Some(domain), Some(dot)) if !is_address && dot > 0 && domain.len() > 1 => {
                domain.eq_ignore_ascii_case(&host[dot..])
            }
            _ => false,
        }
    }
}

/// As in `"db.example.com", "10.0.0.1"`.
impl std::fmt::Display for Names {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut all: Vec<String> = self.dns.clone();
        all.extend(self.addresses.iter().map(ToString::to_string));
        if all.is_empty() {
            all.extend(self.common.clone());
        }
        match all.as_slice() {
            [] => f.write_str("no name at all"),
            all => write!(f, "\"{}\"", all.join("\", \"")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_common_name_counts_only_without_alternative_names() {
        let named = |common: &str| Names { common: Some(common.into()), ..Names::default() };
        let cases = [
            ("db.example.com", "DB.example.COM", true),
            ("*.example.com", "db.example.com", true),
            ("*.example.com", "a.db.example.com", false),
            ("*.example.com", "example.com", false),
            ("*", "db", false),
            ("*.0.0.1", "127.0.0.1", false),
            ("127.0.0.1", "127.0.0.1", true),
        ];
        for (common, host, expected) in cases {
            assert_eq!(named(common).common_name_matches(host), expected, "{common} {host}");
        }
        let both = Names { dns: vec!["other".into()], ..named("db") };
        assert!(!both.common_name_matches("db"));
        assert_eq!(both.to_string(), "\"other\"");
        assert_eq!(named("db").to_string(), "\"db\"");
    }
}
