//! Memory shared with the kernel, and the bpf(2) calls. The only unsafe code of AF_XDP.
#![allow(unsafe_code, reason = "rings and frames that the kernel reads and writes, bpf(2)")]

use super::program::Instruction;
use rustix::net::xdp::{XdpDesc, XdpRingOffset};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};
use std::ffi::c_int;
use std::io;
use std::marker::PhantomData;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};

/// Memory pages shared with the kernel.
#[derive(Debug)]
pub(crate) struct Mapping {
    start: NonNull<u8>,
    length: usize,
}

// SAFETY: it is memory and belongs to no thread; access to its parts is governed by `Frames` and
// the ring positions
unsafe impl Send for Mapping {}
// SAFETY: as above: a shared reference only gives access to atomic positions
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Returns memory initialized to zero.
    pub(crate) fn fresh(length: usize) -> io::Result<Mapping> {
        // shared: after a fork, the kernel and this process must not see different pages
        Mapping::map(length, libc::MAP_SHARED | libc::MAP_ANONYMOUS, -1, 0)
    }

    /// Returns a ring of a socket.
    pub(crate) fn new(socket: BorrowedFd<'_>, offset: u64, length: usize) -> io::Result<Mapping> {
        let flags = libc::MAP_SHARED | libc::MAP_POPULATE;
        Mapping::map(length, flags, socket.as_raw_fd(), offset as libc::off_t)
    }

    fn map(length: usize, flags: c_int, file: RawFd, offset: libc::off_t) -> io::Result<Mapping> {
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: the kernel chooses the address, so that no existing mapping is affected
        let start =
            unsafe { libc::mmap(std::ptr::null_mut(), length, access, flags, file, offset) };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Mapping { start, length })
    }

    /// Returns the memory's address, for the kernel.
    pub(crate) fn address(&self) -> u64 {
        self.start.as_ptr() as u64
    }

    /// Returns a ring position.
    fn number(&self, offset: usize) -> &AtomicU32 {
        assert!(offset.is_multiple_of(4) && offset + 4 <= self.length, "a ring's own number");
        // SAFETY: it is in the mapping, aligned, and accessed by us and the kernel atomically only
        unsafe { AtomicU32::from_ptr(self.start.add(offset).cast().as_ptr()) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: it was mapped with this length, and no reference to it exists anymore; the kernel
        // keeps its own references to the pages as long as it needs them
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.length) };
    }
}

/// The entries of a ring: any bits are a valid value.
pub(crate) trait RingEntry: Copy {}
/// Address of a frame.
impl RingEntry for u64 {}
impl RingEntry for XdpDesc {}

/// The offsets of the parts of a ring in its mapping.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Places {
    producer: usize,
    consumer: usize,
    entries: usize,
}

impl From<XdpRingOffset> for Places {
    fn from(offsets: XdpRingOffset) -> Places {
        Places {
            producer: offsets.producer as usize,
            consumer: offsets.consumer as usize,
            entries: offsets.desc as usize,
        }
    }
}

impl Places {
    /// Returns the number of bytes of a ring with this many entries.
    pub(crate) fn length<T: RingEntry>(&self, entries: u32) -> usize {
        self.entries + entries as usize * size_of::<T>()
    }
}

/// One end of a ring of entries; the kernel has the other end.
#[derive(Debug)]
struct RingEnd<T> {
    mapping: Arc<Mapping>,
    places: Places,
    /// Size, a power of two.
    size: u32,
    of: PhantomData<T>,
}

impl<T: RingEntry> RingEnd<T> {
    fn new(mapping: Arc<Mapping>, places: Places, size: u32) -> RingEnd<T> {
        let end = places.length::<T>(size);
        assert!(size.is_power_of_two() && end <= mapping.length, "the ring lies in its mapping");
        assert!(places.entries.is_multiple_of(align_of::<T>()), "entries are aligned");
        RingEnd { mapping, places, size, of: PhantomData }
    }

    fn entry(&self, position: u32) -> NonNull<T> {
        let row = (position & (self.size - 1)) as usize;
        // SAFETY: all entries are in the mapping, as checked by `new`
        unsafe { self.mapping.start.add(self.places.entries).cast::<T>().add(row) }
    }
}

