//! The cheapest HTTP/1.1 server: constant 13-byte body, keep-alive, one thread.
//!
//! nullserver ADDR [--uring]                         ceiling runs
//! nullserver ADDR --delay-us D [--stall-ms S --period-ms P] [--spin]
//!     answers every request D after it was read; S > 0 freezes the whole server for S out of
//!     every P ms, counted from the first request after >= 1 s without any (so each run sees the
//!     same phase: a freeze at P, 2P, 3P ...).
//! GET /__count gives nginx stub_status-like counters; GET /__pace/RATE[/SKIP] gives how late each
//! arrival of the current run was against an ideal RATE/s schedule, the first SKIP left out (delay
//! mode). GET /__late gives how late the server's own responses were (those that fell due in a freeze or
//! in the 20 ms after it left out), and how much longer than planned a freeze lasted.
use io_uring::{cqueue, opcode, squeue, types, IoUring};
use limit::*;
use std::collections::VecDeque;
use std::io::Write;
use std::os::fd::AsRawFd;

const RESP: &[u8] = b"HTTP/1.1 200 OK\r\nServer: null\r\nDate: Thu, 01 Jan 1970 00:00:00 GMT\r\nContent-Type: text/plain\r\nContent-Length: 13\r\nConnection: keep-alive\r\n\r\nHello, world!";
const BATCH: usize = 64;

/// Requests completed by `b`; `st` is how much of "\r\n\r\n" was already seen.
#[inline(always)]
fn ends(b: &[u8], st: &mut u8) -> usize {
    // whole GET requests and nothing else: the usual case
    if *st == 0 && b.len() >= 4 && b.ends_with(b"\r\n\r\n") && b.len() < 256 && memmem(&b[..b.len() - 4]).is_none() {
        return 1;
    }
    let mut n = 0;
    for &c in b {
        *st = match (*st, c) {
            (0 | 2, b'\r') => *st + 1,
            (1, b'\n') => 2,
            (3, b'\n') => {
                n += 1;
                0
            }
            (_, b'\r') => 1,
            _ => 0,
        };
    }
    n
}
#[inline(always)]
fn memmem(h: &[u8]) -> Option<usize> {
    let p = unsafe { libc::memmem(h.as_ptr().cast(), h.len(), b"\r\n\r\n".as_ptr().cast(), 4) };
    if p.is_null() { None } else { Some(p as usize - h.as_ptr() as usize) }
}

