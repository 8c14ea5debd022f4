//! Thinking levels of a model, and their names in its API.

use indexmap::IndexMap;

use crate::model::{Model, ThinkingLevel};

/// Names of thinking levels in a model's API; `None` means that the model does not have the
/// level. This is `thinkingLevelMap` of models, with which newer versions of the original replace
/// `compat.reasoningEffortMap`.
pub type LevelNames = IndexMap<String, Option<String>>;

impl Model {
    /// Returns the levels that the model offers, lowest first.
    pub fn thinking_levels(&self) -> Vec<ThinkingLevel> {
        let all = ThinkingLevel::ALL.into_iter();
        match &self.thinking_level_map {
            _ if !self.reasoning => vec![ThinkingLevel::Off],
            None => all
                .filter(|level| match level {
                    ThinkingLevel::Xhigh => self.supports_xhigh(),
                    ThinkingLevel::Max => false,
                    _ => true,
                })
                .collect(),
            Some(names) => all.filter(|level| offers(names, *level)).collect(),
        }
    }

    /// Returns true if thinking can be turned off.
    pub(crate) fn can_disable_thinking(&self) -> bool {
        self.thinking_levels().first() == Some(&ThinkingLevel::Off)
    }

    fn supports_xhigh(&self) -> bool {
        const IDS: [&str; 7] = [
            "gpt-5.2", "gpt-5.3", "gpt-5.4", "opus-4-6", "opus-4.6", "opus-4-7", "opus-4.7",
        ];
        IDS.iter().any(|id| self.id.contains(id))
    }

    /// Returns the nearest level that the model offers, preferring a higher one.
    pub fn clamp_thinking(&self, level: ThinkingLevel) -> ThinkingLevel {
        let levels = self.thinking_levels();
        let more = levels.iter().find(|offered| **offered >= level);
        *more.or(levels.last()).unwrap_or(&ThinkingLevel::Off)
    }

    /// Returns the API's name of the level, if the model has one.
    pub fn level_name(&self, level: ThinkingLevel) -> Option<&str> {
        let names = self.thinking_level_map.as_ref()?;
        names.get(level.as_str())?.as_deref()
    }
}

fn offers(names: &LevelNames, level: ThinkingLevel) -> bool {
    match names.get(level.as_str()) {
        Some(name) => name.is_some(),
        None => !matches!(level, ThinkingLevel::Xhigh | ThinkingLevel::Max),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::testing::model;

    fn with(names: serde_json::Value) -> Model {
        Model {
            thinking_level_map: serde_json::from_value(names).unwrap(),
            ..model("openai-completions")
        }
    }

    fn levels(model: &Model) -> String {
        let levels = model.thinking_levels();
        let names: Vec<&str> = levels.iter().map(|level| level.as_str()).collect();
        names.join(" ")
    }

    #[test]
    fn a_model_offers_the_levels_of_its_map() {
        use ThinkingLevel::{High, Low, Max, Medium, Minimal, Off, Xhigh};
        for (names, expected) in [
            (json!(null), "off minimal low medium high"),
            (json!({}), "off minimal low medium high"),
            (
                json!({"minimal": null, "xhigh": "max"}),
                "off low medium high xhigh",
            ),
            (
                json!({"off": null, "max": "max"}),
                "minimal low medium high max",
            ),
            (
                json!({"minimal": null, "low": null, "medium": null, "xhigh": null}),
                "off high",
            ),
        ] {
            assert_eq!(levels(&with(names.clone())), expected, "{names}");
        }
        let model = with(json!({"off": null, "low": null, "high": "hard", "medium": null}));
        assert_eq!(model.clamp_thinking(Off), Minimal);
        assert_eq!(model.clamp_thinking(Low), High);
        assert_eq!(model.clamp_thinking(Max), High);
        assert_eq!(with(json!({"max": "most"})).clamp_thinking(Xhigh), Max);
        assert_eq!(model.level_name(High), Some("hard"));
        assert_eq!(model.level_name(Minimal), None);
        assert_eq!(model.level_name(Medium), None);
        let silent = Model {
            reasoning: false,
            ..model
        };
        assert_eq!(levels(&silent), "off");
    }
}
