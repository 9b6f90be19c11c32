//! One queue of a device: a socket of AF_XDP with its four rings and the frames that go round in them.

use super::raw::{Consumer, FRAME, Frames, Mapping, Places, Producer};
use super::trouble::XdpTrouble;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::xdp::{
    SocketAddrXdp, SocketAddrXdpFlags, XDP_PGOFF_RX_RING, XDP_PGOFF_TX_RING,
    XDP_UMEM_PGOFF_COMPLETION_RING, XDP_UMEM_PGOFF_FILL_RING, XdpDesc, XdpDescOptions, XdpUmemReg,
    XdpUmemRegFlags,
};
use rustix::net::{
    AddressFamily, SendFlags, SocketFlags, SocketType, bind, send, socket_with, sockopt,
};
use std::io;
use std::sync::Arc;

/// Bytes that the kernel leaves free at the beginning of a frame that it fills.
const HEADROOM: usize = 256;
/// The longest Ethernet frame that the kernel puts into one frame of memory.
pub(crate) const SINGLE_MAX: usize = FRAME - HEADROOM;
/// The longest packet with its head, of all its parts together.
const LONGEST: usize = 70_000;
/// What packets that are on their way out may take of the kernel's memory, bytes: the usual 200 KiB are
/// some hundred packets.
const SEND_BUFFER: usize = 32 << 20;
/// So many packets go out in one system call, where the kernel can be asked for that.
const SENT_AT_ONCE: u32 = 512;
/// System calls in a row without any packet that goes out, before the rest waits for the next turn.
const TRIES: u32 = 8;

/// How much room a queue has; powers of two.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Room {
    /// Frames for what comes.
    pub(crate) receive: u32,
    /// Frames for what goes out. They come back when the packet's receiver is done with it.
    pub(crate) send: u32,
}

/// Where a socket is bound.
#[derive(Clone, Copy, Debug)]
pub(crate) struct QueuePlace {
    pub(crate) device: u32,
    pub(crate) queue: u32,
    /// Packets may be of several frames.
    pub(crate) in_parts: bool,
}

/// One socket.
#[derive(Debug)]
pub(crate) struct XdpQueue {
    socket: OwnedFd,
    fill: Producer<u64>,
    done: Consumer<u64>,
    came: Consumer<XdpDesc>,
    going: Producer<XdpDesc>,
    frames: Frames,
    /// Frames for packets to be sent that are ours.
    free: Vec<u32>,
    /// Frames from this one on are for packets to be sent.
    first_sent: u32,
    /// The parts of a packet whose last one has not come.
    parts: Vec<u8>,
    in_parts: bool,
    /// Packets that were not taken.
    refused: u64,
}

