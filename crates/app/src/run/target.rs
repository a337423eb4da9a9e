//! Changes of the running router, as a plan's steps ask for them.

use control::apply::Target;
use control::config::{Config, Wanted};
use control::plan::{Action, Key, Plan};

use super::daemon::Daemon;

impl Target for Daemon {
    fn accepts(&mut self, to: &Config, plan: &Plan) -> Result<(), Vec<String>> {
        let mut refused = Wanted::of(to).err().unwrap_or_default();
        let actions = plan.steps.iter().map(|step| &step.action);
        for why in actions.filter_map(refusal) {
            if !refused.contains(&why) {
                refused.push(why);
            }
        }
        match refused.is_empty() {
            true => Ok(()),
            false => Err(refused),
        }
    }

    fn apply(&mut self, action: &Action) -> Result<(), String> {
        match refusal(action) {
            Some(why) => Err(why),
            None => Ok(()),
        }
    }
}

/// Why an action cannot be done while the router runs, if it cannot.
fn refusal(action: &Action) -> Option<String> {
    let name = match action.key() {
        Key::Workers => "workers".into(),
        Key::Netns => "netns".into(),
        Key::Control => "control".into(),
        key => match key.interface() {
            Some(name) => format!("interface {name}"),
            None => "routes".into(),
        },
    };
    Some(format!(
        "{name}: cannot be changed while the router runs; restart it"
    ))
}
