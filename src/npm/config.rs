//! The configuration of npm: registries, scopes, credentials and proxies of `.npmrc` files and
//! the environment. Later files replace values of earlier ones, the environment those of files.

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use deno_npmrc::{NpmRc, NpmRegistryUrl, RegistryConfig, ResolvedNpmRc};
use reqwest::{Certificate, ClientBuilder, Identity, NoProxy, Proxy, Url};
use sys_traits::BaseEnvVar;

/// Prefix of npm's variables in the environment, in any case.
const VARIABLE_PREFIX: &str = "npm_config_";

#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    #[error("{}: {why}", .file.display())]
    File { file: PathBuf, why: String },
    #[error("The configuration of npm (.npmrc, npm_config_… variables) is wrong: {0}")]
    Value(String),
}

/// The files of a client certificate, `certfile` and `keyfile` of a registry.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct CertificateFiles {
    certificate: PathBuf,
    key: PathBuf,
}

/// How a file is fetched from a registry or another server.
#[derive(Debug)]
pub(crate) struct Access {
    pub(crate) url: Url,
    /// The value of `Authorization`, for this host only: the client removes it from redirects to
    /// others.
    pub(crate) authorization: Option<String>,
    /// The client certificate, unless it is that of all registries.
    pub(crate) certificate: Option<CertificateFiles>,
}

#[derive(Clone, Debug)]
pub struct NpmConfig {
    rc: Arc<ResolvedNpmRc>,
    proxy: Option<String>,
    https_proxy: Option<String>,
    no_proxy: Option<String>,
    certificates: Option<PathBuf>,
    accepts_all_certificates: bool,
    /// The settings `cert` and `key`, as PEM: a client certificate for all registries.
    client_certificate: Option<String>,
}

impl NpmConfig {
    /// Reads the user's configuration. A `.npmrc` of a project or a package is never read: it
    /// could send variables of the environment to its author.
    pub fn of_user(home: &Path) -> Result<Self, ConfigError> {
        let variables: Vec<(String, String)> = std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
            .collect();
        let named = |wanted: &str| {
            let is_it = |(name, _): &&(String, String)| {
                name.to_lowercase() == format!("{VARIABLE_PREFIX}{wanted}")
            };
            variables
                .iter()
                .find(is_it)
                .map(|(_, value)| PathBuf::from(value))
        };
        let mut files = Vec::new();
        files.extend(named("globalconfig"));
        files.push(named("userconfig").unwrap_or_else(|| home.join(".npmrc")));
        Self::read(&files, &variables)
    }