/// The producer end: of the fill ring and of the transmit ring.
#[derive(Debug)]
pub(crate) struct Producer<T> {
    ring: RingEnd<T>,
    /// Entries ever produced, as the ring counts: modulo 2^32.
    put: u32,
}

impl<T: RingEntry> Producer<T> {
    pub(crate) fn new(mapping: Arc<Mapping>, places: Places, size: u32) -> Producer<T> {
        let ring = RingEnd::new(mapping, places, size);
        let put = ring.mapping.number(places.producer).load(Ordering::Relaxed);
        Producer { ring, put }
    }

    fn taken(&self) -> u32 {
        self.ring.mapping.number(self.ring.places.consumer).load(Ordering::Acquire)
    }

    /// Returns the number of entries not yet consumed.
    pub(crate) fn waiting(&self) -> u32 {
        self.put.wrapping_sub(self.taken())
    }

    /// Returns the number of free entries.
    pub(crate) fn room(&self) -> u32 {
        self.ring.size.saturating_sub(self.waiting())
    }

    /// Adds one entry; [`Producer::publish`] makes it visible. Returns false if the ring is full.
    pub(crate) fn put(&mut self, entry: T) -> bool {
        if self.room() == 0 {
            return false;
        }
        // SAFETY: the other end reads no entry at or after our position, which is where this one is
        unsafe { self.ring.entry(self.put).write_volatile(entry) };
        self.put = self.put.wrapping_add(1);
        true
    }

    pub(crate) fn publish(&mut self) {
        let producer = self.ring.mapping.number(self.ring.places.producer);
        producer.store(self.put, Ordering::Release);
    }
}

/// The consumer end: of the completion ring and of the receive ring.
#[derive(Debug)]
pub(crate) struct Consumer<T> {
    ring: RingEnd<T>,
    /// Entries ever consumed, modulo 2^32.
    taken: u32,
}

impl<T: RingEntry> Consumer<T> {
    pub(crate) fn new(mapping: Arc<Mapping>, places: Places, size: u32) -> Consumer<T> {
        let ring = RingEnd::new(mapping, places, size);
        let taken = ring.mapping.number(places.consumer).load(Ordering::Relaxed);
        Consumer { ring, taken }
    }

    /// Returns the number of available entries.
    pub(crate) fn waiting(&self) -> u32 {
        let put = self.ring.mapping.number(self.ring.places.producer).load(Ordering::Acquire);
        put.wrapping_sub(self.taken).min(self.ring.size)
    }

    /// Consumes one entry; [`Consumer::release`] makes its slot reusable.
    pub(crate) fn take(&mut self) -> Option<T> {
        if self.waiting() == 0 {
            return None;
        }
        // SAFETY: the other end has written it, and overwrites it only after its release; any bits
        // are a valid entry
        let entry = unsafe { self.ring.entry(self.taken).read_volatile() };
        self.taken = self.taken.wrapping_add(1);
        Some(entry)
    }

    pub(crate) fn release(&mut self) {
        let consumer = self.ring.mapping.number(self.ring.places.consumer);
        consumer.store(self.taken, Ordering::Release);
    }
}

/// Size of a frame: a page, the maximum of the kernel.
pub(crate) const FRAME: usize = 4_096;

/// Frame owned by us and not by the kernel: at most one value exists for each.
#[derive(Debug)]
pub(crate) struct PacketFrame {
    number: u32,
    /// The memory it belongs to.
    memory: usize,
}

/// The packet memory, in frames, each owned by the kernel or by us.
#[derive(Debug)]
pub(crate) struct Frames {
    mapping: Mapping,
    /// Number of the memory, unique in this process.
    memory: usize,
    /// The frames owned by the kernel.
    lent: Box<[AtomicBool]>,
}

impl Frames {
    /// Creates memory whose frames are all owned by us.
    pub(crate) fn new(count: u32) -> io::Result<(Frames, Vec<PacketFrame>)> {
        let mapping = Mapping::fresh(count as usize * FRAME)?;
        // not its address, which may be reused after this is dropped
        static MEMORIES: AtomicUsize = AtomicUsize::new(0);
        let memory = MEMORIES.fetch_add(1, Ordering::Relaxed);
        let lent = (0..count).map(|_| AtomicBool::new(false)).collect();
        let ours = (0..count).map(|number| PacketFrame { number, memory }).collect();
        Ok((Frames { mapping, memory, lent }, ours))
    }

