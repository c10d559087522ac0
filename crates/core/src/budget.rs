//! Ceilings on what work may use: what they count, when they are told of, and when they stop it. Pure.

use flotilla_protocol::fleet::{Dispatch, HANDSHAKE};
use flotilla_protocol::usage::{Usage, dollars, nanos};
use flotilla_protocol::wire::Object;
use serde_json::json;

/// Parts of a ceiling, in per cent, at which the owner is told.
const LEVELS: [u64; 3] = [50, 80, 100];

/// Whose budget it is.
pub const OWN: &str = "of this task";
pub const TODAY: &str = "of this agent for today";
pub const ABOVE: &str = "of the task this is part of";

/// Why work was stopped.
pub const EXHAUSTED: &str = "budget_exhausted";

/// The most that may be used; a figure without one has none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Ceiling {
    pub tokens: Option<u64>,
    pub output: Option<u64>,
    /// In billionths of a dollar.
    pub cost: Option<u64>,
    /// Whether work is stopped there, or only told of.
    pub hard: bool,
}

/// Which figure of a ceiling.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Figure {
    Tokens,
    Output,
    Cost,
}

impl Figure {
    pub fn name(self) -> &'static str {
        match self {
            Self::Tokens => "tokens",
            Self::Output => "output_tokens",
            Self::Cost => "cost",
        }
    }

    fn shown(self, amount: u64) -> String {
        match self {
            Self::Tokens => format!("{amount} tokens"),
            Self::Output => format!("{amount} output tokens"),
            Self::Cost => format!("{} USD", dollars(amount)),
        }
    }
}

/// How far a figure is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mark {
    pub figure: Figure,
    pub used: u64,
    pub most: u64,
}

impl Mark {
    /// The highest level that is reached: 0, 50, 80 or 100.
    pub fn level(&self) -> u64 {
        let share = u128::from(self.used) * 100 / u128::from(self.most.max(1));
        LEVELS.into_iter().rev().find(|level| share >= u128::from(*level)).unwrap_or(0)
    }

    pub fn is_reached(&self) -> bool {
        self.used >= self.most
    }

    pub fn told(&self) -> String {
        format!("{} of {}", self.figure.shown(self.used), self.figure.shown(self.most))
    }
}

impl Ceiling {
    pub fn is_empty(&self) -> bool {
        self.tokens.is_none() && self.output.is_none() && self.cost.is_none()
    }

    /// Where what was used stands. What is not known reaches nothing.
    pub fn marks(&self, used: &Usage) -> impl Iterator<Item = Mark> + use<> {
        let figures = [
            (Figure::Tokens, used.tokens(), self.tokens),
            (Figure::Output, used.output(), self.output),
            (Figure::Cost, used.cost(), self.cost),
        ];
        figures.into_iter().filter_map(|(figure, used, most)| Some(Mark { figure, used: used?, most: most? }))
    }

    /// The figure that is used up, if one is.
    pub fn reached(&self, used: &Usage) -> Option<Mark> {
        self.marks(used).find(Mark::is_reached)
    }

    /// Whether another has room where this one, if it is hard, is used up.
    pub fn is_raised_by(&self, other: &Self, used: &Usage) -> bool {
        let mut reached = self.marks(used).filter(|mark| self.hard && mark.is_reached());
        reached.all(|mark| {
            let mut others = other.marks(used).filter(|other| other.figure == mark.figure);
            others.next().is_some_and(|other| !other.is_reached())
        })
    }

    /// What a contract allows, if it says.
    pub fn of(dispatch: &Dispatch) -> Option<Self> {
        let budget = dispatch.task.budget.as_ref();
        let ceiling = Self {
            tokens: dispatch.most_tokens(),
            output: budget.and_then(|budget| budget.max_output_tokens),
            cost: budget.and_then(|budget| budget.max_cost_usd).map(nanos),
            hard: budget.is_some_and(|budget| budget.hard),
        };
        (!ceiling.is_empty()).then_some(ceiling)
    }

    /// What is left of it. Nobody can work with nothing, so it is one of each at least.
    pub fn left(&self, used: &Usage) -> Self {
        let left =
            |most: Option<u64>, used: Option<u64>| most.map(|most| most.saturating_sub(used.unwrap_or(0)).max(1));
        Self {
            tokens: left(self.tokens, used.tokens()),
            output: left(self.output, used.output()),
            cost: left(self.cost, used.cost()),
            hard: self.hard,
        }
    }

    /// Of each figure the lower one; hard if either is.
    pub fn least(self, other: Self) -> Self {
        let least = |one: Option<u64>, other: Option<u64>| one.into_iter().chain(other).min();
        Self {
            tokens: least(self.tokens, other.tokens),
            output: least(self.output, other.output),
            cost: least(self.cost, other.cost),
            hard: self.hard || other.hard,
        }
    }

