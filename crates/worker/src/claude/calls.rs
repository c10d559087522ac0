//! What calls of the model use, counted as it comes: each call once, by the most that is told of it.

use super::frame::{Outcome, Piece, Spoken, Tokens};
use flotilla_protocol::block::Block;
use flotilla_protocol::usage::{COST, Usage, nanos};
use flotilla_protocol::wire::Json;
use serde::Deserialize;
use serde_json::json;
use std::collections::VecDeque;

/// Calls of which more may be told; agents below work side by side.
const RECENT: usize = 64;

/// The calls of a turn.
#[derive(Debug, Default)]
pub struct Calls {
    recent: VecDeque<Call>,
    /// The model was asked.
    heard: bool,
    /// What the owner was told of in this turn.
    told: Usage,
    /// What the program had counted when the turn began: it counts on from turn to turn.
    before: Usage,
}

#[derive(Debug, Default)]
struct Call {
    id: String,
    /// The tool use it is made for, if an agent below makes it.
    parent: Option<String>,
    seen: Usage,
    told: Usage,
    /// What it used is still being told.
    is_open: bool,
}

impl Calls {
    pub fn piece(&mut self, piece: &Piece) {
        let (event, parent) = (&piece.event, &piece.parent_tool_use_id);
        match event.kind.as_str() {
            "message_start" => {
                let Some(message) = &event.message else { return };
                self.heard = true;
                let call = self.call(&message.id, parent);
                call.is_open = true;
                call.see(message.usage.as_ref());
            }
            "message_delta" | "message_stop" => {
                let open = self.recent.iter_mut().rev().find(|call| call.is_open && call.parent == *parent);
                if let Some(call) = open {
                    call.see(event.usage.as_ref());
                    call.is_open = event.usage.is_none() && event.kind == "message_delta";
                }
            }
            _ => {}
        }
    }

    pub fn spoken(&mut self, spoken: &Spoken) {
        let (Some(id), Some(usage)) = (&spoken.message.id, &spoken.message.usage) else { return };
        self.heard |= !is_nothing(&figures(usage));
        self.call(id, &spoken.parent_tool_use_id).see(Some(usage));
    }

    fn call(&mut self, id: &str, parent: &Option<String>) -> &mut Call {
        let place = self.recent.iter().position(|call| call.id == id).unwrap_or_else(|| {
            // Whoever asks again has heard all of the answer before.
            self.recent.iter_mut().filter(|call| call.parent == *parent).for_each(|call| call.is_open = false);
            if self.recent.len() >= RECENT {
                self.recent.pop_front();
            }
            self.recent.push_back(Call { id: id.to_owned(), parent: parent.clone(), ..Call::default() });
            self.recent.len() - 1
        });
        &mut self.recent[place]
    }

    /// What is new of calls that are over.
    pub fn due(&mut self) -> Option<Block> {
        let mut new = Usage::default();
        for call in self.recent.iter_mut().filter(|call| !call.is_open) {
            new.add(&call.seen.beyond(&call.told));
            call.told = call.seen;
        }
        let block = new.so_far()?;
        self.told.add(&new);
        Some(block)
    }

    /// The turn is over, and this is what was not told of it yet: of calls, if their sum is not known, and of the sum.
    pub fn settle(&mut self, outcome: &Outcome) -> (Option<Block>, Option<Usage>) {
        let total = counted(outcome);
        let mut used = figures(&outcome.usage);
        let since = total.beyond(&self.before);
        if is_nothing(&used) {
            // A turn that is broken off by its budget has only zeros in its sum.
            let was_asked = self.heard || since.cost().is_some_and(|cost| cost > 0);
            match is_nothing(&since) {
                false => used = since,
                true if was_asked => used = Usage::default(),
                true => {}
            }
        }
        let seen = used.tokens().is_none().then(|| self.rest()).flatten();
        used.figures[COST] = since.cost();
        for (before, total) in self.before.figures.iter_mut().zip(total.figures) {
            *before = total.or(*before);
        }
        let is_known = used.figures.iter().any(Option::is_some) || self.heard;
        let told = std::mem::take(&mut self.told);
        self.recent.clear();
        self.heard = false;
        (seen, is_known.then(|| used.beyond(&told)))
    }

