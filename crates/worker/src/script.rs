//! The script agent: a mock that answers by rules written in the configuration.

mod amount;
mod compile;
mod config;
mod content;
mod matching;
mod place;
mod play;
mod step;
mod template;

pub use config::{
    Amount, ArtifactConfig, ChunksConfig, Count, Counted, FileConfig, PartKind, ProgressConfig, RepeatConfig,
    RuleConfig, ScriptConfig, When, Whens,
};
pub use place::ScriptError;
pub use step::{Said, SaidMap, Step};

use crate::agent::{Outbox, Stopped};
use compile::Action;
use flotilla_protocol::work::Assignment;
use matching::Condition;
use place::Place;

/// A script that is known to make sense.
#[derive(Debug)]
pub struct Script {
    rules: Vec<Rule>,
    otherwise: Vec<Action>,
}

#[derive(Debug)]
struct Rule {
    any_of: Vec<Condition>,
    actions: Vec<Action>,
}

impl Script {
    /// Checks all that can be known before a message comes.
    pub fn compile(config: &ScriptConfig) -> Result<Self, ScriptError> {
        let mut rules = Vec::with_capacity(config.rules.len());
        for (i, rule) in config.rules.iter().enumerate() {
            let place = Place::new("rules").index(i);
            let any_of = matching::conditions(&rule.when, &place.field("when"))?;
            rules.push(Rule { any_of, actions: compile::steps(&rule.steps, &place.field("do"))? });
        }
        let otherwise = match &config.otherwise {
            Some(steps) => compile::steps(steps, &Place::new("otherwise"))?,
            None => compile::steps(&reply(), &Place::new("otherwise"))?,
        };
        Ok(Self { rules, otherwise })
    }

    pub(crate) async fn play(&self, assignment: &Assignment, outbox: &Outbox) -> Result<(), Stopped> {
        play::perform(self.choose(assignment), assignment, outbox).await
    }

    /// The matching rule with the longest message id prefix, then the longest text prefix, then the first.
    fn choose(&self, assignment: &Assignment) -> &[Action] {
        let mut best = None;
        for rule in &self.rules {
            let rank = rule.any_of.iter().filter_map(|condition| condition.rank(assignment)).max();
            if rank > best.as_ref().map(|(rank, _)| *rank) {
                best = rank.map(|rank| (rank, &rule.actions));
            }
        }
        best.map_or(&self.otherwise, |(_, actions)| actions)
    }
}

/// What a script without `otherwise` does when no rule matches.
fn reply() -> Vec<Step> {
    let artifact =
        ArtifactConfig { name: Some("reply".into()), text: Some("{text}".into()), ..ArtifactConfig::default() };
    vec![Step::Artifact(Box::new(artifact))]
}
