//! Attributes the growth of the heap. The heap may become full while the code of any extension
//! runs, although another one has filled it. So at each sample, and after each full garbage
//! collection, the growth since the last one is attributed to the extension whose code runs.

use std::collections::HashMap;

use js_runtime_ext::Author;

#[derive(Default)]
pub(crate) struct HeapGrowth {
    /// Bytes in use at the last measurement.
    last_used: Option<usize>,
    by_extension: HashMap<u32, usize>,
}

impl HeapGrowth {
    pub fn attribute(&mut self, used: usize, extension: Option<u32>) {
        let before = self.last_used.replace(used);
        if let (Some(before), Some(extension)) = (before, extension) {
            let growth = self.by_extension.entry(extension).or_default();
            *growth = growth.saturating_add(used).saturating_sub(before);
        }
    }

    /// Returns the offender when the heap limit is reached: the running extension, unless another
    /// one holds a quarter of `limit` and the running one less than a quarter of that.
    pub fn offender(&self, running: Option<Author>, limit: usize) -> Option<Author> {
        let growth_of = |author: &Author| {
            self.by_extension
                .get(&author.id)
                .copied()
                .unwrap_or_default()
        };
        let own = running.as_ref().map_or(0, growth_of);
        let most = self.by_extension.iter().max_by_key(|(_, growth)| **growth);
        match most {
            Some((id, growth)) if *growth >= limit / 4 && own < growth / 4 => Some(Author {
                id: *id,
                what: String::new(),
            }),
            _ => running,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MB: usize = 1 << 20;

    fn author(id: u32) -> Option<Author> {
        let what = String::new();
        Some(Author { id, what })
    }

    #[test]
    fn extension_that_filled_the_heap_is_the_offender() {
        let mut growth = HeapGrowth::default();
        // The heap that existed before any extension ran.
        growth.attribute(20 * MB, Some(2));
        for used in [40, 70, 60, 100] {
            growth.attribute(used * MB, Some(1));
        }
        growth.attribute(105 * MB, Some(2));
        growth.attribute(110 * MB, None);
        for (running, offender) in [(None, 1), (author(1), 1), (author(2), 1)] {
            assert_eq!(growth.offender(running, 128 * MB), author(offender));
        }
        // The heap is filled by something else.
        assert_eq!(growth.offender(author(2), 512 * MB), author(2));
        assert_eq!(growth.offender(None, 512 * MB), None);
        growth.attribute(128 * MB, Some(2));
        assert_eq!(growth.offender(author(2), 128 * MB), author(2));
    }
}
