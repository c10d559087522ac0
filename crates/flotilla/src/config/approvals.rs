//! The `approvals` section: how long owners have to answer, and rules that answer for them.

use super::Span;
use anyhow::{Result, bail};
use flotilla_core::approval::{Policy, Rule, Verdict};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What agents ask their owners leave for; see docs/approvals.md.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ApprovalsConfig {
    /// How long an owner has to answer before it counts as no; `0s` is a no at once.
    pub expire_after: Span,
    /// Rules that answer before anybody is asked. The first that fits counts.
    pub rules: Vec<RuleConfig>,
}

/// One rule. In patterns, `*` is any text and `?` any one character.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RuleConfig {
    /// Pattern of the agent's name; any if absent.
    #[serde(default = "any")]
    pub agent: String,
    /// Pattern of the tool's name; any if absent.
    #[serde(default = "any")]
    pub tool: String,
    /// Members of the tool's input, and the pattern each must fit.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub input: BTreeMap<String, String>,
    pub decide: Decide,
}

fn any() -> String {
    "*".into()
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Decide {
    Allow,
    Deny,
    /// The owner is asked, whatever rules after this one say.
    Ask,
}

impl Default for ApprovalsConfig {
    fn default() -> Self {
        Self { expire_after: Span(Policy::default().expire_after), rules: Vec::new() }
    }
}

impl ApprovalsConfig {
    pub fn policy(&self) -> Policy {
        let rule = |rule: &RuleConfig| Rule {
            agent: rule.agent.clone(),
            tool: rule.tool.clone(),
            input: rule.input.clone().into_iter().collect(),
            decide: match rule.decide {
                Decide::Allow => Verdict::Allow,
                Decide::Deny => Verdict::Deny,
                Decide::Ask => Verdict::Ask,
            },
        };
        Policy { rules: self.rules.iter().map(rule).collect(), expire_after: self.expire_after.0 }
    }

    pub fn check(&self) -> Result<()> {
        let most = Span::seconds(365 * 86_400);
        if self.expire_after.0 > most.0 {
            bail!("approvals.expire_after must be at most {most}");
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::ApprovalsConfig;
    use crate::config::Config;

    #[test]
    fn rules_are_read_and_slips_are_told() {
        let text = "approvals: {rules: [{tool: Read, decide: allow}, {agent: coder, input: {path: '*'}, decide: ask}]}";
        let policy = Config::parse(text).expect("readable").approvals.policy();
        assert_eq!((policy.rules.len(), policy.rules[0].agent.as_str()), (2, "*"));
        assert!(Config::parse("approvals: {rules: [{tool: Read}]}").is_err(), "a rule decides something");
        assert!(Config::parse("approvals: {expire_after: 800d}").expect("readable").approvals.check().is_err());
        assert!(ApprovalsConfig::default().check().is_ok());
    }
}
