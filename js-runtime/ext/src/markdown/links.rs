//! Makes links of addresses in plain text, as GitHub does.

use linkify::{LinkFinder, LinkKind};

use super::Token;

/// Adds a link for every address in the text of `tokens` that is not in a link.
pub(super) fn link_addresses(tokens: impl Iterator<Item = Token>, in_link: bool) -> Vec<Token> {
    let mut linked = Vec::new();
    for token in tokens {
        match token.text.as_deref() {
            Some(text) if token.kind == "text" && !in_link && may_have_address(text) => {
                split(text, &mut linked);
            }
            _ => linked.push(token),
        }
    }
    linked
}

fn may_have_address(text: &str) -> bool {
    text.contains("://") || text.contains("www.") || text.contains('@')
}

fn split(text: &str, tokens: &mut Vec<Token>) {
    let mut finder = LinkFinder::new();
    finder.url_must_have_scheme(false);
    let mut at = 0;
    for link in finder.links(text) {
        let address = link.as_str();
        let href = match link.kind() {
            LinkKind::Email => format!("mailto:{address}"),
            _ if ["http://", "https://", "ftp://"]
                .iter()
                .any(|s| address.starts_with(s)) =>
            {
                address.to_string()
            }
            _ if address.starts_with("www.") => format!("http://{address}"),
            // A host without a scheme may be a file: "main.rs".
            _ => continue,
        };
        if link.start() > at {
            tokens.push(Token::text(&text[at..link.start()]));
        }
        tokens.push(Token {
            text: Some(address.to_string()),
            tokens: vec![Token::text(address)],
            href: Some(href),
            ..Token::new("link")
        });
        at = link.end();
    }
    if at < text.len() {
        tokens.push(Token::text(&text[at..]));
    }
}
