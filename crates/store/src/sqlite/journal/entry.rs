//! A commit as the journal holds it: bytes that say all the tables will need.

use crate::sqlite::send::Send;
use crate::sqlite::task::open_approvals;
use flotilla_core::error::Fault;
use flotilla_core::ids::{AgentId, PrincipalId, TaskId};
use flotilla_core::ports::{Commit, Dedupe};
use flotilla_core::task::{Head, Kind, RunState};
use flotilla_protocol::a2a::model::TaskState;
use flotilla_protocol::event::{Change, Event};
use flotilla_protocol::time::Millis;

/// One decision on its way into the tables.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    pub head: Head,
    pub state_before: Option<u8>,
    pub span: Span,
    /// The change's events as they are stored.
    pub events: String,
    pub send: Option<Send>,
}

/// What is known of a change without reading its events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    pub seq: u64,
    pub last_seq: u64,
    pub peer_seq: u64,
    pub last_peer_seq: u64,
    pub at: Millis,
    pub artifacts_only: bool,
}

impl Span {
    fn of(change: &Change) -> Self {
        let only = |event: &Event| matches!(event, Event::Produced { .. } | Event::Noted { .. });
        Self {
            seq: change.first_seq,
            last_seq: change.last_seq(),
            peer_seq: change.first_peer_seq,
            last_peer_seq: change.last_peer_seq(),
            at: change.at,
            artifacts_only: change.events.iter().all(only),
        }
    }
}

const NO_STATE: u8 = u8::MAX;
const ARTIFACTS_ONLY: u8 = 1;
const SEND: u8 = 2;
const DEADLINE: u8 = 4;
const ORIGIN: u8 = 8;
const APPROVALS: u8 = 16;
const FLAGS: u8 = ARTIFACTS_ONLY | SEND | DEADLINE | ORIGIN | APPROVALS;
/// The last of the codes of `Head::state_code`.
const MESSAGE: u8 = 9;

impl Entry {
    /// What is written of a commit. `row` is where its send is remembered, if it has one.
    pub fn of(commit: &mut Commit, row: impl FnOnce(&Dedupe) -> i64) -> Result<Self, Fault> {
        let events = String::from_utf8(std::mem::take(&mut commit.body));
        let events = events.map_err(|_| Fault::new("events that are not text"))?;
        let send = commit.dedupe.map(|dedupe| Send { dedupe, row: row(&dedupe) });
        let span = Span::of(&commit.change);
        let mut head = commit.head.clone();
        // It never changes, so a task's first commit tells it for all.
        head.origin = head.origin.filter(|_| head.version == 1);
        Ok(Self { head, state_before: commit.state_before, span, events, send })
    }

    /// About what it takes in memory and in the journal.
    pub fn size(&self) -> usize {
        self.events.len() + self.head.context.len() + 300
    }

    pub fn encode(&self, out: &mut Vec<u8>) {
        let (head, span) = (&self.head, &self.span);
        out.extend_from_slice(head.id.bytes());
        for number in [head.principal.0, head.agent.0, head.owner.0, head.status_at.0, head.created_at.0, span.at.0] {
            out.extend_from_slice(&number.to_le_bytes());
        }
        for number in
            [head.version, head.seq, head.peer_seq, span.seq, span.last_seq, span.peer_seq, span.last_peer_seq]
        {
            out.extend_from_slice(&number.to_le_bytes());
        }
        for number in [head.run, head.turn, head.waiting, head.context.len() as u32, self.events.len() as u32] {
            out.extend_from_slice(&number.to_le_bytes());
        }
        let flag = |is_set, flag| if is_set { flag } else { 0 };
        let artifacts_only = flag(span.artifacts_only, ARTIFACTS_ONLY);
        let lineage = flag(head.deadline.is_some(), DEADLINE) | flag(head.origin.is_some(), ORIGIN);
        let approvals = flag(!head.open_approvals.is_empty(), APPROVALS);
        out.extend_from_slice(&[
            head.state_code(),
            run_code(head.run_state),
            self.state_before.unwrap_or(NO_STATE),
            artifacts_only | flag(self.send.is_some(), SEND) | lineage | approvals,
        ]);
        out.extend_from_slice(head.context.as_bytes());
        out.extend_from_slice(self.events.as_bytes());
        if let Some(Send { dedupe, row }) = &self.send {
            out.extend_from_slice(&row.to_le_bytes());
            out.extend_from_slice(&dedupe.key);
            out.extend_from_slice(&dedupe.hash);
        }
        if let Some(deadline) = head.deadline {
            out.extend_from_slice(&deadline.0.to_le_bytes());
        }
        if let Some(origin) = &head.origin {
            let json = serde_json::to_vec(&**origin).expect("texts and numbers are JSON");
            out.extend_from_slice(&(json.len() as u32).to_le_bytes());
            out.extend_from_slice(&json);
        }
        if !head.open_approvals.is_empty() {
            out.extend_from_slice(&(head.open_approvals.len() as u32).to_le_bytes());
            head.open_approvals.iter().for_each(|id| out.extend_from_slice(id.bytes()));
        }
    }

