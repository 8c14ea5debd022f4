//! Records which extension opened which file, to find the offender when no more files can be
//! opened.

use std::collections::HashMap;

use deno_core::{OpState, op2};

use super::ownership;

/// Descriptors that Node's API has opened, with their extensions. Closing is not recorded; whether
/// one is still open is checked when it matters.
#[derive(Default)]
pub struct OpenedDescriptors {
    by_descriptor: HashMap<i32, u32>,
    since_last_count: usize,
}

impl OpenedDescriptors {
    /// Returns the number of files that were opened since the last call.
    pub fn count(state: &mut OpState) -> usize {
        let opened = state.try_borrow_mut::<Self>();
        opened.map_or(0, |opened| std::mem::take(&mut opened.since_last_count))
    }

    /// Returns the extension that holds most descriptors, and their number.
    pub fn holder(state: &OpState, is_open: impl Fn(i32) -> bool) -> Option<(u32, usize)> {
        let mut counts: HashMap<u32, usize> = HashMap::new();
        let opened = state.try_borrow::<Self>()?;
        for (descriptor, extension) in &opened.by_descriptor {
            if is_open(*descriptor) {
                *counts.entry(*extension).or_default() += 1;
            }
        }
        counts.into_iter().max_by_key(|(_, count)| *count)
    }

    /// Returns all recorded descriptors, to be closed.
    pub fn take(state: &mut OpState) -> Vec<i32> {
        let opened = state.try_take::<Self>().unwrap_or_default();
        opened.by_descriptor.into_keys().collect()
    }
}

/// Records a descriptor. `extension` is negative for code without an extension.
#[op2(fast)]
pub(crate) fn op_opened(state: &mut OpState, #[smi] descriptor: i32, #[smi] extension: i32) {
    if !state.has::<OpenedDescriptors>() {
        state.put(OpenedDescriptors::default());
    }
    // Workers have descriptor tables of their own.
    ownership::note_opened(descriptor, true);
    let opened = state.borrow_mut::<OpenedDescriptors>();
    opened.since_last_count += 1;
    match u32::try_from(extension) {
        Ok(extension) => opened.by_descriptor.insert(descriptor, extension),
        Err(_) => opened.by_descriptor.remove(&descriptor),
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holder_of_most_descriptors_is_found() {
        let mut state = OpState::new(None);
        assert_eq!(OpenedDescriptors::holder(&state, |_| true), None);
        let by_descriptor = HashMap::from([(3, 0), (4, 1), (5, 1), (6, 0), (7, 0)]);
        let since_last_count = 5;
        state.put(OpenedDescriptors {
            by_descriptor,
            since_last_count,
        });
        assert_eq!(OpenedDescriptors::holder(&state, |_| true), Some((0, 3)));
        assert_eq!(OpenedDescriptors::holder(&state, |fd| fd < 6), Some((1, 2)));
        let counts = [
            OpenedDescriptors::count(&mut state),
            OpenedDescriptors::count(&mut state),
        ];
        assert_eq!(counts, [5, 0]);
        let mut all = OpenedDescriptors::take(&mut state);
        all.sort_unstable();
        assert_eq!(all, [3, 4, 5, 6, 7]);
        assert_eq!(OpenedDescriptors::holder(&state, |_| true), None);
    }
}
