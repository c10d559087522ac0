//! What an agent says of its own work, read along with its reports, and held against what git saw.

use super::Evidence;
use super::claims::{Flag, Ground, hold, unseen};
use crate::attach::receipt;
use flotilla_protocol::a2a::model::{Artifact, Message, Part, TaskState};
use flotilla_protocol::fleet::{self, Found, Handshake, Kind, TaskResult, hints, version};
use flotilla_protocol::wire::{AnyValue, Json};
use flotilla_protocol::work::{Contents, Report};
use serde_json::{Value, json};
use std::sync::{Mutex, PoisonError};

/// How much of the end of what an agent prints is kept: a result stands there.
const KEPT: usize = 64 * 1024;
/// How much of it stands for what was done, in characters.
const DETAIL: usize = 2_000;

/// What there is to hold claims against after a run.
#[derive(Debug)]
pub enum Sight {
    Seen(Box<Evidence>, Ground),
    /// The repository could be read before the run, and cannot any more.
    Lost,
}

#[derive(Debug)]
pub struct Witness {
    /// The work came under a contract, so a result is expected.
    contract: bool,
    heard: Mutex<Heard>,
}

#[derive(Debug, Default)]
struct Heard {
    /// What was printed last, in however many pieces it came.
    text: String,
    result: Option<Box<TaskResult>>,
    /// A result that cannot be read was told: the hub says so, and nothing is put in its place.
    is_wrong: bool,
}

impl Heard {
    fn take(&mut self, found: Found) {
        match found {
            Found::Handshake(Handshake::Result(result)) => (self.result, self.is_wrong) = (Some(result), false),
            Found::OtherVersion(Kind::Result, _) => self.is_wrong = true,
            Found::Wrong(problem) if problem.starts_with(Kind::Result.name()) => self.is_wrong = true,
            _ => {}
        }
    }
}

impl Witness {
    pub fn new(message: &Message) -> Self {
        let has_hints = |part: &Part| part.text.as_deref().is_some_and(|text| hints::read(text).is_some());
        let contract = receipt::dispatch(message).is_some() || message.parts.iter().any(has_hints);
        Self { contract, heard: Mutex::default() }
    }

    pub fn hear(&self, report: &Report) {
        let (contents, is_printed, append) = match report {
            Report::Artifact { contents, append, .. } => (contents, true, *append),
            Report::Status { contents: Some(contents), .. } | Report::Answer { contents, .. } => {
                (contents, false, false)
            }
            _ => return,
        };
        let mut heard = self.heard.lock().unwrap_or_else(PoisonError::into_inner);
        if is_printed && !append {
            heard.text.clear();
        }
        for part in contents.parts() {
            match (&part.data.0, &part.text) {
                (Some(json), _) => heard.take(fleet::read(json.text())),
                (None, Some(text)) if is_printed => heard.text.push_str(text),
                (None, Some(text)) => heard.take(fleet::ending(text)),
                (None, None) => {}
            }
        }
        let over = heard.text.len().saturating_sub(KEPT);
        let over = (over..heard.text.len()).find(|at| heard.text.is_char_boundary(*at)).unwrap_or(0);
        heard.text.drain(..over);
    }

    /// The result to be told in the place of what the agent said; none if there is nothing to put right.
    pub fn settle(&self, sight: Option<&Sight>, is_done: bool) -> Option<Report> {
        let mut heard = self.heard.lock().unwrap_or_else(PoisonError::into_inner);
        if heard.result.is_none() {
            let found = fleet::ending(&heard.text);
            heard.is_wrong |= fleet::ending::is_cut_off(&heard.text);
            heard.take(found);
        }
        let mut result = match heard.result.take() {
            _ if heard.is_wrong => return None,
            Some(result) if self.contract || sight.is_some() => result,
            None if self.contract && sight.is_some() && is_done => Box::new(inferred(&heard.text)),
            _ => return None,
        };
        match sight {
            Some(Sight::Seen(evidence, ground)) => {
                let flags = hold(&mut result, evidence, ground);
                let held = flags.is_empty() || result.inferred;
                note(&mut result, &flags, held);
            }
            Some(Sight::Lost) => {
                let flags = unseen(&mut result);
                note(&mut result, &flags, false);
            }
            None => {}
        }
        Some(told(&result))
    }
}

