//! What an agent asks its owner during a run, and has not been answered.

use crate::agent::Asked;
use flotilla_protocol::approval::{ApprovalDecision, request_frame};
use std::collections::BTreeMap;
use tokio::sync::oneshot;

struct Question {
    frame: String,
    sent: bool,
    tell: oneshot::Sender<ApprovalDecision>,
}

/// The open questions of a run, by the names its agent gave them. The hub knows one that is asked again.
#[derive(Default)]
pub struct Questions(BTreeMap<String, Question>);

impl Questions {
    pub fn put(&mut self, task: &str, run: u32, Asked { request, tell }: Asked) {
        let frame = request_frame(task, run, &request);
        self.0.insert(request.id, Question { frame, sent: false, tell });
    }

    /// Tells the asker, who may be gone; whether there was such a question.
    pub fn answer(&mut self, id: &str, decision: ApprovalDecision) -> bool {
        let question = self.0.remove(id);
        question.map(|question| question.tell.send(decision)).is_some()
    }

    /// A new connection was asked nothing.
    pub fn rewind(&mut self) {
        self.0.values_mut().for_each(|question| question.sent = false);
    }

    /// The next question this connection was not asked yet.
    pub fn unsent(&mut self) -> Option<String> {
        let question = self.0.values_mut().find(|question| !question.sent)?;
        question.sent = true;
        Some(question.frame.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::Questions;
    use crate::agent::Asked;
    use flotilla_protocol::approval::{ApprovalDecision, ApprovalRequest};
    use tokio::sync::oneshot;

    #[tokio::test]
    async fn a_question_is_asked_once_on_each_connection_until_it_is_answered() {
        let mut questions = Questions::default();
        let (tell, told) = oneshot::channel();
        let request = ApprovalRequest { id: "q".into(), tool: "Bash".into(), ..ApprovalRequest::default() };
        questions.put("t", 2, Asked { request, tell });
        assert!(questions.unsent().is_some_and(|frame| frame.contains("Bash")) && questions.unsent().is_none());
        questions.rewind();
        assert!(questions.unsent().is_some());
        assert!(!questions.answer("other", ApprovalDecision::denied("no")));
        assert!(questions.answer("q", ApprovalDecision::denied("no")));
        assert_eq!(told.await, Ok(ApprovalDecision::denied("no")));
        questions.rewind();
        assert!(questions.unsent().is_none());
    }
}
