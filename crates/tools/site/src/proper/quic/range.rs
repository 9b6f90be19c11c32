//! The faulty server over HTTP/3: the state machine with switches from the simulations, on real
//! QUIC connections. It receives their stream data as pieces, and its pieces are sent on them.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use ::quic::ignoring::IgnoredInput;
use conduit::streams::{self, Cutter, Head, PieceKind};
use faulty::{Act, Defect, Defects, Entry, FaultyServer};
use quinn::{Connection, Dir, ReadError, RecvStream, SendStream, Side, StreamId, VarInt};
use tokio::sync::{Notify, mpsc};
use tokio::task::spawn_local;
use units::Nanos;

use super::QuicListener;

/// Code with which a connection ends whose server has died: H3_INTERNAL_ERROR (RFC 9114 section
/// 8.1).
const DIED: u32 = 0x102;
/// Bytes read off a stream at once.
const CHUNK: usize = 64 << 10;
/// Maximum sleep: nothing is due without an event.
const SLEEP_MAX: Nanos = Nanos::from_secs(3_600);

/// The state machine, and the tasks that execute its decisions, by connection.
struct QuicRange {
    machine: FaultyServer,
    outboxes: BTreeMap<u64, mpsc::UnboundedSender<Act>>,
    connections: u64,
    changed: Rc<Notify>,
}

type Shared = Rc<RefCell<QuicRange>>;

/// Serves forever.
pub(in crate::proper) async fn serve(listener: QuicListener, defects: &Defects) {
    let QuicListener { socket, mut config, .. } = listener;
    config.crypto = ::quic::ignoring::ignoring(config.crypto, ignored_input(defects));
    let own = quinn::EndpointConfig::default();
    let runtime = std::sync::Arc::new(quinn::TokioRuntime);
    let Ok(endpoint) = quinn::Endpoint::new(own, Some(config), socket, runtime) else { return };
    let changed = Rc::new(Notify::new());
    let range: Shared = Rc::new(RefCell::new(QuicRange {
        machine: FaultyServer::over_quic(defects),
        outboxes: BTreeMap::new(),
        connections: 0,
        changed: changed.clone(),
    }));
    spawn_local(keep_time(range.clone(), changed));
    let early = defects.contains(&Defect::ServesEarly);
    while let Some(incoming) = endpoint.accept().await {
        let mut own = range.borrow_mut();
        own.connections += 1;
        let id = own.connections;
        if own.machine.connect(net::reactor::monotonic(), id) == Entry::Refuse {
            incoming.refuse();
            continue;
        }
        let (outbox, acts) = mpsc::unbounded_channel();
        own.outboxes.insert(id, outbox);
        drop(own);
        spawn_local(converse(incoming, early, id, range.clone(), acts));
    }
}

/// Returns the faults below the streams.
fn ignored_input(defects: &Defects) -> IgnoredInput {
    let has = |defect| defects.contains(&defect);
    IgnoredInput {
        forbidden: has(Defect::PassesOverForbidden),
        acks: has(Defect::TakesAnyAck),
        windows: has(Defect::KeepsNoWindow),
        challenges: has(Defect::AnswersNoChallenge),
        handshakes: has(Defect::TakesAnyHandshakeFrame),
        keys: has(Defect::FollowsNoKeyUpdate),
        alerts: has(Defect::PassesOverAlerts),
        parameters: has(Defect::TakesAnyParameter),
        rejections: has(Defect::ClosesOnStaleTickets),
        ..IgnoredInput::default()
    }
}

/// Performs due actions without input.
async fn keep_time(range: Shared, changed: Rc<Notify>) {
    loop {
        range.borrow_mut().carry_out();
        let due = range.borrow().machine.due();
        let now = net::reactor::monotonic();
        let left = if due == Nanos::NEVER { SLEEP_MAX } else { Nanos(due.0.saturating_sub(now.0)) };
        tokio::select! {
            () = tokio::time::sleep(Duration::from_nanos(left.min(SLEEP_MAX).0)) => {}
            () = changed.notified() => {}
        }
    }
}

impl QuicRange {
    fn pass_pieces(&mut self, id: u64, pieces: &[u8]) {
        self.machine.receive(net::reactor::monotonic(), id, pieces);
        self.carry_out();
        self.changed.notify_one();
    }

    fn carry_out(&mut self) {
        for (id, act) in self.machine.acts(net::reactor::monotonic()) {
            if let Some(outbox) = self.outboxes.get(&id) {
                // a closed connection needs nothing more
                outbox.send(act).ok();
            }
        }
    }

    fn remove_connection(&mut self, id: u64) {
        self.outboxes.remove(&id);
        self.machine.remove_connection(net::reactor::monotonic(), id, false);
        self.changed.notify_one();
    }
}

/// Returns the connection once its handshake is over, or before that if `early`.
async fn accept_handshake(incoming: quinn::Incoming, early: bool) -> Option<Connection> {
    if early {
        // a server can always send before its handshake completes
        return incoming.accept().ok()?.into_0rtt().ok().map(|(connection, _)| connection);
    }
    incoming.await.ok()
}

