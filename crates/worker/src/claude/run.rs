//! One process of Claude Code, from its start until nothing of it is left.

use super::frame::Frame;
use super::permission::{self, Matter};
use super::pipe::{cut_off, leave, tell};
use super::session::Held;
use super::turn::{Next, Turn};
use super::{Claude, facts, frame, prompt};
use crate::agent::{More, Outbox, Stop, Stopped};
use crate::command::Talk;
use crate::command::lines::Heard;
use crate::command::watch::{Reader, Silence};
use crate::evidence::site::Site;
use crate::sessions::seconds_now;
use crate::supervise::{Meter, Streams, Used};
use flotilla_protocol::a2a::model::{Message, TaskState};
use flotilla_protocol::block::Block;
use flotilla_protocol::work::{Assignment, Contents, Report};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep, sleep_until};

/// How often it is looked whether the owner is waited for.
const LOOK: Duration = Duration::from_secs(1);
/// Lines to the program that may wait to be written.
const LINES: usize = 64;

/// Why a run went no further.
pub enum Halt {
    Stopped,
    Failed(String),
}

impl From<Stopped> for Halt {
    fn from(_: Stopped) -> Self {
        Self::Stopped
    }
}

/// How a process ended.
pub enum Ended {
    Done,
    /// The conversation is there already.
    InUse,
    /// There is no such conversation.
    NotFound,
}

/// A run as far as it came.
pub struct Run<'a> {
    claude: &'a Claude,
    assignment: &'a Assignment,
    outbox: Outbox,
    turn: Turn,
    used: Used,
    /// Where it works, until what became of that is told.
    site: Option<Site>,
    /// What ends the turn, while it waits for the program to be gone.
    last: Option<Report>,
    /// The session has begun.
    began: bool,
    /// What the program said that may tell why it does not begin.
    refusal: Option<Ended>,
    /// By then the turn has to end: the caller was asked, or the session did not begin.
    over_by: Option<Instant>,
    /// What became of a session that did not begin; why may still be said on standard error.
    early: frame::Outcome,
    /// What the caller says meanwhile.
    more: More,
    /// Of that, what was passed on and not yet taken up, by the ids it was passed on under.
    passed_on: Vec<String>,
}

/// The two sides of a talk with the program.
struct Line<'r> {
    reader: &'r mut Reader,
    say: mpsc::Sender<String>,
    /// Requests that are being decided on.
    verdicts: JoinSet<String>,
    meter: Meter,
}

impl<'a> Run<'a> {
    pub fn new(claude: &'a Claude, assignment: &'a Assignment, outbox: &'a Outbox, more: More) -> Self {
        let turn = Turn::new(assignment, claude.settings.wishes.json_schema.is_some());
        let used = Used::default();
        let passed_on = Vec::new();
        Self {
            claude,
            assignment,
            outbox: outbox.clone(),
            turn,
            used,
            site: None,
            last: None,
            began: false,
            refusal: None,
            over_by: None,
            early: frame::Outcome::default(),
            more,
            passed_on,
        }
    }

    /// Looks where it is to work, wherever links lead now.
    pub async fn open(&mut self) -> Result<(), Halt> {
        let settings = &self.claude.settings;
        let opened = match settings.working_folder() {
            Ok(folder) => settings.git.open(&folder, self.assignment, &settings.reaper, settings.limits).await,
            Err(problem) => Err(problem),
        };
        match opened {
            Ok(site) => {
                self.outbox = site.listen(&self.outbox);
                self.site = Some(site);
            }
            Err(problem) => return Err(self.not_started(&problem).await?),
        }
        Ok(())
    }

    /// What git saw of the run.
    async fn close(&mut self, is_done: bool) -> Vec<Report> {
        match self.site.take() {
            Some(site) => site.close(is_done).await,
            None => Vec::new(),
        }
    }

    /// Folders and files are the owner's to know.
    async fn not_started(&self, problem: &str) -> Result<Halt, Stopped> {
        self.note(vec![Block::text(problem)]).await?;
        Ok(Halt::Failed("The agent cannot be started now. Its owner sees why in the task's log.".into()))
    }

