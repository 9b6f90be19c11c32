//! Named paths. Each is a text for [`crate::PathSpec`], with the source of its figures and whether
//! they apply to packets or to requests.

/// A named path.
#[derive(Clone, Copy, Debug)]
pub struct Profile {
    pub name: &'static str,
    /// The text for [`crate::PathSpec::parse`].
    pub text: &'static str,
    pub throttles: Throttles,
    /// One sentence: the link that the profile represents, and the source of its figures.
    pub about: &'static str,
}

/// Meaning of the figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Throttles {
    /// For packets, as here.
    Packets,
    /// For requests in a browser, which applies multipliers to them; here they apply to packets, as
    /// link figures without these multipliers.
    Requests,
}

impl Throttles {
    pub fn id(self) -> &'static str {
        match self {
            Throttles::Packets => "packets",
            Throttles::Requests => "requests",
        }
    }
}

/// Returns the profile with this name.
pub fn profile(name: &str) -> Option<&'static Profile> {
    PROFILES.iter().find(|profile| profile.name == name)
}

/// Returns all profiles, the generic names first.
pub fn profiles() -> &'static [Profile] {
    &PROFILES
}

const fn packets(name: &'static str, text: &'static str, about: &'static str) -> Profile {
    Profile { name, text, throttles: Throttles::Packets, about }
}

const fn requests(name: &'static str, text: &'static str, about: &'static str) -> Profile {
    Profile { name, text, throttles: Throttles::Requests, about }
}

