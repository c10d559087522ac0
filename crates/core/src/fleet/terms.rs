//! What later messages of a task make of its contract. Its budget and the form of its reply may become others; who does
//! it, and what that takes, stay as they were.

use super::contract::{Carried, carried};
use crate::budget::Ceiling;
use flotilla_protocol::event::{Change, Event};
use flotilla_protocol::fleet::Dispatch;
use flotilla_protocol::fleet::dispatch::{OnBlocked, ReplySchema};
use flotilla_protocol::work::Assignment;
use std::borrow::Cow;
use std::sync::Arc;

/// Takes over what the contracts of later messages say. Texts are read for them where `texts`.
pub fn amend(dispatch: &mut Dispatch, changes: &[Arc<Change>], texts: bool) {
    let asked = changes.iter().flat_map(|change| &change.events).filter_map(|event| match event {
        Event::Asked { message, .. } => Some(message),
        _ => None,
    });
    for message in asked.skip(1) {
        let Ok(Carried::Dispatch(later)) = carried(message, texts) else { continue };
        if Ceiling::of(&later).is_some() {
            (dispatch.task.token_budget, dispatch.task.budget) = (later.task.token_budget, later.task.budget);
        }
        if later.task.reply_schema != ReplySchema::Prose {
            (dispatch.task.reply_schema, dispatch.task.json_schema) = (later.task.reply_schema, later.task.json_schema);
        }
    }
}

/// Of a contract that goes to an agent elsewhere, which may be a hub: whom else it asks there is its own, but to wait for
/// somebody and to tell the owner is done here, once.
pub fn pass_on(dispatch: &mut Dispatch) {
    let reroutes = dispatch.on_blocked().contains(&OnBlocked::Reroute);
    dispatch.on_blocked = Some(if reroutes { vec![OnBlocked::Reroute] } else { Vec::new() });
}

/// The contract that a worker is shown with a message. None if there is none to show: it has the work already, and the
/// message brings no contract. `anew` is for one that is told all of the work.
pub fn told<'a>(dispatch: &'a Dispatch, work: &Assignment, texts: bool, anew: bool) -> Option<Cow<'a, Dispatch>> {
    let brought = if work.turn > 1 { carried(&work.message, texts) } else { Ok(Carried::Nothing) };
    let Ok(Carried::Dispatch(later)) = brought else { return anew.then_some(Cow::Borrowed(dispatch)) };
    let brief = if anew { format!("{}\n\n{}", dispatch.brief, later.brief) } else { later.brief };
    Some(Cow::Owned(Dispatch { brief, more: later.more, ..dispatch.clone() }))
}
