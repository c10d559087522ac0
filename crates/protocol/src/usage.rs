//! What work has used: tokens by kind, and money. What was not told is not known, and never nothing.

use crate::block::{Block, Kind};
use crate::event::{Event, Said};
use crate::wire::Json;
use serde_json::{Value, json};

/// How many figures there are.
pub const FIGURES: usize = 5;
/// The figures by name, as answers and gaps name them.
pub const NAMES: [&str; FIGURES] = ["inputTokens", "outputTokens", "cacheReadTokens", "cacheWriteTokens", "costUsd"];
/// What each is called where agents tell it.
pub const TOLD: [&str; FIGURES] =
    ["input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "cost_usd"];
/// The same in a `usage` block; agents have more than one name for some.
const TOLD_AS: [&[&str]; FIGURES] = [
    &["input_tokens"],
    &["output_tokens"],
    &["cache_read_input_tokens", "cache_read_tokens"],
    &["cache_creation_input_tokens", "cache_write_tokens"],
    &["cost_usd", "total_cost_usd"],
];
pub const COST: usize = 4;
/// The bits of the figures that make the sum of tokens, and what that is called.
const TOKENS: u8 = 0b1011;
const TOTAL: &str = "totalTokens";
/// Money is counted in billionths of a dollar, so that sums are exact.
const NANOS: f64 = 1e9;
/// The most one report is believed: a trillion tokens, a million dollars. Whoever tells more is counted with that much,
/// and the figure is known not to be whole.
pub const MOST_TOKENS: u64 = 1_000_000_000_000;
pub const MOST_COST: u64 = 1_000_000_000_000_000;
/// Where sums stop growing, far below what a store or a reader of JSON can hold.
pub const MOST_SUM: u64 = 1_000_000_000_000_000_000;

/// A sum of `usage` blocks. Each block tells what was used since the one before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Usage {
    /// How many blocks are in it.
    pub reports: u64,
    /// In the order of `NAMES`; none where no block told the figure.
    pub figures: [Option<u64>; FIGURES],
    /// A bit for each figure that some block did not tell: then the sum is not all of it.
    pub gaps: u8,
}

impl Usage {
    fn of_block(block: &Block) -> Option<Self> {
        if block.kind() != Kind::Usage {
            return None;
        }
        let value: Value = serde_json::from_str(block.json().text()).ok()?;
        let mut usage = Self { reports: 1, ..Self::default() };
        let later = value["later"].as_array().map_or(&[][..], Vec::as_slice);
        for (index, names) in TOLD_AS.iter().enumerate() {
            let told = names.iter().find_map(|name| figure(&value[*name], index == COST));
            let most = if index == COST { MOST_COST } else { MOST_TOKENS };
            usage.figures[index] = told.map(|told| told.min(most));
            let comes_later = || later.iter().any(|name| names.iter().any(|known| name == known));
            let is_gap = told.map_or_else(|| !comes_later(), |told| told > most);
            usage.gaps |= u8::from(is_gap) << index;
        }
        Some(usage)
    }

    /// A block that tells of this while the work goes on: what it leaves out, a later one tells for all until then. None
    /// if there is nothing to tell.
    pub fn so_far(&self) -> Option<Block> {
        if self.figures.iter().flatten().all(|figure| *figure == 0) {
            return None;
        }
        let later: Vec<&str> = (0..FIGURES).filter(|index| self.figures[*index].is_none()).map(|i| TOLD[i]).collect();
        let mut told = json!({"type": "usage", "later": later});
        for index in (0..FIGURES).filter(|index| self.figures[*index].is_some()) {
            told[TOLD[index]] = self.shown(index);
        }
        Block::new(Json::of(&told).ok()?).ok()
    }

    /// What the events of a change tell; none if they tell nothing.
    pub fn of(events: &[Event]) -> Option<Self> {
        let mut sum = Self::default();
        for event in events {
            let blocks = match event {
                Event::Noted { blocks, .. } => blocks,
                Event::Answered { said: Said { blocks, .. } }
                | Event::Status { said: Some(Said { blocks, .. }), .. } => blocks,
                Event::Produced { chunk } => &chunk.blocks,
                _ => continue,
            };
            sum.add(&Self::of_blocks(blocks));
        }
        (sum.reports > 0).then_some(sum)
    }

    /// What blocks tell.
    pub fn of_blocks(blocks: &[Block]) -> Self {
        let mut sum = Self::default();
        blocks.iter().filter_map(Self::of_block).for_each(|usage| sum.add(&usage));
        sum
    }

    pub fn add(&mut self, other: &Self) {
        self.reports = self.reports.saturating_add(other.reports);
        self.gaps |= other.gaps;
        for (mine, theirs) in self.figures.iter_mut().zip(other.figures) {
            *mine = match (*mine, theirs) {
                (Some(mine), Some(theirs)) => Some(mine.saturating_add(theirs).min(MOST_SUM)),
                (mine, theirs) => mine.or(theirs),
            };
        }
    }

    /// What is in this sum and not in that one, which is a part of it.
    pub fn beyond(&self, part: &Self) -> Self {
        let mut rest = *self;
        for (mine, theirs) in rest.figures.iter_mut().zip(part.figures) {
            *mine = mine.map(|mine| mine.saturating_sub(theirs.unwrap_or(0)));
        }
        rest
    }

    /// Tokens that ceilings count: input, output and what was written to a cache. What was read from one is cheap, and
    /// is counted by its cost alone.
    pub fn tokens(&self) -> Option<u64> {
        let [input, output, _, written, _] = self.figures;
        [input, output, written].into_iter().flatten().reduce(u64::saturating_add)
    }

    pub fn output(&self) -> Option<u64> {
        self.figures[1]
    }

