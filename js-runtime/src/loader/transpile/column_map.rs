//! Maps source columns to columns of the escaped text that V8 is given, so that errors show
//! positions in the file.

use deno_core::sourcemap::{self, SourceMap, SourceMapBuilder};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Shifts in the order of the text.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ColumnMap {
    shifts: Vec<Shift>,
    /// Position after the copied text. Lines and columns count from 0.
    line: u32,
    source_column: u32,
    v8_column: u32,
}

/// Up to the next shift of the line, or its end, columns differ by the same amount.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Shift {
    line: u32,
    source_column: u32,
    v8_column: u32,
}

impl ColumnMap {
    /// Advances over text that is the same in both.
    pub fn copy(&mut self, text: &str) {
        let mut characters = text.chars().peekable();
        while let Some(character) = characters.next() {
            let ends_line = match character {
                '\r' => characters.peek() != Some(&'\n'),
                _ => character == '\n',
            };
            if ends_line {
                self.line += 1;
                (self.source_column, self.v8_column) = (0, 0);
            } else {
                let width = character.len_utf16() as u32;
                self.source_column += width;
                self.v8_column += width;
            }
        }
    }

    /// Advances over a replacement within a line, with its lengths before and after.
    pub fn replace(&mut self, source_column: usize, v8_column: usize) {
        // V8 accepts no longer text.
        self.source_column += source_column as u32;
        self.v8_column += v8_column as u32;
        if source_column != v8_column {
            self.shifts.push(Shift {
                line: self.line,
                source_column: self.source_column,
                v8_column: self.v8_column,
            });
        }
    }

    pub fn if_any(self) -> Option<Self> {
        (!self.shifts.is_empty()).then_some(self)
    }

    /// Returns a source map from V8's text to the file called `name`, or to the target of `map`,
    /// which is the file's own.
    pub fn source_map(&self, name: &str, map: Option<&[u8]>) -> sourcemap::Result<Vec<u8>> {
        match map {
            Some(map) => self.compose_with(&SourceMap::from_slice(map)?),
            None => self.map_to_file(name),
        }
    }

    /// Makes one mapping for each shift.
    fn map_to_file(&self, name: &str) -> sourcemap::Result<Vec<u8>> {
        let mut builder = SourceMapBuilder::new(None);
        let mut ranges = String::new();
        let mut shifts = self.shifts.iter().peekable();
        for line in 0..=self.line {
            let mut add = |v8_column, source_column| {
                builder.add(
                    line,
                    v8_column,
                    line,
                    source_column,
                    Some(name),
                    None,
                    false,
                );
            };
            add(0, 0);
            let mut count = 1;
            while let Some(moved) = shifts.next_if(|moved| moved.line == line) {
                add(moved.v8_column, moved.source_column);
                count += 1;
            }
            ranges.push_str(&range_mappings(count));
            ranges.push(';');
        }
        let map: Value = serde_json::from_slice(&to_bytes(builder)?)?;
        let Value::Object(mut map) = map else {
            return Err(sourcemap::Error::IncompatibleSourceMap);
        };
        // The crate reads range mappings, but writes them in the wrong lines.
        map.insert("rangeMappings".into(), ranges.into());
        Ok(serde_json::to_vec(&map)?)
    }

    fn compose_with(&self, map: &SourceMap) -> sourcemap::Result<Vec<u8>> {
        let mut builder = SourceMapBuilder::new(None);
        for token in map.tokens() {
            let (line, column) = token.get_dst();
            builder.add(
                line,
                self.v8_column_of(line, column),
                token.get_src_line(),
                token.get_src_col(),
                token.get_source(),
                token.get_name(),
                false,
            );
        }
        to_bytes(builder)
    }

    fn v8_column_of(&self, line: u32, column: u32) -> u32 {
        let end = (self.shifts).partition_point(|it| (it.line, it.source_column) <= (line, column));
        let before = self.shifts[..end].last();
        match before.filter(|it| it.line == line) {
            Some(it) => column - it.source_column + it.v8_column,
            None => column,
        }
    }
}

fn to_bytes(builder: SourceMapBuilder) -> sourcemap::Result<Vec<u8>> {
    let mut to_bytes = Vec::new();
    builder.into_sourcemap().to_writer(&mut to_bytes)?;
    Ok(to_bytes)
}

/// Encodes for `count` mappings of a line that each applies to what follows it:
/// <https://github.com/tc39/ecma426/blob/main/proposals/range-mappings.md>. A digit holds six.
fn range_mappings(count: usize) -> String {
    let rest = ["", "B", "D", "H", "P", "f"][count % 6];
    "/".repeat(count / 6) + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The map of `a = '–'; b()` in the second of three lines.
    fn shifts() -> ColumnMap {
        let mut shifts = ColumnMap::default();
        shifts.copy("// \u{1f600}\r\na = '");
        shifts.replace(1, 6);
        shifts.copy("'; b()\n");
        shifts
    }

    fn found(map: &SourceMap, line: u32, column: u32) -> (&str, u32, u32) {
        let token = map.lookup_token(line, column).unwrap();
        let source = token.get_source().unwrap();
        (source, token.get_src_line(), token.get_src_col())
    }

    #[test]
    fn columns_after_an_escape_map_to_the_file() {
        let map = shifts().source_map("file:///a.js", None).unwrap();
        let map = SourceMap::from_slice(&map).unwrap();
        for ((line, column), expected) in [
            ((0, 3), (0, 3)),
            ((1, 5), (1, 5)),
            ((1, 11), (1, 6)),
            ((1, 14), (1, 9)),
            ((2, 0), (2, 0)),
        ] {
            let (source, line, column) = found(&map, line, column);
            assert_eq!((source, (line, column)), ("file:///a.js", expected));
        }
    }

    #[test]
    fn map_of_the_file_is_composed() {
        let mut own = SourceMapBuilder::new(None);
        own.add(1, 0, 7, 2, Some("a.ts"), None, false);
        own.add(1, 9, 8, 4, Some("a.ts"), Some("b"), false);
        let mut to_bytes = Vec::new();
        own.into_sourcemap().to_writer(&mut to_bytes).unwrap();
        let map = shifts()
            .source_map("file:///a.js", Some(&to_bytes))
            .unwrap();
        let map = SourceMap::from_slice(&map).unwrap();
        assert_eq!(found(&map, 1, 13), ("a.ts", 7, 2));
        assert_eq!(found(&map, 1, 14), ("a.ts", 8, 4));
    }
}
