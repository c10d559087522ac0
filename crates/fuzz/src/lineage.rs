//! What callers tell of the calls before theirs: trace context and ancestry.

use crate::{lines, text};
use flotilla_protocol::lineage::{
    Ancestor, Ancestry, Lineage, MOST_ANCESTORS, Origin, Provenance, SpanId, Trace, TraceId,
};
use flotilla_protocol::wire::Object;
use std::sync::Arc;

/// `traceparent` and `tracestate` on a line each, and a request's metadata behind them.
pub fn lineage(bytes: &[u8]) {
    let ([parent, state], metadata) = lines::<2>(bytes);
    let trace = text(parent).and_then(|parent| Trace::parse(parent, text(state)));
    if let Some(trace) = &trace {
        assert_eq!(Trace::parse(&trace.traceparent(), trace.state.as_deref()).as_ref(), Some(trace));
    }
    let Some(metadata) = text(metadata).and_then(|text| serde_json::from_str::<Object>(text).ok()) else { return };
    let Ok(Some(told)) = Ancestry::of(Some(&metadata), None) else { return };
    assert!(told.chain.len() <= MOST_ANCESTORS);
    let Ancestry { chain, hops, deadline, max_hops, claimed } = told;
    let length = chain.len();
    let origin = Origin { provenance: Provenance::A2aRemote, chain, hops: hops.unwrap_or(0), max_hops, trace, claimed };
    let kept = serde_json::to_string(&origin).expect("an origin is JSON");
    assert_eq!(serde_json::from_str::<Origin>(&kept).expect("what was kept is read back"), origin);
    let begun = || TraceId::of([1; 16]).zip(SpanId::of(1)).map(|(id, span)| Trace::begun(id, span));
    let Some(trace) = origin.trace.clone().or_else(begun) else { return };
    let here = Ancestor { hub: "here".into(), agent: "agent".into(), task: "task".into() };
    let onward = Lineage { here, origin: Some(Arc::new(origin)), deadline, trace }.onward();
    assert_eq!(onward.ancestry.chain.len(), length + 1);
    for (name, value) in &onward.headers {
        assert!(http::HeaderValue::from_str(value).is_ok(), "{name} cannot be sent");
    }
    if length < MOST_ANCESTORS {
        let written = onward.request_metadata(Some(&metadata));
        assert_eq!(Ancestry::of(Some(&written), None), Ok(Some(onward.ancestry)), "the next hub reads what was meant");
    }
}
