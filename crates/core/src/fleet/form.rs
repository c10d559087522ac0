//! How a worker is told of its work: in its own version of the handshake, as hints, or as plain text.

use super::contract::is_dispatch;
use crate::budget::Ceiling;
use crate::dispatch::Worker;
use flotilla_protocol::a2a::model::{Message, Part};
use flotilla_protocol::fleet::route::Form;
use flotilla_protocol::fleet::version::CURRENT;
use flotilla_protocol::fleet::{Dispatch, HANDSHAKE, hints};
use flotilla_protocol::lineage;
use flotilla_protocol::time::Millis;
use flotilla_protocol::wire::Json;
use std::sync::Arc;

/// The form a worker understands.
pub fn form(worker: &Worker) -> Form {
    match (worker.announced, worker.announce.spoken()) {
        (true, Some(_)) => Form::Metadata,
        (true, None) => Form::Text,
        (false, _) => Form::Hints,
    }
}

/// Why a worker is told less than the handshake has words for.
pub fn fallback(worker: &Worker) -> Option<String> {
    match form(worker) {
        Form::Metadata => None,
        Form::Hints => Some("it never announced itself".into()),
        Form::Text => {
            let versions: Vec<String> = worker.announce.versions().iter().map(ToString::to_string).collect();
            Some(format!("it speaks version {} of the handshake, and not {CURRENT}", versions.join(", ")))
        }
    }
}

/// What is told with the work besides what its orchestrator said.
pub struct Told<'a> {
    pub worker: &'a Worker,
    pub unverified: &'a [String],
    /// What was wrong with the last reply.
    pub violations: Option<&'a [String]>,
    /// When the task ends, which may be sooner than its own contract says.
    pub deadline: Option<Millis>,
    /// What is left under the hard ceilings of the tasks it is part of.
    pub left: Option<Ceiling>,
}

/// The message as the worker gets it. What else was in it goes on unchanged.
pub fn dressed(message: &Message, dispatch: &Dispatch, told: &Told<'_>) -> Arc<Message> {
    let version = told.worker.announce.spoken().unwrap_or_default();
    let mut dispatch = Dispatch {
        protocol_version: version,
        epoch: told.worker.announce.epoch,
        unverified: told.unverified.to_vec(),
        to: None,
        deadline: told.deadline,
        ..dispatch.clone()
    };
    if let Some(left) = told.left {
        left.bind(&mut dispatch);
    }
    if let Some(violations) = told.violations {
        dispatch.brief = again(&dispatch.brief, violations);
    }
    let form = form(told.worker);
    let mut message = message.clone();
    message.metadata = match form {
        Form::Metadata => {
            let json = Json::of(&dispatch).expect("a dispatch is JSON");
            if !message.extensions.iter().any(|uri| uri == HANDSHAKE) {
                message.extensions.push(HANDSHAKE.to_owned());
            }
            Some(lineage::put_member(message.metadata.as_ref(), HANDSHAKE, json))
        }
        Form::Hints | Form::Text => message.metadata.as_ref().and_then(|kept| lineage::drop_member(kept, HANDSHAKE)),
    };
    let text = match form {
        Form::Metadata => dispatch.brief.clone(),
        Form::Hints => {
            let brief = format!("{}{}", dispatch.brief, dispatch.ending());
            hints::write(&Dispatch { brief, epoch: None, ..dispatch.clone() })
        }
        Form::Text => format!("{}{}", dispatch.brief, dispatch.ending()),
    };
    let told_already = |part: &Part| is_dispatch(part) || part.text.as_deref().is_some_and(|t| is_brief(t, &dispatch));
    message.parts.retain(|part| !told_already(part));
    message.parts.insert(0, Part::text(text));
    Arc::new(message)
}

/// Whether a text says nothing that the brief does not.
fn is_brief(text: &str, dispatch: &Dispatch) -> bool {
    dispatch.brief.contains(text.trim())
}

