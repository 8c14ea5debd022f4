//! Members of `pi` and `ctx` of newer versions that are not here. They are not there at all, so
//! that packages which look for them first find out; those that do not are told why, or what
//! may be meant.

use std::borrow::Cow;

use super::suggestions;

const ABSENT: [(&str, &str); 6] = [
    ("registerMcpServer", NO_MCP),
    ("unregisterMcpServer", NO_MCP),
    ("getMcpServers", NO_MCP),
    ("registerVirtualModel", NO_VIRTUAL_MODELS),
    ("unregisterVirtualModel", NO_VIRTUAL_MODELS),
    ("executeTool", "tools do not call each other here"),
];

const NO_MCP: &str = "pi speaks no MCP itself, use an extension that does";
const NO_VIRTUAL_MODELS: &str = "there are no virtual models, register a provider instead";

/// What V8 says of a call of one of them, with the reason.
pub(in crate::extensions) fn told(text: &str) -> Cow<'_, str> {
    for (name, reason) in ABSENT {
        let said = format!(".{name} is not a function");
        if text.contains(&said) {
            return text
                .replace(&said, &format!("{said} in this version of pi: {reason}"))
                .into();
        }
    }
    match suggestions::meant(text) {
        // Behind it are the place, or the stack.
        Some((end, meant)) => format!("{}: {meant}{}", &text[..end], &text[end..]).into(),
        None => text.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_calls_what_is_not_here_is_told_why() {
        assert_eq!(
            told("TypeError: api.getMcpServers is not a function"),
            "TypeError: api.getMcpServers is not a function in this version of pi: pi speaks no MCP \
             itself, use an extension that does"
        );
        assert_eq!(told("x.map is not a function"), "x.map is not a function");
        assert_eq!(
            told("TypeError: pi.onn is not a function (/a.ts:1:2)"),
            "TypeError: pi.onn is not a function: is `pi.on` meant? (/a.ts:1:2)"
        );
    }
}
