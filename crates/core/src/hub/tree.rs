//! Whose work a task is part of, and what is part of it: the tree of delegated tasks, for those who may see it.

use super::Hub;
use crate::caller::{Caller, Scope};
use crate::descent::Descent;
use crate::error::{Error, Fault};
use crate::ids::TaskId;
use crate::task::Head;
use flotilla_protocol::a2a::error::Refusal;
use flotilla_protocol::lineage::{Ancestor, Origin, Provenance};
use std::collections::VecDeque;
use std::sync::Arc;

/// The most tasks of a tree that are shown.
const MOST: usize = 1_000;

/// A task, and those it was the parent of.
pub struct Branch {
    pub head: Head,
    /// Where its parent stands in the list; none for the first.
    pub parent: Option<usize>,
}

/// A task with all below it, each after its parent.
pub struct Tree {
    /// What it is part of, the oldest first; those of this hub that its reader may see with what became of them.
    pub ancestors: Vec<(Ancestor, Option<Head>)>,
    pub branches: Vec<Branch>,
    /// There are more tasks below than are shown.
    pub more: bool,
}

impl Hub {
    /// The tasks below one, for the owner of its agent or worker, or whoever called it. Those below that are neither theirs to own
    /// nor theirs to call are left out.
    pub async fn tree(&self, caller: &Caller, id: &str) -> Result<Tree, Error> {
        let no_task = || Refusal::no_task(id);
        let root = TaskId::parse(id).ok_or_else(no_task)?;
        let head = self.store.head(Scope::Admin, root).await?.ok_or_else(no_task)?;
        if !self.may_see(caller, &head).await? {
            return Err(no_task().into());
        }
        let ancestors = self.ancestors(caller, &head).await?;
        let mut branches = vec![Branch { head, parent: None }];
        let mut waiting = VecDeque::from([(0, root)]);
        let mut more = false;
        while let Some((place, task)) = waiting.pop_front() {
            let children = self.store.children(Scope::Admin, task, MOST + 1).await?;
            for head in children {
                if !self.may_see(caller, &head).await? {
                    continue;
                }
                if branches.len() == MOST {
                    more = true;
                    break;
                }
                waiting.push_back((branches.len(), head.id));
                branches.push(Branch { head, parent: Some(place) });
            }
        }
        Ok(Tree { ancestors, branches, more })
    }

    async fn ancestors(&self, caller: &Caller, head: &Head) -> Result<Vec<(Ancestor, Option<Head>)>, Fault> {
        let mut ancestors = Vec::new();
        for ancestor in head.origin.iter().flat_map(|origin| &origin.chain) {
            let task = TaskId::parse(&ancestor.task).filter(|_| ancestor.hub == self.store.hub_id());
            let known = match task {
                Some(task) => self.store.head(Scope::Admin, task).await?,
                None => None,
            };
            let shown = match known {
                Some(known) if self.may_see(caller, &known).await? => Some(known),
                _ => None,
            };
            ancestors.push((ancestor.clone(), shown));
        }
        Ok(ancestors)
    }

    async fn may_see(&self, caller: &Caller, head: &Head) -> Result<bool, Fault> {
        let registry = self.registry();
        let named = || registry.by_id(head.agent).is_some_and(|agent| caller.may_call(&agent.name));
        let theirs = caller.as_owner().sees(head) || head.principal == caller.principal;
        if theirs && (caller.agents.is_none() || named()) {
            return Ok(true);
        }
        self.owns_doer(caller, head).await
    }

    /// Checks a parent that is said to be of this hub: it counts only for whoever owns its agent or the worker that does
    /// it, called it, or runs the hub. A chain that is not believed still shows rings, but links to nothing. What a parent
    /// is part of, its children are part of, and its deadline goes for them too.
    pub(super) async fn believe(
        &self,
        caller: &Caller,
        descent: Option<Box<Descent>>,
    ) -> Result<Option<Box<Descent>>, Fault> {
        let Some(mut descent) = descent else { return Ok(None) };
        let here = self.store.hub_id();
        let Some(told) = descent.origin.parent().filter(|parent| parent.hub == here) else { return Ok(Some(descent)) };
        match Box::pin(self.parent(caller, told)).await? {
            Some((parent, head)) => {
                descent.deadline = descent.deadline.into_iter().chain(head.deadline).min();
                descent.origin = Arc::new(descent.origin.below(parent, head.origin.as_deref()));
            }
            None => {
                let mut origin: Origin = (*descent.origin).clone();
                origin.provenance = Provenance::A2aExternal;
                origin.chain.iter_mut().filter(|one| one.hub == here).for_each(|one| one.task.clear());
                descent.origin = Arc::new(origin);
            }
        }
        Ok(Some(descent))
    }

    /// A parent as a chain names it, if it is the caller's to name. The fleet's work is its worker's: that is whom a
    /// ring would come back to.
    async fn parent(&self, caller: &Caller, told: &Ancestor) -> Result<Option<(Ancestor, Head)>, Fault> {
        let Some(task) = TaskId::parse(&told.task) else { return Ok(None) };
        let Some(head) = self.store.head(Scope::Admin, task).await? else { return Ok(None) };
        let Some(agent) = self.registry().by_id(head.agent).cloned() else { return Ok(None) };
        let worker = self.worker_of(&head).await?;
        let names = || worker.iter().chain([&agent]).map(|agent| agent.name.as_str());
        let owns = worker.as_ref().is_some_and(|worker| worker.owner == caller.principal);
        let theirs = owns || [head.owner, head.principal].contains(&caller.principal) || caller.rights.is_admin();
        let Some(name) = names().next().filter(|_| theirs && names().any(|name| name == told.agent)) else {
            return Ok(None);
        };
        Ok(Some((Ancestor { hub: told.hub.clone(), agent: name.to_owned(), task: head.id.to_string() }, head)))
    }
}
