//! Push configs: made, read, listed and deleted by the callers of a task, or hung on it with a message.

use super::{Hub, no_push};
use crate::caller::{Caller, Scope};
use crate::error::{Error, Fault};
use crate::ids::HookId;
use crate::limits::Limit;
use crate::ports::{Courier, Standing};
use crate::push::{Hook, HookChange, HookFilter, HookState, MOST_DELETED, Schedule, Target};
use crate::registry::Agent;
use crate::task::{Head, Kind};
use flotilla_protocol::a2a::PUSH_OPTIONS;
use flotilla_protocol::a2a::error::{Reason, Refusal, Violation};
use flotilla_protocol::a2a::push::{ListPushConfigsResponse, PushChunks, PushOptions};
use flotilla_protocol::a2a::request::{
    AuthenticationInfo, ListPushConfigsRequest, PushConfig, PushConfigRequest, SendMessageConfiguration,
};
use flotilla_protocol::a2a::validate;
use flotilla_protocol::a2a::version::Version;
use flotilla_protocol::wire::{Json, Object};
use serde_json::json;
use std::sync::Arc;

/// How many hooks are read at once at the start.
const PAGE: usize = 1_000;

/// How webhooks are carried, and when a failed one is carried again.
pub struct Push {
    pub courier: Arc<dyn Courier>,
    pub schedule: Schedule,
}

/// A hook that is accepted, but not yet kept.
pub struct NewHook {
    id: String,
    target: Target,
    options: PushOptions,
    version: Version,
    /// Whether one without a name goes in the place of another to the same URL.
    replaces: bool,
}

impl Hub {
    /// CreateTaskPushNotificationConfig (spec 3.1.7).
    pub async fn create_push(
        self: &Arc<Self>,
        caller: &Caller,
        agent: &Agent,
        config: PushConfig,
        version: Version,
    ) -> Result<PushConfig, Error> {
        let head = self.pushed_task(caller, agent, &config.task_id).await?;
        let options = PushOptions::of(config.metadata()?.as_ref(), "metadata")?.unwrap_or_default();
        let new = self.accept(config, options, version).await?;
        let hook = self.hang(&head, new).await?;
        Ok(shown(&hook))
    }

    /// GetTaskPushNotificationConfig (spec 3.1.8).
    pub async fn get_push(
        &self,
        caller: &Caller,
        agent: &Agent,
        request: &PushConfigRequest,
    ) -> Result<PushConfig, Error> {
        let head = self.pushed_task(caller, agent, &request.task_id).await?;
        validate::task_id("id", &request.id)?;
        let hooks = self.store.hooks(caller.with_agent(agent.id), head.id).await?;
        let found = hooks.iter().find(|hook| hook.id == request.id);
        Ok(shown(found.ok_or_else(|| no_config(&request.task_id, &request.id))?))
    }

    /// ListTaskPushNotificationConfigs (spec 3.1.9).
    pub async fn list_push(
        &self,
        caller: &Caller,
        agent: &Agent,
        request: &ListPushConfigsRequest,
    ) -> Result<ListPushConfigsResponse, Error> {
        let head = self.pushed_task(caller, agent, &request.task_id).await?;
        let size = request.size(self.limits().push_configs_per_task.max(1))?;
        let after = match request.page_token.as_str() {
            "" => None,
            token => Some(HookId::parse(token).ok_or_else(no_token)?),
        };
        let mut hooks = self.store.hooks(caller.with_agent(agent.id), head.id).await?;
        // A place among those there were: it holds when others go or come.
        hooks.retain(|hook| after.is_none_or(|after| hook.uid > after));
        hooks.sort_by_key(|hook| hook.uid);
        let more = hooks.len() > size;
        hooks.truncate(size);
        let next_page_token = hooks.last().filter(|_| more).map(|hook| hook.uid.to_string()).unwrap_or_default();
        Ok(ListPushConfigsResponse { configs: hooks.iter().map(shown).collect(), next_page_token })
    }

    /// DeleteTaskPushNotificationConfig (spec 3.1.10): one that is not there is deleted already.
    pub async fn delete_push(&self, caller: &Caller, agent: &Agent, request: &PushConfigRequest) -> Result<(), Error> {
        let head = self.pushed_task(caller, agent, &request.task_id).await?;
        validate::task_id("id", &request.id)?;
        let scope = caller.with_agent(agent.id);
        let hooks = self.store.hooks(scope, head.id).await?;
        let Some(hook) = hooks.into_iter().find(|hook| hook.id == request.id) else { return Ok(()) };
        // The owner still sees what became of it.
        self.store.change_hook(scope, hook.uid, HookChange::Delete).await?;
        self.desk.remove(hook.uid);
        Ok(())
    }