struct Stat {
    accepts: u64,
    requests: u64,
    arrivals: Vec<u64>,
    late: Vec<u64>,
    over: u64,
}
impl Stat {
    /// Answers the two control paths; true if it was one.
    #[cold]
    fn control(&mut self, fd: i32, b: &[u8]) {
        let line = String::from_utf8_lossy(b);
        let path = line.split_whitespace().nth(1).unwrap_or("");
        let body = if let Some(r) = path.strip_prefix("/__pace/") {
            let (rate, skip) = r.split_once('/').unwrap_or((r, "0"));
            self.pace(rate.parse().unwrap_or(1.0), skip.parse().unwrap_or(0))
        } else if path == "/__late" {
            self.lateness()
        } else {
            self.requests += 1;
            format!("accepts handled requests\n {} {} {}\n", self.accepts, self.accepts, self.requests)
        };
        let s = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}", body.len());
        unsafe { libc::send(fd, s.as_ptr().cast(), s.len(), libc::MSG_NOSIGNAL) };
    }
    fn lateness(&mut self) -> String {
        let mut l = std::mem::take(&mut self.late);
        l.sort_unstable();
        if l.is_empty() {
            return "none\n".into();
        }
        let q = |p: f64| l[((l.len() as f64 * p).ceil() as usize).clamp(1, l.len()) - 1] / 1000;
        let over = std::mem::take(&mut self.over) as f64 / 1e6;
        format!("late n {} p50_us {} p99_us {} max_us {} freeze_over_ms {over:.3}\n", l.len(), q(0.5), q(0.99), q(1.0))
    }
    fn pace(&mut self, rate: f64, skip: usize) -> String {
        let mut a = std::mem::take(&mut self.arrivals);
        a.drain(..skip.min(a.len()));
        if a.len() < 10 {
            return "none\n".into();
        }
        let e: Vec<f64> = a.iter().enumerate().map(|(i, &t)| (t - a[0]) as f64 / 1e3 - i as f64 * 1e6 / rate).collect();
        let m = e.iter().cloned().fold(f64::MAX, f64::min);
        let mut l: Vec<f64> = e.iter().map(|x| x - m).collect();
        l.sort_by(f64::total_cmp);
        let mut g: Vec<f64> = a.windows(2).map(|w| (w[1] - w[0]) as f64 / 1e3).collect();
        g.sort_by(f64::total_cmp);
        let q = |v: &Vec<f64>, p: f64| v[((v.len() as f64 * p).ceil() as usize).clamp(1, v.len()) - 1];
        let span = (a[a.len() - 1] - a[0]) as f64 / 1e9;
        format!(
            "n {} span {span:.3}s rate {:.2}/s | late vs ideal schedule us: p50 {:.0} p99 {:.0} max {:.0} | gaps us: p1 {:.0} p50 {:.0} p99 {:.0} max {:.0}\n",
            a.len(), (a.len() - 1) as f64 / span, q(&l, 0.5), q(&l, 0.99), q(&l, 1.0), q(&g, 0.01), q(&g, 0.5), q(&g, 0.99), q(&g, 1.0)
        )
    }
}

fn listen(addr: &str) -> i32 {
    let a: std::net::SocketAddr = addr.parse().unwrap();
    assert!(a.ip().is_loopback(), "loopback only");
    let l = std::net::TcpListener::bind(a).unwrap();
    let fd = l.as_raw_fd();
    congestion(fd);
    unsafe { libc::listen(fd, 16384) };
    std::mem::forget(l);
    fd
}
fn nodelay(fd: i32) {
    let one = 1i32;
    unsafe { libc::setsockopt(fd, libc::IPPROTO_TCP, libc::TCP_NODELAY, &one as *const _ as *const _, 4) };
}

