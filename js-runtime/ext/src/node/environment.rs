//! Reads environment variables that are not UTF-8. Node replaces the invalid bytes; Deno's ops
//! throw, or leave the variables out.

use deno_core::op2;
use deno_runtime::deno_os::ProcessEnvGuard;
use serde::{Serialize, Serializer};

/// Variables in the order of the system, which is the order of `Object.keys` in Node.
pub(crate) struct Variables(Vec<(String, String)>);

impl Serialize for Variables {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, value)| (name, value)))
    }
}

/// Returns true for a valid name; the system functions panic for others.
fn is_name(name: &str) -> bool {
    !name.is_empty() && !name.contains(['=', '\0'])
}

fn variable(name: &str) -> Option<String> {
    if !is_name(name) {
        return None;
    }
    let value = ProcessEnvGuard::lock().var_os(name)?;
    Some(value.to_string_lossy().into_owned())
}

#[op2]
#[string]
pub(crate) fn op_get_env(#[string] name: &str) -> Option<String> {
    variable(name)
}

#[op2]
#[string]
pub(crate) fn op_get_env_no_permission_check(#[string] name: &str) -> Option<String> {
    variable(name)
}

#[op2]
#[serde]
pub(crate) fn op_env() -> Variables {
    let all = ProcessEnvGuard::lock().vars_os();
    let text = all.into_iter().map(|(name, value)| {
        let (name, value) = (name.to_string_lossy(), value.to_string_lossy());
        (name.into_owned(), value.into_owned())
    });
    Variables(text.filter(|(name, _)| is_name(name)).collect())
}
