//! One queue of a device: AF_XDP sockets, one per thread, with their own rings for received and
//! sent packets, and their shared state: the frames and the two rings of frames.

use super::raw::{Consumer, FRAME, Frames, Mapping, PacketFrame, Places, Producer};
use super::trouble::XdpTrouble;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::xdp::{
    SocketAddrXdp, SocketAddrXdpFlags, SocketAddrXdpWithSharedUmem, XDP_PGOFF_RX_RING,
    XDP_PGOFF_TX_RING, XDP_UMEM_PGOFF_COMPLETION_RING, XDP_UMEM_PGOFF_FILL_RING, XdpDesc,
    XdpDescOptions, XdpUmemReg, XdpUmemRegFlags,
};
use rustix::net::{
    AddressFamily, SendFlags, SocketFlags, SocketType, bind, send, socket_with, sockopt,
};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Number of bytes that the kernel leaves free at the start of a frame that it fills.
const HEADROOM: usize = 256;
/// Maximum length of an Ethernet frame that the kernel puts into one memory frame.
pub(crate) const SINGLE_MAX: usize = FRAME - HEADROOM;
/// The maximum length of a packet with its header, all parts together.
const LONGEST: usize = 70_000;
/// Kernel memory for outgoing packets, bytes: the default of 200 KiB is enough for some hundred
/// packets.
const SEND_BUFFER: usize = 32 << 20;
/// Packets sent per system call, if the kernel supports this setting.
const SENT_AT_ONCE: u32 = 512;
/// Consecutive system calls without a sent packet before the rest waits for the next turn.
const TRIES: u32 = 8;

/// Sizes of a queue; powers of two.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Room {
    /// Frames for received packets.
    pub(crate) receive: u32,
    /// Frames for packets to send. They are returned once the receiver has processed the packet.
    pub(crate) send: u32,
    /// Number of threads that share these frames, each with its own socket.
    pub(crate) threads: u32,
}

impl Room {
    /// Returns the maximum number of frames waiting for one thread: fewer than all if other threads
    /// need some.
    fn waiting(self) -> u32 {
        (self.receive / self.threads.next_power_of_two()).max(WAITING_MIN).min(self.receive)
    }
}

/// Sixteen of the longest packets.
const WAITING_MIN: u32 = 256;

/// Binding of a socket.
#[derive(Clone, Copy, Debug)]
pub(crate) struct QueuePlace {
    pub(crate) device: u32,
    pub(crate) queue: u32,
    /// Packets may consist of several frames.
    pub(crate) in_parts: bool,
}

/// Number of frames that a socket takes at once for packets to send, and that all sockets of a
/// queue keep together.
const TAKEN: usize = 64;
const KEPT: usize = 1_024;

/// Returns the number of frames kept by one of this many sockets of a queue.
fn kept(sockets: usize) -> usize {
    (KEPT / sockets.max(1)).max(1)
}

/// State shared by the sockets of one queue.
#[derive(Debug)]
struct QueueMemory {
    frames: Frames,
    pool: Mutex<FramePool>,
}

/// Frames owned by no socket.
#[derive(Debug)]
struct FramePool {
    fill: Producer<u64>,
    done: Consumer<u64>,
    /// Free frames for packets to send.
    free: Vec<PacketFrame>,
}

