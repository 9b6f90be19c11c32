use super::super::shape::{between, line, ratio};
use super::super::{Confidence, Rule, Sign, View};
use sample::FailureClass;
use units::{Nanos, show};

/// Seconds after which a client's kernel repeats a SYN: doubling from 1 s, or with Linux 6.5 and
/// later four times a second apart before it doubles.
const REPEATS_S: &[f64] = &[1.0, 2.0, 3.0, 4.0, 6.0, 7.0];
const PEAKS_MIN: u64 = 3;
const SHARE_MIN: f64 = 0.005;
/// Retransmits on established connections, per late connect, that indicate the path.
const PATH_MIN: f64 = 3.0;

pub(crate) const RULE: Rule = Rule {
    id: "accept-queue-overflow",
    title: "The server accepts connections too slowly for its listen queue",
    reasoning: "When the queue of connections that wait to be accepted is full, the server's \
        kernel silently drops further SYNs, and the client's kernel repeats them after one second, \
        then after two and four more (or every second, on newer Linux). Connect times then have \
        peaks just above 1, 3 and 7 s (or 1, 2, 3 s) and nothing between, while the others take \
        one round trip. A lossy path drops SYNs too, but it drops data as well; losses of an \
        emulated path are subtracted first.",
    source: "RFC 6298 §2 and §5.7 (first retransmission after 1 s); Linux tcp_syn_linear_timeouts \
             (6.5); listen(2) on somaxconn.",
    thresholds: &[
        (3.0, "connects near a repeat's instant, at least"),
        (SHARE_MIN, "share of all connects, at least"),
        (PATH_MIN, "retransmits on established connections per late connect, at most"),
    ],
    advice: "Raise the listen backlog and net.core.somaxconn, accept in a loop until the queue is \
             empty, add acceptors, or keep connections open for more calls.",
    excludes: &["round-timeout", "retransmission", "connection-cap"],
    find,
};

fn find(view: &View<'_>) -> Option<Sign> {
    let connect = &view.total.connect;
    let lost = view.total.failures.get(&FailureClass::ConnectTimeout).copied().unwrap_or(0);
    let total = connect.count() + lost;
    let usual = connect.quantile(0.25);
    if total == 0 || usual > Nanos::from_millis(500) {
        return None;
    }
    let near = |after: &f64| {
        let low = Nanos::from_secs_f64(after - 0.03);
        (*after, line(connect, low, low + Nanos::from_millis(150) + usual).count)
    };
    let peaks: Vec<(f64, u64)> = REPEATS_S.iter().map(near).filter(|(_, n)| *n > 0).collect();
    let late: u64 = peaks.iter().map(|(_, count)| count).sum();
    let all_late = between(connect, Nanos::from_millis(300) + usual, Nanos::from_secs(8));
    let share = ratio((late + lost) as f64, total as f64);
    if late < PEAKS_MIN || share < SHARE_MIN || (all_late - late) * 2 > late {
        return None;
    }
    let times: Vec<String> =
        peaks.iter().map(|(at, count)| format!("{} near {at} s", show::count(*count))).collect();
    let mut text = format!(
        "{} of {} connects ({}) took as long as a repeated SYN: {}; the usual one took {}",
        show::count(late),
        show::count(total),
        show::share(share),
        times.join(", "),
        show::duration(usual)
    );
    let overflows = view.evidence.sut.map_or(0, |sut| sut.listen_overflows());
    if overflows > 0 {
        text += &format!(
            "; the server's kernel counted {} listen queue overflows",
            show::count(overflows)
        );
        return Sign::new(Confidence::Certain, text);
    }
    if view.lost_by_path(late + lost, total) {
        return None;
    }
    let retransmits = view.total.connections.retransmits as f64;
    let sure = if retransmits > PATH_MIN * late as f64 {
        Confidence::Possible
    } else {
        Confidence::Likely
    };
    Sign::new(sure, text)
}