    /// Reads these files, of which missing ones are skipped, and `npm_config_…` variables.
    pub fn read(files: &[PathBuf], variables: &[(String, String)]) -> Result<Self, ConfigError> {
        let mut text = String::new();
        for file in files {
            match std::fs::read_to_string(file) {
                Ok(more) => {
                    text += &more;
                    text.push('\n');
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => {
                    return Err(ConfigError::File {
                        file: file.clone(),
                        why: error.to_string(),
                    });
                }
            }
        }
        for (name, value) in variables {
            let Some(key) = key_of(name) else {
                continue;
            };
            let value = match key.as_str() {
                "cert" | "key" => value.replace("\r\n", "\n").replace('\n', "\\n"),
                _ => value.clone(),
            };
            if !value.contains(['\n', '\r']) {
                text += &format!("{key}={value}\n");
            }
        }
        let environment = Environment(variables);
        let wrong = |error: &dyn std::fmt::Display| ConfigError::Value(error.to_string());
        let rc = NpmRc::parse(&environment, &text).map_err(|error| wrong(&error))?;
        let rc = rc
            .as_resolved(&NpmRegistryUrl::for_npm(&NoVariables))
            .map_err(|error| wrong(&error))?;
        let value = |key| last_value(&text, key, variables);
        let proxy = |key| value(key).filter(|value| value != "false");
        let client_certificate = match (value("cert"), value("key")) {
            (Some(certificate), Some(key)) => {
                Some(format!("{certificate}\n{key}\n").replace("\\n", "\n"))
            }
            (None, None) => None,
            _ => {
                return Err(ConfigError::Value(
                    "cert and key need each other".to_owned(),
                ));
            }
        };
        Ok(Self {
            client_certificate,
            rc: Arc::new(rc),
            proxy: proxy("proxy").or_else(|| proxy("http-proxy")),
            https_proxy: proxy("https-proxy"),
            no_proxy: value("noproxy"),
            certificates: value("cafile").map(PathBuf::from),
            accepts_all_certificates: value("strict-ssl").is_some_and(|value| value == "false"),
        })
    }

    /// Adds npm's proxies and certificates to a client of the program. The client shows the
    /// certificate in `files`, or else that of all registries.
    pub(crate) fn configure(
        &self,
        mut client: ClientBuilder,
        files: Option<&CertificateFiles>,
    ) -> Result<ClientBuilder, ConfigError> {
        let wrong = |what: &str, error: &dyn std::fmt::Display| {
            ConfigError::Value(format!("{what}: {error}"))
        };
        if self.accepts_all_certificates {
            client = client.tls_danger_accept_invalid_certs(true);
        }
        let none = || self.no_proxy.as_deref().and_then(NoProxy::from_string);
        if let Some(url) = &self.https_proxy {
            let proxy = Proxy::https(url).map_err(|error| wrong("https-proxy", &error))?;
            client = client.proxy(proxy.no_proxy(none()));
        }
        if let Some(url) = &self.proxy {
            let proxy = Proxy::http(url).map_err(|error| wrong("proxy", &error))?;
            client = client.proxy(proxy.no_proxy(none()));
        }
        if let Some(file) = &self.certificates {
            let at = |why: String| ConfigError::File {
                file: file.clone(),
                why,
            };
            let text = std::fs::read(file).map_err(|error| at(error.to_string()))?;
            let certificates = Certificate::from_pem_bundle(&text);
            client = client.tls_certs_merge(certificates.map_err(|error| at(error.to_string()))?);
        }
        let (pem, what) = match files {
            Some(files) => (Some(files.read()?), "certfile and keyfile"),
            None => (self.client_certificate.clone(), "cert and key"),
        };
        if let Some(pem) = pem {
            let identity = Identity::from_pem(pem.as_bytes());
            client = client.identity(identity.map_err(|error| wrong(what, &error))?);
        }
        Ok(client)
    }

    /// Returns the days of npm's setting `min-release-age`.
    pub fn minimum_age_days(&self) -> Option<u64> {
        self.rc.min_release_age_days
    }

    /// Returns how the metadata of a package is fetched.
    pub(crate) fn metadata(&self, name: &str) -> Result<Access, ConfigError> {
        let registry = self.rc.get_registry_url(name);
        let mut base = registry.clone();
        if !base.path().ends_with('/') {
            base.set_path(&format!("{}/", registry.path()));
        }
        // Older registries want the slash of a scope in this form.
        let escaped = percent_encoding::utf8_percent_encode(name, NAME)
            .to_string()
            .replace('/', "%2f");
        let url = base
            .join(&format!("./{escaped}"))
            .map_err(|error| ConfigError::Value(format!("{registry}: {error}")))?;
        access(url, Some(self.rc.get_registry_config(name)))
    }

    /// Returns how the archive of a package is fetched: only with credentials that the
    /// configuration has for that host.
    pub(crate) fn archive(&self, name: &str, url: Url) -> Result<Access, ConfigError> {
        let url = self.rc.replace_tarball_url(url, name);
        let config = self.rc.tarball_config_for_package(&url, name);
        access(url, config.map(Arc::as_ref))
    }

    /// Returns the registry of a package, for errors.
    pub(crate) fn registry(&self, name: &str) -> String {
        let mut url = self.rc.get_registry_url(name).clone();
        // Credentials in the URL are not shown.
        let _ = url.set_username("");
        let _ = url.set_password(None);
        url.to_string()
    }
}

/// All characters that are escaped in a name.
const NAME: &percent_encoding::AsciiSet = &percent_encoding::NON_ALPHANUMERIC
    .remove(b'@')
    .remove(b'/')
    .remove(b'-')
    .remove(b'_')
    .remove(b'.')
    .remove(b'~')
    .remove(b'!')
    .remove(b'\'')
    .remove(b'(')
    .remove(b')')
    .remove(b'*');

/// Returns the key of npm's configuration that a variable sets.
fn key_of(variable: &str) -> Option<String> {
    let prefix = variable.get(..VARIABLE_PREFIX.len())?;
    if !prefix.eq_ignore_ascii_case(VARIABLE_PREFIX) {
        return None;
    }
    let key = &variable[VARIABLE_PREFIX.len()..];
    if key.starts_with("//") || key.starts_with('@') {
        return Some(key.to_owned());
    }
    let key = key.to_lowercase().replace('_', "-");
    const KEYS: [&str; 10] = [
        "registry",
        "cert",
        "key",
        "proxy",
        "http-proxy",
        "https-proxy",
        "noproxy",
        "cafile",
        "strict-ssl",
        "min-release-age",
    ];
    KEYS.contains(&key.as_str()).then_some(key)
}

/// Returns the last value of a key, as npm reads it.
fn last_value(text: &str, key: &str, variables: &[(String, String)]) -> Option<String> {
    let mut value = None;
    for line in text.lines() {
        let Some((name, found)) = line.split_once('=') else {
            continue;
        };
        if name.trim() == key {
            value = Some(found.trim().trim_matches('"').to_owned());
        }
    }
    let mut value = value?;
    for (name, text) in variables {
        value = value.replace(&format!("${{{name}}}"), text);
    }
    (!value.is_empty() && value != "null").then_some(value)
}

impl CertificateFiles {
    /// Returns the certificate and the key, as PEM.
    fn read(&self) -> Result<String, ConfigError> {
        let read = |file: &Path| {
            std::fs::read_to_string(file).map_err(|error| ConfigError::File {
                file: file.to_owned(),
                why: error.to_string(),
            })
        };
        Ok(format!(
            "{}\n{}",
            read(&self.certificate)?,
            read(&self.key)?
        ))
    }
}

/// Returns how a URL is fetched with what the configuration has for its host.
fn access(url: Url, config: Option<&RegistryConfig>) -> Result<Access, ConfigError> {
    let files = config.map(|config| (&config.certfile, &config.keyfile));
    let certificate = match files {
        Some((Some(certificate), Some(key))) => Some(CertificateFiles {
            certificate: certificate.into(),
            key: key.into(),
        }),
        None | Some((None, None)) => None,
        Some(_) => {
            let host = url.host_str().unwrap_or_default();
            return Err(ConfigError::Value(format!(
                "certfile and keyfile of {host} need each other"
            )));
        }
    };
    let authorization = config.map(authorization).transpose()?.flatten();
    Ok(Access {
        url,
        authorization,
        certificate,
    })
}

/// Returns the value of the header `Authorization`.
fn authorization(config: &RegistryConfig) -> Result<Option<String>, ConfigError> {
    if let Some(token) = &config.auth_token {
        return Ok(Some(format!("Bearer {token}")));
    }
    if let Some(auth) = &config.auth {
        return Ok(Some(format!("Basic {auth}")));
    }
    let user = config.username.as_ref().or(config.email.as_ref());
    let (Some(user), Some(password)) = (user, &config.password) else {
        return Ok(None);
    };
    let password = BASE64_STANDARD
        .decode(password)
        .map_err(|_| ConfigError::Value("_password is not base64".to_owned()))?;
    let pair = format!("{user}:{}", String::from_utf8_lossy(&password));
    Ok(Some(format!("Basic {}", BASE64_STANDARD.encode(pair))))
}

/// The variables that `.npmrc` files may use.
struct Environment<'a>(&'a [(String, String)]);