    /// The turn ends without a sum: what was seen of it, and that there may be more.
    pub fn break_off(&mut self) -> Vec<Block> {
        let (seen, rest) = self.settle(&Outcome::default());
        let more = rest.and_then(|_| Block::new(Json::of(&json!({"type": "usage"})).ok()?).ok());
        seen.into_iter().chain(more).collect()
    }

    fn rest(&mut self) -> Option<Block> {
        self.recent.iter_mut().for_each(|call| call.is_open = false);
        self.due()
    }
}

impl Call {
    /// Later figures of a call are not less, but some frames repeat the first ones.
    fn see(&mut self, usage: Option<&Tokens>) {
        let Some(usage) = usage else { return };
        for (seen, told) in self.seen.figures.iter_mut().zip(figures(usage).figures) {
            *seen = (*seen).max(told);
        }
    }
}

fn figures(tokens: &Tokens) -> Usage {
    let Tokens { input_tokens, output_tokens, cache_read_input_tokens, cache_creation_input_tokens } = *tokens;
    let figures = [input_tokens, output_tokens, cache_read_input_tokens, cache_creation_input_tokens, None];
    Usage { figures, ..Usage::default() }
}

/// Whether no tokens were told of.
fn is_nothing(usage: &Usage) -> bool {
    usage.figures[..COST].iter().flatten().all(|figure| *figure == 0)
}

/// What the program has counted since it was started, of all its models.
fn counted(outcome: &Outcome) -> Usage {
    #[derive(Default, Deserialize)]
    #[serde(default, rename_all = "camelCase")]
    struct OfModel {
        input_tokens: Option<u64>,
        output_tokens: Option<u64>,
        cache_read_input_tokens: Option<u64>,
        cache_creation_input_tokens: Option<u64>,
    }
    let mut sum = Usage::default();
    for told in outcome.model_usage.values() {
        let Ok(told) = serde_json::from_str::<OfModel>(told.text()) else { continue };
        sum.add(&figures(&Tokens {
            input_tokens: told.input_tokens,
            output_tokens: told.output_tokens,
            cache_read_input_tokens: told.cache_read_input_tokens,
            cache_creation_input_tokens: told.cache_creation_input_tokens,
        }));
    }
    sum.figures[COST] = outcome.total_cost_usd.map(nanos);
    sum
}

#[cfg(test)]
mod tests {
    use super::super::frame::{Frame, Outcome};
    use super::Calls;
    use flotilla_protocol::block::Block;
    use flotilla_protocol::usage::Usage;
    use serde_json::{Value, json};

    /// What is told of a frame: the figures in their order, and whether more is said to come.
    fn told(calls: &mut Calls, frame: &Value) -> Option<[Option<u64>; 5]> {
        match Frame::read(&frame.to_string()) {
            Frame::Piece(piece) => calls.piece(&piece),
            Frame::Assistant(spoken) => calls.spoken(&spoken),
            other => panic!("{other:?}"),
        }
        calls.due().map(|block| of(&block))
    }

    fn of(block: &Block) -> [Option<u64>; 5] {
        let usage = Usage::of_blocks(std::slice::from_ref(block));
        assert_eq!(usage.gaps, 0, "the rest comes later: {block:?}");
        usage.figures
    }

    fn piece(parent: Option<&str>, event: &Value) -> Value {
        json!({"type": "stream_event", "parent_tool_use_id": parent, "event": event})
    }

    fn start(id: &str, parent: Option<&str>, input: u64) -> Value {
        let usage = json!({"input_tokens": input, "output_tokens": 1});
        piece(parent, &json!({"type": "message_start", "message": {"id": id, "usage": usage, "content": []}}))
    }

    fn delta(parent: Option<&str>, output: u64) -> Value {
        piece(parent, &json!({"type": "message_delta", "delta": {}, "usage": {"output_tokens": output}}))
    }

    fn said(id: &str, input: u64, output: u64) -> Value {
        let usage = json!({"input_tokens": input, "output_tokens": output});
        json!({"type": "assistant", "message": {"id": id, "content": [], "usage": usage}})
    }

