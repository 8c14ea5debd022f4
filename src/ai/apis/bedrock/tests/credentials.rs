use std::path::Path;

use hmac::{Hmac, Mac};
use reqwest::header::HeaderMap;
use serde_json::json;
use sha2::{Digest, Sha256};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::super::credentials::Credentials;
use crate::auth::secret_value::Env;
use crate::http::exchange::SignRequest as _;
use crate::stream::StreamOptions;

const URL: &str = "https://bedrock-runtime.us-east-1.amazonaws.com/model/m-v1%3A0/converse-stream";

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Computes the signature of a request to [`URL`] with the body `{}`, as AWS's servers do.
fn expected_signature(headers: &HeaderMap, secret: &str) -> String {
    let header = |name: &str| match name {
        "host" => "bedrock-runtime.us-east-1.amazonaws.com",
        _ => headers[name].to_str().unwrap(),
    };
    let authorization = header("authorization");
    let names = authorization.split("SignedHeaders=").nth(1).unwrap();
    let names = names.split(',').next().unwrap();
    let lines: String = names
        .split(';')
        .map(|name| format!("{name}:{}\n", header(name)))
        .collect();
    let digest = hex(&Sha256::digest(b"{}"));
    let path = "/model/m-v1%253A0/converse-stream";
    let canonical = format!("POST\n{path}\n\n{lines}\n{names}\n{digest}");
    let time = header("x-amz-date");
    let scope = format!("{}/us-east-1/bedrock/aws4_request", &time[..8]);
    let digest = hex(&Sha256::digest(canonical));
    let text = format!("AWS4-HMAC-SHA256\n{time}\n{scope}\n{digest}");
    let steps = [&time[..8], "us-east-1", "bedrock", "aws4_request", &text];
    let key = steps
        .iter()
        .fold(format!("AWS4{secret}").into_bytes(), |key, step| {
            let mut mac = Hmac::<Sha256>::new_from_slice(&key).unwrap();
            mac.update(step.as_bytes());
            mac.finalize().into_bytes().to_vec()
        });
    hex(&key)
}

fn signature(headers: &HeaderMap) -> &str {
    let authorization = headers["authorization"].to_str().unwrap();
    authorization.split("Signature=").nth(1).unwrap()
}

async fn signed(env: Env, options: &StreamOptions) -> Result<HeaderMap, String> {
    let mut headers = HeaderMap::new();
    let credentials = Credentials::find(&env, options);
    let signing = credentials.sign(URL, &mut headers, b"{}").await;
    signing.map(|()| headers).map_err(|error| error.to_string())
}

#[tokio::test]
async fn a_signature_is_the_one_that_aws_computes() {
    // A request that AWS's SDK for JavaScript has signed.
    let mut sdk = HeaderMap::new();
    for (name, value) in [
        ("content-type", "application/json"),
        ("x-amz-content-sha256", &hex(&Sha256::digest(b"{}"))),
        ("x-amz-date", "20261121T190759Z"),
        (
            "authorization",
            "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20261121/us-east-1/bedrock/aws4_request, SignedHeaders=content-type;host;x-amz-content-sha256;x-amz-date, Signature=2c39bf6ec1f5ff825274258f0bed61ecdbe70df685015de2c7b8b5d96b04306f",
        ),
    ] {
        sdk.insert(name, value.parse().unwrap());
    }
    assert_eq!(signature(&sdk), expected_signature(&sdk, "secret"));

    let mut headers = HeaderMap::new();
    let keys = Credentials::keys("AKIDEXAMPLE", "secret");
    keys.sign(URL, &mut headers, b"{}").await.unwrap();
    assert_eq!(signature(&headers), expected_signature(&headers, "secret"));
    assert!(!headers.contains_key("host"), "{headers:?}");
}

