//! Reads the time for which a server asks to wait. Most servers send it in a header; Cloud Code
//! Assist writes it in the text of the error.

use std::sync::LazyLock;
use std::time::{Duration, SystemTime};

use regex::Regex;
use reqwest::header::HeaderMap;

use super::exchange::header;
use crate::failure::Envelope;

/// Matches `quota will reset after 18h31m10s`, `Please retry in 850ms` and `"retryDelay":
/// "34.07s"`.
const DELAY_PATTERN: &str = r#"(?ix)
    (?: reset\ after\ | please\ retry\ in\ | "retryDelay":\s*" )
    (?: (?<hours>\d+) h )? (?: (?<minutes>\d+) m )? (?<number>\d+(?:\.\d+)?) (?<unit>ms|s)"#;

/// Added to times of Code Assist, which are rounded down to seconds.
const ROUNDING_MARGIN: Duration = Duration::from_secs(1);

/// Returns `None` if the response has no time.
pub(crate) fn requested_delay(
    headers: &HeaderMap,
    text: &str,
    envelope: Envelope,
) -> Option<Duration> {
    let requested = in_headers(headers);
    if envelope != Envelope::CodeAssist {
        return requested;
    }
    let requested = requested
        .or_else(|| until_reset(headers))
        .or_else(|| in_text(text));
    requested
        .filter(|requested| !requested.is_zero())
        .map(|requested| requested + ROUNDING_MARGIN)
}

fn in_headers(headers: &HeaderMap) -> Option<Duration> {
    let milliseconds = header(headers, "retry-after-ms").and_then(|text| text.parse::<f64>().ok());
    let seconds = milliseconds.map(|ms| ms / 1000.0).or_else(|| {
        let text = header(headers, "retry-after")?;
        text.parse().ok().or_else(|| {
            let date = chrono::DateTime::parse_from_rfc2822(text).ok()?;
            let delay = SystemTime::from(date).duration_since(SystemTime::now());
            Some(delay.unwrap_or_default().as_secs_f64())
        })
    })?;
    Duration::try_from_secs_f64(seconds).ok()
}

fn until_reset(headers: &HeaderMap) -> Option<Duration> {
    let at = header(headers, "x-ratelimit-reset").and_then(|text| text.parse().ok());
    let at = at.and_then(|seconds| {
        let at = SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(seconds))?;
        at.duration_since(SystemTime::now()).ok()
    });
    at.or_else(|| {
        let seconds = header(headers, "x-ratelimit-reset-after")?.parse().ok()?;
        Duration::try_from_secs_f64(seconds).ok()
    })
}

fn in_text(text: &str) -> Option<Duration> {
    // The tests compile this constant pattern, so `expect` cannot fail.
    static PATTERN: LazyLock<Regex> =
        LazyLock::new(|| Regex::new(DELAY_PATTERN).expect("constant pattern"));
    let found = PATTERN.captures(text)?;
    let number = |name| match found.name(name) {
        Some(digits) => digits.as_str().parse::<f64>().ok(),
        None => Some(0.0),
    };
    let last = match &found["unit"] {
        unit if unit.eq_ignore_ascii_case("ms") => number("number")? / 1000.0,
        _ => number("number")?,
    };
    let seconds = (number("hours")? * 60.0 + number("minutes")?) * 60.0 + last;
    Duration::try_from_secs_f64(seconds).ok()
}

#[cfg(test)]
mod tests {
    use reqwest::header::{HeaderName, HeaderValue};

    use super::*;

    fn delay(name: &'static str, value: &str, envelope: Envelope) -> Option<Duration> {
        let mut headers = HeaderMap::new();
        headers.insert(
            HeaderName::from_static(name),
            HeaderValue::from_str(value).unwrap(),
        );
        requested_delay(&headers, "", envelope)
    }

    #[test]
    fn header_delays_have_three_formats() {
        let seconds = |seconds| Some(Duration::from_secs_f64(seconds));
        let delay = |name, value| delay(name, value, Envelope::Error);
        assert_eq!(delay("retry-after", "7"), seconds(7.0));
        assert_eq!(delay("retry-after", "100"), seconds(100.0));
        assert_eq!(delay("retry-after-ms", "1500"), seconds(1.5));
        assert_eq!(
            delay("retry-after", "Wed, 21 Oct 2015 07:28:00 GMT"),
            seconds(0.0)
        );
        for nonsense in ["-1", "soon", "inf", "NaN"] {
            assert_eq!(delay("retry-after", nonsense), None, "{nonsense}");
        }
        assert_eq!(delay("x-ratelimit-reset-after", "5"), None);
        assert_eq!(
            requested_delay(&HeaderMap::new(), "reset after 5s", Envelope::Error),
            None
        );
    }

    #[test]
    fn code_assist_delays_are_read_from_the_text() {
        let of = |text: &str| requested_delay(&HeaderMap::new(), text, Envelope::CodeAssist);
        for (text, seconds) in [
            ("Your quota will reset after 18h31m10s.", 66_671.0),
            ("Your quota will reset after 39s.", 40.0),
            ("Your quota will reset after 2m0s.", 121.0),
            ("Please retry in 500ms", 1.5),
            ("Please retry in 12.5s", 13.5),
            (r#"{"retryDelay": "34.5s"}"#, 35.5),
        ] {
            assert_eq!(of(text), Some(Duration::from_secs_f64(seconds)), "{text}");
        }
        assert_eq!(of("retry later"), None);
        assert_eq!(of("Your quota will reset after 0s."), None);
        let reset = delay("x-ratelimit-reset-after", "5", Envelope::CodeAssist);
        assert_eq!(reset, Some(Duration::from_secs(6)));
    }
}
