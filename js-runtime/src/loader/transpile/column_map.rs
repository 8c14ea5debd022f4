//! Where in its line each place of a file is in what V8 gets of it, which is longer where
//! there is an escape. Errors tell the places of the file.

use deno_core::sourcemap::{self, SourceMap, SourceMapBuilder};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// In the order of the text.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Moves {
    moves: Vec<Move>,
    /// The end of what was passed. Lines and columns count from 0.
    line: u32,
    in_file: u32,
    in_v8: u32,
}

/// From here to the next in the line, or to its end, columns differ by the same.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Move {
    line: u32,
    in_file: u32,
    in_v8: u32,
}

impl Moves {
    /// The same text in both.
    pub fn pass(&mut self, text: &str) {
        let mut characters = text.chars().peekable();
        while let Some(character) = characters.next() {
            let ends_line = match character {
                '\r' => characters.peek() != Some(&'\n'),
                _ => character == '\n',
            };
            if ends_line {
                self.line += 1;
                (self.in_file, self.in_v8) = (0, 0);
            } else {
                let width = character.len_utf16() as u32;
                self.in_file += width;
                self.in_v8 += width;
            }
        }
    }

    /// So many characters became so many others, within a line.
    pub fn replace(&mut self, in_file: usize, in_v8: usize) {
        // What is longer than that V8 does not take.
        self.in_file += in_file as u32;
        self.in_v8 += in_v8 as u32;
        if in_file != in_v8 {
            self.moves.push(Move {
                line: self.line,
                in_file: self.in_file,
                in_v8: self.in_v8,
            });
        }
    }

    pub fn if_any(self) -> Option<Self> {
        (!self.moves.is_empty()).then_some(self)
    }

    /// Leads from what V8 has to the file called `name`, or to where `map`, which is the
    /// file's own, leads.
    pub fn source_map(&self, name: &str, map: Option<&[u8]>) -> sourcemap::Result<Vec<u8>> {
        match map {
            Some(map) => self.lead_on(&SourceMap::from_slice(map)?),
            None => self.lead_to(name),
        }
    }

    /// With one mapping for all that has moved by the same.
    fn lead_to(&self, name: &str) -> sourcemap::Result<Vec<u8>> {
        let mut builder = SourceMapBuilder::new(None);
        let mut ranges = String::new();
        let mut moves = self.moves.iter().peekable();
        for line in 0..=self.line {
            let mut add = |in_v8, in_file| {
                builder.add(line, in_v8, line, in_file, Some(name), None, false);
            };
            add(0, 0);
            let mut count = 1;
            while let Some(moved) = moves.next_if(|moved| moved.line == line) {
                add(moved.in_v8, moved.in_file);
                count += 1;
            }
            ranges.push_str(&ones(count));
            ranges.push(';');
        }
        let map: Value = serde_json::from_slice(&written(builder)?)?;
        let Value::Object(mut map) = map else {
            return Err(sourcemap::Error::IncompatibleSourceMap);
        };
        // The crate reads them, and mixes up lines when it writes them.
        map.insert("rangeMappings".into(), ranges.into());
        Ok(serde_json::to_vec(&map)?)
    }

    fn lead_on(&self, map: &SourceMap) -> sourcemap::Result<Vec<u8>> {
        let mut builder = SourceMapBuilder::new(None);
        for token in map.tokens() {
            let (line, column) = token.get_dst();
            builder.add(
                line,
                self.column_in_v8(line, column),
                token.get_src_line(),
                token.get_src_col(),
                token.get_source(),
                token.get_name(),
                false,
            );
        }
        written(builder)
    }

    fn column_in_v8(&self, line: u32, column: u32) -> u32 {
        let behind = (self.moves).partition_point(|it| (it.line, it.in_file) <= (line, column));
        let before = self.moves[..behind].last();
        match before.filter(|it| it.line == line) {
            Some(it) => column - it.in_file + it.in_v8,
            None => column,
        }
    }
}

fn written(builder: SourceMapBuilder) -> sourcemap::Result<Vec<u8>> {
    let mut written = Vec::new();
    builder.into_sourcemap().to_writer(&mut written)?;
    Ok(written)
}

/// Says of so many mappings of a line that each holds for what follows it, too:
/// <https://github.com/tc39/ecma426/blob/main/proposals/range-mappings.md>. Six to a digit.
fn ones(count: usize) -> String {
    let rest = ["", "B", "D", "H", "P", "f"][count % 6];
    "/".repeat(count / 6) + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `a = '–'; b()` in the second of three lines.
    fn moves() -> Moves {
        let mut moves = Moves::default();
        moves.pass("// \u{1f600}\r\na = '");
        moves.replace(1, 6);
        moves.pass("'; b()\n");
        moves
    }

    fn found(map: &SourceMap, line: u32, column: u32) -> (&str, u32, u32) {
        let token = map.lookup_token(line, column).unwrap();
        let source = token.get_source().unwrap();
        (source, token.get_src_line(), token.get_src_col())
    }

    #[test]
    fn a_place_behind_an_escape_is_told_as_it_is_in_the_file() {
        let map = moves().source_map("file:///a.js", None).unwrap();
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
    fn the_map_of_the_file_leads_on() {
        let mut own = SourceMapBuilder::new(None);
        own.add(1, 0, 7, 2, Some("a.ts"), None, false);
        own.add(1, 9, 8, 4, Some("a.ts"), Some("b"), false);
        let mut written = Vec::new();
        own.into_sourcemap().to_writer(&mut written).unwrap();
        let map = moves().source_map("file:///a.js", Some(&written)).unwrap();
        let map = SourceMap::from_slice(&map).unwrap();
        assert_eq!(found(&map, 1, 13), ("a.ts", 7, 2));
        assert_eq!(found(&map, 1, 14), ("a.ts", 8, 4));
    }
}