fn epoll_server(lfd: i32) {
    let (delay, stall, period): (u64, u64, u64) = (opt("--delay-us", 0u64) * 1000, opt("--stall-ms", 0u64) * 1_000_000, opt("--period-ms", 2000u64) * 1_000_000);
    let spin = has("--spin");
    let mut st = Stat { accepts: 0, requests: 0, arrivals: Vec::with_capacity(1 << 20), late: Vec::with_capacity(1 << 20), over: 0 };
    let mut seen: Vec<u8> = vec![0; 65536];
    let mut gen: Vec<u32> = vec![0; 65536];
    let mut q: VecDeque<(u64, i32, u32)> = VecDeque::new(); // due, fd, generation
    let out = RESP.repeat(BATCH);
    let (mut epoch, mut last, mut stalls) = (0u64, 0u64, 0u64);
    let mut frozen = (0u64, 0u64); // the latest freeze and what is left of it to work off
    unsafe {
        libc::prctl(libc::PR_SET_TIMERSLACK, 1);
        set_nonblocking(lfd);
        let ep = libc::epoll_create1(0);
        let mut ev = libc::epoll_event { events: libc::EPOLLIN as u32, u64: lfd as u64 };
        libc::epoll_ctl(ep, libc::EPOLL_CTL_ADD, lfd, &mut ev);
        let mut evs = vec![libc::epoll_event { events: 0, u64: 0 }; 512];
        let mut buf = vec![0u8; 65536];
        loop {
            let n = if delay == 0 {
                libc::epoll_wait(ep, evs.as_mut_ptr(), 512, -1)
            } else {
                // sleep to 150 us before the next due time, then poll
                let to = match q.front() {
                    _ if spin => 0,
                    None => 1_000_000_000,
                    Some(&(due, ..)) => due.saturating_sub(now_ns() + 150_000),
                };
                let ts = libc::timespec { tv_sec: (to / 1_000_000_000) as i64, tv_nsec: (to % 1_000_000_000) as i64 };
                libc::epoll_pwait2(ep, evs.as_mut_ptr(), 512, &ts, std::ptr::null())
            };
            for ev in &evs[..n.max(0) as usize] {
                let fd = ev.u64 as i32;
                if fd == lfd {
                    loop {
                        let c = libc::accept4(lfd, std::ptr::null_mut(), std::ptr::null_mut(), libc::SOCK_NONBLOCK);
                        if c < 0 {
                            break;
                        }
                        st.accepts += 1;
                        nodelay(c);
                        seen[c as usize] = 0;
                        gen[c as usize] += 1;
                        let mut ev = libc::epoll_event { events: libc::EPOLLIN as u32, u64: c as u64 };
                        libc::epoll_ctl(ep, libc::EPOLL_CTL_ADD, c, &mut ev);
                    }
                    continue;
                }
                let r = libc::read(fd, buf.as_mut_ptr().cast(), buf.len());
                if r <= 0 {
                    if r == 0 || errno() != libc::EAGAIN {
                        gen[fd as usize] += 1;
                        libc::close(fd);
                    }
                    continue;
                }
                let b = &buf[..r as usize];
                if b.starts_with(b"GET /__") {
                    st.control(fd, b);
                    gen[fd as usize] += 1;
                    libc::close(fd);
                    continue;
                }
                let mut k = ends(b, seen.get_unchecked_mut(fd as usize));
                st.requests += k as u64;
                if delay == 0 {
                    while k > 0 {
                        let m = k.min(BATCH);
                        libc::write(fd, out.as_ptr().cast(), m * RESP.len());
                        k -= m;
                    }
                } else {
                    let t = now_ns();
                    if k > 0 {
                        if t - last > 1_000_000_000 {
                            (epoch, stalls, frozen) = (t, 0, (0, 0));
                            st.arrivals.clear();
                            st.late.clear();
                            st.over = 0;
                        }
                        last = t;
                    }
                    for _ in 0..k {
                        st.arrivals.push(t);
                        q.push_back((t + delay, fd, gen[fd as usize]));
                    }
                }
            }
            if delay > 0 {
                let t = now_ns();
                if stall > 0 && epoch > 0 && t - last < 1_000_000_000 && t >= epoch + (stalls + 1) * period {
                    stalls += 1;
                    let end = epoch + stalls * period + stall;
                    while now_ns() < end {
                        std::thread::sleep(std::time::Duration::from_nanos((end - now_ns().min(end)).min(20_000_000)));
                    }
                    last = now_ns();
                    st.over = st.over.max(last - end);
                    frozen = (end - stall, end + 20_000_000);
                }
                while let Some(&(due, fd, g)) = q.front() {
                    let t = now_ns();
                    if due > t {
                        break;
                    }
                    q.pop_front();
                    if due < frozen.0 || due >= frozen.1 {
                        st.late.push(t - due);
                    }
                    if gen[fd as usize] == g {
                        libc::send(fd, RESP.as_ptr().cast(), RESP.len(), libc::MSG_NOSIGNAL);
                    }
                }
            }
        }
    }
}

