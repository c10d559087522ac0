//! Sending a message: open a task or go on with one, once per key, and wait or follow.

use super::push::NewHook;
use super::repeat::dedupe;
use super::{ATTEMPTS, Follow, Hub, LiveRef, settled};
use crate::caller::Caller;
use crate::descent::{Descent, Told};
use crate::error::{Error, Fault};
use crate::fleet::FLEET;
use crate::hub::read::{fold_changes, wanted};
use crate::ports::{Dedupe, NotCommitted};
use crate::project::{Fold, Want};
use crate::registry::Agent;
use crate::task::{Command, Head, Kind, Say};
use flotilla_protocol::a2a::HUB_EXTENSIONS;
use flotilla_protocol::a2a::error::{Reason, Refusal};
use flotilla_protocol::a2a::model::{Message, Task};
use flotilla_protocol::a2a::request::SendMessageRequest;
use flotilla_protocol::a2a::validate;
use flotilla_protocol::a2a::version::Version;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// What a send brings besides the request itself.
#[derive(Debug, Clone, Default)]
pub struct SendOptions {
    /// The `Idempotency-Key` header.
    pub idempotency_key: Option<String>,
    /// What the headers tell of the request's lineage.
    pub told: Told,
    /// The version the caller speaks, and the webhook that comes with the message is written in.
    pub version: Version,
    /// The extensions the caller asks for.
    pub extensions: Vec<String>,
}

/// The answer to a send: a task, or a direct Message.
pub enum Outcome {
    Task(Box<Task>),
    Message(Arc<Message>),
}

/// What a sender waits for before it goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wait {
    /// The message is in the log; a task is wanted at once.
    None,
    /// The message is in the log.
    Commit,
    /// Only the end matters, so a new task's first commit is not waited for by itself.
    Rest,
}

/// What came of waiting for a task.
enum Waited {
    Rested,
    TooLong,
    /// The task was never opened.
    Refused(NotCommitted),
}

/// A message that is in the log, or on its way there.
pub(super) struct InLog {
    pub live: LiveRef,
    pub dedupe: Option<Dedupe>,
    /// The peer-visible event after which its effects come; zero for a new exchange.
    pub after: u64,
    /// It was there before.
    pub repeated: bool,
}

impl Hub {
    /// SendMessage (spec 3.1.1): the outcome, and which extensions an agent elsewhere activated.
    pub async fn send(
        self: &Arc<Self>,
        caller: &Caller,
        agent: &Arc<Agent>,
        request: Box<SendMessageRequest>,
        options: SendOptions,
    ) -> Result<(Outcome, Vec<String>), Error> {
        let (configuration, want) = (request.configuration.as_ref(), wanted(&request));
        if configuration.is_some_and(|configuration| configuration.return_immediately) {
            let posted = Box::pin(self.post(caller, agent, request, options)).await?;
            return Ok((posted.outcome, posted.activated));
        }
        // Whoever is not there is not waited for as long as one who works.
        let patience = match self.absence(agent, &request) {
            Some(_) => self.limits().absent_wait.min(self.limits().wait),
            None => self.limits().wait,
        };
        let mut sent = self.put(caller, agent, request, options, Wait::Rest).await?;
        loop {
            match self.wait(&sent.live, patience).await {
                Waited::Rested => break,
                Waited::TooLong => {
                    // The caller has waited long enough; the task has not.
                    Box::pin(self.change(&sent.live, || Command::Open)).await?;
                    break;
                }
                Waited::Refused(why) => {
                    self.uncount_send(agent.id);
                    sent = Box::pin(self.not_opened(caller, agent, why, sent.dedupe)).await?;
                }
            }
        }
        self.outcome(&sent.live, want).await
    }

    /// SendStreamingMessage (spec 3.1.2).
    pub async fn send_streaming(
        self: &Arc<Self>,
        caller: &Caller,
        agent: &Arc<Agent>,
        request: Box<SendMessageRequest>,
        options: SendOptions,
    ) -> Result<Follow, Error> {
        if !agent.capabilities.streaming {
            return Err(no_streaming(&agent.name).into());
        }
        let want = wanted(&request);
        // Before the message is in the log: what is refused must not have happened.
        let place = self.stream_place(caller.principal)?;
        let sent = self.put(caller, agent, request, options, Wait::Commit).await?;
        if sent.after == 0 {
            Ok(Follow::from_start(Arc::clone(self), sent.live, place).wanting(want))
        } else {
            Ok(Follow::from_task(Arc::clone(self), sent.live, (sent.after, want), place))
        }
    }

