//! Maps positions in V8's texts to positions in the author's source.

use std::cell::RefCell;
use std::rc::Rc;

use deno_core::{OpState, SourceMapApplication, SourceMapper, op2, v8};

/// The source maps of an isolate. Their use calls no JavaScript.
#[derive(Clone)]
pub struct SourcePositions(Rc<RefCell<SourceMapper>>);

impl SourcePositions {
    pub fn new(maps: Rc<RefCell<SourceMapper>>) -> Self {
        Self(maps)
    }

    /// Returns `url:line:column` in the source of a position in V8's text, both from 1. `None`
    /// while the maps are in use, which an interrupt may find.
    pub fn original(&self, file: &str, line: u32, column: u32) -> Option<String> {
        let mut maps = self.0.try_borrow_mut().ok()?;
        Some(match maps.apply_source_map(file, line, column) {
            SourceMapApplication::Unchanged => format!("{file}:{line}:{column}"),
            SourceMapApplication::LineAndColumn {
                line_number,
                column_number,
            } => format!("{file}:{line_number}:{column_number}"),
            SourceMapApplication::LineAndColumnAndFileName {
                file_name,
                line_number,
                column_number,
            } => format!("{file_name}:{line_number}:{column_number}"),
        })
    }
}

/// Returns the position of a function; empty if it is not in a file.
#[op2]
#[string]
pub(crate) fn op_function_position(
    scope: &mut v8::PinScope<'_, '_>,
    state: &mut OpState,
    function: v8::Local<v8::Function>,
) -> String {
    let position = || {
        let file = function.get_script_origin(scope).resource_name()?;
        let file = file.to_rust_string_lossy(scope);
        let line = function.get_script_line_number()?.checked_add(1)?;
        let column = function.get_script_column_number()?.checked_add(1)?;
        match state.try_borrow::<SourcePositions>() {
            Some(positions) => positions.original(&file, line, column),
            None => Some(format!("{file}:{line}:{column}")),
        }
    };
    position()
        .filter(|position| position.contains("://"))
        .unwrap_or_default()
}
