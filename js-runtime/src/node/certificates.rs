//! Root certificates of TLS: Node's built-in list, those of the system or of `SSL_CERT_FILE` and
//! `SSL_CERT_DIR`, and those that the user adds, for example for a company's proxy.
//! <https://nodejs.org/api/cli.html#node_extra_ca_certsfile>

use std::io::BufReader;
use std::sync::{Arc, OnceLock};

use deno_error::JsErrorBox;
use deno_runtime::deno_tls::rustls::RootCertStore;
use deno_runtime::deno_tls::{RootCertStoreProvider, create_default_root_cert_store, load_certs};

static ROOTS: OnceLock<RootCertStore> = OnceLock::new();

struct Roots;

impl RootCertStoreProvider for Roots {
    fn get_or_try_init(&self) -> Result<&RootCertStore, JsErrorBox> {
        Ok(ROOTS.get_or_init(|| {
            let mut roots = create_default_root_cert_store();
            // A certificate that cannot be read is missing, as for requests to models.
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
            let file = std::env::var_os("NODE_EXTRA_CA_CERTS").map(std::fs::File::open);
            // Node ignores errors here, too. The program logs them.
            if let Some(Ok(file)) = file
                && let Ok(added) = load_certs(&mut BufReader::new(file))
            {
                roots.add_parsable_certificates(added);
            }
            roots
        }))
    }
}

/// Returns a provider that reads the files when the first connection needs them.
pub(crate) fn roots() -> Arc<dyn RootCertStoreProvider> {
    Arc::new(Roots)
}

/// Returns `Some` if no certificate is checked, which the user has asked for.
pub(crate) fn unchecked() -> Option<Vec<String>> {
    let refused = std::env::var_os("NODE_TLS_REJECT_UNAUTHORIZED")?;
    (refused == "0").then(Vec::new)
}
