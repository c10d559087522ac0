//! One open connection: what comes is worked on, what goes is written, and one that is silent is let go.

use super::agent::Place;
use super::calls::Calls;
use super::lines::{Line, Listed, Outgoing};
use super::metered::{Incoming, Metered};
use super::sittings::Seated;
use super::upcall::Upcalls;
use super::upgrade::Bytes;
use super::{Sockets, own_name};
use crate::app::App;
use crate::gopherhole;
use flotilla_core::caller::Caller;
use flotilla_core::held_bytes::Account;
use flotilla_core::limits::{Limit, count_over};
use flotilla_core::roster::Order;
use flotilla_protocol::a2a::error::{Reason, Refusal};
use flotilla_protocol::channel::{self, Frame};
use flotilla_protocol::hub_frame;
use futures_util::{SinkExt as _, StreamExt as _};
use http::{HeaderMap, Uri};
use metrics::gauge;
use std::sync::Arc;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Error as SocketError, Message};

/// What is read and written at once. Thousands of connections are open and quiet, so it is little.
const BUFFER: usize = 2 * 1024;
/// What a ping says that asks whether all before it has arrived; its pong says the same.
const ARRIVED: &[u8] = b"arrived?";
/// The same of the welcome.
const WELCOMED: &[u8] = b"welcomed?";
/// Frames that are written before they are pushed out.
const TOGETHER: usize = 32;
/// Pings that are answered before the answers are pushed out: a peer that reads none of them is read no further.
const PONGS: usize = 256;

/// How a peer wants to be spoken to when the hub has work for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Manner {
    /// In frames of the hub's own.
    Frames,
    /// The same, and requests are in GopherHole's dialect: the connection was opened at its path.
    GopherHole,
    /// In JSON-RPC requests of A2A 1.0.
    V10,
    /// The same of 0.3.
    V03,
    /// In frames with all a run's facts, as `flotilla worker` wants them.
    Worker,
}

/// Whether a connection goes on.
pub enum Next {
    On,
    /// It ends, with this said last.
    End(u16, &'static str),
}

pub struct Connection {
    pub app: Arc<App>,
    pub caller: Caller,
    pub place: Option<Place>,
    pub manner: Manner,
    /// Service parameters of the connection.
    pub service: (HeaderMap, Uri),
    pub outgoing: Line,
    waiting: mpsc::Receiver<Outgoing>,
    /// Pings since the answers to them were last pushed out.
    pongs: usize,
    pub calls: Calls,
    pub upcalls: Upcalls,
    /// Answers to the frame at hand.
    replies: Vec<String>,
    _listed: Listed,
    seated: Seated,
}

type Socket = WebSocketStream<Metered>;

impl Connection {
    pub fn new(
        app: &Arc<App>,
        caller: Caller,
        place: Option<Place>,
        manner: Manner,
        service: (HeaderMap, Uri),
    ) -> Self {
        let sockets = app.settings().sockets;
        let (outgoing, waiting) = mpsc::channel(sockets.outgoing);
        let _listed = app.lines.add(&caller, outgoing.clone());
        if matches!(manner, Manner::Frames | Manner::GopherHole) {
            gopherhole::catch_up(app, &caller);
        }
        let seated = app.sittings.join(caller.principal);
        let calls = Calls::new(sockets.calls);
        Self {
            app: Arc::clone(app),
            caller,
            place,
            manner,
            service,
            outgoing,
            waiting,
            pongs: 0,
            calls,
            upcalls: Upcalls::default(),
            replies: Vec::new(),
            _listed,
            seated,
        }
    }

    pub async fn run(mut self: Box<Self>, upgraded: oneshot::Receiver<Box<dyn Bytes>>) {
        let Ok(upgraded) = upgraded.await else { return };
        let sockets = self.app.settings().sockets;
        let config = WebSocketConfig::default()
            .read_buffer_size(BUFFER)
            .write_buffer_size(BUFFER)
            .max_message_size(Some(sockets.frame))
            .max_frame_size(Some(sockets.frame));
        let incoming = Incoming::new(self.app.hub.held_bytes().open(Account::Caller(self.caller.principal)));
        let metered = Metered { stream: upgraded, incoming: incoming.clone() };
        let mut socket = Socket::from_raw_socket(metered, Role::Server, Some(config)).await;
        gauge!("flotilla_sockets_open").increment(1.0);
        let (hub, is_agent) = (Arc::clone(&self.app.hub), self.place.is_some());
        if is_agent {
            hub.connection_changed();
        }
        let (code, reason) = self.serve(&mut socket, sockets, &incoming).await;
        gauge!("flotilla_sockets_open").decrement(1.0);
        // What it had is for its next connection, and must not wait until this one has said good-bye.
        drop(self);
        if is_agent {
            hub.connection_changed();
        }
        let frame = CloseFrame { code: CloseCode::from(code), reason: reason.into() };
        let parting = async {
            // Whoever said good-bye first cannot be told another word, but reading on answers them.
            let _ = socket.close(Some(frame)).await;
            while let Some(Ok(message)) = socket.next().await {
                incoming.whole();
                if matches!(message, Message::Ping(_)) && socket.flush().await.is_err() {
                    break;
                }
            }
        };
        let _ = tokio::time::timeout(sockets.write_time.min(std::time::Duration::from_secs(5)), parting).await;
    }