/// Serves one connection to its end.
async fn converse(
    incoming: quinn::Incoming,
    early: bool,
    id: u64,
    range: Shared,
    acts: mpsc::UnboundedReceiver<Act>,
) {
    if let Some(connection) = accept_handshake(incoming, early).await {
        let halves = Rc::new(RefCell::new(Halves::default()));
        let writer = Writer {
            connection: connection.clone(),
            halves: halves.clone(),
            id,
            range: range.clone(),
        };
        let writing = spawn_local(writer.write(acts));
        loop {
            let (send, receive) = tokio::select! {
                both = connection.accept_bi() => match both {
                    Ok((send, receive)) => (Some(send), receive),
                    Err(_) => break,
                },
                one = connection.accept_uni() => match one {
                    Ok(receive) => (None, receive),
                    Err(_) => break,
                },
            };
            let number = u64::from(VarInt::from(receive.id()));
            if let Some(send) = send {
                spawn_local(watch(send.stopped(), number, id, range.clone()));
                halves.borrow_mut().sending.insert(number, send);
            }
            let stop = Rc::new(Notify::new());
            halves.borrow_mut().stops.insert(number, stop.clone());
            spawn_local(read(receive, stop, number, id, range.clone()));
        }
        writing.abort();
    }
    range.borrow_mut().remove_connection(id);
}

/// Our ends of the streams of a connection.
#[derive(Default)]
struct Halves {
    sending: BTreeMap<u64, SendStream>,
    /// Streams whose data is no longer wanted.
    stops: BTreeMap<u64, Rc<Notify>>,
}

/// Reports STOP_SENDING to the state machine.
async fn watch(
    stopped: impl Future<Output = Result<Option<VarInt>, quinn::StoppedError>>,
    number: u64,
    id: u64,
    range: Shared,
) {
    if let Ok(Some(code)) = stopped.await {
        let mut piece = Vec::new();
        streams::put_code(&mut piece, PieceKind::Stop, number, Some(code.into_inner()));
        range.borrow_mut().pass_pieces(id, &piece);
    }
}

/// Passes a stream's data to the state machine.
async fn read(mut stream: RecvStream, stop: Rc<Notify>, number: u64, id: u64, range: Shared) {
    loop {
        let mut piece = Vec::new();
        let chunk = tokio::select! {
            chunk = stream.read_chunk(CHUNK, true) => chunk,
            () = stop.notified() => {
                // refused only where the stream has ended anyway
                stream.stop(VarInt::from_u32(0x10c)).ok();
                return;
            }
        };
        let over = match chunk {
            Ok(Some(chunk)) => {
                streams::put_data(&mut piece, number, &chunk.bytes, false);
                false
            }
            Ok(None) => {
                streams::put_data(&mut piece, number, &[], true);
                true
            }
            Err(ReadError::Reset(code)) => {
                let code = Some(code.into_inner());
                streams::put_code(&mut piece, PieceKind::Reset, number, code);
                true
            }
            Err(_) => return,
        };
        range.borrow_mut().pass_pieces(id, &piece);
        if over {
            return;
        }
    }
}

/// Writes the machine's pieces to the streams of a connection.
struct Writer {
    connection: Connection,
    halves: Rc<RefCell<Halves>>,
    id: u64,
    range: Shared,
}

impl Writer {
    async fn write(self, mut acts: mpsc::UnboundedReceiver<Act>) {
        let mut cutter = Cutter::default();
        while let Some(act) = acts.recv().await {
            match act {
                Act::Send(bytes) => {
                    if self.pieces(&mut cutter, &bytes).await.is_none() {
                        return;
                    }
                }
                Act::Close | Act::GiveUp => self.connection.close(VarInt::from_u32(0x100), b""),
                Act::Reset => self.connection.close(VarInt::from_u32(DIED), b""),
            }
        }
    }

    /// Writes the pieces in `bytes` to their streams; `None` if the connection is closed.
    async fn pieces(&self, cutter: &mut Cutter, bytes: &[u8]) -> Option<()> {
        let mut at = 0;
        while at < bytes.len() {
            at += cutter.open(&bytes[at..]).ok()?;
            let Some(head) = cutter.current() else { break };
            let payload = cutter.payload(&bytes[at..]);
            at += payload.len();
            // the state machine's pieces are complete
            cutter.pass(payload.len());
            self.piece(head, payload).await?;
        }
        Some(())
    }

    async fn piece(&self, head: Head, payload: &[u8]) -> Option<()> {
        let code = || VarInt::try_from(streams::code(payload).unwrap_or(0)).unwrap_or(VarInt::MAX);
        match head.kind {
            PieceKind::Data => {
                let mut stream = self.sending(head.stream).await?;
                // a stream that the client has stopped accepts nothing more, and the others
                // continue
                if stream.write_all(payload).await.is_ok() && head.last {
                    stream.finish().ok();
                }
                self.halves.borrow_mut().sending.insert(head.stream, stream);
            }
            PieceKind::Reset => {
                if let Some(mut stream) = self.halves.borrow_mut().sending.remove(&head.stream) {
                    stream.reset(code()).ok();
                }
            }
            PieceKind::Stop => {
                if let Some(stop) = self.halves.borrow_mut().stops.remove(&head.stream) {
                    stop.notify_one();
                }
            }
            PieceKind::Close => self.connection.close(code(), b""),
            // the state machine sends nothing else
            _ => {}
        }
        Some(())
    }

    /// Returns the sending end of a stream; unidirectional ones are ours and are opened in order.
    async fn sending(&self, number: u64) -> Option<SendStream> {
        let held = self.halves.borrow_mut().sending.remove(&number);
        if held.is_some() {
            return held;
        }
        let stream = self.connection.open_uni().await.ok()?;
        spawn_local(watch(stream.stopped(), number, self.id, self.range.clone()));
        (stream.id() == StreamId::new(Side::Server, Dir::Uni, number >> 2)).then_some(stream)
    }
}
