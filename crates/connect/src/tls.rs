//! TLS as libpq means it ("34.19 SSL Support"): the demands of sslmode, where root and client certificates
//! are, and the check of the server's certificate.

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore, SupportedProtocolVersion, crypto};

use super::error::ConnectError;
use super::params::{Params, invalid};
use super::verify::{Check, Roots, Verifier};

/// The protocol's name in TLS's application-layer negotiation; sslnegotiation=direct requires it.
pub(super) const ALPN: &[u8] = b"postgresql";

/// sslmode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd)]
pub(super) enum SslMode {
    Disable,
    Allow,
    Prefer,
    Require,
    VerifyCa,
    VerifyFull,
}

impl SslMode {
    const ALL: [Self; 6] =
        [Self::Prefer, Self::Disable, Self::Allow, Self::Require, Self::VerifyCa, Self::VerifyFull];

    /// The word in `sslmode=`.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Disable => "disable",
            Self::Allow => "allow",
            Self::Prefer => "prefer",
            Self::Require => "require",
            Self::VerifyCa => "verify-ca",
            Self::VerifyFull => "verify-full",
        }
    }
}

/// The decisions about TLS, made once per target.
#[derive(Clone)]
pub(super) struct Tls {
    pub(super) mode: SslMode,
    /// sslnegotiation=direct: TLS from the first byte (PostgreSQL 17 and later).
    pub(super) direct: bool,
    /// `None` if the mode or the kind of hosts rules TLS out.
    pub(super) config: Option<Arc<ClientConfig>>,
    /// Source of the trusted certificates, for errors.
    pub(super) roots: String,
    /// The parameters beside sslmode, as environment variables for other programs.
    pub(super) variables: Vec<(&'static str, String)>,
}

impl Tls {
    /// Settings of a connection without TLS.
    pub(super) fn off() -> Self {
        Self {
            mode: SslMode::Disable,
            direct: false,
            config: None,
            roots: String::new(),
            variables: Vec::new(),
        }
    }