impl XdpQueue {
    /// Binds a socket to a queue; everything that may come has room.
    pub(crate) fn open(place: QueuePlace, room: Room) -> Result<XdpQueue, QueueTrouble> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = socket_with(AddressFamily::XDP, SocketType::RAW, flags, None);
        let socket = socket.map_err(QueueTrouble::Socket)?;
        let frames = Frames::new(room.receive + room.send).map_err(QueueTrouble::Memory)?;
        let memory = XdpUmemReg {
            addr: frames.address(),
            len: frames.length(),
            chunk_size: FRAME as u32,
            headroom: 0,
            flags: XdpUmemRegFlags::empty(),
            tx_metadata_len: 0,
        };
        sockopt::set_xdp_umem_reg(&socket, memory)
            .map_err(|error| QueueTrouble::Memory(error.into()))?;
        let (fill, done, came, going) = rings(&socket, room).map_err(QueueTrouble::Memory)?;
        let mut queue = XdpQueue {
            fill,
            done,
            came,
            going,
            frames,
            free: (room.receive..room.receive + room.send).rev().collect(),
            first_sent: room.receive,
            parts: Vec::new(),
            in_parts: place.in_parts,
            refused: 0,
            socket,
        };
        for frame in 0..room.receive {
            let place = queue.frames.lend(frame);
            queue.fill.put(place);
        }
        queue.fill.publish();
        queue.bind(place)?;
        // what is refused here is the kernel's default, which will do
        sockopt::set_socket_send_buffer_size_force(&queue.socket, SEND_BUFFER).ok();
        Ok(queue)
    }

    fn bind(&self, place: QueuePlace) -> Result<(), QueueTrouble> {
        // without XDP_USE_NEED_WAKEUP: in copy mode each packet that is to go out needs a call all the same
        let mut flags = SocketAddrXdpFlags::XDP_COPY;
        if place.in_parts {
            flags |= SocketAddrXdpFlags::XDP_USE_SG;
        }
        let address = SocketAddrXdp::new(flags, place.device, place.queue);
        bind(&self.socket, &address).map_err(QueueTrouble::Bind)
    }

    /// Takes in what has come, `most` packets of this queue at most. Frames go back to the kernel at once.
    pub(crate) fn receive(&mut self, most: usize, mut each: impl FnMut(&[u8])) -> usize {
        let mut packets = 0;
        while packets < most
            && let Some(row) = self.came.take()
        {
            let more = row.options.contains(XdpDescOptions::XDP_PKT_CONTD);
            let Some(frame) = self.frames.back(row.addr) else { continue };
            let offset = row.addr as usize % FRAME;
            let bytes = self.frames.bytes(frame, offset, row.len as usize);
            if more || !self.parts.is_empty() {
                // longer than any packet: the rest is left out, and its checksum will be wrong
                let room = LONGEST - self.parts.len();
                self.parts.extend_from_slice(&bytes[..bytes.len().min(room)]);
                if !more {
                    each(&self.parts);
                    self.parts.clear();
                }
            } else {
                each(bytes);
            }
            packets += usize::from(!more);
            let place = self.frames.lend(frame);
            self.fill.put(place);
        }
        self.came.release();
        self.fill.publish();
        packets
    }

    /// Takes back the frames of packets that have gone out.
    fn reclaim(&mut self) {
        while let Some(place) = self.done.take() {
            if let Some(frame) = self.frames.back(place)
                && frame >= self.first_sent
            {
                self.free.push(frame);
            }
        }
        self.done.release();
    }

    /// Makes a frame of Ethernet ready to go out; [`XdpQueue::flush`] sends it. What there is no room for is
    /// counted as refused.
    pub(crate) fn put(&mut self, head: &[u8], packet: &[u8]) {
        let parts = (head.len() + packet.len()).div_ceil(FRAME);
        if parts > 1 && !self.in_parts || !self.has_room(parts) {
            self.refused += 1;
            return;
        }
        let (mut before, mut rest) = (head, packet);
        loop {
            let Some(frame) = self.free.pop() else { return };
            let room = self.frames.room(frame);
            let (front, back) = room.split_at_mut(before.len());
            front.copy_from_slice(before);
            let (now, later) = rest.split_at(rest.len().min(back.len()));
            back[..now.len()].copy_from_slice(now);
            let (length, more) = (before.len() + now.len(), !later.is_empty());
            let options =
                if more { XdpDescOptions::XDP_PKT_CONTD } else { XdpDescOptions::empty() };
            let addr = self.frames.lend(frame);
            self.going.put(XdpDesc { addr, len: length as u32, options });
            if !more {
                return;
            }
            (before, rest) = (&[], later);
        }
    }

    /// Whether so many frames can go out, where need be after others did.
    fn has_room(&mut self, parts: usize) -> bool {
        for tried in [false, true] {
            if self.free.len() >= parts && self.going.room() as usize >= parts {
                return true;
            }
            if !tried {
                self.flush();
                self.reclaim();
            }
        }
        false
    }

    /// Sends what is ready. In copy mode nothing else makes the kernel send, and it takes some at a time;
    /// what it does not take now goes with the next call.
    pub(crate) fn flush(&mut self) {
        self.going.publish();
        let (mut tries, mut before) = (0, self.going.waiting());
        while before > 0 && tries < TRIES {
            match send(&self.socket, &[], SendFlags::DONTWAIT) {
                // no room with the device, of the ring of what is done, or of memory: again
                Ok(_) | Err(Errno::AGAIN | Errno::NOBUFS | Errno::INTR) => {}
                // the device has dropped a packet, and the next call goes on behind it
                Err(Errno::BUSY) => self.refused += 1,
                // the device is gone or down: what waits is sent when it is up again
                Err(_) => break,
            }
            self.reclaim();
            let waiting = self.going.waiting();
            tries = if waiting < before { 0 } else { tries + 1 };
            before = waiting;
        }
    }

    /// Whether there is something to be sent that the kernel has not taken.
    pub(crate) fn has_waiting(&self) -> bool {
        self.going.waiting() > 0
    }

    /// Packets that were not taken, since this was last asked.
    pub(crate) fn refused(&mut self) -> u64 {
        std::mem::take(&mut self.refused)
    }

    /// Packets that came and found no room, so far.
    pub(crate) fn missed(&self) -> u64 {
        let counts = sockopt::xdp_statistics(&self.socket);
        counts.map_or(0, |counts| counts.rx_dropped + counts.rx_ring_full.unwrap_or(0))
    }
}

