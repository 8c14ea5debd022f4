//! Whom TLS trusts, as in Node: its list, and what the user adds for a proxy of their
//! company, say. <https://nodejs.org/api/cli.html#node_extra_ca_certsfile>

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
            let file = std::env::var_os("NODE_EXTRA_CA_CERTS").map(std::fs::File::open);
            // Node goes on without them, too. The program writes into its log what is wrong.
            if let Some(Ok(file)) = file
                && let Ok(added) = load_certs(&mut BufReader::new(file))
            {
                roots.add_parsable_certificates(added);
            }
            roots
        }))
    }
}

/// The files are read when the first connection needs them.
pub(crate) fn roots() -> Arc<dyn RootCertStoreProvider> {
    Arc::new(Roots)
}

/// `Some` if certificates of no host are checked, which the user has asked for.
pub(crate) fn unchecked() -> Option<Vec<String>> {
    let refused = std::env::var_os("NODE_TLS_REJECT_UNAUTHORIZED")?;
    (refused == "0").then(Vec::new)
}