    /// Runs the program once; returns when nothing of it is left.
    pub async fn go(&mut self, held: &mut Held, said: &str, stop: &mut Stop) -> Result<Ended, Halt> {
        let claude = self.claude;
        let bounds = claude.settings.bounds;
        let folder = self.site.as_ref().map_or(&claude.settings.folder, |site| &site.folder);
        let (_recorded, mut running, streams) = match claude.start(self.assignment, held, folder) {
            Ok(started) => started,
            Err(problem) => return Err(self.not_started(&problem).await?),
        };
        let Streams { stdin, stdout, stderr } = streams;
        let mut reader = Reader::new(stdout, stderr, bounds);
        let (say, lines) = mpsc::channel(LINES);
        let _ = say.try_send(said.to_owned());
        let line = Line { reader: &mut reader, say, verdicts: JoinSet::new(), meter: running.meter().clone() };
        // Standard input is closed when the talk is over, which tells the program to end.
        let ended = tokio::select! {
            ended = self.talk(line, held) => ended,
            never = tell(stdin, lines) => match never {},
            () = stop.asked() => Err(Halt::Stopped),
            () = sleep(bounds.whole) => {
                let seconds = bounds.whole.as_secs();
                Err(Halt::Failed(format!("Claude Code did not end within {seconds} s and was stopped.")))
            }
        };
        self.used = running.meter().used();
        match ended {
            Ok(Some(Ended::Done)) => {
                leave(&mut running, &mut reader, bounds.grace).await;
                Ok(Ended::Done)
            }
            Ok(ended) => {
                let exit = leave(&mut running, &mut reader, bounds.grace).await;
                ended.or_else(|| self.refusal.take()).ok_or_else(|| Halt::Failed(cut_off(exit)))
            }
            Err(halt) => {
                // What it says on its way out is nobody's any more, but it must be able to say it.
                let (_, ()) = tokio::join!(running.stop(), reader.drain());
                Err(halt)
            }
        }
    }