    fn result(usage: &Value, models: &Value, cost: Option<f64>) -> Box<Outcome> {
        let frame = json!({"type": "result", "subtype": "success", "usage": usage, "modelUsage": models,
            "total_cost_usd": cost});
        match Frame::read(&frame.to_string()) {
            Frame::Result(outcome) => outcome,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_call_is_told_when_it_is_over_and_once_by_its_last_figures() {
        let mut calls = Calls::default();
        assert_eq!(told(&mut calls, &start("a", None, 100)), None);
        assert_eq!(told(&mut calls, &said("a", 100, 1)), None, "it is still being said");
        // One of an agent below is said at the same time.
        assert_eq!(told(&mut calls, &start("b", Some("t"), 7)), None);
        assert_eq!(told(&mut calls, &delta(None, 50)), Some([Some(100), Some(50), None, None, None]));
        assert_eq!(told(&mut calls, &said("a", 100, 1)), None, "the first figures again");
        assert_eq!(told(&mut calls, &delta(Some("t"), 3)), Some([Some(7), Some(3), None, None, None]));
        let sums = json!({"input_tokens": 107, "output_tokens": 54, "cache_read_input_tokens": 2,
            "cache_creation_input_tokens": 0});
        let (seen, rest) = calls.settle(&result(&sums, &json!({}), Some(0.5)));
        let rest = rest.map(|rest| rest.figures);
        assert_eq!((seen, rest), (None, Some([Some(0), Some(1), Some(2), Some(0), Some(500_000_000)])));
        let (_, next) = calls.settle(&result(&sums, &json!({}), Some(0.75)));
        assert_eq!(next.map(|next| next.figures[0].zip(next.cost())), Some(Some((107, 250_000_000))), "another turn");
    }

    #[test]
    fn programs_that_tell_no_pieces_are_counted_by_what_is_said() {
        let mut calls = Calls::default();
        assert_eq!(told(&mut calls, &said("a", 10, 1)), Some([Some(10), Some(1), None, None, None]));
        assert_eq!(told(&mut calls, &said("a", 10, 4)), Some([Some(0), Some(3), None, None, None]));
        assert_eq!(
            told(&mut calls, &json!({"type": "assistant", "message": {"id": 7, "content": [], "usage": 1}})),
            None
        );
    }

    #[test]
    fn a_sum_of_nothing_is_not_believed() {
        let nothing = json!({"input_tokens": 0, "output_tokens": 0, "cache_read_input_tokens": 0,
            "cache_creation_input_tokens": 0});
        let models = |input: u64| {
            json!({"large": {"inputTokens": input, "outputTokens": 5, "cacheReadInputTokens": 7,
                "cacheCreationInputTokens": 3, "costUSD": 0.5}, "small": {"inputTokens": 1, "outputTokens": 1}})
        };
        let mut calls = Calls::default();
        let settled = |calls: &mut Calls, outcome: &Outcome| calls.settle(outcome).1.map(|rest| rest.figures);
        let first = settled(&mut calls, &result(&nothing, &models(10), Some(0.5)));
        assert_eq!(first, Some([Some(11), Some(6), Some(7), Some(3), Some(500_000_000)]));
        let second = settled(&mut calls, &result(&nothing, &models(30), Some(0.5)));
        assert_eq!(second, Some([Some(20), Some(0), Some(0), Some(0), Some(0)]), "it counts on from turn to turn");
        let paid = settled(&mut calls, &result(&nothing, &json!({}), Some(0.75)));
        assert_eq!(paid, Some([None, None, None, None, Some(250_000_000)]), "what it paid for is not known");
        assert_eq!(settled(&mut calls, &result(&nothing, &json!({}), Some(0.75))), Some([Some(0); 5]), "not asked");
        assert_eq!(settled(&mut calls, &Outcome::default()), None);
    }

    #[test]
    fn what_was_seen_of_a_turn_that_is_broken_off_is_told_with_a_gap() {
        let mut calls = Calls::default();
        assert!(calls.break_off().is_empty(), "nothing was asked");
        told(&mut calls, &start("a", None, 100));
        let blocks = calls.break_off();
        let usage = Usage::of_blocks(&blocks);
        assert_eq!(usage.figures, [Some(100), Some(1), None, None, None]);
        assert_eq!(usage.incomplete().len(), 6, "all of it may be more: {blocks:?}");
        assert!(calls.break_off().is_empty(), "once");
    }
}
