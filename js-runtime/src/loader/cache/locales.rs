//! Before V8 compares, formats or splits the first text by the rules of a language, it looks at
//! all of ICU's locales: some 6 ms for each kind of rules, once per process. Which kinds a set of
//! extensions needs while it is loaded is part of its trail, so that the next start has another
//! thread look at the locales meanwhile.

use std::cell::RefCell;
use std::ffi::c_void;
use std::rc::Rc;

use deno_core::v8::{self, UseCounterFeature};
use serde::{Deserialize, Serialize};

use super::trail::{Step, Trail};

/// What rules are for. V8 has a list of locales for each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) enum Rules {
    Order,
    Numbers,
    Dates,
    Plurals,
    Boundaries,
}

// V8's own functions, without which the program does not link. Each makes a list if it is not
// there, on whatever thread calls it, and needs no isolate.
unsafe extern "C" {
    #[link_name = "_ZN2v88internal10JSCollator19GetAvailableLocalesEv"]
    safe fn locales_of_collator() -> *const c_void;
    #[link_name = "_ZN2v88internal14JSNumberFormat19GetAvailableLocalesEv"]
    safe fn locales_of_number_format() -> *const c_void;
    #[link_name = "_ZN2v88internal16JSDateTimeFormat19GetAvailableLocalesEv"]
    safe fn locales_of_date_time_format() -> *const c_void;
    #[link_name = "_ZN2v88internal13JSPluralRules19GetAvailableLocalesEv"]
    safe fn locales_of_plural_rules() -> *const c_void;
    #[link_name = "_ZN2v88internal11JSSegmenter19GetAvailableLocalesEv"]
    safe fn locales_of_segmenter() -> *const c_void;
}

impl Rules {
    fn of(feature: UseCounterFeature) -> Option<Self> {
        use UseCounterFeature as F;
        Some(match feature {
            F::kCollator | F::kStringLocaleCompare => Self::Order,
            F::kNumberFormat | F::kNumberToLocaleString => Self::Numbers,
            F::kDateTimeFormat
            | F::kDateToLocaleString
            | F::kDateToLocaleDateString
            | F::kDateToLocaleTimeString => Self::Dates,
            F::kPluralRules => Self::Plurals,
            F::kSegmenter => Self::Boundaries,
            _ => return None,
        })
    }

    /// Has V8 look at the locales, if it has not yet.
    pub fn look_up(self) {
        match self {
            Self::Order => locales_of_collator(),
            Self::Numbers => locales_of_number_format(),
            Self::Dates => locales_of_date_time_format(),
            Self::Plurals => locales_of_plural_rules(),
            Self::Boundaries => locales_of_segmenter(),
        };
    }
}

thread_local! {
    /// Of the isolate on this thread. V8 hands its callback something else than what the crate
    /// says, so nothing can be kept in the isolate.
    static TRAIL: RefCell<Option<Rc<Trail>>> = const { RefCell::new(None) };
}

/// From now on, what V8 is asked is noted in the trail.
pub(super) fn watch(isolate: &mut v8::Isolate, trail: &Rc<Trail>) {
    TRAIL.set(Some(Rc::clone(trail)));
    isolate.set_use_counter_callback(note);
}

/// What is asked from now on does not belong to the load.
pub(super) fn unwatch() {
    TRAIL.set(None);
}

/// Called by V8 each time; it may not be called back.
unsafe extern "C" fn note(_isolate: &mut v8::Isolate, feature: UseCounterFeature) {
    if let Some(rules) = Rules::of(feature) {
        TRAIL.with_borrow(|trail| {
            if let Some(trail) = trail {
                trail.note(|| Step::Locales(rules));
            }
        });
    }
}