    /// Hears the program until its turn is over; none if it ended before that.
    async fn talk(&mut self, mut line: Line<'_>, held: &mut Held) -> Result<Option<Ended>, Halt> {
        let mut looks = interval(LOOK);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let over_by = self.over_by.unwrap_or_else(Instant::now);
            let heard = tokio::select! {
                biased;
                _ = looks.tick() => {
                    // An agent that waits for its owner has nothing to say.
                    if !line.verdicts.is_empty() {
                        line.reader.excuse();
                    }
                    continue;
                }
                Some(answer) = line.verdicts.join_next() => {
                    line.reader.excuse();
                    line.tell(answer.map_err(|error| Halt::Failed(format!("a permission was lost: {error}")))?).await;
                    continue;
                }
                () = sleep_until(over_by), if self.over_by.is_some() => return self.end_early().await.map(Some),
                message = self.more.next(), if self.began => {
                    self.pass_on(&message, &mut line).await;
                    continue;
                }
                heard = line.reader.next(Talk::JsonLines) => heard,
            };
            let heard = match heard {
                Ok(Some(heard)) => heard,
                Ok(None) if self.over_by.is_some() => return self.end_early().await.map(Some),
                Ok(None) => return Ok(None),
                Err(silence) => return Err(Halt::Failed(self.silent(&silence))),
            };
            if let Some(ended) = self.hear(heard, &mut line, held).await? {
                return Ok(Some(ended));
            }
            if !line.reader.is_ready()
                && let Some(text) = self.turn.flush(false)
            {
                self.outbox.report(text).await?;
            }
        }
    }

    async fn hear(&mut self, heard: Heard, line: &mut Line<'_>, held: &mut Held) -> Result<Option<Ended>, Halt> {
        let text = match heard {
            Heard::Aside(text) => {
                self.take_refusal(&text);
                self.note(vec![Block::text(&text)]).await?;
                return Ok(None);
            }
            Heard::Line(text) | Heard::Text(text) => text,
        };
        let (reports, next) = self.turn.take(Frame::read(&text));
        for report in reports {
            self.outbox.report(report).await?;
        }
        match next {
            Next::GoOn => {}
            Next::TookUp(id) => {
                if let Some(place) = self.passed_on.iter().position(|passed_on| *passed_on == id) {
                    self.passed_on.remove(place);
                    self.outbox.report(Report::TookUp).await?;
                }
            }
            Next::Begun(facts) => {
                self.began = true;
                self.claude.learn(|known| *known = Some(facts));
                held.begun();
            }
            Next::Answer(request) => self.answer(&request, line).await,
            Next::Over(outcome) => {
                outcome.errors.iter().for_each(|error| self.take_refusal(error));
                if !self.began && outcome.is_error {
                    self.early = *outcome;
                    self.over_by = Some(Instant::now() + self.claude.settings.bounds.grace);
                    return Ok(None);
                }
                self.used = line.meter.look();
                // The program goes on by itself with what it was told and has not taken up.
                if !self.passed_on.is_empty() {
                    for report in self.turn.pause(&outcome) {
                        self.outbox.report(report).await?;
                    }
                    return Ok(None);
                }
                let aside = line.reader.aside_now().await;
                self.note(aside.iter().map(|aside| Block::text(aside)).collect()).await?;
                self.end(&outcome).await?;
                return Ok(Some(Ended::Done));
            }
        }
        Ok(None)
    }

    /// No result is to be expected any more.
    async fn end_early(&mut self) -> Result<Ended, Halt> {
        if let Some(refusal) = self.refusal.take() {
            self.over_by = None;
            return Ok(refusal);
        }
        let outcome = std::mem::take(&mut self.early);
        self.end(&outcome).await?;
        Ok(Ended::Done)
    }

    async fn end(&mut self, outcome: &frame::Outcome) -> Result<(), Halt> {
        let window = outcome.model_usage.values().find_map(facts::context_window);
        self.claude.learn(|known| {
            if let Some(facts) = known {
                facts.context_window = window.or(facts.context_window);
            }
        });
        let mut reports = self.turn.end(outcome, self.used.block(), seconds_now());
        let last = reports.pop();
        for report in reports {
            self.outbox.report(report).await?;
        }
        // Where git is asked, the end is told when the program is gone.
        if self.site.as_ref().is_some_and(Site::is_watched) {
            self.last = last;
            return Ok(());
        }
        Ok(self.settle(last).await?)
    }

    /// Tells what git saw, what of the agent's claims holds, and how the turn ended.
    pub async fn settle(&mut self, last: Option<Report>) -> Result<(), Stopped> {
        let Some(last) = last.or_else(|| self.last.take()) else { return Ok(()) };
        let is_done = matches!(last, Report::Status { state: TaskState::Completed, .. });
        for report in self.close(is_done).await.into_iter().chain([last]) {
            self.outbox.report(report).await?;
        }
        Ok(())
    }

    /// Words in which versions say that a conversation is there, or not.
    fn take_refusal(&mut self, text: &str) {
        if self.began {
            return;
        }
        let text = text.to_lowercase();
        let not_found = ["no conversation found", "session not found", "no session found", "no such session"];
        if text.contains("already in use") {
            self.refusal = Some(Ended::InUse);
        } else if not_found.iter().any(|words| text.contains(words)) {
            self.refusal = Some(Ended::NotFound);
        }
    }

    async fn answer(&mut self, request: &frame::Request, line: &mut Line<'_>) {
        let id = request.request_id.clone();
        match permission::matter(&request.request) {
            Matter::Permission(wish) => {
                let outbox = self.outbox.clone();
                line.verdicts
                    .spawn(async move { permission::verdict(&id, &permission::decide(&id, wish, &outbox).await) });
            }
            Matter::Question(question) => {
                self.turn.ask(question);
                self.over_by = Some(Instant::now() + self.claude.settings.bounds.grace);
                line.tell(permission::passed_on(&id)).await;
            }
            Matter::Other => line.tell(permission::not_known(request)).await,
        }
    }

    /// Tells the program what the caller says meanwhile. What cannot be told waits, and is refused in its own run.
    async fn pass_on(&mut self, message: &Message, line: &mut Line<'_>) {
        let id = uuid::Uuid::new_v4().to_string();
        if let Ok(said) = prompt::user_line(message, &id) {
            self.passed_on.push(id);
            line.tell(said).await;
        }
    }

    fn silent(&self, silence: &Silence) -> String {
        match silence {
            Silence::Quiet => {
                let seconds = self.claude.settings.bounds.silence.as_secs_f32();
                format!("Claude Code said nothing for {seconds} s and was stopped.")
            }
            Silence::TooMuch(what) => format!("Claude Code was stopped: {what}."),
        }
    }

    pub async fn note(&self, blocks: Vec<Block>) -> Result<(), Stopped> {
        if blocks.is_empty() { Ok(()) } else { self.outbox.report(Report::Note { blocks }).await }
    }

    /// What there is to tell of a program that is gone and did not say what became of its work.
    pub async fn rest(&mut self) -> Result<(), Stopped> {
        let mut reports = self.turn.break_off();
        reports.extend(self.close(false).await);
        reports.extend(self.used.block().map(|used| Report::Note { blocks: vec![used] }));
        for report in reports {
            self.outbox.report(report).await?;
        }
        Ok(())
    }

    pub async fn fail(&mut self, problem: &str) -> Result<(), Stopped> {
        self.rest().await?;
        let contents = Some(Contents::text(problem));
        self.outbox.report(Report::Status { state: TaskState::Failed, contents, metadata: None }).await
    }
}

impl Line<'_> {
    /// One that does not listen is not waited for: it is silent, and that ends it.
    async fn tell(&mut self, text: String) {
        let _ = self.say.send(text).await;
    }
}