    async fn serve(&mut self, socket: &mut Socket, sockets: Sockets, incoming: &Incoming) -> (u16, &'static str) {
        let resume = self.place.as_ref().map(|place| (place.session.token(), place.resumed));
        let resumed = resume.is_some_and(|(_, resumed)| resumed);
        let name = own_name(&self.caller, self.place.as_ref());
        let welcome = hub_frame::welcome(&name, resume, sockets.ping.as_secs(), sockets.frame);
        if !write(socket, Message::text(welcome), sockets).await {
            return (1001, "the welcome was not taken");
        }
        // The token it came with is good until it has the one in the welcome.
        if resumed && !write(socket, Message::Ping(WELCOMED.into()), sockets).await {
            return (1001, "a ping was not taken");
        }
        let mut heard = Instant::now();
        // Whatever else goes on: one who only reads is heard of by this alone.
        let mut ping_at = heard + sockets.ping;
        let mut leave = self.app.access.leave(&self.caller);
        let app = Arc::clone(&self.app);
        loop {
            let unanswered = self.upcalls.2.due();
            let limits = app.hub.limits();
            let unfinished = incoming.due(limits.body_time, limits.body_rate);
            let next = tokio::select! {
                refusal = leave.ended() => {
                    let _ = write(socket, Message::text(hub_frame::error(&refusal, None)), sockets).await;
                    Next::End(1008, "the key is not valid any more")
                }
                () = app.hub.stopped() => Next::End(1012, "the hub stops; connect again"),
                Some(out) = self.waiting.recv() => self.write_out(socket, out, sockets).await,
                order = order(self.place.as_ref()) => self.obey(socket, order, sockets).await,
                Some(()) = self.calls.ended() => Next::On,
                frame = socket.next() => {
                    heard = Instant::now();
                    match &frame {
                        Some(Ok(Message::Ping(said) | Message::Pong(said))) => incoming.control(said.len()),
                        _ => incoming.whole(),
                    }
                    match incoming.refused() {
                        Some(refusal) => {
                            let _ = write(socket, Message::text(hub_frame::error(&refusal, None)), sockets).await;
                            count_over(Limit::HeldBytesPerCaller.name(), "connection");
                            Next::End(1013, "the message is larger than there is room for now; try again later")
                        }
                        None => self.take(socket, frame, sockets).await,
                    }
                }
                () = tokio::time::sleep_until(unfinished.unwrap_or(ping_at)), if unfinished.is_some() => {
                    count_over(Limit::BodyTime.name(), "connection");
                    Next::End(1008, "a message came too slowly")
                }
                () = tokio::time::sleep_until(heard + sockets.idle) => {
                    count_over("sockets.idle", "connection");
                    Next::End(1001, "nothing was heard for too long")
                }
                () = tokio::time::sleep_until(unanswered.unwrap_or(ping_at)), if unanswered.is_some() => {
                    self.no_answer().await;
                    self.reply(socket, sockets).await
                }
                () = tokio::time::sleep_until(ping_at) => {
                    ping_at = Instant::now() + sockets.ping;
                    match write(socket, Message::Ping(Default::default()), sockets).await {
                        true => Next::On,
                        false => Next::End(1001, "a ping was not taken"),
                    }
                }
            };
            if let Next::End(code, reason) = next {
                return (code, reason);
            }
        }
    }

    /// Writes what waits, and pushes it out once.
    async fn write_out(&mut self, socket: &mut Socket, first: Outgoing, sockets: Sockets) -> Next {
        let writing = async {
            let mut next = Some(first);
            let mut count = 0;
            while let Some(Outgoing { text, held: _held }) = next {
                socket.feed(Message::text(text)).await?;
                count += 1;
                next = if count < TOGETHER { self.waiting.try_recv().ok() } else { None };
            }
            socket.flush().await
        };
        match tokio::time::timeout(sockets.write_time, writing).await {
            Ok(Ok(())) => Next::On,
            _ => Next::End(1008, "what was written was not taken in time"),
        }
    }

    async fn obey(&mut self, socket: &mut Socket, order: Order, sockets: Sockets) -> Next {
        let frame = match order {
            Order::Leave => {
                let text = "Another connection of this agent has taken the place of this one.";
                let _ = write(socket, Message::text(hub_frame::warning(text)), sockets).await;
                return Next::End(4000, "replaced by another connection");
            }
            Order::AskArrival => {
                let asked = write(socket, Message::Ping(ARRIVED.into()), sockets).await;
                return if asked { Next::On } else { Next::End(1001, "a ping was not taken") };
            }
            Order::Deliver(delivery) => self.delivery(&delivery),
            Order::Say { task, run, message } => Self::more(task, run, message),
            Order::Stop { task, run, theirs } => self.stop(task, run, theirs),
            Order::Resume { task, run } => self.resume(task, run),
        };
        for text in frame {
            let mut held = self.app.hub.held_bytes().open(Account::Caller(self.caller.principal));
            held.grow_anyway(text.len());
            if !write(socket, Message::text(text), sockets).await {
                return Next::End(1008, "what was written was not taken in time");
            }
        }
        Next::On
    }

