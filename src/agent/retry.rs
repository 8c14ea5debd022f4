//! Whether a failed answer is requested again, and after which delay.

use std::time::Duration;

/// Policy from the settings `retry.*`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryPolicy {
    pub enabled: bool,
    pub max_retries: u32,
    pub base_delay: Duration,
    /// Longest delay between two attempts.
    pub max_delay: Duration,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            enabled: true,
            max_retries: 3,
            base_delay: Duration::from_secs(2),
            max_delay: Duration::from_secs(60),
        }
    }
}

impl RetryPolicy {
    /// Returns the delay before attempt `attempt` (counted from 1), which doubles each time;
    /// `None` if there is no such attempt.
    pub fn delay(&self, attempt: u32) -> Option<Duration> {
        (self.enabled && attempt >= 1 && attempt <= self.max_retries).then(|| {
            self.base_delay
                .saturating_mul(1 << (attempt - 1).min(16))
                .min(self.max_delay)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_double_and_end() {
        let policy = RetryPolicy::default();
        let seconds = |attempt| policy.delay(attempt).map(|delay| delay.as_secs());
        assert_eq!([1, 2, 3, 4].map(seconds), [Some(2), Some(4), Some(8), None]);
        let patient = RetryPolicy {
            max_retries: 9,
            ..policy
        };
        assert_eq!(patient.delay(9).map(|delay| delay.as_secs()), Some(60));
    }

    #[test]
    fn nothing_is_retried_when_disabled() {
        let policy = RetryPolicy {
            enabled: false,
            ..RetryPolicy::default()
        };
        assert_eq!(policy.delay(1), None);
    }
}
