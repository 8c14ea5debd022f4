//! Applies the setting `httpProxy`: it sets `HTTP_PROXY` and `HTTPS_PROXY`, which child processes
//! and extensions see, too.

use pi_resources::paths::Paths;
use pi_resources::settings::global_value;

/// Sets the variables that the environment lacks. Must be called before other threads start.
#[expect(clippy::disallowed_methods, reason = "the only thread there is yet")]
pub fn apply_setting(paths: &Paths) {
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