    /// The task a push config is about, if the agent has any and the caller may see it.
    async fn pushed_task(&self, caller: &Caller, agent: &Agent, id: &str) -> Result<Head, Error> {
        if !agent.capabilities.push_notifications {
            return Err(no_push(&agent.name).into());
        }
        validate::task_id("taskId", id)?;
        let live = self.task(caller.with_agent(agent.id), id).await?;
        let head = live.committed().filter(|head| head.kind == Kind::Task);
        head.ok_or_else(|| Refusal::no_task(id).into())
    }

    async fn accept(&self, config: PushConfig, options: PushOptions, version: Version) -> Result<NewHook, Refusal> {
        validate::push_config(&config)?;
        let id = config.id.clone();
        let target = self.push.courier.accept(config, options).await?;
        Ok(NewHook { id, target, options, version, replaces: false })
    }

    /// The webhook a message brings along. Its options stand in it, or in the request's metadata.
    pub(super) async fn inline_hook(
        &self,
        configuration: Option<&SendMessageConfiguration>,
        metadata: Option<&Object>,
        version: Version,
    ) -> Result<Option<NewHook>, Error> {
        let Some(config) = configuration.and_then(|configuration| configuration.push_config.clone()) else {
            return Ok(None);
        };
        let options = match PushOptions::of(config.metadata()?.as_ref(), "metadata") {
            Ok(Some(options)) => options,
            Ok(None) => PushOptions::of(metadata, "metadata")?.unwrap_or_default(),
            Err(refusal) => return Err(within(refusal).into()),
        };
        let new = self.accept(config, options, version).await.map_err(within)?;
        Ok(Some(NewHook { replaces: true, ..new }))
    }

    /// Keeps a hook: from the beginning of a new task, or from now on. It is durable before anything else happens.
    pub(super) async fn hang(self: &Arc<Self>, head: &Head, new: NewHook) -> Result<Hook, Error> {
        let uid = HookId::fresh();
        let known = self.known_hooks(head).await?;
        let by_url = known.iter().find(|hook| hook.state != HookState::Deleted && hook.target.url == new.target.url);
        let by_url = by_url.filter(|_| new.replaces && new.id.is_empty());
        let held = known.iter().find(|hook| hook.holds(&new.target.url));
        let id = match by_url {
            Some(known) => known.id.clone(),
            // In 0.3 a config nobody named is the one of its task, so that whoever knows the task finds it.
            None if new.id.is_empty() && new.version == Version::V03 => head.id.to_string(),
            None if new.id.is_empty() => uid.to_string(),
            None => new.id,
        };
        // What stopped stays so, if its caller does not name it: a message that brings the URL again is no order.
        let stopped = held.or_else(|| by_url.filter(|hook| hook.state == HookState::Disabled));
        let mut hook = Hook {
            uid,
            task: head.id,
            id,
            principal: head.principal,
            agent: head.agent,
            owner: head.owner,
            target: new.target,
            options: new.options,
            version: new.version,
            created_at: self.clock.now(),
            cursor: head.peer_seq,
            state: match stopped {
                Some(_) => HookState::Disabled,
                None if head.is_over() => HookState::Done,
                None => HookState::Active,
            },
            held: held.is_some(),
            failures: 0,
            next_at: None,
            attempts: 0,
            reason: stopped.map(Hook::stop_reason).unwrap_or_default(),
            generation: 0,
        };
        if hook.cutting().chunks == PushChunks::Whole && head.version > 0 && !head.is_over() {
            // An artifact that has begun is told whole.
            hook.cursor = self.unit_start(&hook, head.peer_seq).await?;
        }
        let most = self.limits().push_configs_per_task;
        let Some(hook) = self.store.add_hook(hook, most).await? else {
            let text = format!(
                "The task has as many push configs as it may ({most}), or had {MOST_DELETED} that were deleted. Delete \
                 one that is not needed, or take the id of one there was."
            );
            return Err(Limit::PushConfigsPerTask.refuse(most, text).into());
        };
        if hook.state == HookState::Active {
            self.desk.add(hook.clone());
            // A new task has nothing to tell before its first commit, which wakes it.
            if head.version > 0 {
                self.desk.start(hook.uid, &self.push.schedule, self.clock.now());
            }
        }
        Ok(hook)
    }