fn again(brief: &str, violations: &[String]) -> String {
    let violations = violations.iter().map(|violation| format!("- {violation}\n")).collect::<String>();
    format!(
        "{brief}\n\nYour last reply was not what was asked for:\n{violations}Reply again, with all of it corrected."
    )
}

#[cfg(test)]
mod tests {
    use super::{Told, dressed, form};
    use crate::budget::Ceiling;
    use crate::dispatch::Worker;
    use flotilla_protocol::a2a::model::{Message, Part};
    use flotilla_protocol::fleet::dispatch::ReplySchema;
    use flotilla_protocol::fleet::route::Form;
    use flotilla_protocol::fleet::{Announce, Dispatch, HANDSHAKE, hints};
    use flotilla_protocol::lineage;
    use flotilla_protocol::time::Millis;
    use std::sync::Arc;

    fn announced(versions: &[&str]) -> Worker {
        let supported_versions = versions.iter().map(|version| version.parse().unwrap()).collect();
        let announce = Announce { epoch: Some(4), supported_versions, ..Announce::default() };
        Worker { announced: true, announce: Arc::new(announce), ..Worker::unknown("w") }
    }

    fn sent(worker: &Worker, dispatch: &Dispatch, violations: Option<&[String]>) -> Arc<Message> {
        let parts = vec![Part::text("Do it"), Part { url: Some("http://a".into()), ..Part::default() }];
        let message = Message { parts, ..Message::default() };
        let (unverified, deadline) = (&["MCP server mem".to_owned()], Some(Millis(7)));
        let left = Some(Ceiling { tokens: Some(70), hard: true, ..Ceiling::default() });
        dressed(&message, dispatch, &Told { worker, unverified, violations, deadline, left })
    }

    #[test]
    fn a_mixed_fleet_is_told_in_the_words_each_knows() {
        let mut dispatch = Dispatch { brief: "Do it".into(), ..Dispatch::default() };
        dispatch.task.reply_schema = ReplySchema::Structured;
        let upgraded = sent(&announced(&["1.0", "2.4"]), &dispatch, None);
        let json = lineage::find_member(upgraded.metadata.as_ref().unwrap(), HANDSHAKE).unwrap();
        let told: Dispatch = serde_json::from_str(json.text()).unwrap();
        assert_eq!((told.epoch, told.unverified.len(), told.protocol_version.to_string()), (Some(4), 1, "2.0".into()));
        assert_eq!(told.deadline, Some(Millis(7)), "the task's, not its own alone");
        assert_eq!(told.most_tokens(), Some(70), "likewise");
        assert_eq!(
            (upgraded.parts.len(), upgraded.parts[0].text.as_deref()),
            (2, Some("Do it")),
            "the rest goes along"
        );

        let silent = sent(&Worker::unknown("w"), &dispatch, None);
        assert!(silent.metadata.is_none());
        let text = silent.parts[0].text.as_deref().unwrap();
        let read = hints::read(text).unwrap().unwrap();
        assert!(read.brief.starts_with("Do it") && read.brief.contains("\"type\":\"TASK_RESULT\""), "{text}");
        assert!(text.contains("unverified: [MCP server mem]"), "{text}");

        let other = announced(&["3.0"]);
        assert_eq!((form(&other), form(&Worker::unknown("w"))), (Form::Text, Form::Hints));
        assert!(sent(&other, &dispatch, None).parts[0].text.as_deref().unwrap().starts_with("Do it\n\nEnd with"));
    }

    #[test]
    fn what_was_wrong_is_told_with_the_work() {
        let dispatch = Dispatch { brief: "Do it".into(), ..Dispatch::default() };
        let again = sent(&announced(&[]), &dispatch, Some(&["a is missing".to_owned()]));
        let text = again.parts[0].text.as_deref().unwrap();
        assert!(text.contains("- a is missing\n") && text.starts_with("Do it"), "{text}");
        assert_eq!(again.parts.len(), 2, "the brief is not told twice");
    }
}
