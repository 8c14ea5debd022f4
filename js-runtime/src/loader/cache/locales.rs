//! Loads ICU's lists of locales ahead of time. Before V8 compares, formats or splits the first text
//! by the rules of a language, it reads all locales: about 6 ms for each kind of rules, once per
//! process. The manifest of a set of extensions records which kinds it needs, so that the next
//! start loads the lists on another thread.

use std::cell::RefCell;
use std::ffi::c_void;
use std::rc::Rc;

use deno_core::v8::{self, UseCounterFeature};
use serde::{Deserialize, Serialize};

use super::manifest::{LoadStep, ManifestRecorder};

/// Kinds of rules. V8 has a list of locales for each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) enum LocaleTable {
    Collation,
    NumberFormat,
    DateFormat,
    PluralRules,
    Segmentation,
}

// These are internal functions of V8; without them the program does not link. Each makes its list
// if it does not exist, on any thread and without an isolate.
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

impl LocaleTable {
    fn for_feature(feature: UseCounterFeature) -> Option<Self> {
        use UseCounterFeature as F;
        Some(match feature {
            F::kCollator | F::kStringLocaleCompare => Self::Collation,
            F::kNumberFormat | F::kNumberToLocaleString => Self::NumberFormat,
            F::kDateTimeFormat
            | F::kDateToLocaleString
            | F::kDateToLocaleDateString
            | F::kDateToLocaleTimeString => Self::DateFormat,
            F::kPluralRules => Self::PluralRules,
            F::kSegmenter => Self::Segmentation,
            _ => return None,
        })
    }

    /// Makes V8 load the list, if it has not yet.
    pub fn load(self) {
        match self {
            Self::Collation => locales_of_collator(),
            Self::NumberFormat => locales_of_number_format(),
            Self::DateFormat => locales_of_date_time_format(),
            Self::PluralRules => locales_of_plural_rules(),
            Self::Segmentation => locales_of_segmenter(),
        };
    }
}

thread_local! {
    /// Recorder of the isolate on this thread. V8 passes its callback another value than the crate
    /// declares, so nothing can be stored in the isolate.
    static RECORDER: RefCell<Option<Rc<ManifestRecorder>>> = const { RefCell::new(None) };
}

/// Records the features that V8 uses from now on in the manifest.
pub(in crate::loader) fn record_into(isolate: &mut v8::Isolate, recorder: &Rc<ManifestRecorder>) {
    RECORDER.set(Some(Rc::clone(recorder)));
    isolate.set_use_counter_callback(on_feature_used);
}

/// Ends the recording, because later uses do not belong to the load.
pub(in crate::loader) fn stop_recording() {
    RECORDER.set(None);
}

/// V8 calls this for every use of a feature. The callback must not call V8.
unsafe extern "C" fn on_feature_used(_isolate: &mut v8::Isolate, feature: UseCounterFeature) {
    if let Some(rules) = LocaleTable::for_feature(feature) {
        RECORDER.with_borrow(|recorder| {
            if let Some(recorder) = recorder {
                recorder.record(|| LoadStep::Locales(rules));
            }
        });
    }
}