/// Multishot accept and recv, provided buffers, sends without completions.
fn uring_server(lfd: i32) {
    const SEND: u64 = 1 << 32;
    const ACC: u64 = 1 << 33;
    let mut st = Stat { accepts: 0, requests: 0, arrivals: vec![], late: vec![], over: 0 };
    let mut b = IoUring::builder();
    let mut r: IoUring = b.setup_single_issuer().setup_defer_taskrun().setup_cqsize(16384).build(4096).unwrap();
    let _ = r.submitter().register_ring_fd();
    let (nb, bl) = (1024usize, 4096usize);
    let bufs = vec![0u8; nb * bl];
    let lay = std::alloc::Layout::from_size_align(nb * 16, 4096).unwrap();
    let out = RESP.repeat(BATCH);
    let mut seen: Vec<u8> = vec![0; 65536];
    unsafe {
        let br = std::alloc::alloc_zeroed(lay) as *mut types::BufRingEntry;
        r.submitter().register_buf_ring_with_flags(br as u64, nb as u16, 0, 0).unwrap();
        let tail_p = types::BufRingEntry::tail(br) as *const std::sync::atomic::AtomicU16;
        let mut tail = 0u16;
        let mut give = |bid: u16, store: bool| {
            let e = &mut *br.add(tail as usize & (nb - 1));
            e.set_addr(bufs.as_ptr().add(bid as usize * bl) as u64);
            e.set_len(bl as u32);
            e.set_bid(bid);
            tail = tail.wrapping_add(1);
            if store {
                (*tail_p).store(tail, std::sync::atomic::Ordering::Release);
            }
        };
        for i in 0..nb {
            give(i as u16, i + 1 == nb);
        }
        let acc = opcode::AcceptMulti::new(types::Fd(lfd)).build().user_data(ACC);
        let push = |r: &mut IoUring, e: &squeue::Entry| {
            if r.submission_shared().push(e).is_err() {
                r.submit().unwrap();
                r.submission_shared().push(e).unwrap();
            }
        };
        push(&mut r, &acc);
        let mut cq: Vec<(u64, i32, u32)> = Vec::with_capacity(16384);
        loop {
            let _ = r.submit_and_wait(1);
            cq.clear();
            cq.extend(r.completion().map(|e| (e.user_data(), e.result(), e.flags())));
            for &(ud, res, fl) in &cq {
                if ud == ACC {
                    if res >= 0 {
                        st.accepts += 1;
                        nodelay(res);
                        seen[res as usize] = 0;
                        push(&mut r, &opcode::RecvMulti::new(types::Fd(res), 0).build().user_data(res as u64));
                    }
                    if !cqueue::more(fl) {
                        push(&mut r, &acc);
                    }
                    continue;
                }
                let fd = (ud & 0xffff_ffff) as i32;
                if ud & SEND != 0 {
                    continue;
                }
                if res <= 0 {
                    if let Some(b) = cqueue::buffer_select(fl) {
                        give(b, true);
                    }
                    if res == -libc::ENOBUFS {
                        push(&mut r, &opcode::RecvMulti::new(types::Fd(fd), 0).build().user_data(fd as u64));
                    } else {
                        libc::close(fd);
                    }
                    continue;
                }
                let bid = cqueue::buffer_select(fl).unwrap();
                let b = std::slice::from_raw_parts(bufs.as_ptr().add(bid as usize * bl), res as usize);
                let k = if b.starts_with(b"GET /__") {
                    st.control(fd, b);
                    libc::shutdown(fd, libc::SHUT_RDWR);
                    0
                } else {
                    ends(b, &mut seen[fd as usize])
                };
                give(bid, true);
                st.requests += k as u64;
                if k > 0 {
                    let l = (k.min(BATCH) * RESP.len()) as u32;
                    push(&mut r, &opcode::Send::new(types::Fd(fd), out.as_ptr(), l).build().user_data(SEND | fd as u64).flags(squeue::Flags::SKIP_SUCCESS));
                }
                if !cqueue::more(fl) {
                    push(&mut r, &opcode::RecvMulti::new(types::Fd(fd), 0).build().user_data(fd as u64));
                }
            }
        }
    }
}

fn main() {
    let a: Vec<String> = std::env::args().collect();
    let l = listen(&a[1]);
    println!("pid {} listening on {}", std::process::id(), a[1]);
    std::io::stdout().flush().unwrap();
    if has("--uring") {
        uring_server(l)
    } else {
        epoll_server(l)
    }
}