    /// Waits until the task is settled; gives up when its time is over or the hub must go.
    async fn wait(&self, live: &LiveRef, patience: Duration) -> Waited {
        let settled = async {
            loop {
                let mut woken = pin!(live.rested());
                woken.as_mut().enable();
                if let Some(why) = live.take_refused() {
                    return Waited::Refused(why);
                }
                if live.committed().is_none_or(|head| head.is_settled()) {
                    return Waited::Rested;
                }
                if self.hurrying.load(Ordering::Acquire) {
                    return Waited::TooLong;
                }
                woken.await;
            }
        };
        tokio::time::timeout(patience, settled).await.unwrap_or(Waited::TooLong)
    }

    pub(super) async fn outcome(&self, live: &LiveRef, want: Want) -> Result<(Outcome, Vec<String>), Error> {
        let (head, mut fold) = match live.whole() {
            Some((head, changes)) => (head, fold_changes(Fold::default(), &changes, u64::MAX)),
            None => {
                let _turn = self.turns.task(live.committed().map(|head| head.principal)).await;
                self.folded(live, u64::MAX, want.history).await?
            }
        };
        let activated = std::mem::take(&mut fold.upstream.activated);
        match (head.kind, fold.answer.clone()) {
            (Kind::Message, Some(answer)) => Ok((Outcome::Message(answer), activated)),
            (Kind::Task, _) => Ok((Outcome::Task(Box::new(fold.into_task(&head, want))), activated)),
            _ => Err(Fault::new("a settled exchange without an outcome").into()),
        }
    }

    /// Checks the request and puts its message into a log, once. Only what comes to be there counts for the agent's pace:
    /// what is refused or was sent before costs it nothing.
    pub(super) async fn put(
        self: &Arc<Self>,
        caller: &Caller,
        agent: &Arc<Agent>,
        request: Box<SendMessageRequest>,
        options: SendOptions,
        wait: Wait,
    ) -> Result<InLog, Error> {
        let message = validate::send_message(&request)?;
        let configuration = request.configuration.as_ref();
        self.check_parts(agent, message, configuration)?;
        self.check_dispatch(agent, message)?;
        let descent = self.believe(caller, self.descent(caller, agent, &request, options.told)?).await?;
        let webhook = configuration.and_then(|configuration| configuration.push_config.as_ref());
        let webhook = webhook.map(|config| config.url.as_str());
        let dedupe = dedupe(caller, agent, message, webhook, options.idempotency_key.as_deref());
        if let Err(refusal) = self.count_send(agent.id) {
            return Box::pin(self.again_or(caller, agent, dedupe, refusal)).await;
        }
        let against = descent.as_ref().and_then(|descent| Some((descent.objection()?, Arc::clone(&descent.origin))));
        let asked = (options.version, options.extensions);
        let put = self.put_counted(caller, agent, request, descent, asked, (dedupe, wait)).await;
        if put.as_ref().map_or(true, |put| put.repeated) {
            self.uncount_send(agent.id);
        }
        if let (Ok(InLog { live, repeated: false, .. }), Some((objection, origin))) = (&put, against) {
            self.note_rejection(live.id(), &objection, &origin);
        }
        put
    }