/// The last report without the result it holds, which is told apart, as far as it holds. Words around it stay.
pub fn without_result(last: Report) -> Report {
    match last {
        Report::Status { state, contents: Some(contents), metadata } => {
            let contents = stripped(&contents).unwrap_or(Some(contents));
            Report::Status { state, contents, metadata }
        }
        Report::Answer { contents, metadata } => match stripped(&contents) {
            Some(contents) => Report::Status { state: TaskState::Completed, contents, metadata },
            None => Report::Answer { contents, metadata },
        },
        other => other,
    }
}

/// What is left of contents that hold a result, if anything is; none if they hold no result.
fn stripped(contents: &Contents) -> Option<Option<Contents>> {
    let (parts, mut holds) = (contents.parts(), false);
    let left = parts.into_iter().filter_map(|part| {
        let (found, words) = match (&part.data.0, &part.text) {
            (Some(json), _) => (fleet::read(json.text()), String::new()),
            (None, Some(text)) => fleet::ending_and_words(text),
            (None, None) => return Some(part),
        };
        if !matches!(found, Found::Handshake(Handshake::Result(_))) {
            return Some(part);
        }
        holds = true;
        (!words.is_empty()).then_some(Part { text: Some(words), ..part })
    });
    let left: Vec<Part> = left.collect();
    holds.then(|| (!left.is_empty()).then_some(Contents::Parts(left)))
}

/// What an agent's good end comes to that said nothing of the kind. Only git knows what it made.
fn inferred(text: &str) -> TaskResult {
    let detail: String = text.trim().chars().take(DETAIL).collect();
    let detail = Some(detail).filter(|detail| !detail.is_empty());
    TaskResult { protocol_version: version::CURRENT, inferred: true, detail, ..TaskResult::default() }
}

/// The check by which the hub knows whether what was claimed held.
fn note(result: &mut TaskResult, flags: &[Flag], held: bool) {
    let held = json!({"ok": held, "flags": flags});
    match result.more.get_mut("evidence").and_then(Value::as_object_mut) {
        Some(evidence) => drop(evidence.insert("git".into(), held)),
        None => drop(result.more.insert("evidence".into(), json!({"git": held}))),
    }
}

fn told(result: &TaskResult) -> Report {
    let data = AnyValue(Json::of(result).ok());
    let part = Part { data, media_type: Kind::Result.media_type().to_owned(), ..Part::default() };
    let artifact = Artifact { artifact_id: "task-result".into(), name: "task-result".into(), ..Artifact::default() };
    let contents = Contents::Parts(vec![part]);
    Report::Artifact { artifact: Box::new(artifact), contents, append: false, last_chunk: true, metadata: None }
}

#[cfg(test)]
mod tests {
    use super::{Sight, Witness, without_result};
    use crate::evidence::Evidence;
    use crate::evidence::claims::Ground;
    use flotilla_protocol::a2a::model::{Artifact, Message, Part, TaskState};
    use flotilla_protocol::work::{Contents, Report};
    use serde_json::{Value, json};
    use std::path::Path;

    fn witness(is_contract: bool) -> Witness {
        let text = if is_contract { "TASK DISPATCH (inline)\ntask_id: a\nBrief: do it" } else { "do it" };
        Witness::new(&Message { parts: vec![Part::text(text)], ..Message::default() })
    }

    fn printed(text: &str, append: bool) -> Report {
        let artifact = Box::new(Artifact { artifact_id: "output-1".into(), ..Artifact::default() });
        Report::Artifact { artifact, contents: Contents::text(text), append, last_chunk: false, metadata: None }
    }

    fn settled(witness: &Witness, evidence: Option<&Evidence>) -> Option<Value> {
        let ground = Ground::new(Path::new("/repo"), Path::new("/repo"));
        let sight = evidence.map(|seen| Sight::Seen(Box::new(seen.clone()), ground));
        data(witness.settle(sight.as_ref(), true)?)
    }

    fn data(report: Report) -> Option<Value> {
        let Report::Artifact { contents, .. } = report else { panic!("an artifact") };
        Some(serde_json::from_str(contents.parts()[0].data.0.as_ref().expect("data").text()).expect("JSON"))
    }

