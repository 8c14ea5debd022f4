//! Authenticates requests to AWS: with a bearer token, or with keys that sign each request
//! (Signature Version 4). The crate reqsign finds the keys and signs.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::LazyLock;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use parking_lot::Mutex;
use reqsign_aws_v4::{
    AssumeRoleWithWebIdentityCredentialProvider, Credential, ECSCredentialProvider,
    EnvCredentialProvider, IMDSv2CredentialProvider, ProcessCredentialProvider,
    ProfileCredentialProvider, RequestSigner, SSOCredentialProvider,
};
use reqsign_core::{
    CommandExecute, CommandOutput, Context, ErrorKind, FileRead, HttpSend, ProvideCredentialDyn,
    SignRequest as _, SigningCredential,
};
use reqwest::Url;
use reqwest::header::{HOST, HeaderMap};
use sha2::{Digest, Sha256};

use super::request::escape;
use crate::auth::secret_value::Env;
use crate::failure::Failure;
use crate::http::exchange::{SignRequest, set_header};
use crate::stream::StreamOptions;

const DEFAULT_REGION: &str = "us-east-1";
const SERVICE: &str = "bedrock";
/// Time limit for services of a machine at AWS. On other machines these do not answer.
const METADATA_TIMEOUT: Duration = Duration::from_secs(2);
/// Time limit for services of AWS and for programs that return keys.
const SERVICE_TIMEOUT: Duration = Duration::from_secs(30);

/// The region of a request and the keys or the token that authenticate it.
pub(super) struct Credentials {
    pub region: String,
    kind: Kind,
}

enum Kind {
    Bearer(String),
    Keys(Credential),
    /// The keys of a profile, or those of the first source that has some.
    Sources(Sources),
}

/// The places in which keys are looked for.
struct Sources {
    env: Env,
    profile: Option<String>,
    /// Key that the user stored for the provider. AWS's SDK does not know this source.
    stored: Option<String>,
}

impl Credentials {
    /// Reads the region and a bearer token. Does not look for keys: that happens when a request is
    /// signed, because some sources are servers.
    pub(super) fn find(env: &Env, options: &StreamOptions) -> Self {
        let explicit = &options.api_options.bedrock;
        let profile = explicit.profile.clone().or_else(|| env.get("AWS_PROFILE"));
        let region = explicit.region.clone();
        let region = region
            .or_else(|| env.get("AWS_REGION"))
            .or_else(|| env.get("AWS_DEFAULT_REGION"))
            .or_else(|| region_of_profile(env, profile.as_deref()?))
            .unwrap_or_else(|| DEFAULT_REGION.to_owned());
        let token = explicit.bearer_token.clone();
        let kind = if env.get("AWS_BEDROCK_SKIP_AUTH").as_deref() == Some("1") {
            Kind::Keys(credential("dummy-access-key", "dummy-secret-key"))
        } else if let Some(token) = token.or_else(|| env.get("AWS_BEARER_TOKEN_BEDROCK")) {
            Kind::Bearer(token)
        } else {
            let stored = options.api_key.clone();
            Kind::Sources(Sources {
                env: env.clone(),
                profile,
                stored: stored.filter(|key| !key.is_empty() && !key.starts_with('<')),
            })
        };
        Self { region, kind }
    }

    /// Adds the headers of a signature with these keys.
    async fn sign_with(
        &self,
        keys: &Credential,
        url: &str,
        headers: &mut HeaderMap,
        body: &[u8],
    ) -> Result<(), Failure> {
        let digest: String = Sha256::digest(body)
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        let request = http::Request::post(address_to_sign(url)?)
            .header("content-type", "application/json")
            .header("x-amz-content-sha256", digest)
            .body(())
            .map_err(|error| unsigned(&error))?;
        let mut parts = request.into_parts().0;
        RequestSigner::new(SERVICE, &self.region)
            .sign_request(&Context::new(), &mut parts, Some(keys), None)
            .await
            .map_err(|error| unsigned(&error))?;
        // The HTTP client adds the header `host`.
        parts.headers.remove(HOST);
        headers.extend(parts.headers);
        Ok(())
    }

    #[cfg(test)]
    pub(super) fn keys(id: &str, secret: &str) -> Self {
        Self {
            region: DEFAULT_REGION.into(),
            kind: Kind::Keys(credential(id, secret)),
        }
    }
}

#[async_trait]
impl SignRequest for Credentials {
    async fn sign(&self, url: &str, headers: &mut HeaderMap, body: &[u8]) -> Result<(), Failure> {
        let found;
        let keys = match &self.kind {
            Kind::Bearer(token) => return set_bearer(headers, token),
            Kind::Keys(keys) => keys,
            Kind::Sources(sources) => match sources.find().await? {
                Authentication::Stored(token) => return set_bearer(headers, &token),
                Authentication::Keys(keys) => {
                    found = keys;
                    &found
                }
            },
        };
        self.sign_with(keys, url, headers, body).await
    }
}

fn set_bearer(headers: &mut HeaderMap, token: &str) -> Result<(), Failure> {
    set_header(headers, "authorization", &format!("Bearer {token}"))
}