    /// Writes the answers to what was taken up last.
    async fn reply(&mut self, socket: &mut Socket, sockets: Sockets) -> Next {
        for reply in std::mem::take(&mut self.replies) {
            if !write(socket, Message::text(reply), sockets).await {
                return Next::End(1008, "what was written was not taken in time");
            }
        }
        Next::On
    }

    async fn take(
        &mut self,
        socket: &mut Socket,
        frame: Option<Result<Message, SocketError>>,
        sockets: Sockets,
    ) -> Next {
        match frame {
            None => Next::End(1000, "good-bye"),
            Some(Ok(Message::Close(said))) => {
                let code = said.map_or(1005, |said| said.code.into());
                self.seated.said_good_bye = matches!(code, 1000 | 1001 | 1005);
                Next::End(1000, "good-bye")
            }
            Some(Ok(Message::Text(text))) => {
                self.frame(text.as_bytes()).await;
                self.reply(socket, sockets).await
            }
            Some(Ok(Message::Binary(_))) => {
                let refusal = Refusal::new(Reason::InvalidRequest, "Frames are text; binary ones are not taken.");
                let _ = write(socket, Message::text(hub_frame::error(&refusal, None)), sockets).await;
                Next::End(1003, "binary frames are not taken")
            }
            // Whoever answers this has read all that came before it.
            Some(Ok(Message::Pong(said))) if said.as_ref() == ARRIVED => {
                if let Some(place) = &self.place {
                    place.session.arrived();
                }
                Next::On
            }
            Some(Ok(Message::Pong(said))) if said.as_ref() == WELCOMED => {
                if let Some(place) = &self.place {
                    place.session.welcomed();
                }
                Next::On
            }
            // Pings are answered below this; the answers are pushed out here.
            Some(Ok(Message::Ping(_))) => {
                self.pongs += 1;
                if self.pongs < PONGS {
                    return Next::On;
                }
                self.pongs = 0;
                match tokio::time::timeout(sockets.write_time, socket.flush()).await {
                    Ok(Ok(())) => Next::On,
                    _ => Next::End(1008, "the answers to pings were not taken in time"),
                }
            }
            Some(Ok(Message::Pong(_) | Message::Frame(_))) => Next::On,
            Some(Err(SocketError::Capacity(_))) => {
                count_over("sockets.frame", "connection");
                Next::End(1009, "the frame is larger than may be")
            }
            Some(Err(SocketError::Utf8(_))) => Next::End(1007, "the frame is not UTF-8"),
            Some(Err(SocketError::Protocol(_))) => Next::End(1002, "the frame is none of WebSocket"),
            Some(Err(_)) => Next::End(1002, "the connection was cut"),
        }
    }

    /// One frame, whatever it is. Only what must be in order is waited for.
    async fn frame(&mut self, bytes: &[u8]) {
        let limits = self.app.hub.limits();
        let frame = match crate::body::check_depth(bytes, &limits, crate::jsonrpc::ENVELOPE) {
            Ok(()) => Frame::parse(bytes),
            Err(refusal) => Err(refusal),
        };
        match frame {
            Ok(Frame::Request { envelope, service }) => self.call(&envelope, service),
            Ok(Frame::CancelStream { id }) => self.cancel_stream(id),
            Ok(Frame::Result { id, result }) => self.upcall_result(id, Some(result)).await,
            Ok(Frame::NoAnswer { id, refusal }) => {
                self.upcall_result(id, None).await;
                let text = channel::error(id, &refusal, self.app.now());
                self.say(text);
            }
            Ok(Frame::Error { id, error }) => self.upcall_failed(id, &error).await,
            Ok(Frame::StreamEnd { id }) => self.upcall_ended(id).await,
            Ok(Frame::Hub { kind }) => self.hub_frame(&kind, bytes).await,
            Err(refusal) => {
                if !self.refuse_report(bytes, &refusal).await {
                    self.note_refused(bytes, &refusal).await;
                    let text = channel::error("null", &refusal, self.app.now());
                    self.say(text);
                }
            }
        }
    }

    /// Answers the frame at hand. It does not wait behind others: whoever takes frames must not wait for room.
    pub fn say(&mut self, text: String) {
        self.replies.push(text);
    }
}

/// A connection that is gone takes nothing more, and need not.
pub async fn say(outgoing: &Line, text: impl Into<Outgoing>) {
    let _ = outgoing.send(text.into()).await;
}

async fn order(place: Option<&Place>) -> Order {
    match place {
        Some(place) => place.session.order().await,
        None => std::future::pending().await,
    }
}

/// False if the peer does not take it in time, or at all.
async fn write(socket: &mut Socket, message: Message, sockets: Sockets) -> bool {
    matches!(tokio::time::timeout(sockets.write_time, socket.send(message)).await, Ok(Ok(())))
}
