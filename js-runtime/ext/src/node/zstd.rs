//! The decoder of zstd behind `node:zlib`: Deno's does not say whether a frame is complete,
//! so that data that are cut off were the end, nor which error it is (`js/node/zstd.ts`).

use std::cell::RefCell;
use std::ffi::CStr;

use deno_core::v8::cppgc::Visitor;
use deno_core::{GarbageCollected, op2};
use deno_error::JsErrorBox;
use zstd::zstd_safe::{DCtx, DParameter, InBuffer, OutBuffer, ResetDirective, get_error_name};

pub(crate) struct ZstdFrames {
    decoder: RefCell<DCtx<'static>>,
}

// SAFETY: it holds nothing of V8's.
unsafe impl GarbageCollected for ZstdFrames {
    fn trace(&self, _visitor: &mut Visitor) {}

    fn get_name(&self) -> &'static CStr {
        c"ZstdFrames"
    }
}

/// Errors are the numbers from the top down.
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

    /// Whether it may be that.
    #[fast]
    fn limit(&self, #[smi] window_log: u32) -> bool {
        let mut decoder = self.decoder.borrow_mut();
        let limit = DParameter::WindowLogMax(window_log);
        decoder.set_parameter(limit).is_ok()
    }

    #[fast]
    fn reset(&self) {
        // It fails only for parameters.
        _ = self.decoder.borrow_mut().reset(ResetDirective::SessionOnly);
    }

    /// How much is missing of the frame at least, or an error, which is negative. `left` is
    /// what is left of the room for the output, and of the input.
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

    /// What libzstd says of it.
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
    fn errors_have_the_numbers_of_libzstd() {
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
