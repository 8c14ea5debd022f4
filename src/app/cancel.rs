//! A cancellation token that is replaced whenever it is cancelled.

use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

#[derive(Default)]
pub(super) struct ResettableCancel(Mutex<CancellationToken>);

impl ResettableCancel {
    /// Returns a token for work that begins now.
    pub fn token(&self) -> CancellationToken {
        self.0.lock().clone()
    }

    /// Cancels the tokens that were returned so far.
    pub fn cancel(&self) {
        std::mem::take(&mut *self.0.lock()).cancel();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cancel_spares_later_tokens() {
        let cancel = ResettableCancel::default();
        let before = cancel.token();
        cancel.cancel();
        assert!(before.is_cancelled() && !cancel.token().is_cancelled());
    }
}