    /// Writes into a contract what is left under hard ceilings above it, where that is less than its own. It is hard
    /// then; but a softer word of its own that is the least stays soft, for the hub itself stops what passes those above.
    pub fn bind(&self, dispatch: &mut Dispatch) {
        let own = Self::of(dispatch).unwrap_or(Self { hard: true, ..Self::default() });
        let is_less =
            |own: Option<u64>, above: Option<u64>| own.is_some_and(|own| above.is_none_or(|above| own < above));
        let figures = [(own.tokens, self.tokens), (own.output, self.output), (own.cost, self.cost)];
        let hard = own.hard || !figures.into_iter().any(|(own, above)| is_less(own, above));
        let least = own.least(*self);
        let budget = dispatch.task.budget.get_or_insert_default();
        (budget.max_total_tokens, budget.max_output_tokens) = (least.tokens, least.output);
        (budget.max_cost_usd, budget.hard) = (least.cost.map(dollars), hard);
    }
}

/// Ceilings the owner of the hub has set, each for a day (UTC).
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Budgets {
    pub day: Option<Ceiling>,
    pub agents: Vec<(String, Ceiling)>,
    pub workspaces: Vec<(String, Ceiling)>,
}

impl Budgets {
    pub fn is_empty(&self) -> bool {
        self.day.is_none() && self.agents.is_empty() && self.workspaces.is_empty()
    }

    /// Whether a hard ceiling may stop an agent, as far as can be said without looking whose it is.
    pub fn may_stop(&self, agent: &str) -> bool {
        let mut own = self.agents.iter().filter(|(name, _)| name == agent).chain(&self.workspaces);
        own.any(|(_, ceiling)| ceiling.hard) || self.day.is_some_and(|ceiling| ceiling.hard)
    }
}

/// A hard ceiling beside the contract's own, as it stood before a worker's last word.
#[derive(Debug, Clone, PartialEq)]
pub struct Held {
    /// How callers are told of it.
    pub whose: &'static str,
    pub ceiling: Ceiling,
    pub used: Usage,
}

impl Held {
    /// Whether it is passed with what was used since. Callers are told no figures of it.
    pub fn passed(&self, since: &Usage) -> Option<String> {
        let mut used = self.used;
        used.add(since);
        let passed = self.ceiling.marks(&used).any(|mark| mark.used > mark.most);
        passed.then(|| format!("with what it used, the budget {} is passed", self.whose))
    }
}

/// Why work does not begin, or does not go on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Broke {
    pub text: String,
    pub reason: &'static str,
    /// Seconds until there is a new budget, where one comes by itself.
    pub retry_after: Option<u64>,
    /// Whose budget it is; none if it cannot be read.
    whose: Option<&'static str>,
}

impl Broke {
    /// Work that would begin with nothing left.
    pub fn before(whose: &'static str, retry_after: Option<u64>) -> Self {
        let text = format!("Nothing was begun: the budget {whose} is used up. {}", Self::remedy(whose));
        Self { text, reason: "budget_too_small", retry_after, whose: Some(whose) }
    }

    /// Work that has used up what it had.
    pub fn after(whose: &'static str, retry_after: Option<u64>) -> Self {
        let text = format!("The work was stopped: the budget {whose} is used up. {}", Self::remedy(whose));
        Self { text, reason: EXHAUSTED, retry_after, whose: Some(whose) }
    }

    /// Work that would begin without anybody knowing what is left.
    pub fn unknown() -> Self {
        let text = "Nothing was begun: there is a budget, and what is left of it cannot be read now. Send it again in a \
                    minute; the hub's log says what is wrong.";
        Self { text: text.into(), reason: "budget_too_small", retry_after: Some(60), whose: None }
    }

    /// The same of work that was begun before.
    pub fn begun(self) -> Self {
        match self.whose {
            Some(whose) => Self::after(whose, self.retry_after),
            None => self,
        }
    }

    /// What is wrong, without what to do.
    pub fn why(&self) -> String {
        match self.whose {
            Some(whose) => format!("the budget {whose} is used up"),
            None => "there is a budget, and what is left of it cannot be read now".to_owned(),
        }
    }