    pub(crate) fn address(&self) -> u64 {
        self.mapping.address()
    }

    pub(crate) fn length(&self) -> u64 {
        self.mapping.length as u64
    }

    /// Passes a frame to the kernel; returns its address.
    pub(crate) fn give_to_kernel(&self, frame: PacketFrame) -> u64 {
        let offset = self.offset(&frame);
        self.lent[frame.number as usize].store(true, Ordering::Release);
        offset as u64
    }

    /// Reclaims the frame that contains this address. `None` if the kernel does not own that frame:
    /// its value is not trusted.
    pub(crate) fn reclaim_frame(&self, place: u64) -> Option<PacketFrame> {
        let number = usize::try_from(place).ok()? / FRAME;
        let lent = self.lent.get(number)?.swap(false, Ordering::Acquire);
        lent.then_some(PacketFrame { number: number as u32, memory: self.memory })
    }

    fn offset(&self, frame: &PacketFrame) -> usize {
        assert_eq!(frame.memory, self.memory, "a frame is used with the memory that it is of");
        frame.number as usize * FRAME
    }

    /// Returns the content of a frame from this offset on. Truncated at the end of the frame.
    pub(crate) fn bytes<'a>(
        &'a self,
        frame: &'a PacketFrame,
        offset: usize,
        length: usize,
    ) -> &'a [u8] {
        let start = self.offset(frame);
        let offset = offset.min(FRAME);
        let length = length.min(FRAME - offset);
        // SAFETY: it is in a frame of the mapping, whose bytes were all initialized at creation;
        // the frame is ours, and cannot be lent or written while it is borrowed
        unsafe {
            let start = self.mapping.start.add(start + offset);
            std::slice::from_raw_parts(start.as_ptr(), length)
        }
    }

    /// Returns a writable frame.
    pub(crate) fn room<'a>(&'a self, frame: &'a mut PacketFrame) -> &'a mut [u8] {
        let start = self.offset(frame);
        // SAFETY: as in `bytes`, and the memory is borrowed exclusively
        unsafe {
            let start = self.mapping.start.add(start);
            std::slice::from_raw_parts_mut(start.as_ptr(), FRAME)
        }
    }
}

/// Sets the maximum number of packets sent by one system call (XDP_MAX_TX_SKB_BUDGET, Linux 6.17).
pub(crate) fn set_budget(socket: BorrowedFd<'_>, packets: u32) -> io::Result<()> {
    const XDP_MAX_TX_SKB_BUDGET: c_int = 9;
    // SAFETY: the kernel reads 4 bytes, which live until the call returns
    let done = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_XDP,
            XDP_MAX_TX_SKB_BUDGET,
            std::ptr::from_ref(&packets).cast(),
            size_of::<u32>() as libc::socklen_t,
        )
    };
    if done < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Makes a device receive all multicast, until the descriptor is closed.
pub(crate) fn join_groups(device: u32) -> io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC;
    // of no protocol: it receives no packets
    let socket = socket_with(AddressFamily::PACKET, SocketType::DGRAM, flags, None)?;
    let wish = libc::packet_mreq {
        mr_ifindex: device.cast_signed(),
        mr_type: libc::PACKET_MR_ALLMULTI as libc::c_ushort,
        mr_alen: 0,
        mr_address: [0; 8],
    };
    // SAFETY: the kernel reads one packet_mreq, which lives until the call returns
    let done = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_PACKET,
            libc::PACKET_ADD_MEMBERSHIP,
            std::ptr::from_ref(&wish).cast(),
            size_of::<libc::packet_mreq>() as libc::socklen_t,
        )
    };
    if done < 0 { Err(io::Error::last_os_error()) } else { Ok(socket) }
}

/// `union bpf_attr`, whose fields depend on the command; unset fields are 0.
#[repr(C, align(8))]
struct Attributes([u8; 128]);

impl Attributes {
    /// Creates the fields, each at its offset.
    fn new(fields: &[(usize, &[u8])]) -> Attributes {
        let mut all = Attributes([0; 128]);
        for (offset, bytes) in fields {
            all.0[*offset..offset + bytes.len()].copy_from_slice(bytes);
        }
        all
    }

