//! Which extension opened which file: when no more can be opened, whoever holds them is
//! to be named.

use std::collections::HashMap;

use deno_core::{OpState, op2};

use crate::numbers;

/// Descriptors that Node's API has opened, with the extension that did. Closing is not
/// noted: whether one is still open is asked when it matters.
#[derive(Default)]
pub struct Opened {
    by: HashMap<i32, u32>,
    since_asked: usize,
}

impl Opened {
    /// How many since the last time.
    pub fn count(state: &mut OpState) -> usize {
        let opened = state.try_borrow_mut::<Self>();
        opened.map_or(0, |opened| std::mem::take(&mut opened.since_asked))
    }

    /// The extension that holds most, and how many these are.
    pub fn holder(state: &OpState, is_open: impl Fn(i32) -> bool) -> Option<(u32, usize)> {
        let mut held: HashMap<u32, usize> = HashMap::new();
        let opened = state.try_borrow::<Self>()?;
        for (descriptor, extension) in &opened.by {
            if is_open(*descriptor) {
                *held.entry(*extension).or_default() += 1;
            }
        }
        held.into_iter().max_by_key(|(_, count)| *count)
    }

    /// All of them, to be closed.
    pub fn take(state: &mut OpState) -> Vec<i32> {
        let opened = state.try_take::<Self>().unwrap_or_default();
        opened.by.into_keys().collect()
    }
}

/// `extension` is negative for code that is nobody's.
#[op2(fast)]
pub(crate) fn op_opened(state: &mut OpState, #[smi] descriptor: i32, #[smi] extension: i32) {
    if !state.has::<Opened>() {
        state.put(Opened::default());
    }
    // Workers have tables of their own.
    numbers::give(descriptor, true);
    let opened = state.borrow_mut::<Opened>();
    opened.since_asked += 1;
    match u32::try_from(extension) {
        Ok(extension) => opened.by.insert(descriptor, extension),
        Err(_) => opened.by.remove(&descriptor),
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_holds_most_is_found() {
        let mut state = OpState::new(None);
        assert_eq!(Opened::holder(&state, |_| true), None);
        let by = HashMap::from([(3, 0), (4, 1), (5, 1), (6, 0), (7, 0)]);
        let since_asked = 5;
        state.put(Opened { by, since_asked });
        assert_eq!(Opened::holder(&state, |_| true), Some((0, 3)));
        assert_eq!(Opened::holder(&state, |fd| fd < 6), Some((1, 2)));
        let counts = [Opened::count(&mut state), Opened::count(&mut state)];
        assert_eq!(counts, [5, 0]);
        let mut all = Opened::take(&mut state);
        all.sort_unstable();
        assert_eq!(all, [3, 4, 5, 6, 7]);
        assert_eq!(Opened::holder(&state, |_| true), None);
    }
}
