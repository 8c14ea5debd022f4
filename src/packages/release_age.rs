//! The minimum release age: versions that the user has not chosen by number are not installed in
//! their first hours, in which a taken-over package is usually found out.

use chrono::{DateTime, TimeDelta, Utc};
use pi_resources::settings::{Settings, SettingsScope};

/// Hours without the setting `minimumReleaseAge`.
const DEFAULT_HOURS: u64 = 24;
const MAX_HOURS: u64 = 24 * 365;

/// Returns the hours that a version must be old. A project can only ask for more.
pub(super) fn hours(settings: &Settings, npm_days: Option<u64>) -> u64 {
    let of = |scope| settings.values_of(scope).minimum_release_age;
    let users = of(SettingsScope::Global).unwrap_or(DEFAULT_HOURS);
    let projects = of(SettingsScope::Project).unwrap_or_default();
    let npms = npm_days.unwrap_or_default().saturating_mul(24);
    users.max(projects).max(npms).min(MAX_HOURS)
}

/// Returns the time before which versions must have been published.
pub(super) fn newest(hours: u64) -> Option<DateTime<Utc>> {
    let age = TimeDelta::try_hours(i64::try_from(hours).ok()?)?;
    (hours > 0).then(|| Utc::now() - age)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_strictest_of_all_counts() {
        let settings =
            |value: serde_json::Value| Settings::in_memory(value.as_object().cloned().unwrap());
        assert_eq!(hours(&settings(json!({})), None), 24);
        assert_eq!(hours(&settings(json!({})), Some(3)), 72);
        assert_eq!(hours(&settings(json!({"minimumReleaseAge": 0})), None), 0);
        assert_eq!(newest(0), None);
        assert!(newest(1).unwrap() < Utc::now());
        assert!(newest(u64::MAX).is_none());
    }
}
