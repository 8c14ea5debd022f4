//! Decoder of zstd for `node:zlib`. Deno's decoder reports neither whether a frame is complete, so
//! that truncated data looked like the end, nor which error occurred (`js/node/zstd.ts`).

use std::cell::RefCell;
use std::ffi::CStr;

use deno_core::v8::cppgc::Visitor;
use deno_core::{GarbageCollected, op2};
use deno_error::JsErrorBox;
use zstd::zstd_safe::{DCtx, DParameter, InBuffer, OutBuffer, ResetDirective, get_error_name};

pub(crate) struct ZstdFrames {
    decoder: RefCell<DCtx<'static>>,
}

// SAFETY: the type holds no V8 values.
unsafe impl GarbageCollected for ZstdFrames {
    fn trace(&self, _visitor: &mut Visitor) {}

    fn get_name(&self) -> &'static CStr {
        c"ZstdFrames"
    }
}

/// Returns the number of an error; libzstd counts errors down from the largest value.
fn number(error: usize) -> i32 {
    i32::try_from(error.cast_signed()).unwrap_or(-1)
}

#[op2]
impl ZstdFrames {
    #[constructor]
    #[cppgc]
    fn new() -> Result<ZstdFrames, JsErrorBox> {
        let decoder = DCtx::try_create();
        let decoder = decoder.ok_or_else(|| JsErrorBox::generic("no memory for zstd"))?;
        Ok(ZstdFrames {
            decoder: RefCell::new(decoder),
        })
    }

    /// Sets the maximum window size. Returns false if libzstd refuses it.
    #[fast]
    fn limit(&self, #[smi] window_log: u32) -> bool {
        let mut decoder = self.decoder.borrow_mut();
        let limit = DParameter::WindowLogMax(window_log);
        decoder.set_parameter(limit).is_ok()
    }

    #[fast]
    fn reset(&self) {
        // A reset of the session cannot fail.
        _ = self.decoder.borrow_mut().reset(ResetDirective::SessionOnly);
    }

    /// Decodes input. Returns a lower bound of the missing bytes of the frame, or a negative error.
    /// `left` receives the free bytes of the output and the unread bytes of the input.
    #[fast]
    #[smi]
    fn decode(
        &self,
        #[buffer] input: &[u8],
        #[buffer] output: &mut [u8],
        #[buffer] left: &mut [u32],
    ) -> i32 {
        let (taken_of, room) = (input.len(), output.len());
        let mut input = InBuffer::around(input);
        let mut output = OutBuffer::around(output);
        let decoded = self
            .decoder
            .borrow_mut()
            .decompress_stream(&mut output, &mut input);
        for (left, rest) in left
            .iter_mut()
            .zip([room - output.pos(), taken_of - input.pos()])
        {
            *left = u32::try_from(rest).unwrap_or(u32::MAX);
        }
        match decoded {
            Ok(missing) => i32::try_from(missing).unwrap_or(i32::MAX),
            Err(error) => number(error),
        }
    }

    /// Returns libzstd's message for an error.
    #[static_method]
    #[string]
    fn message(#[smi] error: i32) -> &'static str {
        get_error_name((error as isize).cast_unsigned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_numbers_are_those_of_libzstd() {
        let mut decoder = DCtx::try_create().unwrap();
        let mut output = [0; 64];
        let error = decoder
            .decompress_stream(
                &mut OutBuffer::around(&mut output[..]),
                &mut InBuffer::around(b"no such thing"),
            )
            .unwrap_err();
        assert_eq!(number(error), -10);
        assert_eq!(get_error_name(error), "Unknown frame descriptor");
    }
}
