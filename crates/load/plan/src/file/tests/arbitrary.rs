//! Arbitrary plans within the grammars.

use crate::*;
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use sample::BodyPrint;
use std::net::IpAddr;
use std::sync::Arc;
use units::{Nanos, Rate};

fn span() -> impl Strategy<Value = Nanos> {
    prop_oneof![1..10_000_000_000u64, (1..1_000u64).prop_map(|secs| secs * 1_000_000_000)]
        .prop_map(Nanos)
}

fn bytes() -> impl Strategy<Value = Option<Vec<u8>>> {
    let text = any::<String>().prop_map(String::into_bytes);
    option::of(prop_oneof![text, vec(any::<u8>(), 0..20)])
}

fn target() -> impl Strategy<Value = TargetPlan> {
    let url = "https?://[a-z]{1,8}(:[1-9][0-9]{0,3})?/[a-zA-Z0-9/%._~?=&-]{0,12}";
    let url = url.prop_filter_map("no URL", |text| text.parse::<url::Url>().ok());
    let method = option::of("[A-Z]{3,7}".prop_filter("a tunnel", |name| name != "CONNECT"));
    (url, 0.001..1e9, method, vec(header(), 0..3), bytes(), bytes()).prop_map(
        |(url, weight, method, headers, body, raw)| TargetPlan {
            url,
            name: None,
            weight,
            method,
            body,
            headers,
            raw,
        },
    )
}

fn header() -> impl Strategy<Value = (String, String)> {
    ("[A-Za-z][A-Za-z0-9-]{0,12}x", "([!-~ä€]([ -~]{0,10}[!-~])?)?")
}

fn auth() -> impl Strategy<Value = Option<Auth>> {
    let basic = || ("[^:\\pC]{0,8}", "\\PC{0,8}");
    let scope = prop_oneof![Just("aws"), Just("aws:amz"), Just("osc:amz:r"), Just("aws:amz:r:s3")];
    let scope = scope.prop_map(|text| rules::parse_aws_sigv4(text).unwrap());
    option::of(prop_oneof![
        basic().prop_map(|(user, password)| Auth::Basic { user, password }),
        basic().prop_map(|(user, password)| Auth::Digest { user, password }),
        (basic(), scope).prop_map(|((key, secret), scope)| Auth::AwsSigV4 { key, secret, scope }),
        any::<String>().prop_map(Auth::Bearer),
    ])
}

fn request() -> impl Strategy<Value = RequestPlan> {
    let version = prop_oneof![
        Just(HttpVersion::Http10),
        Just(HttpVersion::Http11),
        Just(HttpVersion::Http2),
        Just(HttpVersion::Auto),
        Just(HttpVersion::Http3),
    ];
    let hosts = vec("[a-z]{1,5}[.][a-z]{2,5}x", 0..3);
    let switches = (any::<bool>(), (any::<u16>(), hosts), any::<bool>(), any::<bool>());
    let priority = option::of(
        (0..8u8, any::<bool>())
            .prop_map(|(urgency, incremental)| Priority { urgency, incremental }),
    );
    let names = (any::<String>(), priority);
    ("(GET|PUT|PURGE)", version, vec(header(), 0..4), bytes(), auth(), names, switches).prop_map(
        |(method, version, headers, body, auth, names, switches)| {
            let (user_agent, priority) = names;
            let (compressed, (follow_max, follow_auth), cookies, last_cookie) = switches;
            RequestPlan {
                method,
                version,
                headers,
                body,
                auth,
                user_agent,
                priority,
                compressed,
                follow_max,
                follow_auth,
                cookies,
                last_cookie,
            }
        },
    )
}

const PATHS: &[&str] = &[
    "3g",
    "rtt=80ms, loss=1%",
    "dsl, up-rate=64k, outage=9s:1s",
    "webmark, rate=56k, delay=0ms",
    "rtt=80ms, up-trace=a, down-trace=b",
];

/// The same trace for any file name.
struct OneTrace;

impl wan::TraceSource for OneTrace {
    fn trace(&self, file: &str) -> Result<Arc<wan::Trace>, String> {
        wan::Trace::parse_file(file, format!("{}\n9\n9", file.len()).as_bytes())
    }
}