fn credential(id: &str, secret: &str) -> Credential {
    Credential {
        access_key_id: id.to_owned(),
        secret_access_key: secret.to_owned(),
        ..Credential::default()
    }
}

fn unsigned(error: &dyn std::fmt::Display) -> Failure {
    Failure::Provider(format!("The request to AWS could not be signed: {error}"))
}

/// Returns the address with its path escaped once more: reqsign signs a path as S3 does, which is
/// decoded and escaped once, but other services of AWS want the escaped path to be escaped again.
fn address_to_sign(url: &str) -> Result<String, Failure> {
    let mut parsed = Url::parse(url).map_err(|error| Failure::Url {
        url: url.to_owned(),
        error: error.to_string(),
    })?;
    let path: Vec<String> = parsed.path().split('/').map(escape).collect();
    parsed.set_path(&path.join("/"));
    Ok(parsed.into())
}

/// Keys to sign with, or a stored key that is sent as a bearer token.
enum Authentication {
    Keys(Credential),
    Stored(String),
}

/// Temporary keys, by source. A sign-in or a role costs a request to AWS, so its keys are used until
/// they expire.
static TEMPORARY: LazyLock<Mutex<HashMap<String, Credential>>> = LazyLock::new(Mutex::default);

/// Variables that choose a source. Temporary keys are kept by their values.
const SELECTORS: [&str; 10] = [
    "HOME",
    "AWS_CONFIG_FILE",
    "AWS_SHARED_CREDENTIALS_FILE",
    "AWS_ROLE_ARN",
    "AWS_ROLE_SESSION_NAME",
    "AWS_WEB_IDENTITY_TOKEN_FILE",
    "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
    "AWS_CONTAINER_CREDENTIALS_FULL_URI",
    "AWS_EC2_METADATA_SERVICE_ENDPOINT",
    "AWS_ACCESS_KEY_ID",
];

impl Sources {
    /// Returns the keys of the first source that has some, in the order of AWS's SDK: variables, the
    /// profile's keys, its sign-in, a web identity, the profile's program, and then the container and
    /// the machine, unless the user stored a key. Fails if there is no source.
    async fn find(&self) -> Result<Authentication, Failure> {
        let name = self.profile.as_deref().unwrap_or("default");
        let cache_key: Vec<String> = std::iter::once(Some(name.to_owned()))
            .chain(SELECTORS.map(|variable| self.env.get(variable)))
            .map(Option::unwrap_or_default)
            .collect();
        let cache_key = cache_key.join("\0");
        let known = TEMPORARY.lock().get(&cache_key).cloned();
        if let Some(keys) = known.filter(SigningCredential::is_valid) {
            return Ok(Authentication::Keys(keys));
        }
        let mut sources: Vec<Box<dyn ProvideCredentialDyn<Credential = Credential>>> = Vec::new();
        if self.profile.is_none() {
            sources.push(Box::new(EnvCredentialProvider::new()));
        }
        sources.push(Box::new(
            ProfileCredentialProvider::new().with_profile(name),
        ));
        sources.push(Box::new(SSOCredentialProvider::new().with_profile(name)));
        sources.push(Box::new(AssumeRoleWithWebIdentityCredentialProvider::new()));
        sources.push(Box::new(
            ProcessCredentialProvider::new().with_profile(name),
        ));
        if self.stored.is_none() {
            sources.push(Box::new(ECSCredentialProvider::new()));
            sources.push(Box::new(IMDSv2CredentialProvider::new()));
        }
        let context = Context::new()
            .with_env(EnvOfAws(self.env.clone()))
            .with_file_read(Files)
            .with_http_send(Http)
            .with_command_execute(Programs);
        let mut problem = None;
        for source in sources {
            match source.provide_credential_dyn(&context).await {
                Ok(Some(keys)) => {
                    if keys.expires_in.is_some() {
                        TEMPORARY.lock().insert(cache_key, keys.clone());
                    }
                    return Ok(Authentication::Keys(keys));
                }
                Ok(None) => {}
                // The profile does not use this source.
                Err(error) if error.kind() == ErrorKind::ConfigInvalid => {}
                Err(error) => problem = problem.or(Some(error.to_string())),
            }
        }
        if let Some(token) = &self.stored {
            return Ok(Authentication::Stored(token.clone()));
        }
        let problem = problem.map_or_else(String::new, |problem| format!(" ({problem})"));
        Err(Failure::Provider(format!(
            "No AWS credentials: set AWS_BEARER_TOKEN_BEDROCK (or pass bearerToken), or AWS_ACCESS_KEY_ID and \
             AWS_SECRET_ACCESS_KEY, or put keys for the profile \"{name}\" into \
             ~/.aws/credentials, or sign in with `aws sso login`{problem}."
        )))
    }
}

/// Gives reqsign the environment of the request.
#[derive(Debug)]
struct EnvOfAws(Env);

impl reqsign_core::Env for EnvOfAws {
    fn var(&self, key: &str) -> Option<String> {
        self.0.get(key)
    }

