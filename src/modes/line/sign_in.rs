//! The commands `/login` and `/logout`.

use std::sync::Arc;

use super::commands::CommandOutput;
use super::sanitize::one_line;
use pi_agent::event::{UiAnswer, UiMethod};
use pi_app::AgentSession;

const NOTHING_CHOSEN: &str = "Nothing was chosen.";

pub async fn login(session: &Arc<AgentSession>, provider: &str) -> CommandOutput {
    let known = session.models().sign_ins();
    let options: Vec<(String, String)> = known
        .iter()
        .map(|(id, sign_in)| {
            let done = match session.models().auth().oauth(id) {
                Some(_) => ", signed in",
                None => "",
            };
            (id.clone(), format!("{id}: {}{done}", sign_in.name()))
        })
        .collect();
    let Some(provider) = choose(session, "Sign in to", provider, options).await? else {
        return Ok(NOTHING_CHOSEN.into());
    };
    session
        .log_in(&provider)
        .await
        .map_err(|error| format!("Failed to login to {provider}: {error}"))?;
    let path = session.models().auth().path().display().to_string();
    let usable = session
        .model()
        .is_some_and(|model| model.provider == provider);
    let next = match usable {
        true => String::new(),
        false => format!(" /model {provider}/ lists its models."),
    };
    Ok(format!(
        "Logged in to {provider}. Credentials saved to {path}.{next}"
    ))
}

pub async fn logout(session: &Arc<AgentSession>, provider: &str) -> CommandOutput {
    let stored = session.models().auth().providers();
    if stored.is_empty() {
        return Ok("No provider has a sign-in or a stored key. /login signs in.".into());
    }
    let options = stored.into_iter().map(|id| (id.clone(), id)).collect();
    let Some(provider) = choose(session, "Forget the credentials of", provider, options).await?
    else {
        return Ok(NOTHING_CHOSEN.into());
    };
    session.log_out(&provider)?;
    Ok(format!("Logged out of {provider}."))
}

/// Returns the named provider, or the one that the user picks; `None` if the user picks none.
async fn choose(
    session: &Arc<AgentSession>,
    title: &str,
    named: &str,
    options: Vec<(String, String)>,
) -> Result<Option<String>, String> {
    if !named.is_empty() {
        let known = options.iter().find(|(id, _)| id == named);
        return match known {
            Some((id, _)) => Ok(Some(id.clone())),
            None => {
                let ids: Vec<&str> = options.iter().map(|(id, _)| id.as_str()).collect();
                Err(format!(
                    "\"{}\" is none of {}",
                    one_line(named),
                    ids.join(", ")
                ))
            }
        };
    }
    let method = UiMethod::Select {
        title: title.to_owned(),
        options: options.iter().map(|(_, label)| label.clone()).collect(),
        timeout: None,
    };
    let UiAnswer::Value(chosen) = session.show_dialog(method).await else {
        return Ok(None);
    };
    let chosen = options.into_iter().find(|(_, label)| *label == chosen);
    Ok(chosen.map(|(id, _)| id))
}