fn connection() -> impl Strategy<Value = ConnectionPlan> {
    let rule = ("[a-z]{1,5}", 1..=u16::MAX, any::<IpAddr>()).prop_map(|(host, port, address)| {
        let zone = address.is_ipv6().then(|| host.clone()).filter(|_| port % 2 == 0);
        ResolveRule { host, port, address, zone }
    });
    let bind = prop::collection::btree_set(any::<IpAddr>(), 0..4)
        .prop_map(|set| set.into_iter().collect());
    let proxy = option::of("http://([a-z]{1,3}(:[a-z]{1,3})?@)?[a-z]{1,5}(:[1-9][0-9]{1,3})?")
        .prop_map(|text| text.map(|text| text.parse().unwrap()));
    let family =
        prop_oneof![Just(AddressFamily::Any), Just(AddressFamily::V4), Just(AddressFamily::V6)];
    let counts = (any::<Option<u32>>(), any::<u32>(), any::<Option<u32>>());
    let order = prop_oneof![Just(AddressOrder::InTurn), Just(AddressOrder::FirstThatAnswers)];
    let flags = (any::<bool>(), any::<bool>());
    let sockets = (any::<Option<u32>>(), any::<Option<u32>>(), flags, order, span());
    let again = (any::<u16>(), any::<[bool; 2]>(), any::<Option<u32>>(), any::<u32>());
    let unix = option::of(any::<String>().prop_map(std::path::PathBuf::from));
    let path = option::of(prop::sample::select(PATHS))
        .prop_map(|text| text.map(|text| rules::parse_path(text, &OneTrace).unwrap()));
    let clients =
        option::of(prop::sample::select(&["dsl:60%,3g:40%", "far=[rtt=9s, up-trace=b]:100%"][..]))
            .prop_map(|text| text.map(|text| rules::parse_clients(text, &OneTrace).unwrap()));
    let migrate = option::of(prop_oneof![
        span().prop_map(Migrate::Every),
        any::<u32>().prop_map(Migrate::Calls)
    ]);
    let ways = (unix, path, clients, any::<Option<u32>>(), migrate);
    (counts, again, ways, vec(rule, 0..3), bind, sockets, proxy, family).prop_map(
        |(
            counts,
            again,
            (unix, path, clients, idle, migrate),
            resolve,
            bind,
            sockets,
            proxy,
            prefer,
        )| {
            ConnectionPlan {
                calls: counts.0,
                pipeline: counts.1,
                group: counts.2,
                depth: again.2,
                per_user: again.3,
                tries: again.0,
                resend: again.1[0],
                needs_length: again.1[1],
                head_max: counts.1.rotate_left(1),
                unix,
                resolve,
                bind,
                send_buffer: sockets.0,
                recv_buffer: sockets.1,
                nodelay: sockets.2.0,
                reset_on_close: sockets.2.1,
                reconnect_pause: sockets.4,
                proxy,
                prefer,
                addresses: sockets.3,
                path,
                clients,
                idle,
                migrate,
            }
        },
    )
}

fn http2() -> impl Strategy<Value = Http2Plan> {
    any::<[u32; 5]>().prop_map(|numbers| Http2Plan {
        stream_window: numbers[0],
        connection_window: numbers[1],
        header_table: numbers[2],
        encoder_table: numbers[3],
        frame_max: numbers[4],
    })
}

/// Returns token settings, or none, chosen by the plan's seed.
fn token(seed: u64) -> TokenPlan {
    if !seed.is_multiple_of(3) {
        return TokenPlan::default();
    }
    TokenPlan {
        url: Some("https://auth.example/oauth/token?x=1".parse().unwrap()),
        client_id: format!("client {seed}"),
        client_secret: ["", "a\"b\\", "env:X", "@file"][seed as usize % 4].to_owned(),
        scope: (seed & 4 > 0).then(|| "a b".to_owned()),
        audience: (seed & 8 > 0).then(|| "https://api".to_owned()),
        login: [ClientLogin::Basic, ClientLogin::Body][seed as usize / 16 % 2],
        refresh_before: Nanos(seed % 1_000_000_000_000),
        per_user: seed & 32 > 0,
    }
}

