//! Agents elsewhere: the links to them.

use crate::config::{AgentConfig, Config};
use anyhow::Result;
use flotilla_core::hub::RunHandle;
use flotilla_core::ports::{Checked, Link, Missed};
use flotilla_core::registry::{LeftOpen, Proven};
use flotilla_outbound::guard::Guard;
use flotilla_outbound::remote::options::Options;
use flotilla_outbound::remote::{Remote, RemoteLink};
use flotilla_protocol::work::Assignment;
use std::any::Any;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

/// A link to an agent elsewhere. Nothing is called yet. One that was added over the API is guarded. The link `before`
/// stays if it leads the same way: what is known of the agent, such as its last good card, does not depend on what else
/// is changed.
pub fn link(
    name: &str,
    agent: &AgentConfig,
    config: &Config,
    guarded: bool,
    proven: &Arc<Proven>,
    before: Option<&Arc<dyn Link>>,
) -> Result<Arc<dyn Link>> {
    let limits = config.limits.limits();
    let options = Options { depth: limits.json_depth, guarded, ..agent.remote_options(name, limits.body)? };
    let guard = Guard::new(config.targets.rules()?);
    let leads_there = |link: &&Arc<dyn Link>| {
        let link: &dyn Any = &***link;
        link.downcast_ref().is_some_and(|RemoteLink(remote)| remote.is_made_of(&options, &guard))
    };
    if let Some(before) = before.filter(leads_there) {
        return Ok(Arc::clone(before));
    }
    Ok(Arc::new(RemoteLink(Arc::new(Remote::new(options, guard, Arc::clone(proven))?))))
}

/// What the configuration says counts; what it leaves open is the card's to say.
pub fn left_open(config: &AgentConfig) -> LeftOpen {
    LeftOpen {
        description: config.description.is_empty(),
        skills: config.skills.is_empty(),
        input_modes: config.input_modes.is_none(),
        output_modes: config.output_modes.is_none(),
        streaming: config.streaming.is_none(),
        extensions: config.extensions.is_empty(),
    }
}

/// In the place of a link that cannot be made any more: a secret is gone, or settings of old are not taken today. The agent
/// stays in the registry, so that its owner sees what is wrong and can mend or remove it.
pub struct Unmade {
    pub problem: String,
}

/// How often it is said again what is wrong.
const TOLD_EVERY: Duration = Duration::from_secs(3600);

impl Link for Unmade {
    fn run(&self, _: Assignment, mut run: RunHandle) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(async move {
            run.fail("The agent cannot be called: its settings at this hub do not work. Its owner has to mend them.")
                .await;
        })
    }

    fn is_remote(&self) -> bool {
        true
    }

    fn believed(&self) -> Option<Duration> {
        Some(TOLD_EVERY)
    }

    fn check(&self) -> Pin<Box<dyn Future<Output = Result<Checked, Missed>> + Send>> {
        let problem = format!("its settings do not work: {}", self.problem);
        Box::pin(std::future::ready(Err(Missed { problem, answers: false })))
    }
}
