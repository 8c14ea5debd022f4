//! Checks the thinking members for each kind of server.

use super::*;

/// Regression: members of newer versions made the whole `compat` invalid.
#[test]
fn each_thinking_format_has_its_own_members() {
    let template = json!({
        "thinking": {"$var": "thinking.enabled"}, "effort": {"$var": "thinking.effort", "omitWhenOff": true},
        "budget": {"$var": "thinking.budget"}, "fixed": 1,
    });
    let thinking_members = |format: &str, level| {
        let mut model = with_compat(json!({
            "thinkingFormat": format, "chatTemplateKwargs": template, "chatTemplateArgs": {"on": {"$var": "thinking.enabled"}},
        }));
        model.thinking_level_map =
            serde_json::from_value(json!({"high": "hard", "off": "none"})).unwrap();
        let mut request = request_for(model, vec![user("a")]);
        request.options.reasoning = Some(level);
        let mut body = body_of(&request);
        let names = [
            "thinking",
            "reasoning",
            "reasoning_effort",
            "chat_template_kwargs",
            "chat_template_args",
        ];
        body.as_object_mut()
            .unwrap()
            .retain(|name, _| names.contains(&name.as_str()));
        body
    };
    let (high, off) = (ThinkingLevel::High, ThinkingLevel::Off);
    for (format, when_high, when_off) in [
        (
            "deepseek",
            json!({"thinking": {"type": "enabled"}, "reasoning_effort": "hard"}),
            json!({"thinking": {"type": "disabled"}}),
        ),
        (
            "together",
            json!({"reasoning": {"enabled": true}, "reasoning_effort": "hard"}),
            json!({"reasoning": {"enabled": false}}),
        ),
        (
            "string-thinking",
            json!({"thinking": "hard"}),
            json!({"thinking": "none"}),
        ),
        (
            "ant-ling",
            json!({"reasoning": {"effort": "hard"}}),
            json!({}),
        ),
        (
            "baseten",
            json!({"chat_template_args": {"on": true}, "reasoning_effort": "hard"}),
            json!({"chat_template_args": {"on": false}, "reasoning_effort": "none"}),
        ),
        (
            "chat-template",
            json!({"chat_template_kwargs": {"thinking": true, "effort": "hard", "fixed": 1}}),
            json!({"chat_template_kwargs": {"thinking": false, "fixed": 1}}),
        ),
    ] {
        assert_eq!(thinking_members(format, high), when_high, "{format}");
        assert_eq!(thinking_members(format, off), when_off, "{format}");
    }
}

#[test]
fn a_model_adds_parameters_to_every_request() {
    let map = |value: Value| value.as_object().unwrap().clone();
    let mut request = request_for(with_compat(json!({})), vec![user("a")]);
    let model = std::sync::Arc::make_mut(&mut request.model);
    model.sampling_params = Some(map(json!({"top_p": 0.9, "min_p": 0, "stream": true})));
    model.sampling_params_by_thinking_level = Some(
        [("high".to_owned(), map(json!({"top_p": 0.5})))]
            .into_iter()
            .collect(),
    );
    request.options.reasoning = Some(ThinkingLevel::High);
    let body = body_of(&request);
    assert_eq!((&body["top_p"], &body["min_p"]), (&json!(0.5), &json!(0)));
    request.options.reasoning = Some(ThinkingLevel::Low);
    assert_eq!(body_of(&request)["top_p"], 0.9);
}