impl QueueMemory {
    fn pool(&self) -> MutexGuard<'_, FramePool> {
        self.pool.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One socket.
#[derive(Debug)]
pub(crate) struct XdpQueue {
    socket: OwnedFd,
    came: Consumer<XdpDesc>,
    going: Producer<XdpDesc>,
    memory: Arc<QueueMemory>,
    /// Frames for packets to send.
    free: Vec<PacketFrame>,
    /// Frames whose packets were read.
    read: Vec<PacketFrame>,
    /// Parts of a packet whose last part is still missing.
    parts: Vec<u8>,
    in_parts: bool,
    /// Packets that were not accepted.
    refused: u64,
}

impl XdpQueue {
    /// Binds a socket to a queue, with the frames of all threads.
    pub(crate) fn open(place: QueuePlace, room: Room) -> Result<XdpQueue, QueueTrouble> {
        let socket = new_socket()?;
        let (frames, mut ours) =
            Frames::new(room.receive + room.send).map_err(QueueTrouble::Memory)?;
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
        let (mut fill, done) = frame_rings(&socket, room).map_err(QueueTrouble::Memory)?;
        let (came, going) = packet_rings(&socket, room).map_err(QueueTrouble::Memory)?;
        let free = ours.split_off(room.receive as usize);
        for frame in ours {
            fill.put(frames.give_to_kernel(frame));
        }
        fill.publish();
        // without XDP_USE_NEED_WAKEUP: in copy mode each outgoing packet needs a call anyway
        let mut flags = SocketAddrXdpFlags::XDP_COPY;
        if place.in_parts {
            flags |= SocketAddrXdpFlags::XDP_USE_SG;
        }
        let address = SocketAddrXdp::new(flags, place.device, place.queue);
        bind(&socket, &address).map_err(QueueTrouble::Bind)?;
        let pool = Mutex::new(FramePool { fill, done, free });
        let memory = Arc::new(QueueMemory { frames, pool });
        Ok(XdpQueue::new(socket, (came, going), memory, place.in_parts))
    }

    /// Returns another socket of the same queue, with the same memory, for another thread.
    pub(crate) fn share(&self, place: QueuePlace, room: Room) -> Result<XdpQueue, QueueTrouble> {
        let socket = new_socket()?;
        let rings = packet_rings(&socket, room).map_err(QueueTrouble::Memory)?;
        // everything else is as requested by the first socket
        let flags = SocketAddrXdpFlags::XDP_SHARED_UMEM;
        let address = SocketAddrXdpWithSharedUmem {
            addr: SocketAddrXdp::new(flags, place.device, place.queue),
            shared_umem_fd: self.socket.as_fd(),
        };
        bind(&socket, &address).map_err(QueueTrouble::Bind)?;
        Ok(XdpQueue::new(socket, rings, self.memory.clone(), place.in_parts))
    }

    fn new(
        socket: OwnedFd,
        (came, going): (Consumer<XdpDesc>, Producer<XdpDesc>),
        memory: Arc<QueueMemory>,
        in_parts: bool,
    ) -> XdpQueue {
        // if this is rejected, the default of the kernel is sufficient
        sockopt::set_socket_send_buffer_size_force(&socket, SEND_BUFFER).ok();
        let (free, read, parts, refused) = Default::default();
        XdpQueue { socket, came, going, memory, free, read, parts, in_parts, refused }
    }

