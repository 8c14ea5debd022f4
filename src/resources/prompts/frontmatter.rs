//! The YAML block at the start of a Markdown file, between two lines of `---`.

use serde_yaml_ng::{Mapping, Value};

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Document {
    fields: Mapping,
    /// The text after the block, trimmed; the whole text if there is no block. Lines end with
    /// `\n`.
    pub body: String,
}

#[derive(Debug, thiserror::Error)]
pub enum FrontmatterError {
    #[error("the YAML between the lines of --- cannot be read: {0}")]
    Yaml(#[from] serde_yaml_ng::Error),
    #[error(
        "the YAML between the lines of --- cannot be read: more than {MAX_OPEN_BRACKETS} brackets are open"
    )]
    TooDeep,
}

/// Maximum nesting of brackets. The parser has a much lower limit but reaches it in quadratic
/// time.
const MAX_OPEN_BRACKETS: usize = 1000;

impl Document {
    pub fn parse(text: &str) -> Result<Self, FrontmatterError> {
        let text = text.trim_start_matches('\u{feff}');
        let text = text.replace("\r\n", "\n").replace('\r', "\n");
        let Some((yaml, body)) = split(&text) else {
            return Ok(Self {
                fields: Mapping::new(),
                body: text,
            });
        };
        if max_open_brackets(yaml) > MAX_OPEN_BRACKETS {
            return Err(FrontmatterError::TooDeep);
        }
        // Only a mapping has fields.
        let fields = match serde_yaml_ng::from_str(yaml)? {
            Value::Mapping(fields) => fields,
            _ => Mapping::new(),
        };
        Ok(Self {
            fields,
            body: body.trim().to_owned(),
        })
    }

    /// Returns a scalar as text; `None` if it is empty.
    pub fn text(&self, key: &str) -> Option<String> {
        let text = match self.fields.get(key)? {
            Value::String(text) => text.clone(),
            Value::Number(number) => number.to_string(),
            Value::Bool(value) => value.to_string(),
            _ => return None,
        };
        (!text.is_empty()).then_some(text)
    }

    pub fn is_true(&self, key: &str) -> bool {
        self.fields.get(key) == Some(&Value::Bool(true))
    }
}

/// Returns the maximum number of open brackets, including those in strings.
fn max_open_brackets(yaml: &str) -> usize {
    let (mut open, mut most) = (0_usize, 0);
    for byte in yaml.bytes() {
        match byte {
            b'[' | b'{' => open += 1,
            b']' | b'}' => open = open.saturating_sub(1),
            _ => {}
        }
        most = most.max(open);
    }
    most
}

/// Splits a text into the block and the rest.
fn split(text: &str) -> Option<(&str, &str)> {
    let rest = text.strip_prefix("---")?;
    let (first_line, _) = rest.split_once('\n')?;
    if !first_line.trim().is_empty() {
        return None;
    }
    let end = rest.find("\n---")?;
    // Keep the line end: it belongs to a block scalar that comes last.
    Some((&rest[..=end], &rest[end + "\n---".len()..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_and_body() {
        let text = "---\r\nname: a\ndescription: >\n  two\n  lines\nn: 5\non: true\nempty: ''\n---\r\n\nBody\n";
        let document = Document::parse(text).unwrap();
        assert_eq!(document.body, "Body");
        let texts =
            ["name", "description", "n", "on", "empty", "absent"].map(|key| document.text(key));
        let expected = [
            Some("a"),
            Some("two lines\n"),
            Some("5"),
            Some("true"),
            None,
            None,
        ];
        assert_eq!(texts, expected.map(|text| text.map(str::to_owned)));
        assert!(document.is_true("on") && !document.is_true("name"));
    }

    #[test]
    fn without_a_block_the_text_stays_as_it_is() {
        for text in [
            "  plain\n",
            "",
            "---",
            "---\nnever closed",
            "----- rule\n---\nx",
            "---é\n---",
        ] {
            let document = Document::parse(text).unwrap();
            assert_eq!(
                (document.body.as_str(), document.fields.len()),
                (text, 0),
                "{text:?}"
            );
        }
    }

    #[test]
    fn an_empty_block_and_a_block_that_is_no_mapping_have_no_fields() {
        for text in [
            "---\n---\n body ",
            "---\n- a\n---\nbody",
            "---\njust text\n---\nbody",
        ] {
            let document = Document::parse(text).unwrap();
            assert_eq!(
                (document.body.as_str(), document.fields.len()),
                ("body", 0),
                "{text:?}"
            );
        }
    }

    /// Regression: the model received descriptions of skills that differed from those of the
    /// original.
    #[test]
    fn a_folded_text_ends_with_its_line_also_at_the_end() {
        let document = Document::parse("---\ndescription: >\n  two\n  lines\n---\nbody").unwrap();
        assert_eq!(document.text("description").unwrap(), "two lines\n");
    }

    #[test]
    fn broken_yaml_is_an_error() {
        assert!(Document::parse("---\na: [\n---\nbody").is_err());
        let deep = Document::parse(&format!("---\na: {}\n---\nbody", "[".repeat(100_000)));
        assert!(
            deep.unwrap_err()
                .to_string()
                .ends_with("1000 brackets are open")
        );
        let wide = format!("---\na: [{}]\n---\nbody", "[], ".repeat(10_000));
        assert!(Document::parse(&wide).is_ok());
    }
}