    fn seen() -> Evidence {
        Evidence { files_changed: vec!["a.rs".into()], files: 1, ..Evidence::default() }
    }

    const CLAIM: [&str; 3] = [
        "I did it.\n{\"type\":\"TASK_RES",
        "ULT\",\"protocol_version\":\"2.0\",\"status\":\"done\",\"artifacts\":{\"files_chan",
        "ged\":[\"lie.py\"]}}\n",
    ];

    #[test]
    fn a_claim_in_pieces_is_found_and_what_git_saw_stands_in_its_place() {
        let witness = witness(false);
        for (place, piece) in CLAIM.iter().enumerate() {
            witness.hear(&printed(piece, place > 0));
        }
        let told = settled(&witness, Some(&seen())).expect("a result");
        assert_eq!(told["artifacts"]["files_changed"], json!(["a.rs"]));
        assert_eq!(told["evidence"]["git"]["ok"], false);
        assert_eq!(told["evidence"]["git"]["flags"][0]["files"], json!(["lie.py"]));
    }

    #[test]
    fn what_a_run_had_nobody_see_is_claimed_and_does_not_hold() {
        let lost = |witness: &Witness| data(witness.settle(Some(&Sight::Lost), true)?);
        let told = witness(false);
        told.hear(&printed(&CLAIM.concat(), false));
        let told = lost(&told).expect("a result");
        assert_eq!(told["artifacts"]["files_changed"], json!(["lie.py"]), "nobody knows better");
        let flags = json!([{"flag": "not_seen", "places": ["."]}]);
        assert_eq!((&told["evidence"]["git"]["ok"], &told["evidence"]["git"]["flags"]), (&json!(false), &flags));
        let told = lost(&witness(true)).expect("a result of work under a contract");
        assert_eq!((&told["inferred"], &told["evidence"]["git"]["ok"]), (&json!(true), &json!(false)));
        assert_eq!(lost(&witness(false)), None, "nothing was claimed");
    }

    #[test]
    fn where_nothing_was_claimed_only_a_contract_wants_a_result() {
        assert_eq!(settled(&witness(false), Some(&seen())), None);
        assert_eq!(settled(&witness(true), None), None);
        let told = witness(true);
        told.hear(&printed("All well.", false));
        let told = settled(&told, Some(&seen())).expect("a result");
        assert_eq!((&told["inferred"], &told["detail"]), (&json!(true), &json!("All well.")));
        assert_eq!(
            (&told["artifacts"]["files_changed"], &told["evidence"]["git"]["ok"]),
            (&json!(["a.rs"]), &json!(true))
        );
    }

    #[test]
    fn words_around_a_result_that_is_told_apart_stay() {
        let done = r#"{"type":"TASK_RESULT","protocol_version":"2.0","status":"done"}"#;
        let last = |text: String| {
            let contents = Some(Contents::text(text));
            let told = without_result(Report::Status { state: TaskState::Completed, contents, metadata: None });
            let Report::Status { contents, .. } = told else { panic!("{told:?}") };
            contents.map(|contents| contents.parts()[0].text.clone().expect("text"))
        };
        assert_eq!(last(done.into()), None);
        assert_eq!(last(format!("I did it.\n{done}")).as_deref(), Some("I did it."));
        assert_eq!(last("No result".into()).as_deref(), Some("No result"));
    }

    #[test]
    fn a_result_that_cannot_be_read_is_left_to_the_hub() {
        for told in [
            r#"{"type":"TASK_RESULT","protocol_version":"2.0","status":"error"}"#,
            r#"{"type":"TASK_RESULT","protocol_version":"2.0","status":"error","error":"no"#,
        ] {
            let witness = witness(true);
            witness.hear(&printed(told, false));
            assert_eq!(settled(&witness, Some(&seen())), None, "{told}");
        }
    }

    #[test]
    fn a_result_that_is_only_quoted_is_no_claim() {
        let witness = witness(true);
        let quoted = r#"{"type":"TASK_RESULT","protocol_version":"2.0","status":"error","error":"example"}"#;
        witness.hear(&printed(&format!("I could have ended with {quoted}, but all went well."), false));
        let told = settled(&witness, Some(&seen())).expect("a result");
        assert_eq!((&told["inferred"], &told["status"]), (&json!(true), &json!("done")));
    }
}