fn websocket(seed: u64) -> WebSocketPlan {
    if seed.is_multiple_of(4) {
        return WebSocketPlan::default();
    }
    WebSocketPlan {
        message: [None, Some(b"a {id}".to_vec()), Some(vec![0xff, 0, 1])][(seed % 3) as usize]
            .clone(),
        expect: [
            MessageAnswer::Echo,
            MessageAnswer::Json("/a/b".to_owned()),
            MessageAnswer::Regex("id=(\\d+)".to_owned()),
            MessageAnswer::Next,
            MessageAnswer::None,
        ][(seed % 5) as usize]
            .clone(),
        subprotocols: vec!["chat".to_owned(); (seed % 2) as usize],
        ping: (seed % 7 < 3).then_some(Nanos::from_millis(seed % 1_000 + 1)),
        preset: preset::PRESET_NAMES
            .get((seed % 13) as usize)
            .map(|name| preset::parse_preset(name).unwrap()),
        rooms: (seed % 5 < 2).then_some((seed % 1_000 + 1) as u32),
        live: (seed % 19 < 5).then_some(Nanos::from_millis(seed % 1_000 + 10)),
        storm: (seed % 23 < 5).then_some(Nanos::from_millis(seed % 1_000 + 1)),
        read_rate: (seed % 29 < 5).then_some((seed % 1_000 + 1) as u32),
        per_connection: (seed % 17 < 5).then_some((seed % 1_000 + 1) as u32),
        compress: seed % 11 < 5,
        mask: [MaskRule::Random, MaskRule::Zero][(seed % 2) as usize],
    }
}

fn tls() -> impl Strategy<Value = TlsPlan> {
    let versions =
        prop_oneof![Just(TlsVersions::Any), Just(TlsVersions::Tls12), Just(TlsVersions::Tls13)];
    let names = || vec(any::<String>(), 0..3);
    let name = any::<Option<String>>();
    (any::<[bool; 5]>(), (bytes(), bytes(), bytes()), versions, names(), name, names(), names())
        .prop_map(|(switches, pems, versions, alpn, server_name, groups, ciphers)| TlsPlan {
            insecure: switches[0],
            ca: pems.0,
            cert: pems.1,
            key: pems.2,
            resumption: switches[1],
            sni: switches[2],
            early_data: switches[3],
            user_sessions: switches[4],
            versions,
            alpn,
            server_name,
            groups,
            ciphers,
        })
}

fn think() -> impl Strategy<Value = Think> {
    prop_oneof![
        Just(Think::None),
        span().prop_map(Think::Fixed),
        span().prop_map(Think::Exponential),
        (span(), 0.1f64..5.0).prop_map(|(median, sigma)| Think::Lognormal(median, sigma)),
        (span(), span()).prop_map(|(low, more)| Think::Uniform(low, low + more)),
    ]
}

fn load() -> impl Strategy<Value = Load> {
    let rate = || {
        let odd = (-29.0..39.0_f64).prop_map(f64::exp2);
        prop_oneof![odd, 0.01..1e6, (1..100_000u32).prop_map(f64::from)].prop_map(Rate)
    };
    let gaps = prop_oneof![Just(Gaps::Constant), Just(Gaps::Poisson), Just(Gaps::Uniform)];
    let group = (vec(any::<u32>(), 1..4), prop_oneof![Just(Nanos::ZERO), span()]);
    let group = group.prop_map(|(targets, think)| VisitGroup { targets, think });
    let visit = vec(group, 1..4).prop_map(|groups| Visit { groups });
    let at = vec(span(), 1..4).prop_map(|at| Pace::At(at.into()));
    let pace = option::of(prop_oneof![rate().prop_map(Pace::Every), at]);
    let own = (vec(any::<u32>(), 0..3), pace, any::<Option<u32>>());
    let session = (any::<u32>(), think(), vec(visit, 0..3), any::<[bool; 5]>(), own);
    let session = session.prop_map(|(calls, think, visits, flags, own)| {
        let (lengths, pace, parallel) = own;
        let [lead, one_connection, retry, own_order, survives] = flags;
        SessionPlan {
            calls,
            think,
            visits,
            parallel,
            lead,
            one_connection,
            retry,
            survives,
            lengths,
            own_order,
            start_gap: Nanos(u64::from(calls) * 1_000),
            pace,
        }
    });
    let session = session.boxed();
    let at = option::of(vec(span(), 1..5).prop_map(Arc::from));
    let arrivals = (rate(), rate(), gaps, any::<u32>(), at)
        .prop_map(|(from, to, gaps, burst, at)| Arrivals { from, to, gaps, burst, at });
    let closed = (any::<u32>(), think(), option::of(session.clone()));
    prop_oneof![
        closed.prop_map(|(users, think, session)| {
            let think = if session.is_some() { Think::None } else { think };
            Load::Closed { users, think, session }
        }),
        (arrivals, option::of(session), any::<Option<u32>>(), any::<Option<u64>>()).prop_map(
            |(arrivals, session, connections_max, queue_max)| Load::Open {
                arrivals,
                session,
                connections_max,
                queue_max
            }
        ),
    ]
}