impl AsFd for XdpQueue {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

type Rings = (Producer<u64>, Consumer<u64>, Consumer<XdpDesc>, Producer<XdpDesc>);

/// Makes the rings, each of which has room for all frames that can be in it.
fn rings(socket: &OwnedFd, room: Room) -> io::Result<Rings> {
    sockopt::set_xdp_umem_fill_ring_size(socket, room.receive)?;
    sockopt::set_xdp_umem_completion_ring_size(socket, room.send)?;
    sockopt::set_xdp_rx_ring_size(socket, room.receive)?;
    sockopt::set_xdp_tx_ring_size(socket, room.send)?;
    sent_at_once(socket, room.send);
    let offsets = sockopt::xdp_mmap_offsets(socket)?;
    let map = |offset, length| Mapping::of(socket.as_fd(), offset, length).map(Arc::new);
    let (fill, done) = (Places::from(offsets.fr), Places::from(offsets.cr));
    let (came, going) = (Places::from(offsets.rx), Places::from(offsets.tx));
    let length = (fill.length::<u64>(room.receive), done.length::<u64>(room.send));
    let fills = map(XDP_UMEM_PGOFF_FILL_RING, length.0)?;
    let dones = map(XDP_UMEM_PGOFF_COMPLETION_RING, length.1)?;
    let cames = map(XDP_PGOFF_RX_RING, came.length::<XdpDesc>(room.receive))?;
    let goings = map(XDP_PGOFF_TX_RING, going.length::<XdpDesc>(room.send))?;
    Ok((
        Producer::new(fills, fill, room.receive),
        Consumer::new(dones, done, room.send),
        Consumer::new(cames, came, room.receive),
        Producer::new(goings, going, room.send),
    ))
}

/// Asks for more packets a system call than 32; kernels before 6.17 have no such setting.
fn sent_at_once(socket: &OwnedFd, most: u32) {
    super::raw::set_budget(socket.as_fd(), SENT_AT_ONCE.min(most)).ok();
}

/// What is in the way of a queue.
#[derive(Debug)]
pub(crate) enum QueueTrouble {
    Socket(Errno),
    Memory(io::Error),
    Bind(Errno),
}

impl QueueTrouble {
    /// In words, with the way out.
    pub(crate) fn explain(self, device: &str, queue: u32) -> XdpTrouble {
        let device = device.to_owned();
        match self {
            QueueTrouble::Socket(Errno::AFNOSUPPORT) => XdpTrouble::NoSockets,
            QueueTrouble::Socket(Errno::PERM | Errno::ACCESS) => XdpTrouble::Forbidden,
            QueueTrouble::Memory(error)
                if matches!(error.raw_os_error(), Some(libc::ENOBUFS | libc::ENOMEM)) =>
            {
                XdpTrouble::Memory(error)
            }
            QueueTrouble::Bind(Errno::BUSY) => XdpTrouble::QueueBusy { device, queue },
            QueueTrouble::Bind(Errno::NETDOWN) => XdpTrouble::Down { device },
            QueueTrouble::Bind(Errno::PERM) => XdpTrouble::Forbidden,
            QueueTrouble::Bind(error) => XdpTrouble::Other(
                format!("queue {queue} of {device} cannot be bound"),
                error.into(),
            ),
            QueueTrouble::Socket(error) => {
                XdpTrouble::Other("no socket of AF_XDP can be made".to_owned(), error.into())
            }
            QueueTrouble::Memory(error) => {
                XdpTrouble::Other("the rings of AF_XDP cannot be made".to_owned(), error)
            }
        }
    }
}
