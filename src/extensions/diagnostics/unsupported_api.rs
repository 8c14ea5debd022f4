//! Members of `pi` and `ctx` of newer versions that do not exist here. Packages can test
//! for them; a package that calls one gets the reason or a suggestion.

use std::borrow::Cow;

use super::suggestions;

const UNSUPPORTED: [(&str, &str); 6] = [
    ("registerMcpServer", NO_MCP),
    ("unregisterMcpServer", NO_MCP),
    ("getMcpServers", NO_MCP),
    ("registerVirtualModel", NO_VIRTUAL_MODELS),
    ("unregisterVirtualModel", NO_VIRTUAL_MODELS),
    ("executeTool", "tools do not call each other here"),
];

const NO_MCP: &str = "pi speaks no MCP itself, use an extension that does";
const NO_VIRTUAL_MODELS: &str = "there are no virtual models, register a provider instead";

/// Adds the reason or a suggestion to V8's message about a call.
pub(crate) fn explain_missing_member(text: &str) -> Cow<'_, str> {
    for (name, reason) in UNSUPPORTED {
        let message = format!(".{name} is not a function");
        if text.contains(&message) {
            return text
                .replace(
                    &message,
                    &format!("{message} in this version of pi: {reason}"),
                )
                .into();
        }
    }
    match suggestions::suggest(text) {
        // The text after the message is the position or the stack.
        Some((end, suggestion)) => format!("{}: {suggestion}{}", &text[..end], &text[end..]).into(),
        None => text.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unsupported_members_are_explained() {
        assert_eq!(
            explain_missing_member("TypeError: api.getMcpServers is not a function"),
            "TypeError: api.getMcpServers is not a function in this version of pi: pi speaks no MCP \
             itself, use an extension that does"
        );
        assert_eq!(
            explain_missing_member("x.map is not a function"),
            "x.map is not a function"
        );
        assert_eq!(
            explain_missing_member("TypeError: pi.onn is not a function (/a.ts:1:2)"),
            "TypeError: pi.onn is not a function: is `pi.on` meant? (/a.ts:1:2)"
        );
    }
}