    fn remedy(whose: &str) -> &'static str {
        match whose {
            TODAY => "Send it again tomorrow (UTC), or have the hub's owner raise the ceiling.",
            _ => "Send the work again with a larger one.",
        }
    }

    pub fn metadata(&self) -> Option<Object> {
        let mut told = json!({"blocked_reason": self.reason, "retryable": self.retry_after.is_some()});
        if let Some(seconds) = self.retry_after {
            told["retry_after"] = seconds.into();
        }
        Object::of(&json!({HANDSHAKE: told})).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::{Budgets, Ceiling, Held, TODAY};
    use flotilla_protocol::fleet::Dispatch;
    use flotilla_protocol::fleet::dispatch::{Budget, Terms};
    use flotilla_protocol::usage::Usage;

    fn used(input: u64, cost: Option<u64>) -> Usage {
        Usage { reports: 1, figures: [Some(input), None, None, None, cost], gaps: 0 }
    }

    #[test]
    fn levels_are_told_and_the_unknown_reaches_nothing() {
        let ceiling = Ceiling { tokens: Some(100), cost: Some(1_000), ..Ceiling::default() };
        let levels = |usage: &Usage| ceiling.marks(usage).map(|mark| mark.level()).collect::<Vec<_>>();
        assert_eq!(levels(&used(49, None)), [0]);
        assert_eq!(levels(&used(50, Some(799))), [50, 50]);
        assert_eq!(levels(&used(99, Some(800))), [80, 80]);
        assert_eq!(levels(&used(250, None)), [100]);
        assert_eq!(ceiling.reached(&used(99, Some(999))), None);
        assert_eq!(ceiling.reached(&used(0, Some(1_000))).map(|mark| mark.figure.name()), Some("cost"));
        assert_eq!(levels(&Usage::default()), Vec::<u64>::new());
    }

    #[test]
    fn only_hard_ceilings_that_may_be_an_agent_s_stop_it_unread() {
        let (hard, soft) = (Ceiling { hard: true, ..Ceiling::default() }, Ceiling::default());
        let agents = vec![("ada".to_owned(), hard), ("bob".to_owned(), soft)];
        let budgets = Budgets { agents, ..Budgets::default() };
        assert_eq!(["ada", "bob", "eve"].map(|name| budgets.may_stop(name)), [true, false, false]);
        let all = Budgets { workspaces: vec![("w".to_owned(), hard)], ..Budgets::default() };
        assert!(all.may_stop("eve") && Budgets { day: Some(hard), ..Budgets::default() }.may_stop("eve"));
        assert!(!Budgets { day: Some(soft), ..Budgets::default() }.may_stop("eve"));
    }

    #[test]
    fn a_ceiling_is_passed_by_what_is_beyond_it() {
        let ceiling = Ceiling { tokens: Some(100), hard: true, ..Ceiling::default() };
        let held = Held { whose: TODAY, ceiling, used: used(60, None) };
        assert_eq!(held.passed(&used(40, None)), None, "up to it is within it");
        assert!(held.passed(&used(41, None)).is_some_and(|told| told.contains("for today")));
    }

    #[test]
    fn whoever_works_below_a_ceiling_is_told_what_is_left_of_it() {
        let above = Ceiling { tokens: Some(100), cost: Some(1_000_000_000), hard: true, ..Ceiling::default() };
        let left = above.left(&used(60, None)).least(Ceiling { tokens: Some(70), hard: true, ..Ceiling::default() });
        assert_eq!(
            (left.tokens, left.cost, above.left(&used(100, None)).tokens),
            (Some(40), Some(1_000_000_000), Some(1))
        );
        let bound = |token_budget: Option<u64>, budget: Option<Budget>| {
            let mut dispatch =
                Dispatch { task: Terms { token_budget, budget, ..Terms::default() }, ..Dispatch::default() };
            left.bind(&mut dispatch);
            Ceiling::of(&dispatch).map(|ceiling| (ceiling.tokens, ceiling.output, ceiling.cost, ceiling.hard))
        };
        let own = |tokens: u64, hard: bool| Some(Budget { max_total_tokens: Some(tokens), hard, ..Budget::default() });
        let cost = Some(1_000_000_000);
        assert_eq!(bound(None, None), Some((Some(40), None, cost, true)));
        assert_eq!(bound(Some(50), None), Some((Some(40), None, cost, true)), "what is above is less, and hard");
        assert_eq!(bound(Some(30), None), Some((Some(30), None, cost, false)), "its own is only told of");
        assert_eq!(bound(None, own(30, true)), Some((Some(30), None, cost, true)));
        let output = Some(Budget { max_output_tokens: Some(5), ..Budget::default() });
        assert_eq!(bound(None, output), Some((Some(40), Some(5), cost, false)));
    }

    #[test]
    fn a_contract_says_what_it_allows() {
        let budget = Some(Budget { max_cost_usd: Some(0.5), hard: true, ..Budget::default() });
        let task = Terms { token_budget: Some(4000), budget, ..Terms::default() };
        let expected = Some(Ceiling { tokens: Some(4000), output: None, cost: Some(500_000_000), hard: true });
        assert_eq!(Ceiling::of(&Dispatch { task, ..Dispatch::default() }), expected);
        assert_eq!(Ceiling::of(&Dispatch::default()), None);
    }
}