    async fn put_counted(
        self: &Arc<Self>,
        caller: &Caller,
        agent: &Arc<Agent>,
        request: Box<SendMessageRequest>,
        descent: Option<Box<Descent>>,
        (version, mut extensions): (Version, Vec<String>),
        (dedupe, wait): (Option<Dedupe>, Wait),
    ) -> Result<InLog, Error> {
        let ttl = request.ttl()?;
        let held = match self.held(agent, &request) {
            Ok(held) => held,
            // It may not wait, but one that was sent before needs not.
            Err(refusal) => return Box::pin(self.again_or(caller, agent, dedupe, refusal)).await,
        };
        let configuration = request.configuration.as_ref();
        let hook = match configuration.is_some_and(|configuration| configuration.push_config.is_some()) {
            true => Box::pin(self.inline_hook(configuration, request.metadata.as_ref(), version)).await?.map(Box::new),
            false => None,
        };
        let accepted_output_modes = configuration.map(|c| c.accepted_output_modes.clone()).unwrap_or_default();
        let SendMessageRequest { message, metadata, .. } = *request;
        let mut message = message.unwrap_or_default();
        // It stays in memory as long as its task is live.
        message.parts.shrink_to_fit();
        let as_task = wait == Wait::None;
        // Whoever waits for the end alone is shown nothing of the way there. But what may have to be called off must be
        // known by its name before it has ended.
        let ends_early = descent.as_ref().is_some_and(|descent| descent.deadline.is_some());
        let watched = wait != Wait::Rest || hook.is_some() || ends_early;
        let from = if agent.link.is_remote() { caller.shown_as().to_owned() } else { String::new() };
        let message = Arc::new(message);
        // What the hub implements itself concerns this hop alone.
        extensions.retain(|uri| agent.link.is_remote() && !uri.starts_with(HUB_EXTENSIONS));
        let origin = descent.as_ref().map(|descent| Arc::clone(&descent.origin));
        let broke = match self.may_be_broke(origin.as_deref()) {
            true => Box::pin(self.broke(agent, origin.as_deref())).await.map(Box::new),
            false => None,
        };
        let say = Box::new(Say {
            message,
            accepted_output_modes,
            metadata,
            descent,
            as_task,
            watched,
            from,
            ttl,
            held,
            extensions,
            agents: caller.agents.clone().filter(|_| agent.name == FLEET),
            broke,
        });
        if say.message.task_id.is_empty() {
            self.open(caller, agent, say, dedupe, hook, wait).await
        } else {
            Box::pin(self.continue_task(caller, agent, say, dedupe, hook)).await
        }
    }

    async fn continue_task(
        self: &Arc<Self>,
        caller: &Caller,
        agent: &Arc<Agent>,
        mut say: Box<Say>,
        dedupe: Option<Dedupe>,
        hook: Option<Box<NewHook>>,
    ) -> Result<InLog, Error> {
        let scope = caller.with_agent(agent.id);
        let live = self.task(scope, &say.message.task_id).await?;
        if let Some(sent) = self.sent_before(dedupe).await? {
            return self.attach(caller, agent, sent, dedupe).await;
        }
        let head = live.committed().ok_or_else(|| Fault::new("the task is not loaded"))?;
        infer_context(Arc::make_mut(&mut say.message), &head)?;
        self.date(agent, &head, &mut say).await?;
        say.broke = say.broke.or(Box::pin(self.broke_again(agent, &head, &say.message)).await);
        if let Some(new) = hook {
            self.hang(&head, *new).await?;
        }
        for _ in 0..ATTEMPTS {
            let permit = self.permit().await?;
            let Some(committed) = self.submit(&live, Command::Say(say.clone()), dedupe, permit)? else {
                return Err(Fault::new("a message that changes nothing").into());
            };
            match settled(committed).await {
                Ok(_) => {
                    let after = live.committed().map_or(0, |head| head.peer_seq);
                    return Ok(InLog { live, dedupe, after, repeated: false });
                }
                Err(NotCommitted::Duplicate(sent)) => return self.attach(caller, agent, sent, dedupe).await,
                Err(NotCommitted::Stale) => self.reload(&live).await?,
                Err(NotCommitted::Failed(fault)) => return Err(fault.into()),
            }
        }
        Err(Fault::new("the task changed under every decision").into())
    }
}

/// The context is the task's; a message that claims another one is refused (spec 3.4.3).
fn infer_context(message: &mut Message, head: &Head) -> Result<(), Refusal> {
    if message.context_id.is_empty() {
        message.context_id = head.context.to_string();
    }
    if *message.context_id == *head.context {
        return Ok(());
    }
    let text = "does not match the context of the task that taskId names; leave it out to use the task's own";
    Err(Refusal::invalid("message.contextId", text))
}

pub fn no_push(agent: &str) -> Refusal {
    let text = format!("The agent '{agent}' does not send push notifications. Stream or poll the task instead.");
    Refusal::new(Reason::PushNotificationNotSupported, text)
}

pub fn no_streaming(agent: &str) -> Refusal {
    let text = format!("The agent '{agent}' does not stream. Send the message without a stream, and ask for its task.");
    Refusal::new(Reason::UnsupportedOperation, text)
}