    /// In billionths of a dollar.
    pub fn cost(&self) -> Option<u64> {
        self.figures[COST]
    }

    /// The names of the figures that are not known whole, the sum of tokens among them.
    pub fn incomplete(&self) -> Vec<&'static str> {
        let gaps = NAMES.into_iter().enumerate().filter(|(index, _)| self.gaps & (1 << index) != 0);
        gaps.map(|(_, name)| name).chain((!self.has_all_tokens()).then_some(TOTAL)).collect()
    }

    /// Whether what ceilings count as tokens is all that was used.
    pub fn has_all_tokens(&self) -> bool {
        self.gaps & TOKENS == 0
    }

    /// The same sum, of which something was not told at all.
    pub fn with_unknown(mut self) -> Self {
        self.gaps = (1 << FIGURES) - 1;
        self
    }

    /// One figure as answers show it: a number, or null where it is not known.
    pub fn shown(&self, index: usize) -> Value {
        match self.figures[index] {
            None => Value::Null,
            Some(nanos) if index == COST => dollars(nanos).into(),
            Some(tokens) => tokens.into(),
        }
    }
}

pub fn dollars(nanos: u64) -> f64 {
    nanos as f64 / NANOS
}

/// A ceiling in billionths of a dollar.
pub fn nanos(dollars: f64) -> u64 {
    (dollars * NANOS).round().clamp(0.0, u64::MAX as f64) as u64
}

fn figure(value: &Value, is_cost: bool) -> Option<u64> {
    if is_cost {
        return value.as_f64().filter(|cost| cost.is_finite() && *cost >= 0.0).map(nanos);
    }
    value.as_u64()
}

#[cfg(test)]
mod tests {
    use super::{MOST_COST, MOST_SUM, MOST_TOKENS, Usage};
    use crate::block::Block;
    use crate::event::Event;
    use crate::wire::Json;

    fn noted(blocks: &[&str]) -> Event {
        let block = |text: &&str| Block::new(Json::new((*text).to_owned()).unwrap()).unwrap();
        Event::Noted { blocks: blocks.iter().map(block).collect(), of: None }
    }

    #[test]
    fn what_is_told_is_summed_and_the_rest_is_unknown() {
        let events = [
            noted(&[
                r#"{"type":"usage","input_tokens":10,"output_tokens":2,"cost_usd":0.1}"#,
                r#"{"type":"text","text":"x"}"#,
            ]),
            noted(&[r#"{"type":"usage","input_tokens":5,"cost_usd":0.2,"cache_read_input_tokens":0}"#]),
        ];
        let usage = Usage::of(&events).unwrap();
        assert_eq!(usage.figures, [Some(15), Some(2), Some(0), None, Some(300_000_000)]);
        assert_eq!((usage.reports, usage.tokens()), (2, Some(17)));
        assert_eq!(usage.incomplete(), ["outputTokens", "cacheReadTokens", "cacheWriteTokens", "totalTokens"]);
        let whole = r#"{"type":"usage","input_tokens":1,"output_tokens":2,"cache_write_tokens":0}"#;
        assert_eq!(Usage::of(&[noted(&[whole])]).unwrap().incomplete(), ["cacheReadTokens", "costUsd"]);
        assert_eq!((usage.shown(3), usage.shown(4)), (serde_json::Value::Null, 0.3.into()));
    }

    #[test]
    fn what_is_told_later_is_no_gap_until_the_work_ends_without_it() {
        let part = Usage { figures: [Some(7), None, None, Some(0), None], ..Usage::default() }.so_far().unwrap();
        assert_eq!(Usage::default().so_far(), None);
        let so_far = Usage::of_blocks(std::slice::from_ref(&part));
        assert_eq!((so_far.figures, so_far.gaps), ([Some(7), None, None, Some(0), None], 0), "{part:?}");
        let rest = r#"{"type":"usage","input_tokens":0,"output_tokens":2,"cost_usd":0.1}"#;
        let Event::Noted { blocks: rest, .. } = noted(&[rest]) else { unreachable!() };
        let whole = Usage::of_blocks(&[vec![part], rest].concat());
        assert_eq!(whole.figures, [Some(7), Some(2), None, Some(0), Some(100_000_000)]);
        assert_eq!(whole.incomplete(), ["cacheReadTokens", "cacheWriteTokens", "totalTokens"]);
    }

    #[test]
    fn what_nobody_can_have_used_is_counted_up_to_a_bound_and_sums_stop_growing() {
        let told = |block: &str| Usage::of(&[noted(&[block])]).unwrap();
        let huge = told(r#"{"type":"usage","input_tokens":9223372036854775807,"output_tokens":1,"cost_usd":1e300}"#);
        assert_eq!(huge.figures, [Some(MOST_TOKENS), Some(1), None, None, Some(MOST_COST)]);
        assert_eq!(huge.incomplete(), ["inputTokens", "cacheReadTokens", "cacheWriteTokens", "costUsd", "totalTokens"]);
        let mut sum = Usage { figures: [Some(MOST_SUM - 1); 5], reports: u64::MAX, gaps: 0 };
        sum.add(&huge);
        assert_eq!((sum.figures[0], sum.figures[4], sum.reports), (Some(MOST_SUM), Some(MOST_SUM), u64::MAX));
        assert!(sum.tokens() > Some(MOST_SUM), "no wrapping");
    }

    #[test]
    fn nothing_told_is_nothing_known() {
        assert_eq!(Usage::of(&[noted(&[r#"{"type":"progress","progress":1}"#])]), None);
        let vague = Usage::of(&[noted(&[r#"{"type":"usage","input_tokens":-3,"cost_usd":"much"}"#])]).unwrap();
        assert_eq!((vague.figures, vague.tokens()), ([None; 5], None));
    }
}
