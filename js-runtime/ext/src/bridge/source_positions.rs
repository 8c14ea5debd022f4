//! Where code is, in the lines that its author wrote.

use std::cell::RefCell;
use std::rc::Rc;

use deno_core::{OpState, SourceMapApplication, SourceMapper, op2, v8};

/// The source maps of an isolate. Calls no JavaScript.
#[derive(Clone)]
pub struct Places(Rc<RefCell<SourceMapper>>);

impl Places {
    pub fn new(maps: Rc<RefCell<SourceMapper>>) -> Self {
        Self(maps)
    }

    /// `url:line:column` of what V8 calls so, both from 1. `None` while somebody uses the
    /// maps, which only happens to who interrupts them.
    pub fn of(&self, file: &str, line: u32, column: u32) -> Option<String> {
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

/// Where a function begins; empty if it is in no file.
#[op2]
#[string]
pub(crate) fn op_place_of(
    scope: &mut v8::PinScope<'_, '_>,
    state: &mut OpState,
    function: v8::Local<v8::Function>,
) -> String {
    let place = || {
        let file = function.get_script_origin(scope).resource_name()?;
        let file = file.to_rust_string_lossy(scope);
        let line = function.get_script_line_number()?.checked_add(1)?;
        let column = function.get_script_column_number()?.checked_add(1)?;
        match state.try_borrow::<Places>() {
            Some(places) => places.of(&file, line, column),
            None => Some(format!("{file}:{line}:{column}")),
        }
    };
    place()
        .filter(|place| place.contains("://"))
        .unwrap_or_default()
}