    /// Returns the variables that reqsign looks up in the map.
    fn vars(&self) -> HashMap<String, String> {
        let names = [
            "AWS_ACCESS_KEY_ID",
            "AWS_SECRET_ACCESS_KEY",
            "AWS_SESSION_TOKEN",
            "AWS_ROLE_ARN",
            "AWS_ROLE_SESSION_NAME",
            "AWS_WEB_IDENTITY_TOKEN_FILE",
            "AWS_REGION",
            "AWS_STS_REGIONAL_ENDPOINTS",
            "AWS_EC2_METADATA_SERVICE_ENDPOINT",
            "AWS_EC2_METADATA_DISABLED",
        ];
        let set = |name: &str| Some((name.to_owned(), self.0.get(name)?));
        names.into_iter().filter_map(set).collect()
    }

    fn home_dir(&self) -> Option<PathBuf> {
        self.0.get("HOME").map(PathBuf::from)
    }
}

fn unavailable(error: &dyn std::fmt::Display) -> reqsign_core::Error {
    reqsign_core::Error::unexpected(error.to_string())
}

/// Reads files for reqsign.
#[derive(Debug)]
struct Files;

impl FileRead for Files {
    async fn file_read(&self, path: &str) -> reqsign_core::Result<Vec<u8>> {
        let read = tokio::fs::read(path).await;
        read.map_err(|error| unavailable(&format!("{path}: {error}")))
    }
}

/// Sends requests for reqsign, with a time limit.
#[derive(Debug)]
struct Http;

impl HttpSend for Http {
    async fn http_send(
        &self,
        request: http::Request<Bytes>,
    ) -> reqsign_core::Result<http::Response<Bytes>> {
        // A proxy does not reach the services of this machine, which have these addresses.
        let is_local = request
            .uri()
            .host()
            .is_some_and(|host| host.starts_with("169.254.") || host == "[fd00:ec2::254]");
        let (client, limit) = match is_local {
            true => (
                reqwest::Client::builder()
                    .no_proxy()
                    .build()
                    .map_err(|error| unavailable(&error))?,
                METADATA_TIMEOUT,
            ),
            false => (
                crate::http::client().map_err(|error| unavailable(&error))?,
                SERVICE_TIMEOUT,
            ),
        };
        let request = reqwest::Request::try_from(request).map_err(|error| unavailable(&error))?;
        let exchange = async {
            let answer = client.execute(request).await?;
            let (status, headers) = (answer.status(), answer.headers().clone());
            Ok::<_, reqwest::Error>((status, headers, answer.bytes().await?))
        };
        let (status, headers, body) = tokio::time::timeout(limit, exchange)
            .await
            .map_err(|_| unavailable(&format!("no answer within {} s", limit.as_secs())))?
            // The address may contain credentials.
            .map_err(|error| unavailable(&error.without_url()))?;
        let mut response = http::Response::new(body);
        *response.status_mut() = status;
        *response.headers_mut() = headers;
        Ok(response)
    }
}

/// Runs programs for reqsign, with a time limit.
#[derive(Debug)]
struct Programs;

impl CommandExecute for Programs {
    async fn command_execute(
        &self,
        program: &str,
        arguments: &[&str],
    ) -> reqsign_core::Result<CommandOutput> {
        let output = tokio::process::Command::new(program)
            .args(arguments)
            .stdin(std::process::Stdio::null())
            .kill_on_drop(true)
            .output();
        let output = tokio::time::timeout(SERVICE_TIMEOUT, output)
            .await
            .map_err(|_| {
                unavailable(&format!(
                    "{program} did not end within {} s",
                    SERVICE_TIMEOUT.as_secs()
                ))
            })?
            .map_err(|error| unavailable(&format!("{program}: {error}")))?;
        Ok(CommandOutput {
            status: output.status.code().unwrap_or(-1),
            stdout: output.stdout,
            stderr: output.stderr,
        })
    }
}

/// Reads the region of a profile in `~/.aws/credentials` or `~/.aws/config`.
fn region_of_profile(env: &Env, profile: &str) -> Option<String> {
    let home = PathBuf::from(env.get("HOME")?).join(".aws");
    let file = |variable: &str, name: &str| {
        env.get(variable)
            .map_or_else(|| home.join(name), PathBuf::from)
    };
    let config = file("AWS_CONFIG_FILE", "config");
    let places = [
        (
            file("AWS_SHARED_CREDENTIALS_FILE", "credentials"),
            profile.to_owned(),
        ),
        (config.clone(), format!("profile {profile}")),
        (config, profile.to_owned()),
    ];
    places.into_iter().find_map(|(path, section)| {
        let text = std::fs::read_to_string(path).ok()?;
        let mut inside = false;
        text.lines().find_map(|line| {
            let line = line.trim();
            if let Some(header) = line
                .strip_prefix('[')
                .and_then(|rest| rest.strip_suffix(']'))
            {
                inside = header.trim() == section;
                return None;
            }
            let (key, value) = line.split_once('=').filter(|_| inside)?;
            (key.trim() == "region").then(|| value.trim().to_owned())
        })
    })
}