    /// Receives packets, up to `most` from this queue. Frames are returned to the kernel at once.
    pub(crate) fn receive(&mut self, most: usize, mut each: impl FnMut(&[u8])) -> usize {
        let mut packets = 0;
        while packets < most
            && let Some(row) = self.came.take()
        {
            let more = row.options.contains(XdpDescOptions::XDP_PKT_CONTD);
            let Some(frame) = self.memory.frames.reclaim_frame(row.addr) else { continue };
            let offset = row.addr as usize % FRAME;
            let bytes = self.memory.frames.bytes(&frame, offset, row.len as usize);
            if more || !self.parts.is_empty() {
                // longer than any packet: the rest is dropped, and its checksum will be wrong
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
            self.read.push(frame);
        }
        self.came.release();
        if !self.read.is_empty() {
            let mut pool = self.memory.pool();
            for frame in self.read.drain(..) {
                pool.fill.put(self.memory.frames.give_to_kernel(frame));
            }
            pool.fill.publish();
        }
        packets
    }

    /// Reclaims the frames of sent packets, at least this many if available.
    fn reclaim(&mut self, least: usize) {
        let kept = kept(Arc::strong_count(&self.memory));
        let mut pool = self.memory.pool();
        while let Some(place) = pool.done.take() {
            self.free.extend(self.memory.frames.reclaim_frame(place));
        }
        pool.done.release();
        let short = least.saturating_sub(self.free.len());
        if short > 0 {
            let from = pool.free.len().saturating_sub(short);
            self.free.extend(pool.free.drain(from..));
        } else if self.free.len() > kept {
            // packets of another thread were sent too
            let surplus = self.free.len() - kept / 2;
            pool.free.extend(self.free.drain(..surplus));
        }
    }

    /// Prepares an Ethernet frame for sending; [`XdpQueue::flush`] sends it. A packet without room
    /// counts as rejected.
    pub(crate) fn put(&mut self, head: &[u8], packet: &[u8]) {
        let parts = (head.len() + packet.len()).div_ceil(FRAME);
        if parts > 1 && !self.in_parts || !self.has_room(parts) {
            self.refused += 1;
            return;
        }
        let mut before = head;
        let mut rest = packet;
        loop {
            let Some(mut frame) = self.free.pop() else { return };
            let room = self.memory.frames.room(&mut frame);
            let (front, back) = room.split_at_mut(before.len());
            front.copy_from_slice(before);
            let (now, later) = rest.split_at(rest.len().min(back.len()));
            back[..now.len()].copy_from_slice(now);
            let length = before.len() + now.len();
            let more = !later.is_empty();
            let options =
                if more { XdpDescOptions::XDP_PKT_CONTD } else { XdpDescOptions::empty() };
            let addr = self.memory.frames.give_to_kernel(frame);
            self.going.put(XdpDesc { addr, len: length as u32, options });
            if !more {
                return;
            }
            before = &[];
            rest = later;
        }
    }

    /// Returns whether this many frames can be sent, possibly after sending others.
    fn has_room(&mut self, parts: usize) -> bool {
        let has =
            |queue: &XdpQueue| queue.free.len() >= parts && queue.going.room() as usize >= parts;
        if !has(self) {
            let taken = TAKEN.min(kept(Arc::strong_count(&self.memory)));
            self.reclaim(parts.max(taken));
        }
        if !has(self) {
            self.flush();
            self.reclaim(parts);
        }
        has(self)
    }

    /// Sends the prepared packets. In copy mode only this call makes the kernel send, a few at a
    /// time; the rest is sent with the next call.
    pub(crate) fn flush(&mut self) {
        self.going.publish();
        let mut tries = 0;
        let mut before = self.going.waiting();
        let any = before > 0;
        while before > 0 && tries < TRIES {
            match send(&self.socket, &[], SendFlags::DONTWAIT) {
                // no room in the device or no memory: retry
                Ok(_) | Err(Errno::AGAIN | Errno::NOBUFS | Errno::INTR) => {}
                // the device has dropped a packet, and the next call continues after it
                Err(Errno::BUSY) => self.refused += 1,
                // the device is gone or down: waiting packets are sent when it is up again
                Err(_) => break,
            }
            let waiting = self.going.waiting();
            tries = if waiting < before { 0 } else { tries + 1 };
            before = waiting;
        }
        // once: the completion ring has room for every frame that may be sent
        if any {
            self.reclaim(0);
        }
    }

    /// Returns whether there are packets to send that the kernel has not taken.
    pub(crate) fn has_waiting(&self) -> bool {
        self.going.waiting() > 0
    }

    /// Returns the number of packets that were not accepted, since the last call.
    pub(crate) fn refused(&mut self) -> u64 {
        std::mem::take(&mut self.refused)
    }

    /// Returns how many received packets were dropped so far because there was no room.
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

fn new_socket() -> Result<OwnedFd, QueueTrouble> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(AddressFamily::XDP, SocketType::RAW, flags, None);
    socket.map_err(QueueTrouble::Socket)
}

fn mapped(socket: &OwnedFd, offset: u64, length: usize) -> io::Result<Arc<Mapping>> {
    Mapping::new(socket.as_fd(), offset, length).map(Arc::new)
}

/// Creates the frame rings, each with room for all frames: fill ring and completion ring.
fn frame_rings(socket: &OwnedFd, room: Room) -> io::Result<(Producer<u64>, Consumer<u64>)> {
    sockopt::set_xdp_umem_fill_ring_size(socket, room.receive)?;
    sockopt::set_xdp_umem_completion_ring_size(socket, room.send)?;
    let offsets = sockopt::xdp_mmap_offsets(socket)?;
    let fill = Places::from(offsets.fr);
    let done = Places::from(offsets.cr);
    let long = fill.length::<u64>(room.receive);
    let short = done.length::<u64>(room.send);
    let fills = mapped(socket, XDP_UMEM_PGOFF_FILL_RING, long)?;
    let dones = mapped(socket, XDP_UMEM_PGOFF_COMPLETION_RING, short)?;
    Ok((Producer::new(fills, fill, room.receive), Consumer::new(dones, done, room.send)))
}

/// Creates the packet rings: receive ring and transmit ring.
fn packet_rings(
    socket: &OwnedFd,
    room: Room,
) -> io::Result<(Consumer<XdpDesc>, Producer<XdpDesc>)> {
    let waiting = room.waiting();
    sockopt::set_xdp_rx_ring_size(socket, waiting)?;
    sockopt::set_xdp_tx_ring_size(socket, room.send)?;
    set_batch_limit(socket, room.send);
    let offsets = sockopt::xdp_mmap_offsets(socket)?;
    let came = Places::from(offsets.rx);
    let going = Places::from(offsets.tx);
    let cames = mapped(socket, XDP_PGOFF_RX_RING, came.length::<XdpDesc>(waiting))?;
    let goings = mapped(socket, XDP_PGOFF_TX_RING, going.length::<XdpDesc>(room.send))?;
    Ok((Consumer::new(cames, came, waiting), Producer::new(goings, going, room.send)))
}

/// Requests more than 32 packets per system call; kernels before 6.17 have no such setting.
fn set_batch_limit(socket: &OwnedFd, most: u32) {
    super::raw::set_budget(socket.as_fd(), SENT_AT_ONCE.min(most)).ok();
}

/// The error that prevents the use of a queue.
#[derive(Debug)]
pub(crate) enum QueueTrouble {
    Socket(Errno),
    Memory(io::Error),
    Bind(Errno),
}

impl QueueTrouble {
    /// Explains the error as text, with the fix.
    pub(crate) fn explain(self, device: &str, queue: u32) -> XdpTrouble {
        let device = device.to_owned();
        match self {
            QueueTrouble::Socket(Errno::AFNOSUPPORT) => XdpTrouble::NoSockets,
            QueueTrouble::Socket(Errno::MFILE) => XdpTrouble::ManySockets { device },
            QueueTrouble::Socket(Errno::PERM | Errno::ACCESS) => XdpTrouble::Forbidden,
            QueueTrouble::Memory(error)
                if matches!(error.raw_os_error(), Some(libc::ENOBUFS | libc::ENOMEM)) =>
            {
                XdpTrouble::Memory(error)
            }
            QueueTrouble::Bind(Errno::BUSY) => XdpTrouble::QueueBusy { device, queue },
            QueueTrouble::Bind(Errno::NETDOWN) => XdpTrouble::Down { device },
            QueueTrouble::Bind(Errno::PERM) => XdpTrouble::Forbidden,
            QueueTrouble::Bind(error) => {
                XdpTrouble::Other(format!("cannot bind queue {queue} of {device}"), error.into())
            }
            QueueTrouble::Socket(error) => {
                XdpTrouble::Other("cannot create an AF_XDP socket".to_owned(), error.into())
            }
            QueueTrouble::Memory(error) => {
                XdpTrouble::Other("cannot create the AF_XDP rings".to_owned(), error)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_thread_has_all_frames_of_a_queue() {
        let waiting = |receive, threads| Room { receive, send: 64, threads }.waiting();
        assert_eq!(
            [1, 2, 3, 8, 16, 64].map(|it| waiting(4_096, it)),
            [4_096, 2_048, 1_024, 512, 256, 256]
        );
        assert_eq!([1, 2, 8, 64].map(|it| waiting(2_048, it)), [2_048, 1_024, 256, 256]);
        assert_eq!([0, 1, 2, 8, 16, 64].map(kept), [1_024, 1_024, 512, 128, 64, 16]);
    }

    #[test]
    fn a_limit_too_low_for_the_sockets_is_reported() {
        assert_eq!(
            QueueTrouble::Socket(Errno::MFILE).explain("eth0", 7).to_string(),
            "each thread needs a socket per queue of eth0, more than the descriptor limit of \
            this process allows; fix: use fewer --threads, or raise the limit (`ulimit -n`)"
        );
    }
}