fn stop() -> impl Strategy<Value = Stop> {
    let rule =
        prop_oneof![Just("failures>50% for 5s"), Just("p99>=1.5s"), Just("mean>1s for 0.2s")]
            .prop_map(|text| rules::parse_abort_rule(text).unwrap());
    let numbers = (any::<Option<u64>>(), any::<Option<u64>>(), any::<[bool; 3]>());
    (option::of(span()), numbers, span(), option::of(rule)).prop_map(
        |(duration, (requests, bytes, ends), warm_up, abort_if)| Stop {
            duration,
            requests,
            bytes,
            at_once: ends[0],
            at_loss: ends[1],
            warm_up,
            abort_if,
            until_sure: ends[2],
        },
    )
}

fn expect() -> impl Strategy<Value = Expect> {
    let range = (100..600u16, 100..600u16).prop_map(|(a, b)| (a.min(b), a.max(b)));
    let content = || bytes().prop_map(Option::unwrap_or_default);
    let body = prop_oneof![
        content().prop_map(BodyRule::Exact),
        content().prop_map(BodyRule::Contains),
        "[a-z.+]{1,5}"
            .prop_filter("no expression", |re| rules::check_regex(re).is_ok())
            .prop_map(BodyRule::Regex),
        any::<[u8; 32]>().prop_map(BodyRule::Sha256),
    ];
    let known = ("[a-z./?=]{0,8}[a-z]", any::<Option<u64>>(), any::<u128>())
        .prop_map(|(name, length, hash)| KnownBody { name, print: BodyPrint { length, hash } });
    let spec = (10..1_000u64).prop_map(|files| workload::fileset::Spec::Surge { files });
    let verify = prop_oneof![
        Just(Verify::First),
        (spec, any::<u64>()).prop_map(|(spec, seed)| Verify::Files { spec, seed }),
        known.prop_map(|one| Verify::Manifest(vec![one])),
    ];
    (vec(range, 0..3), any::<Option<u64>>(), option::of(body), option::of(verify))
        .prop_map(|(status, length, body, verify)| Expect { status, length, body, verify })
}

fn measure() -> impl Strategy<Value = MeasurePlan> {
    let slo = prop_oneof![
        Just("p99.9<=50ms"),
        Just("failures < 0.1%"),
        Just("throughput>1,000/s"),
        Just("conforming>=95%"),
    ];
    let slo = slo.prop_map(|text| stats::Objective::parse(text).unwrap());
    let positive = || any::<f64>().prop_map(f64::abs).prop_filter("no rate", |n| n.is_normal());
    (any::<u32>(), vec(slo, 0..4), vec(positive(), 0..4), positive(), any::<bool>(), span())
        .prop_map(|(repeat, slo, quantiles, conforming_bps, heads, interval)| MeasurePlan {
            repeat,
            slo,
            stream: [None, Some(Streaming::Sse), Some(Streaming::Lines)][repeat as usize % 3],
            doubt_max: quantiles.last().copied().unwrap_or(0.1).min(1.0),
            tcp_info_share: quantiles.first().copied().unwrap_or(0.5),
            quantiles,
            conforming_bps,
            conforming_counts_heads: heads,
            interval,
            folds: folds(repeat),
        })
}

/// Folds before they are normalized.
fn folds(number: u32) -> fold::Folds {
    let texts = ["/user/{id}", "GET /a/{*all}", "http://h/{n}?x={y}"];
    let patterns = texts.iter().take(number as usize % 4);
    fold::Folds::new(patterns.map(|text| fold::parse_fold(text).unwrap()).collect())
}