    /// Reads one entry and leaves the rest.
    pub fn decode(bytes: &mut &[u8]) -> Result<Self, Fault> {
        read(bytes).ok_or_else(|| Fault::new("the store's journal holds a commit that cannot be read"))
    }
}

fn read(bytes: &mut &[u8]) -> Option<Entry> {
    let id = TaskId::from_bytes(fixed(bytes)?);
    let mut signed = || fixed(bytes).map(i64::from_le_bytes);
    let (principal, agent, owner) = (PrincipalId(signed()?), AgentId(signed()?), PrincipalId(signed()?));
    let (status_at, created_at, at) = (Millis(signed()?), Millis(signed()?), Millis(signed()?));
    let mut number = || fixed(bytes).map(u64::from_le_bytes);
    let (version, head_seq, head_peer_seq) = (number()?, number()?, number()?);
    let (seq, last_seq, peer_seq, last_peer_seq) = (number()?, number()?, number()?, number()?);
    let mut small = || fixed(bytes).map(u32::from_le_bytes);
    let (run, turn, waiting) = (small()?, small()?, small()?);
    let (context_length, events_length) = (small()? as usize, small()? as usize);
    let [state, run_state, state_before, flags] = fixed(bytes)?;
    // A code that no version wrote is damage, not something to guess about.
    if state > MESSAGE || run_state > run_code(RunState::Watching) || flags & !FLAGS != 0 {
        return None;
    }
    let context = text(bytes, context_length)?.into();
    let events = text(bytes, events_length)?.to_owned();
    let send = match flags & SEND {
        0 => None,
        _ => Some(Send {
            row: i64::from_le_bytes(fixed(bytes)?),
            dedupe: Dedupe { key: fixed(bytes)?, hash: fixed(bytes)? },
        }),
    };
    let deadline = match flags & DEADLINE {
        0 => None,
        _ => Some(Millis(i64::from_le_bytes(fixed(bytes)?))),
    };
    let origin = match flags & ORIGIN {
        0 => None,
        _ => {
            let length = u32::from_le_bytes(fixed(bytes)?) as usize;
            Some(serde_json::from_str(text(bytes, length)?).ok()?)
        }
    };
    let open_approvals = match flags & APPROVALS {
        0 => Vec::new(),
        _ => {
            let count = u32::from_le_bytes(fixed(bytes)?) as usize;
            let (ids, rest) = bytes.split_at_checked(count.checked_mul(16)?)?;
            *bytes = rest;
            open_approvals(ids)
        }
    };
    let head = Head {
        id,
        principal,
        agent,
        owner,
        context,
        kind: kind_of(state),
        state: TaskState::from_number(i64::from(state)).unwrap_or_default(),
        status_at,
        created_at,
        version,
        seq: head_seq,
        peer_seq: head_peer_seq,
        run,
        run_state: run_of(run_state),
        turn,
        waiting,
        deadline,
        origin,
        open_approvals,
        // The tables add up what the entries hold.
        bytes: 0,
    };
    let span = Span { seq, last_seq, peer_seq, last_peer_seq, at, artifacts_only: flags & ARTIFACTS_ONLY != 0 };
    Some(Entry { head, state_before: (state_before != NO_STATE).then_some(state_before), span, events, send })
}

