//! What extensions do that their authors cannot mean, and that goes on all the same: they
//! are told of it, with the line.

use super::BridgeHost;
use crate::extensions::registry::ExtensionId;

impl BridgeHost {
    /// `frame` is empty if it is not known where it is.
    pub(in crate::extensions) fn tell_slip(
        &self,
        extension: ExtensionId,
        event: &str,
        slip: String,
        frame: &str,
    ) {
        let frame = js_runtime::readable_stack(frame);
        let stack = (!frame.is_empty()).then(|| format!("{slip}\n{frame}"));
        self.report_thrown(extension, event, slip, stack);
    }
}