    /// All hooks of a task, also deleted ones; a new task has none.
    async fn known_hooks(&self, head: &Head) -> Result<Vec<Hook>, Fault> {
        if head.version == 0 {
            return Ok(Vec::new());
        }
        let filter = HookFilter { task: Some(head.id), limit: usize::MAX, ..HookFilter::default() };
        self.store.hook_page(Scope::Admin, filter).await
    }

    /// Takes a hook down whose task did not come to be.
    pub(super) async fn unhang(&self, hook: &Hook) -> Result<(), Fault> {
        self.desk.remove(hook.uid);
        self.store.remove_hook(Scope::Admin, hook.task, &hook.id).await.map(drop)
    }

    /// Takes up the hooks of an earlier process: those that are behind or due go on, those without a task go.
    pub(super) async fn load_hooks(&self) -> Result<(), Fault> {
        let (mut after, mut locked) = (None, 0usize);
        loop {
            let page = self.store.active_hooks(after, PAGE).await?;
            after = page.last().map(|(hook, _)| hook.uid);
            let is_last = page.len() < PAGE;
            for (hook, standing) in page {
                match standing {
                    Standing::Gone => drop(self.store.remove_hook(Scope::Admin, hook.task, &hook.id).await?),
                    Standing::At(peer_seq) => {
                        locked += usize::from(self.push.courier.is_locked(&hook.target));
                        let (uid, behind) = (hook.uid, hook.cursor < peer_seq || hook.next_at.is_some());
                        self.desk.add(hook);
                        if behind {
                            self.desk.start(uid, &self.push.schedule, self.clock.now());
                        }
                    }
                }
            }
            if is_last {
                break;
            }
        }
        // Those that wait for somebody are to be told of too: they may be redelivered.
        for state in [HookState::Parked, HookState::Disabled] {
            locked += self.locked_among(state).await?;
        }
        if locked > 0 {
            tracing::error!(
                webhooks = locked,
                "webhooks wait, because their credentials were sealed with another secret key than this hub has now: \
                 put the former key back (FLOTILLA_SECRET_KEY, hub.secret_key_file, or secret.key in the data \
                 directory) and start the hub again"
            );
        }
        Ok(())
    }

    async fn locked_among(&self, state: HookState) -> Result<usize, Fault> {
        let (mut before, mut locked) = (None, 0);
        loop {
            let filter = HookFilter { state: Some(state), before, limit: PAGE, ..HookFilter::default() };
            let page = self.store.hook_page(Scope::Admin, filter).await?;
            locked += page.iter().filter(|hook| self.push.courier.is_locked(&hook.target)).count();
            before = page.last().map(|hook| hook.uid);
            if page.len() < PAGE {
                return Ok(locked);
            }
        }
    }

    /// How many webhooks are still told of their tasks.
    pub fn hook_count(&self) -> usize {
        self.desk.count()
    }
}

/// A config as its caller may see it: never with its secrets.
fn shown(hook: &Hook) -> PushConfig {
    let authentication = (!hook.target.scheme.is_empty())
        .then(|| AuthenticationInfo { scheme: hook.target.scheme.clone(), ..AuthenticationInfo::default() });
    let mut config = PushConfig {
        id: hook.id.clone(),
        task_id: hook.task.to_string(),
        url: hook.target.url.clone(),
        authentication,
        ..PushConfig::default()
    };
    if hook.options != PushOptions::default()
        && let Ok(metadata) = Json::of(&json!({ PUSH_OPTIONS: hook.options }))
    {
        config.unknown.push(("metadata".into(), metadata));
    }
    config
}

/// The fields at fault, by the path they have in SendMessage.
fn within(refusal: Refusal) -> Refusal {
    let at = |field: &str| format!("configuration.taskPushNotificationConfig.{field}");
    let moved = refusal.violations.into_iter().map(|one| Violation { field: at(&one.field), ..one }).collect();
    Refusal { facts: refusal.facts, ..Refusal::violations(moved) }
}

fn no_token() -> Refusal {
    Refusal::invalid("pageToken", "is not a token this hub gave; leave it out to start")
}

fn no_config(task: &str, id: &str) -> Refusal {
    let shown: String = id.chars().take(100).collect();
    let text = format!("The task has no push config '{shown}'. List those it has.");
    Refusal::new(Reason::TaskNotFound, text).fact("taskId", task)
}