fn fixed<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
    let (taken, rest) = bytes.split_first_chunk()?;
    *bytes = rest;
    Some(*taken)
}

fn text<'a>(bytes: &mut &'a [u8], length: usize) -> Option<&'a str> {
    let (taken, rest) = bytes.split_at_checked(length)?;
    *bytes = rest;
    std::str::from_utf8(taken).ok()
}

pub fn kind_of(state: u8) -> Kind {
    match state {
        0 => Kind::Undecided,
        MESSAGE => Kind::Message,
        _ => Kind::Task,
    }
}

pub fn run_code(state: RunState) -> u8 {
    match state {
        RunState::Idle => 0,
        RunState::Claimed => 1,
        RunState::Started => 2,
        RunState::Watching => 3,
    }
}

pub fn run_of(code: u8) -> RunState {
    match code {
        0 => RunState::Idle,
        1 => RunState::Claimed,
        3 => RunState::Watching,
        _ => RunState::Started,
    }
}

#[cfg(test)]
mod tests {
    use super::{Entry, Send, Span};
    use flotilla_core::ids::{AgentId, ApprovalId, PrincipalId, TaskId};
    use flotilla_core::ports::Dedupe;
    use flotilla_core::task::{Head, Kind, RunState};
    use flotilla_protocol::a2a::model::TaskState;
    use flotilla_protocol::lineage::{Ancestor, Origin};
    use flotilla_protocol::time::Millis;
    use std::sync::Arc;

    fn entries() -> Vec<Entry> {
        let mut head = Head::new(TaskId::fresh(), PrincipalId(7), AgentId(-3), PrincipalId(1), "a contëxt".into());
        head.version = 1;
        let span = Span { seq: 1, last_seq: 3, peer_seq: 1, last_peer_seq: 0, at: Millis(-5), artifacts_only: true };
        let plain = Entry { head: head.clone(), state_before: None, span, events: "[]".into(), send: None };
        head.kind = Kind::Task;
        (head.state, head.run_state, head.run, head.turn, head.waiting) =
            (TaskState::Working, RunState::Watching, 2, 3, 4);
        (head.version, head.seq, head.peer_seq, head.status_at) = (u64::MAX, 9, 8, Millis(i64::MAX));
        let chain = vec![Ancestor { hub: "h".into(), agent: "a".into(), task: "t".into() }];
        head.origin = Some(Arc::new(Origin { chain, hops: 2, ..Origin::default() }));
        head.deadline = Some(Millis(-7));
        head.open_approvals = ["a", "b"].map(|name| ApprovalId::of(head.id, 2, name)).into();
        let send = Some(Send { dedupe: Dedupe { key: [1; 32], hash: [2; 32] }, row: 77 });
        let span = Span { artifacts_only: false, ..span };
        let full = Entry { head, state_before: Some(0), span, events: "[\"é\"]".into(), send };
        vec![plain, full]
    }

    #[test]
    fn entries_read_back_one_after_the_other() {
        let mut bytes = Vec::new();
        let entries = entries();
        entries.iter().for_each(|entry| entry.encode(&mut bytes));
        let mut rest = bytes.as_slice();
        for entry in &entries {
            assert_eq!(Entry::decode(&mut rest).unwrap(), *entry);
        }
        assert!(rest.is_empty());
    }

    #[test]
    fn a_part_of_an_entry_is_no_entry() {
        let mut bytes = Vec::new();
        let entry = entries().pop().unwrap();
        entry.encode(&mut bytes);
        for length in 0..bytes.len() {
            assert!(Entry::decode(&mut &bytes[..length]).is_err(), "{length} bytes");
        }
        let codes = 16 + 13 * 8 + 5 * 4;
        for (at, code) in [(codes, 10), (codes + 1, 4), (codes + 3, 32)] {
            let mut odd = bytes.clone();
            odd[at] = code;
            assert!(Entry::decode(&mut odd.as_slice()).is_err(), "code {code} at {at}");
        }
    }
}