impl BaseEnvVar for Environment<'_> {
    fn base_env_var_os(&self, key: &OsStr) -> Option<OsString> {
        let found = self.0.iter().find(|(name, _)| OsStr::new(name) == key);
        found.map(|(_, value)| value.into())
    }
}

/// No variables: those of npm are part of the text that is parsed.
struct NoVariables;

impl BaseEnvVar for NoVariables {
    fn base_env_var_os(&self, _key: &OsStr) -> Option<OsString> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(text: &str, variables: &[(&str, &str)]) -> NpmConfig {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        let owned: Vec<(String, String)> = variables
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect();
        NpmConfig::read(&[file.path().to_owned(), "/no/such/file".into()], &owned).unwrap()
    }

    #[test]
    fn registries_scopes_and_tokens() {
        let text = "registry=https://r.test/npm\n@s:registry=https://s.test/\n\
                    //r.test/npm/:_authToken=${TOKEN}\n//s.test/:_auth=YTpi\n";
        let it = config(text, &[("TOKEN", "secret")]);
        let access = it.metadata("a").unwrap();
        assert_eq!(access.url.as_str(), "https://r.test/npm/a");
        assert_eq!(access.authorization.as_deref(), Some("Bearer secret"));
        let access = it.metadata("@s/b").unwrap();
        assert_eq!(access.url.as_str(), "https://s.test/@s%2fb");
        assert_eq!(access.authorization.as_deref(), Some("Basic YTpi"));
        let authorization = |url: &str| {
            let access = it.archive("a", url.parse().unwrap());
            access.unwrap().authorization
        };
        let header = authorization("https://r.test/npm/a/-/a.tgz");
        assert_eq!(header.as_deref(), Some("Bearer secret"));
        // The token is for the registry, not for any host that it names.
        assert_eq!(authorization("https://cdn.test/a.tgz"), None);
        assert_eq!(authorization("https://r.test:444/npm/a.tgz"), None);
    }