const PROFILES: [Profile; 43] = [
    packets("perfect", "rtt=0ms", "a path without effect, to measure the cost of the forwarder"),
    packets("lan", "rate=1G, rtt=300us", "a switched gigabit network; order of magnitude"),
    packets(
        "wifi",
        "rate=50M, rtt=6ms, jitter=2ms, dist=exp, loss=0.1%, burst=3",
        "home Wi-Fi with neighbors; order of magnitude",
    ),
    packets("fibre", "down-rate=20M, up-rate=5M, rtt=4ms", "fiber to the home, WebPageTest's FIOS"),
    packets("cable", "down-rate=5M, up-rate=1M, rtt=28ms", "cable, WebPageTest's Cable"),
    packets("dsl", "down-rate=1500k, up-rate=384k, rtt=50ms", "DSL, WebPageTest's DSL"),
    packets(
        "modem",
        "down-rate=49k, up-rate=30k, rtt=120ms",
        "a dial-up modem, WebPageTest's dial-up",
    ),
    packets("isdn", "rate=64k, rtt=40ms", "one ISDN channel of WebMark's day; order of magnitude"),
    packets("2g", "down-rate=280k, up-rate=256k, rtt=800ms", "GPRS, WebPageTest's 2G"),
    packets("edge", "down-rate=240k, up-rate=200k, rtt=840ms", "EDGE, WebPageTest's Edge"),
    packets("3g", "down-rate=1600k, up-rate=768k, rtt=300ms", "UMTS, WebPageTest's 3G"),
    packets("4g", "rate=9M, rtt=170ms", "WebPageTest's 4G"),
    packets("lte", "rate=12M, rtt=70ms", "WebPageTest's LTE"),
    packets(
        "5g",
        "down-rate=300M, up-rate=45M, rtt=25ms, jitter=3ms, dist=exp",
        "5G in the mid-band; order of magnitude",
    ),
    packets(
        "5g-mmwave",
        "down-rate=1G, up-rate=100M, rtt=20ms, outage=4s:400ms",
        "5G in millimeter waves, moving: walls and bodies block it; order of magnitude",
    ),
    packets(
        "train",
        "down-rate=9M, up-rate=3M, rtt=90ms, jitter=20ms, dist=exp, loss=1%, burst=4, outage=25s:2s",
        "a phone on a train: LTE with handovers and tunnels, our own estimate",
    ),
    packets(
        "satellite",
        "down-rate=25M, up-rate=3M, rtt=620ms, loss=0.5%",
        "a geostationary satellite; order of magnitude",
    ),
    packets(
        "satellite-leo",
        "down-rate=100M, up-rate=12M, rtt=50ms, jitter=10ms, dist=exp, loss=1%, burst=8, outage=15s:80ms:fixed",
        "low-orbit satellites, with a handover every 15 s; order of magnitude",
    ),
    packets(
        "webmark-modem",
        "webmark, rate=56k, delay=100ms",
        "WebMark's emulation of a modem: round trips of what the client sends, downloads not limited",
    ),
    packets("webmark-dsl", "webmark, rate=1500k, delay=25ms", "WebMark's emulation of 1.5 Mbit/s"),
    packets("wpt-fios", "down-rate=20M, up-rate=5M, rtt=4ms", "WebPageTest FIOS"),
    packets("wpt-cable", "down-rate=5M, up-rate=1M, rtt=28ms", "WebPageTest Cable"),
    packets("wpt-dsl", "down-rate=1500k, up-rate=384k, rtt=50ms", "WebPageTest DSL"),
    packets("wpt-3g-slow", "rate=400k, rtt=400ms", "WebPageTest 3G Slow"),
    packets("wpt-3g", "down-rate=1600k, up-rate=768k, rtt=300ms", "WebPageTest 3G"),
    packets("wpt-3g-fast", "down-rate=1600k, up-rate=768k, rtt=150ms", "WebPageTest 3G Fast"),
    packets("wpt-4g", "rate=9M, rtt=170ms", "WebPageTest 4G"),
    packets("wpt-lte", "rate=12M, rtt=70ms", "WebPageTest LTE"),
    packets("wpt-edge", "down-rate=240k, up-rate=200k, rtt=840ms", "WebPageTest Edge"),
    packets("wpt-2g", "down-rate=280k, up-rate=256k, rtt=800ms", "WebPageTest 2G"),
    packets("wpt-dial-up", "down-rate=49k, up-rate=30k, rtt=120ms", "WebPageTest Dial"),
    requests(
        "lighthouse-slow-4g",
        "down-rate=1638400, up-rate=750k, rtt=150ms",
        "Lighthouse's mobile default, which counts 1.6·1024 kbit/s",
    ),
    requests("lighthouse-3g", "rate=700k, rtt=300ms", "Lighthouse's regular 3G"),
    requests("lighthouse-desktop", "rate=10240k, rtt=40ms", "Lighthouse's desktop"),
    requests(
        "devtools-3g",
        "rate=500k, rtt=400ms",
        "Chrome's 3G, which takes 0.8 of the rate and 5 times the delay for requests",
    ),
    requests(
        "devtools-slow-4g",
        "down-rate=1600k, up-rate=750k, rtt=150ms",
        "Chrome's Slow 4G, which takes 0.9 of the rate and 3.75 times the delay for requests",
    ),
    requests(
        "devtools-fast-4g",
        "down-rate=9M, up-rate=1500k, rtt=60ms",
        "Chrome's Fast 4G, which takes 0.9 of the rate and 2.75 times the delay for requests",
    ),
    packets(
        "atc-2g-rural",
        "down-rate=20k, up-rate=18k, delay=650ms, loss=2%",
        "Facebook's ATC, rural 2G; 2 % each way",
    ),
    packets("atc-2g-urban", "down-rate=35k, up-rate=32k, delay=650ms", "Facebook's ATC, urban 2G"),
    packets(
        "atc-edge-lossy",
        "down-rate=240k, up-rate=200k, up-delay=440ms, down-delay=400ms, loss=1%",
        "Facebook's ATC, Edge with loss",
    ),
    packets(
        "atc-edge",
        "down-rate=240k, up-rate=200k, up-delay=440ms, down-delay=400ms",
        "Facebook's ATC, Edge",
    ),
    packets("atc-3g", "down-rate=780k, up-rate=330k, delay=100ms", "Facebook's ATC, mean 3G"),
    packets(
        "atc-3g-good",
        "down-rate=850k, up-rate=420k, up-delay=100ms, down-delay=90ms",
        "Facebook's ATC, good 3G",
    ),
];