fn xdp() -> impl Strategy<Value = StackChoice> {
    let mode = prop_oneof![Just(XdpMode::Auto), Just(XdpMode::Native), Just(XdpMode::Generic)];
    let gateway = option::of(any::<[u8; 3]>().prop_map(|[a, b, c]| IpAddr::from([10, a, b, c])));
    (any::<u16>(), gateway, mode).prop_map(|(number, gateway, mode)| {
        StackChoice::OwnXdp(XdpChoice { device: format!("eth{number}"), gateway, mode })
    })
}

fn driver() -> impl Strategy<Value = DriverPlan> {
    let stack = prop_oneof![
        Just(StackChoice::Auto),
        Just(StackChoice::Kernel),
        Just(StackChoice::KernelBatches),
        Just(StackChoice::Own),
        Just(StackChoice::OwnCalls),
        Just(StackChoice::OwnBatches),
        xdp(),
    ];
    let prefixes = ["10.9.0.0/16", "fd00:9::/64"].map(|it| rules::parse_sources(it).unwrap());
    let sources = option::of(proptest::sample::select(prefixes.to_vec()));
    let traits = ["ecn,keep-alive=15s", "no-sack,no-timestamps,ack-delay=0s"];
    let traits = traits.map(|it| tcp::parse_traits(it).unwrap());
    let tcp = option::of(proptest::sample::select(traits.to_vec()));
    let cores = (any::<Option<u32>>(), vec(any::<u32>(), 0..4));
    (cores, any::<Option<i32>>(), span(), stack, (sources, tcp)).prop_map(
        |((threads, cpus), nice, spin, stack, (sources, tcp))| DriverPlan {
            threads,
            cpus,
            nice,
            spin,
            stack,
            sources,
            tcp,
        },
    )
}

fn script() -> BoxedStrategy<Option<ScriptPlan>> {
    let text = prop_oneof![any::<String>().prop_map(String::into_bytes), vec(any::<u8>(), 0..20)];
    let made = (any::<String>(), text, vec(any::<String>(), 0..3));
    let script = |(name, text, args)| ScriptPlan { name, text, args, files: Vec::new() };
    option::of(made.prop_map(script)).boxed()
}

pub(super) fn plan() -> impl Strategy<Value = Plan> {
    let order = prop_oneof![Just(Order::InOrder), Just(Order::Random), Just(Order::Once)];
    let more = (option::of(span()), option::of(span()), option::of(span()));
    let limits = (span(), span(), more).prop_map(|(call, connect, more)| {
        let (first_byte, progress, answer) = more;
        Timeouts { call, connect, first_byte, progress, answer }
    });
    let what = (
        vec(target(), 1..4),
        (order, vec(any::<u32>(), 0..3)),
        (request(), script()),
        (connection(), http2()),
        tls(),
    );
    // boxed: all of it at once does not fit a test thread's stack without optimization
    let limits = limits.boxed();
    let (load, stop) = (load().boxed(), stop().boxed());
    let how = (load, stop, limits, expect().boxed(), measure().boxed(), driver(), any::<u64>());
    (what.boxed(), how.boxed()).prop_map(|(what, how)| {
        let (targets, (order, sequence), (request, script), (connection, http2), tls) = what;
        let (load, stop, timeouts, expect, measure, driver, seed) = how;
        let mut plan = Plan {
            targets: targets.into(),
            order,
            sequence,
            request,
            script,
            journeys: None,
            specweb99: (seed % 5 == 0)
                .then_some(Specweb99Plan { directories: seed as u32, files_seed: seed }),
            connection,
            http2,
            grpc: GrpcPlan::default(),
            websocket: websocket(seed),
            token: token(seed),
            tls,
            load,
            stages: None,
            scenarios: Vec::new(),
            stop,
            timeouts,
            expect,
            measure,
            driver,
            seed,
            not_imported: if seed % 4 == 0 {
                vec!["line 1: a: \"b\"".to_owned()]
            } else {
                Vec::new()
            },
        };
        if seed % 3 == 0 {
            let (duration, requests) = (plan.stop.duration, plan.stop.requests);
            let text = ["30s:0..100, 2m:100, 10s:0", "1s:2.5/s, 0s:70/s..5/s"][(seed % 2) as usize];
            plan.set_stages(stages::parse_stages(text).unwrap());
            (plan.stop.duration, plan.stop.requests) = (duration, requests);
        }
        plan.settle_clients();
        plan.settle_folds();
        plan
    })
}