/// Writes `~/.aws/config` and `~/.aws/credentials`.
fn home(config: &str, credentials: &str) -> tempfile::TempDir {
    let home = tempfile::tempdir().unwrap();
    std::fs::create_dir(home.path().join(".aws")).unwrap();
    std::fs::write(home.path().join(".aws/config"), config).unwrap();
    std::fs::write(home.path().join(".aws/credentials"), credentials).unwrap();
    home
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

#[tokio::test]
async fn keys_come_from_variables_profiles_and_programs() {
    let program = json!({"Version": 1, "AccessKeyId": "FROMPROGRAM", "SecretAccessKey": "p"});
    let home = home(
        "[profile tool]\ncredential_process = /bin/cat PLACE/keys.json\nregion = eu-west-3\n",
        "[default]\naws_access_key_id = FROMDEFAULT\naws_secret_access_key = d\n\
         [work]\naws_access_key_id=FROMWORK\naws_secret_access_key=w\naws_session_token=t\n",
    );
    let at = text(home.path());
    std::fs::write(home.path().join("keys.json"), program.to_string()).unwrap();
    let config = home.path().join(".aws/config");
    let placed = std::fs::read_to_string(&config)
        .unwrap()
        .replace("PLACE", at);
    std::fs::write(&config, placed).unwrap();
    let variables = [
        ("AWS_ACCESS_KEY_ID", "FROMENV"),
        ("AWS_SECRET_ACCESS_KEY", "e"),
    ];
    for (profile, with_variables, id, region) in [
        ("", true, "FROMENV", "us-east-1"),
        ("", false, "FROMDEFAULT", "us-east-1"),
        ("work", true, "FROMWORK", "us-east-1"),
        ("tool", true, "FROMPROGRAM", "eu-west-3"),
    ] {
        let mut set = vec![("HOME", at), ("AWS_PROFILE", profile)];
        set.extend(variables.iter().filter(|_| with_variables));
        let set = set
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let env = Env::from_map(set.collect());
        let headers = signed(env, &StreamOptions::default()).await.unwrap();
        let authorization = headers["authorization"].to_str().unwrap();
        assert!(
            authorization.contains(&format!("Credential={id}/")),
            "{profile}: {authorization}"
        );
        assert!(
            authorization.contains(&format!("/{region}/bedrock/")),
            "{profile}: {authorization}"
        );
        assert_eq!(
            headers.contains_key("x-amz-security-token"),
            profile == "work"
        );
    }
}

#[tokio::test]
async fn temporary_keys_of_a_container_are_asked_for_once() {
    let server = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/keys", server.local_addr().unwrap());
    let answers = tokio::spawn(async move {
        // A second request finds no server.
        let (mut connection, _) = server.accept().await.unwrap();
        drop(server);
        let mut request = vec![0; 4096];
        let length = connection.read(&mut request).await.unwrap();
        let body = json!({
            "AccessKeyId": "FROMCONTAINER", "SecretAccessKey": "c", "Token": "t",
            "Expiration": "2099-01-01T00:00:00Z",
        });
        let body = body.to_string();
        let answer = format!(
            "HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
            body.len()
        );
        connection.write_all(answer.as_bytes()).await.unwrap();
        String::from_utf8_lossy(&request[..length]).into_owned()
    });
    let home = home("", "");
    let env = Env::fixed([
        ("HOME", text(home.path())),
        ("AWS_CONTAINER_CREDENTIALS_FULL_URI", &url),
        ("AWS_CONTAINER_AUTHORIZATION_TOKEN", "of the container"),
    ]);
    for _ in 0..2 {
        let headers = signed(env.clone(), &StreamOptions::default())
            .await
            .unwrap();
        let authorization = headers["authorization"].to_str().unwrap();
        assert!(
            authorization.contains("Credential=FROMCONTAINER/"),
            "{authorization}"
        );
        assert_eq!(headers["x-amz-security-token"], "t");
        assert_eq!(signature(&headers), expected_signature(&headers, "c"));
    }
    let request = answers.await.unwrap();
    assert!(request.starts_with("GET /keys "), "{request}");
    assert!(request.contains("of the container"), "{request}");
}

#[tokio::test]
async fn missing_keys_are_explained_and_a_stored_key_is_a_token() {
    let home = home(
        "[profile sso]\nsso_account_id = 1\nsso_region = us-east-1\nsso_role_name = dev\n\
         sso_start_url = https://example.invalid/start\n",
        "",
    );
    let env = Env::fixed([
        ("HOME", text(home.path())),
        ("AWS_PROFILE", "sso"),
        ("AWS_EC2_METADATA_DISABLED", "true"),
    ]);
    let error = signed(env.clone(), &StreamOptions::default())
        .await
        .unwrap_err();
    assert!(error.contains("profile \"sso\""), "{error}");
    assert!(error.contains("aws sso login"), "{error}");
    let options = StreamOptions {
        api_key: Some("stored".into()),
        ..StreamOptions::default()
    };
    let headers = signed(env, &options).await.unwrap();
    assert_eq!(headers["authorization"], "Bearer stored");
}
