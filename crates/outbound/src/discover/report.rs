//! What a search for an agent is told as: one JSON object, for programs and people.

use super::{At, Found, Search};
use crate::client::card::Interface;
use crate::client::choose::Binding;
use crate::net::address;
use serde_json::{Value, json};

impl Search {
    /// All of it.
    pub fn report(&self) -> Value {
        let tried: Vec<Value> =
            self.tried.iter().map(|tried| json!({"address": tried.address, "problem": tried.problem})).collect();
        let mut report = match &self.found {
            Some(found) => found.report(),
            None => json!({"found": false, "usable": false, "problem": "no agent card was found there"}),
        };
        report["url"] = self.asked.clone().into();
        report["tried"] = tried.into();
        report
    }

    /// Settings to add the agent with; none if it cannot be called.
    pub fn settings(&self) -> Option<Value> {
        let found = self.found.as_ref().filter(|found| found.choice.is_ok())?;
        Some(match &found.at {
            At::Base(url) => json!({ "url": url }),
            At::Card(url) => json!({ "card": url }),
        })
    }
}

impl Found {
    fn report(&self) -> Value {
        let card = &self.card;
        let skills: Vec<Value> =
            card.skills.iter().map(|skill| json!({"id": skill.id, "name": skill.name, "tags": skill.tags})).collect();
        let security: Vec<String> = card.security_schemes.values().map(|scheme| scheme.describe()).collect();
        let findings: Vec<Value> = self.findings.iter().map(|finding| placed(finding)).collect();
        let mut signature = json!({"word": self.outcome.word.name(), "reason": self.outcome.reason});
        if let Some(proof) = &self.outcome.proof {
            signature["kid"] = proof.kid.clone().into();
            signature["thumbprint"] = proof.thumbprint.clone().into();
            if !proof.uncovered.is_empty() {
                signature["notCovered"] = proof.uncovered.clone().into();
            }
        }
        let mut report = json!({
            "found": true,
            "usable": self.choice.is_ok(),
            "cardUrl": self.address,
            "form": self.form.name(),
            "name": card.name,
            "description": card.description,
            "version": card.version,
            "interfaces": card.supported_interfaces.iter().map(interface).collect::<Vec<_>>(),
            "skills": skills,
            "streaming": card.capabilities.streaming,
            "pushNotifications": card.capabilities.push_notifications,
            "securitySchemes": security,
            "findings": findings,
            "signature": signature,
        });
        match &self.choice {
            Ok(choice) => {
                report["binding"] = choice.binding.name().into();
                report["protocolVersion"] = choice.version.clone().into();
            }
            Err(problem) => report["problem"] = problem.clone().into(),
        }
        report
    }
}

fn interface(interface: &Interface) -> Value {
    json!({
        "url": address::shown(&interface.url),
        "binding": interface.protocol_binding,
        "protocolVersion": interface.protocol_version,
        "spoken": Binding::parse(&interface.protocol_binding).is_some(),
    })
}

/// "skills[0].tags is missing" is said of `skills[0].tags`.
pub fn placed(finding: &str) -> Value {
    let (place, problem) = finding.split_once(' ').unwrap_or(("", finding));
    json!({"place": place, "problem": problem})
}