    /// Resolves the parameters. `home` is where `.postgresql/` is. Warnings are added to `warnings`.
    pub(super) fn resolve(
        params: &Params,
        home: Option<&Path>,
        warnings: &mut Vec<String>,
    ) -> Result<Self, ConnectError> {
        let system = params.text("sslrootcert") == Some("system");
        let mode = mode(params, system)?;
        let direct = params.choice("sslnegotiation", &[("postgres", false), ("direct", true)])?;
        if let (true, Some(setting)) = (direct && mode < SslMode::Require, params.get("sslnegotiation")) {
            return Err(ConnectError::Mismatch(format!(
                "sslnegotiation=direct (from {}) needs sslmode=require or a stronger mode, and sslmode is {}: give a stronger mode, or leave \
                 sslnegotiation out",
                setting.origin,
                mode.name()
            )));
        }
        if mode == SslMode::Disable {
            return Ok(Self::off());
        }
        let roots_file = params.text("sslrootcert").map(PathBuf::from);
        let in_home = |file: &str| home.map(|home| home.join(".postgresql").join(file));
        let roots_file = roots_file.or_else(|| in_home("root.crt"));
        let (check, roots) = trust(mode, system, roots_file.as_deref(), params, warnings)?;
        let roots_name = match &roots_file {
            _ if system => "the system's certificate store".to_owned(),
            Some(file) => file.display().to_string(),
            None => "~/.postgresql/root.crt".to_owned(),
        };
        let identity = identity(params, &in_home)?;
        let config = client_config(params, check, roots, identity)?;
        let variables = params.tls_variables();
        Ok(Self { mode, direct, config: Some(Arc::new(config)), roots: roots_name, variables })
    }
}

/// sslmode; the system's roots trust too many for less than verify-full, which then is the default.
fn mode(params: &Params, system: bool) -> Result<SslMode, ConnectError> {
    let mode = params.choice("sslmode", &SslMode::ALL.map(|mode| (mode.name(), mode)))?;
    match params.get("sslmode") {
        None if system => Ok(SslMode::VerifyFull),
        Some(setting) if system && mode != SslMode::VerifyFull => {
            Err(invalid("sslmode", setting, "verify-full, because of sslrootcert=system"))
        }
        _ => Ok(mode),
    }
}

/// The checks, and the roots for them. "require" checks the chain if there is a root file, as libpq does for
/// compatibility; "allow" and "prefer" promise nothing and check nothing.
fn trust(
    mode: SslMode,
    system: bool,
    file: Option<&Path>,
    params: &Params,
    warnings: &mut Vec<String>,
) -> Result<(Check, Roots), ConnectError> {
    let check = match mode {
        SslMode::VerifyFull => Check::ChainAndName,
        SslMode::VerifyCa => Check::Chain,
        SslMode::Require if file.is_some_and(Path::exists) => Check::Chain,
        _ => {
            if let (SslMode::Require, Some(given)) = (mode, params.text("sslrootcert")) {
                warnings.push(format!(
                    "sslrootcert={given} does not exist, so pgrig does not check the server's certificate: correct the path \
                     (sslmode=verify-full makes this an error)"
                ));
            }
            return Ok((Check::Nothing, Roots::default()));
        }
    };
    if system {
        return Ok((check, system_roots()?));
    }
    let file = file.filter(|file| file.exists()).ok_or_else(|| ConnectError::CertificateFile {
        keyword: "sslrootcert",
        file: file.map_or_else(|| "~/.postgresql/root.crt".into(), Path::to_owned),
        what: format!(
            "does not exist, and sslmode={} needs it; provide the certificate of the authority that signed the server's certificate, use \
             the system's certificates (sslrootcert=system), or connect without this check (sslmode=require)",
            mode.name()
        ),
    })?;
    Ok((check, file_roots(file)?))
}

fn system_roots() -> Result<Roots, ConnectError> {
    let found = rustls_native_certs::load_native_certs();
    let mut roots = Roots::default();
    roots.store.add_parsable_certificates(found.certs);
    if roots.store.is_empty() {
        let why = found.errors.first().map(|error| format!(" ({error})")).unwrap_or_default();
        return Err(ConnectError::NoSystemRoots(why));
    }
    Ok(roots)
}

fn file_roots(file: &Path) -> Result<Roots, ConnectError> {
    let mut roots = Roots { exact: certificates("sslrootcert", file)?, store: RootCertStore::empty() };
    roots.store.add_parsable_certificates(roots.exact.iter().cloned());
    Ok(roots)
}

fn certificates(keyword: &'static str, file: &Path) -> Result<Vec<CertificateDer<'static>>, ConnectError> {
    let fault = |what: String| ConnectError::CertificateFile { keyword, file: file.to_owned(), what };
    let read = CertificateDer::pem_file_iter(file).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let found = read.map_err(|error| fault(format!("cannot be read as PEM: {error}")))?;
    if found.is_empty() {
        return Err(fault("contains no certificate (\"-----BEGIN CERTIFICATE-----\")".to_owned()));
    }
    Ok(found)
}

type Identity = (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>);

/// The client's certificate and key; the default files need not exist, named ones must.
fn identity(
    params: &Params,
    in_home: &dyn Fn(&str) -> Option<PathBuf>,
) -> Result<Option<Identity>, ConnectError> {
    if params.text("sslcertmode") == Some("disable") {
        return Ok(None);
    }
    let named = params.text("sslcert").map(PathBuf::from);
    let Some(file) = named.or_else(|| in_home("postgresql.crt").filter(|file| file.exists())) else {
        return Ok(None);
    };
    let chain = certificates("sslcert", &file)?;
    let key = params.text("sslkey").map(PathBuf::from).or_else(|| in_home("postgresql.key"));
    let key = key.unwrap_or_else(|| "~/.postgresql/postgresql.key".into());
    let fault = |what: String| ConnectError::CertificateFile { keyword: "sslkey", file: key.clone(), what };
    let metadata = key.metadata().map_err(|error| {
        fault(format!("cannot be read: {error}; it must hold the key of {}", file.display()))
    })?;
    let group_may_read = if metadata.uid() == 0 { 0o027 } else { 0o077 };
    if metadata.permissions().mode() & group_may_read != 0 {
        return Err(fault(format!("has group or world access; run: chmod 0600 {}", key.display())));
    }
    let secret = PrivateKeyDer::from_pem_file(&key)
        .map_err(|error| fault(format!("is not an unencrypted private key in PEM: {error}")))?;
    Ok(Some((chain, secret)))
}

fn client_config(
    params: &Params,
    check: Check,
    roots: Roots,
    identity: Option<Identity>,
) -> Result<ClientConfig, ConnectError> {
    let provider = Arc::new(crypto::ring::default_provider());
    let fault = |error: rustls::Error| {
        ConnectError::Mismatch(format!(
            "cannot set up TLS: {error}; check that sslkey is the key of the certificate in sslcert, and the protocol \
             versions (ssl_min_protocol_version, ssl_max_protocol_version)"
        ))
    };
    let verifier = Verifier::new(check, roots, &provider);
    let builder = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&versions(params)?)
        .map_err(fault)?
        .dangerous() // named so by rustls; see verify.rs
        .with_custom_certificate_verifier(Arc::new(verifier));
    let mut config = match identity {
        Some((chain, key)) => builder.with_client_auth_cert(chain, key).map_err(fault)?,
        None => builder.with_no_client_auth(),
    };
    config.alpn_protocols = vec![ALPN.to_vec()];
    config.enable_sni = params.choice("sslsni", &[("1", true), ("0", false)])?;
    Ok(config)
}

/// ssl_min_protocol_version and ssl_max_protocol_version, of which TLS 1.2 and 1.3 are left.
fn versions(params: &Params) -> Result<Vec<&'static SupportedProtocolVersion>, ConnectError> {
    let known = [("TLSv1", 10), ("TLSv1.1", 11), ("TLSv1.2", 12), ("TLSv1.3", 13)];
    let minimum =
        params.get("ssl_min_protocol_version").map(|_| params.choice("ssl_min_protocol_version", &known));
    let maximum =
        params.get("ssl_max_protocol_version").map(|_| params.choice("ssl_max_protocol_version", &known));
    let (minimum, maximum) = (minimum.transpose()?.unwrap_or(12), maximum.transpose()?.unwrap_or(13));
    let all = [(12, &rustls::version::TLS12), (13, &rustls::version::TLS13)];
    let left: Vec<_> = all
        .into_iter()
        .filter(|(n, _)| (minimum..=maximum).contains(n))
        .map(|(_, version)| version)
        .collect();
    match params.get("ssl_max_protocol_version") {
        Some(setting) if left.is_empty() => {
            Err(invalid("ssl_max_protocol_version", setting, "TLSv1.2 or TLSv1.3, and not below the minimum"))
        }
        _ => Ok(left),
    }
}