    /// # Safety
    /// Memory addressed by the fields has the size that the command states, and lives until this
    /// returns.
    unsafe fn call(&mut self, command: c_int) -> io::Result<RawFd> {
        let length = size_of::<Attributes>();
        // SAFETY: the kernel reads and writes the 128 bytes of `self`, and the memory that the
        // caller vouches for
        let done = unsafe { libc::syscall(libc::SYS_bpf, command, self.0.as_mut_ptr(), length) };
        if done < 0 { Err(io::Error::last_os_error()) } else { Ok(done as RawFd) }
    }
}

const BPF_MAP_CREATE: c_int = 0;
const BPF_MAP_UPDATE_ELEM: c_int = 2;
const BPF_PROG_LOAD: c_int = 5;
const BPF_LINK_CREATE: c_int = 28;
const BPF_MAP_TYPE_XSKMAP: u32 = 17;
const BPF_PROG_TYPE_XDP: u32 = 6;
const BPF_XDP: u32 = 37;
const XDP_FLAGS_SKB_MODE: u32 = 1 << 1;
const XDP_FLAGS_DRV_MODE: u32 = 1 << 2;
/// The program supports packets of several parts (Linux 5.18).
const BPF_F_XDP_HAS_FRAGS: u32 = 1 << 5;

/// Creates a map of sockets, with keys below `entries`.
pub(crate) fn make_map(entries: u32) -> io::Result<OwnedFd> {
    let four = 4_u32.to_ne_bytes();
    let mut attributes = Attributes::new(&[
        (0, &BPF_MAP_TYPE_XSKMAP.to_ne_bytes()),
        (4, &four),
        (8, &four),
        (12, &entries.to_ne_bytes()),
    ]);
    // SAFETY: no field is an address; the descriptor is new and owned by no one else
    unsafe { attributes.call(BPF_MAP_CREATE).map(|file| OwnedFd::from_raw_fd(file)) }
}

/// Sends packets that the program redirects to `key` to `socket`.
pub(crate) fn put_socket(map: BorrowedFd<'_>, key: u32, socket: BorrowedFd<'_>) -> io::Result<()> {
    let value = socket.as_raw_fd();
    let mut attributes = Attributes::new(&[
        (0, &map.as_raw_fd().to_ne_bytes()),
        (8, &(std::ptr::from_ref(&key) as u64).to_ne_bytes()),
        (16, &(std::ptr::from_ref(&value) as u64).to_ne_bytes()),
    ]);
    // SAFETY: key and value have 4 bytes, as the map was created with, and live until the call
    // returns
    unsafe { attributes.call(BPF_MAP_UPDATE_ELEM).map(|_| ()) }
}

/// Makes the kernel verify and load a program.
pub(crate) fn load(program: &[Instruction], in_parts: bool) -> io::Result<OwnedFd> {
    let license = c"GPL";
    let flags = if in_parts { BPF_F_XDP_HAS_FRAGS } else { 0 };
    let mut attributes = Attributes::new(&[
        (0, &BPF_PROG_TYPE_XDP.to_ne_bytes()),
        (4, &(program.len() as u32).to_ne_bytes()),
        (8, &(program.as_ptr() as u64).to_ne_bytes()),
        (16, &(license.as_ptr() as u64).to_ne_bytes()),
        (44, &flags.to_ne_bytes()),
        (48, b"loadstone"),
    ]);
    // SAFETY: this many instructions of 8 bytes and a terminated text, all of which live until the
    // call returns; the descriptor is new and owned by no one else
    unsafe { attributes.call(BPF_PROG_LOAD).map(|file| OwnedFd::from_raw_fd(file)) }
}