    #[test]
    fn variables_replace_files() {
        let text = "registry=https://file.test/\nhttps-proxy=http://p.test:1\nnoproxy=\n";
        let it = config(text, &[("npm_config_registry", "http://env.test:9/x/")]);
        let url = it.metadata("a").unwrap().url;
        assert_eq!(url.as_str(), "http://env.test:9/x/a");
        assert_eq!(it.https_proxy.as_deref(), Some("http://p.test:1"));
        assert_eq!(it.no_proxy, None);
        assert!(!it.accepts_all_certificates);
        assert!(config("strict-ssl=false\nproxy=false", &[]).accepts_all_certificates);
        assert_eq!(config("proxy=false", &[]).proxy, None);
        let it = config(text, &[("NPM_CONFIG_HTTPS_PROXY", "http://e.test")]);
        assert_eq!(it.https_proxy.as_deref(), Some("http://e.test"));
        let it = config("", &[("npm_config_//h.test/:_authToken", "t")]);
        let access = it.archive("a", "https://h.test/a".parse().unwrap());
        let header = access.unwrap().authorization;
        assert_eq!(header.as_deref(), Some("Bearer t"));
        assert_eq!(
            it.metadata("a").unwrap().url.as_str(),
            "https://registry.npmjs.org/a"
        );
    }

    #[test]
    fn client_certificates_are_those_of_their_host() {
        let it = config(
            "//r.test/:certfile=/c.pem\n//r.test/:keyfile=/k.pem\nregistry=https://r.test/\n",
            &[],
        );
        let files = CertificateFiles {
            certificate: "/c.pem".into(),
            key: "/k.pem".into(),
        };
        assert_eq!(it.metadata("a").unwrap().certificate, Some(files));
        let elsewhere = it.archive("a", "https://cdn.test/a.tgz".parse().unwrap());
        assert_eq!(elsewhere.unwrap().certificate, None);
        let with_key = config("//registry.npmjs.org/:keyfile=/k", &[]);
        assert!(with_key.metadata("a").is_err());
        let it = config("cert=\"A\\nB\"\nkey=\"C\"", &[("npm_config_key", "D\nE")]);
        assert_eq!(it.client_certificate.as_deref(), Some("A\nB\nD\nE\n"));
    }
}
