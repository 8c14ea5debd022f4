//! `httpProxy` of the user's settings, for those who reach the network only through one:
//! it stands for `HTTP_PROXY` and `HTTPS_PROXY`, which children and extensions see, too.

use crate::resources::paths::Paths;
use crate::resources::settings::global_value;

/// Before there are threads. What the environment says already stays.
#[expect(clippy::disallowed_methods, reason = "the only thread there is yet")]
pub fn set(paths: &Paths) {
    let value = global_value(&paths.global_settings(), "httpProxy");
    let Some(proxy) = value.as_ref().and_then(|value| value.as_str()) else {
        return;
    };
    let proxy = proxy.trim();
    if proxy.is_empty() {
        return;
    }
    for names in [["HTTP_PROXY", "http_proxy"], ["HTTPS_PROXY", "https_proxy"]] {
        if names.iter().all(|name| std::env::var_os(name).is_none()) {
            // SAFETY: no other thread runs that could be reading the environment.
            unsafe { std::env::set_var(names[0], proxy) };
        }
    }
}