/// Attaches a program to a device, in the network namespace of the calling thread, until the
/// descriptor is closed, as happens at the end of its process, however it ends.
pub(crate) fn attach(program: BorrowedFd<'_>, device: u32, native: bool) -> io::Result<OwnedFd> {
    let mode = if native { XDP_FLAGS_DRV_MODE } else { XDP_FLAGS_SKB_MODE };
    let mut attributes = Attributes::new(&[
        (0, &program.as_raw_fd().to_ne_bytes()),
        (4, &device.to_ne_bytes()),
        (8, &BPF_XDP.to_ne_bytes()),
        (12, &mode.to_ne_bytes()),
    ]);
    // SAFETY: no field is an address; the descriptor is new and owned by no one else
    unsafe { attributes.call(BPF_LINK_CREATE).map(|file| OwnedFd::from_raw_fd(file)) }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    const PLACES: Places = Places { producer: 0, consumer: 64, entries: 128 };

    /// Returns both ends of a ring, of which the test uses one as the kernel.
    pub(crate) fn both_ends<T: RingEntry>(size: u32) -> (Producer<T>, Consumer<T>) {
        let mapping = Arc::new(Mapping::fresh(PLACES.length::<T>(size)).expect("some memory"));
        (Producer::new(mapping.clone(), PLACES, size), Consumer::new(mapping, PLACES, size))
    }

    #[test]
    fn entries_are_consumed_in_order_once_published() {
        let (mut producer, mut consumer) = both_ends::<u64>(4);
        let mut text = String::new();
        for round in 0..3_u64 {
            for number in 0..5 {
                let took = producer.put(round * 10 + number);
                text += if took { "put " } else { "full " };
            }
            text += &format!("| {} seen, ", consumer.waiting());
            producer.publish();
            text += &format!("{} told:", consumer.waiting());
            while let Some(entry) = consumer.take() {
                text += &format!(" {entry}");
            }
            text += &format!(" | room {}", producer.room());
            consumer.release();
            text += &format!(", then {}\n", producer.room());
        }
        let rounds = ["0 1 2 3", "10 11 12 13", "20 21 22 23"].map(|entries| {
            format!("put put put put full | 0 seen, 4 told: {entries} | room 0, then 4\n")
        });
        assert_eq!(text, rounds.concat());
    }

    #[test]
    fn positions_wrap_at_two_to_the_32() {
        let mapping = Arc::new(Mapping::fresh(PLACES.length::<u64>(8)).expect("some memory"));
        for at in [PLACES.producer, PLACES.consumer] {
            mapping.number(at).store(u32::MAX - 2, Ordering::Relaxed);
        }
        let mut producer = Producer::<u64>::new(mapping.clone(), PLACES, 8);
        let mut consumer = Consumer::<u64>::new(mapping, PLACES, 8);
        for number in 0..100 {
            assert!(producer.put(number) && producer.put(number + 1_000));
            producer.publish();
            assert_eq!((producer.waiting(), consumer.waiting()), (2, 2));
            assert_eq!((consumer.take(), consumer.take()), (Some(number), Some(number + 1_000)));
            assert_eq!(consumer.take(), None);
            consumer.release();
        }
    }

    #[test]
    fn positions_that_make_no_sense_give_no_more_than_the_ring_has() {
        let (mut producer, mut consumer) = both_ends::<u64>(4);
        producer.ring.mapping.number(PLACES.producer).store(77, Ordering::Relaxed);
        assert_eq!(consumer.waiting(), 4);
        assert_eq!(consumer.take(), Some(0));
        producer.ring.mapping.number(PLACES.consumer).store(99, Ordering::Relaxed);
        assert!(!producer.put(1));
    }

    #[test]
    fn a_frame_is_the_kernels_or_ours() {
        let (frames, mut ours) = Frames::new(3).expect("some memory");
        let mut last = ours.pop().expect("there are three");
        frames.room(&mut last)[10..13].copy_from_slice(b"abc");
        assert_eq!(frames.bytes(&last, 10, 3), b"abc");
        // a length reported by the kernel, after the end of the frame
        assert_eq!(frames.bytes(&last, 4_090, 100).len(), 6);
        assert_eq!(frames.bytes(&last, 9_000, 100).len(), 0);
        assert_eq!(frames.give_to_kernel(last), 8_192);
        let back = |place| frames.reclaim_frame(place).map(|frame| frame.number);
        assert_eq!(back(3 * 4_096), None, "no such frame");
        assert_eq!(back(u64::MAX), None);
        assert_eq!(back(4_096), None, "it was not lent");
        // the kernel points into the frame, after its headroom
        assert_eq!((back(8_192 + 256), back(8_192)), (Some(2), None));
    }

    #[test]
    #[should_panic(expected = "a frame is used with the memory that it is of")]
    fn a_frame_of_other_memory_is_not_touched() {
        let (_, ours) = Frames::new(1).expect("some memory");
        let (frames, _) = Frames::new(1).expect("some memory");
        frames.bytes(&ours[0], 0, 1);
    }
}
