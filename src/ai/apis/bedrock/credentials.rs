//! Authenticates requests to AWS: with a bearer token, or with keys that sign each request
//! (Signature Version 4).

use std::path::PathBuf;

use chrono::{DateTime, Utc};
use hmac::{Hmac, Mac};
use reqwest::Url;
use reqwest::header::HeaderMap;
use sha2::{Digest, Sha256};

use super::request::escape;
use crate::auth::secret_value::Env;
use crate::failure::Failure;
use crate::http::exchange::set_header;
use crate::stream::StreamOptions;

const DEFAULT_REGION: &str = "us-east-1";
const SERVICE: &str = "bedrock";

pub(super) struct Credentials {
    pub region: String,
    kind: Kind,
}

enum Kind {
    Bearer(String),
    Keys {
        id: String,
        secret: String,
        session: Option<String>,
    },
}

impl Credentials {
    /// Finds credentials in the order of AWS's SDK, leaving out sources that need another server.
    pub(super) fn find(env: &Env, options: &StreamOptions) -> Result<Self, Failure> {
        let explicit = &options.api_options.bedrock;
        let profile = explicit.profile.clone().or_else(|| env.get("AWS_PROFILE"));
        let region = explicit.region.clone();
        let region = region
            .or_else(|| env.get("AWS_REGION"))
            .or_else(|| env.get("AWS_DEFAULT_REGION"))
            .or_else(|| profile_value(env, profile.as_deref()?, "region"))
            .unwrap_or_else(|| DEFAULT_REGION.to_owned());
        let with = |kind: Kind| {
            Ok(Self {
                region: region.clone(),
                kind,
            })
        };
        if env.get("AWS_BEDROCK_SKIP_AUTH").as_deref() == Some("1") {
            return with(Kind::Keys {
                id: "dummy-access-key".into(),
                secret: "dummy-secret-key".into(),
                session: None,
            });
        }
        let token = explicit.bearer_token.clone();
        if let Some(token) = token.or_else(|| env.get("AWS_BEARER_TOKEN_BEDROCK")) {
            return with(Kind::Bearer(token));
        }
        let from_env = env
            .get("AWS_ACCESS_KEY_ID")
            .zip(env.get("AWS_SECRET_ACCESS_KEY"));
        if let Some((id, secret)) = from_env.filter(|_| profile.is_none()) {
            let session = env.get("AWS_SESSION_TOKEN");
            return with(Kind::Keys {
                id,
                secret,
                session,
            });
        }
        let name = profile.as_deref().unwrap_or("default");
        let stored = profile_value(env, name, "aws_access_key_id").zip(profile_value(
            env,
            name,
            "aws_secret_access_key",
        ));
        if let Some((id, secret)) = stored {
            let session = profile_value(env, name, "aws_session_token");
            return with(Kind::Keys {
                id,
                secret,
                session,
            });
        }
        // The SDK does not support this source; pi treats it like the variable.
        let key = options.api_key.as_deref();
        if let Some(token) = key.filter(|key| !key.is_empty() && !key.starts_with('<')) {
            return with(Kind::Bearer(token.to_owned()));
        }
        Err(Failure::Provider(format!(
            "No AWS credentials: set AWS_BEARER_TOKEN_BEDROCK (or pass bearerToken), or AWS_ACCESS_KEY_ID and \
             AWS_SECRET_ACCESS_KEY, or put keys for the profile \"{name}\" into \
             ~/.aws/credentials. Sign-ins (SSO), roles and containers are not supported."
        )))
    }

    /// Adds the headers that authenticate a request.
    pub(super) fn sign(
        &self,
        url: &str,
        headers: &mut HeaderMap,
        body: &[u8],
    ) -> Result<(), Failure> {
        match &self.kind {
            Kind::Bearer(token) => set_header(headers, "authorization", &format!("Bearer {token}")),
            Kind::Keys { .. } => self.sign_at(url, headers, body, Utc::now()),
        }
    }

    pub(super) fn sign_at(
        &self,
        url: &str,
        headers: &mut HeaderMap,
        body: &[u8],
        now: DateTime<Utc>,
    ) -> Result<(), Failure> {
        let Kind::Keys {
            id,
            secret,
            session,
        } = &self.kind
        else {
            return Ok(());
        };
        let parsed = Url::parse(url).map_err(|error| Failure::Url {
            url: url.to_owned(),
            error: error.to_string(),
        })?;
        let host = match (parsed.host_str(), parsed.port()) {
            (Some(host), Some(port)) => format!("{host}:{port}"),
            (host, _) => host.unwrap_or_default().to_owned(),
        };
        let time = now.format("%Y%m%dT%H%M%SZ").to_string();
        let date = &time[..8];
        let digest = hex(&Sha256::digest(body));
        let mut signed = vec![
            ("content-type", "application/json".to_owned()),
            ("host", host),
            ("x-amz-content-sha256", digest.clone()),
            ("x-amz-date", time.clone()),
        ];
        if let Some(token) = session {
            signed.push(("x-amz-security-token", token.clone()));
        }
        for (name, value) in signed.iter().filter(|(name, _)| name.starts_with("x-amz-")) {
            set_header(headers, name, value)?;
        }
        let names: Vec<&str> = signed.iter().map(|(name, _)| *name).collect();
        let names = names.join(";");
        // The signature needs the escaped path to be escaped once more.
        let path: Vec<String> = parsed.path().split('/').map(escape).collect();
        let lines: String = signed
            .iter()
            .map(|(name, value)| format!("{name}:{value}\n"))
            .collect();
        let canonical = format!("POST\n{}\n\n{lines}\n{names}\n{digest}", path.join("/"));
        let scope = format!("{date}/{}/{SERVICE}/aws4_request", self.region);
        let to_sign = format!(
            "AWS4-HMAC-SHA256\n{time}\n{scope}\n{}",
            hex(&Sha256::digest(canonical))
        );
        let steps = [date, &self.region, SERVICE, "aws4_request", &to_sign];
        let start = format!("AWS4{secret}").into_bytes();
        let signature = steps
            .iter()
            .fold(start, |key, step| hmac(&key, step.as_bytes()));
        let value = format!(
            "AWS4-HMAC-SHA256 Credential={id}/{scope}, SignedHeaders={names}, Signature={}",
            hex(&signature)
        );
        set_header(headers, "authorization", &value)
    }

    #[cfg(test)]
    pub(super) fn keys(id: &str, secret: &str) -> Self {
        Self {
            region: DEFAULT_REGION.into(),
            kind: Kind::Keys {
                id: id.into(),
                secret: secret.into(),
                session: None,
            },
        }
    }
}

fn hmac(key: &[u8], text: &[u8]) -> Vec<u8> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("keys may have any length");
    mac.update(text);
    mac.finalize().into_bytes().to_vec()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Reads a value of a profile in `~/.aws/credentials` or `~/.aws/config`, where it is plain text.
fn profile_value(env: &Env, profile: &str, name: &str) -> Option<String> {
    let home = PathBuf::from(env.get("HOME")?).join(".aws");
    let file = |variable: &str, name: &str| {
        env.get(variable)
            .map_or_else(|| home.join(name), PathBuf::from)
    };
    let places = [
        (
            file("AWS_SHARED_CREDENTIALS_FILE", "credentials"),
            profile.to_owned(),
        ),
        (
            file("AWS_CONFIG_FILE", "config"),
            format!("profile {profile}"),
        ),
        (file("AWS_CONFIG_FILE", "config"), profile.to_owned()),
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
            (key.trim() == name).then(|| value.trim().to_owned())
        })
    })
}
