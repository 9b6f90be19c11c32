use super::*;
use crate::*;
use units::{Nanos, Rate};

fn plan() -> Plan {
    Plan::for_url("http://h/".parse().unwrap())
}

fn open(from: f64, to: f64) -> Load {
    Load::Open {
        arrivals: Arrivals { to: Rate(to), ..Arrivals::constant(Rate(from)) },
        session: None,
        connections_max: None,
        queue_max: None,
    }
}

fn session(calls: u32) -> Load {
    let Load::Open { arrivals, .. } = open(10.0, 10.0) else { unreachable!() };
    let session = Some(SessionPlan::new(calls, Think::None));
    Load::Open { arrivals, session, connections_max: None, queue_max: None }
}

/// Returns the errors of the default plan with one change.
fn error_of(change: impl FnOnce(&mut Plan)) -> String {
    let mut plan = plan();
    change(&mut plan);
    match validate(&plan) {
        Ok(()) => "nothing".to_owned(),
        Err(problems) => {
            let lines =
                problems.iter().map(|Problem { option, text }| format!("[{option}] {text}"));
            lines.collect::<Vec<_>>().join("\n")
        }
    }
}

#[test]
fn the_defaults_are_sound() {
    assert_eq!(error_of(|_| ()), "nothing");
    assert_eq!(error_of(|plan| plan.load = open(1.0, 2_000.0)), "nothing");
    assert_eq!(error_of(|plan| plan.load = session(5)), "nothing");
}

macro_rules! said_of {
    ($($change:expr),* $(,)?) => { [$(error_of($change)),*].join("\n") };
}

#[test]
fn an_impossible_load_is_refused() {
    let users = |users| {
        move |plan: &mut Plan| plan.load = Load::Closed { users, think: Think::None, session: None }
    };
    insta::assert_snapshot!(said_of![
        users(0),
        users(1_000_001),
        |plan| plan.load =
            Load::Closed { users: 1, think: Think::Exponential(Nanos::ZERO), session: None },
        |plan| plan.load = open(0.0, 0.0),
        |plan| plan.load = open(f64::NAN, 1.0),
        |plan| plan.load = open(1e12, 1e12),
        |plan| {
            plan.load = open(1.0, 2.0);
            plan.stop.duration = None;
            plan.stop.requests = Some(5);
        },
        |plan| {
            plan.load = open(1.0, 1.0);
            plan.connection.group = Some(2);
        },
        |plan| plan.load = session(0),
        |plan| {
            plan.load = session(3);
            plan.connection.group = Some(4);
        },
        |plan| {
            plan.load = session(3);
            if let Load::Open { arrivals, connections_max, .. } = &mut plan.load {
                arrivals.burst = 0;
                *connections_max = Some(0);
            }
        },
    ]);
}

#[test]
fn stop_rules_and_time_limits() {
    insta::assert_snapshot!(said_of![
        |plan| plan.stop.duration = None,
        |plan| plan.stop.duration = Some(Nanos::ZERO),
        |plan| plan.stop.requests = Some(0),
        |plan| plan.stop.bytes = Some(0),
        |plan| {
            plan.order = Order::Once;
            plan.stop.requests = Some(2);
            plan.stop.warm_up = Nanos::SECOND;
        },
        |plan| {
            plan.stop.duration = None;
            plan.stop.requests = Some(2);
            plan.stop.warm_up = Nanos::SECOND;
        },
        |plan| plan.timeouts.call = Nanos::ZERO,
        |plan| plan.timeouts.connect = Nanos::NEVER,
        |plan| plan.timeouts.first_byte = Some(Nanos::ZERO),
    ]);
}

#[test]
fn objectives_that_cannot_be_meant_are_refused() {
    let error = |objectives: &str, until_sure: bool, repeat: u32| {
        error_of(|plan| {
            plan.measure.slo = match objectives {
                "" => Vec::new(),
                some => stats::parse_objectives(some).unwrap(),
            };
            plan.measure.repeat = repeat;
            plan.stop.until_sure = until_sure;
        })
    };
    for (objectives, until_sure, repeat, expected) in [
        ("p99<1s, failures<1%, throughput>5/s, throughput<=9/s", false, 1, "nothing"),
        ("p99>1s", false, 1, "write 'p99<1s', or --abort-if 'p99>1s'"),
        ("mean>=1s", false, 1, "write 'mean<=1s', or --abort-if 'mean>=1s'"),
        ("p99<1s, failures<1%", true, 1, "nothing"),
        ("", true, 1, "needs an objective; add --slo 'p99<200ms'"),
        ("p99<1s", true, 2, "--repeat makes several; drop one"),
        ("p99<1s, max<2s", true, 1, "cannot decide \"max<2s\" early"),
        ("failures<=0", true, 1, "cannot decide \"failures<=0\" early"),
        ("mean<1s", true, 1, "cannot decide \"mean<1s\" early"),
    ] {
        let found = error(objectives, until_sure, repeat);
        assert!(found.contains(expected), "{objectives} {until_sure}: {found}");
    }
}

#[test]
fn requests_and_expectations() {
    insta::assert_snapshot!(said_of![
        |plan| plan.targets.clear(),
        |plan| plan.targets[0].url = "ftp://h/".parse().unwrap(),
        |plan| plan.targets[0].url = "http://fred:secret@h/".parse().unwrap(),
        |plan| plan.targets[0].weight = f64::NAN,
        |plan| {
            plan.targets = vec![plan.targets[0].clone(); 2].into();
            plan.targets[1].weight = 2.0;
        },
        |plan| plan.targets[0].method = Some("CONNECT".into()),
        |plan| plan.targets[0].headers.push(("Content-Length".into(), "1".into())),
        |plan| {
            plan.targets[0].headers.push(("cookie".into(), "a=b".into()));
            plan.request.cookies = true;
        },
        |plan| {
            plan.targets[0].headers.push(("A".into(), "b".into()));
            plan.targets[0].raw = Some(b"GET / HTTP/1.1\r\n\r\n".to_vec());
        },
        |plan| plan.request.method = "A B".into(),
        |plan| plan.request.headers.push(("X".into(), "a\nb".into())),
        |plan| plan.request.headers.push(("transfer-encoding".into(), "chunked".into())),
        |plan| plan.request.user_agent = "a\rb".into(),
        |plan| {
            plan.request.headers.push(("authorization".into(), "x".into()));
            plan.request.headers.push(("Cookie".into(), "a=b".into()));
            plan.request.auth = Some(Auth::Bearer("a b".into()));
            plan.request.cookies = true;
        },
        |plan| {
            let (user, password) = ("a:b".into(), "\0".into());
            plan.request.auth = Some(Auth::Basic { user, password });
        },
        |plan| {
            plan.request.method = "TRACE".into();
            plan.request.body = Some(vec![1]);
        },
        |plan| {
            plan.request.body = Some(vec![0; 1 << 20]);
            plan.targets = vec![plan.targets[0].clone(); 1_025].into();
        },
        |plan| plan.expect.status = vec![(200, 100)],
        |plan| plan.expect.body = Some(BodyRule::Regex("[".into())),
        |plan| {
            plan.request.method = "HEAD".into();
            plan.expect.length = Some(3);
        },
        |plan| {
            plan.expect.length = Some(3);
            plan.expect.body = Some(BodyRule::Exact(b"ab".to_vec()));
        },
    ]);
}

#[test]
fn connections_and_tls() {
    insta::assert_snapshot!(said_of![
        |plan| plan.connection.calls = Some(0),
        |plan| plan.connection.pipeline = 0,
        |plan| {
            plan.connection.calls = Some(2);
            plan.connection.pipeline = 3;
        },
        |plan| {
            plan.connection.group = Some(4);
            plan.connection.calls = Some(3);
        },
        |plan| {
            plan.connection.group = Some(4);
            plan.connection.pipeline = 4;
        },
        |plan| {
            plan.request.version = HttpVersion::Http10;
            plan.connection.pipeline = 4;
        },
        |plan| plan.connection.recv_buffer = Some(0),
        |plan| plan.connection.reconnect_pause = Nanos::from_secs(3_601),
        |plan| {
            plan.connection.unix = Some("/s".into());
            plan.connection.proxy = Some("http://p:3128".parse().unwrap());
            plan.connection.prefer = AddressFamily::V6;
        },
        |plan| plan.connection.proxy = Some("https://p/x".parse().unwrap()),
        |plan| {
            plan.connection.prefer = AddressFamily::V6;
            plan.connection.bind = vec!["127.0.0.1".parse().unwrap()];
            plan.connection.resolve = vec![rules::parse_resolve("h:80:127.0.0.1").unwrap()];
        },
        |plan| plan.connection.bind = vec!["::".parse().unwrap()],
        |plan| plan.connection.resolve = vec![
            rules::parse_resolve("h:80:127.0.0.1").unwrap(),
            rules::parse_resolve("h:80:127.0.0.2").unwrap(),
        ],
        |plan| plan.tls.cert = Some(vec![1]),
        |plan| plan.tls.key = Some(vec![1]),
        |plan| {
            plan.tls.insecure = true;
            plan.tls.ca = Some(vec![1]);
        },
        |plan| plan.tls.alpn = vec!["h2".into()],
        |plan| {
            plan.tls.user_sessions = true;
            plan.tls.resumption = false;
        },
        |plan| plan.tls.server_name = Some("ä".into()),
        |plan| plan.tls.groups = vec!["".into()],
    ]);
}

#[test]
fn measuring_and_driving() {
    insta::assert_snapshot!(said_of![
        |plan| plan.measure.repeat = 0,
        |plan| plan.measure.quantiles = vec![1.5],
        |plan| plan.measure.conforming_bps = f64::NAN,
        |plan| plan.measure.interval = Nanos::ZERO,
        |plan| plan.measure.tcp_info_share = -1.0,
        |plan| plan.measure.doubt_max = 1.5,
        |plan| plan.driver.threads = Some(0),
        |plan| plan.driver.threads = Some(11),
        |plan| plan.driver.nice = Some(20),
        |plan| plan.driver.cpus = vec![5_000],
        |plan| plan.driver.spin = Nanos::from_secs(2),
    ]);
}

#[test]
fn all_problems_are_reported_together() {
    let mut plan = plan();
    plan.load = Load::Closed { users: 0, think: Think::None, session: None };
    plan.timeouts.call = Nanos::ZERO;
    plan.connection.pipeline = 0;
    let options: Vec<_> =
        validate(&plan).unwrap_err().into_iter().map(|problem| problem.option).collect();
    assert_eq!(options, ["--pipeline", "-c", "--timeout"]);
}

#[test]
fn our_own_tcp_has_addresses_of_its_own_and_no_datagrams() {
    let found = error_of(|plan| {
        plan.driver.stack = StackChoice::Own;
        plan.connection.bind = vec!["127.0.0.2".parse().unwrap()];
        plan.connection.recv_buffer = Some(9_000);
        plan.connection.path = Some(rules::parse_path("3g", &wan::NoTraces).unwrap());
    });
    let others: Vec<&str> = found
        .lines()
        .filter_map(|line| line.strip_prefix("[--stack] --stack own and ")?.split(" contra").next())
        .collect();
    assert_eq!(others, ["--bind", "--send-buffer or --recv-buffer"]);
    // all threads share one link
    let over_one_link = error_of(|plan| {
        plan.driver.stack = StackChoice::Own;
        plan.driver.threads = Some(2);
        plan.connection.path = Some(rules::parse_path("3g", &wan::NoTraces).unwrap());
    });
    assert_eq!(over_one_link, "nothing");
    assert_eq!(error_of(|plan| plan.driver.stack = StackChoice::Own), "nothing");
    let of_the_kernel = error_of(|plan| plan.driver.tcp = Some(TcpTraits::default()));
    assert!(of_the_kernel.starts_with("[--tcp] --tcp configures our own TCP"), "{of_the_kernel}");
}

#[test]
fn a_device_by_af_xdp_needs_addresses() {
    let over = |more: &dyn Fn(&mut Plan)| {
        error_of(|plan| {
            let (device, gateway, mode) = ("eth0".to_owned(), None, XdpMode::Auto);
            plan.driver.stack = StackChoice::OwnXdp(XdpChoice { device, gateway, mode });
            plan.driver.sources = Some(rules::parse_sources("10.9.0.0/24").unwrap());
            more(plan);
        })
    };
    assert_eq!(over(&|plan| plan.driver.threads = Some(2)), "nothing");
    let without = over(&|plan| plan.driver.sources = None);
    assert!(
        without.starts_with("[--sources] --stack own:xdp=eth0 needs --sources PREFIX"),
        "{without}"
    );
    let path = over(&|plan| {
        plan.connection.path = Some(rules::parse_path("3g", &wan::NoTraces).unwrap());
    });
    assert!(path.starts_with("[--stack] --path and --clients are emulated over TUN"), "{path}");
    let six =
        |plan: &mut Plan| plan.driver.sources = Some(rules::parse_sources("fd00:9::/64").unwrap());
    assert_eq!(over(&six), "nothing");
    let four = over(&|plan| {
        six(plan);
        plan.connection.prefer = AddressFamily::V4;
    });
    assert!(
        four.starts_with("[--stack] --stack own and -4 contradict each other: its --sources"),
        "{four}"
    );
    let gateway = over(&|plan| {
        let (device, gateway) = ("eth0".to_owned(), Some("fe80::1".parse().unwrap()));
        let choice = XdpChoice { device, gateway, mode: XdpMode::Auto };
        plan.driver.stack = StackChoice::OwnXdp(choice);
    });
    assert!(
        gateway.contains("fe80::1 cannot be the next hop for packets from 10.9.0.0/24; give"),
        "{gateway}"
    );
    let over_a_path = over(&|plan| {
        six(plan);
        plan.driver.stack = StackChoice::Own;
        plan.connection.path = Some(rules::parse_path("3g", &wan::NoTraces).unwrap());
    });
    assert!(
        over_a_path
            .starts_with("[--sources] --path, --clients and --vary identify clients by IPv4"),
        "{over_a_path}"
    );
    let bound = over(&|plan| plan.connection.bind = vec!["127.0.0.2".parse().unwrap()]);
    assert!(bound.starts_with("[--stack] --stack own and --bind contradict"), "{bound}");
}

#[test]
fn a_path_needs_its_own_addresses() {
    let path = || Some(rules::parse_path("3g", &wan::NoTraces).unwrap());
    let found = error_of(|plan| {
        plan.connection.path = path();
        plan.connection.unix = Some("/s".into());
        plan.connection.bind = vec!["127.0.0.2".parse().unwrap()];
    });
    assert_eq!(
        found.lines().filter(|line| line.starts_with("[--path]")).collect::<Vec<_>>(),
        [
            "[--path] --path and --unix contradict each other: a Unix socket has no packets; drop one",
            "[--path] --path and --bind contradict each other: clients on an emulated path have \
             their own addresses; drop one",
        ]
    );
    let six = error_of(|plan| {
        plan.connection.path = path();
        plan.connection.prefer = AddressFamily::V6;
    });
    assert_eq!(
        six,
        "[--path] --path and -6 contradict each other: paths carry only IPv4; drop one"
    );
    assert_eq!(error_of(|plan| plan.connection.path = path()), "nothing");
}

#[test]
fn every_kind_of_client_has_users() {
    let clients = |plan: &mut Plan, users: u32| {
        plan.connection.clients =
            Some(rules::parse_clients("dsl:60%,3g:30%,satellite:10%", &wan::NoTraces).unwrap());
        plan.load = Load::Closed { users, think: Think::None, session: None };
    };
    assert_eq!(error_of(|plan| clients(plan, 10)), "nothing");
    assert_eq!(
        error_of(|plan| clients(plan, 4)),
        "[--clients] --clients: none of 4 clients uses \"satellite\"; give -c 10 or more, or \
         leave it out"
    );
    let both = error_of(|plan| {
        clients(plan, 10);
        plan.connection.path = Some(rules::parse_path("3g", &wan::NoTraces).unwrap());
    });
    assert_eq!(
        both,
        "[--clients] --clients and --path contradict each other: each client already has its own path; drop one"
    );
}

#[test]
fn numbers_of_grpc_messages_have_bounds() {
    let error = |change: &dyn Fn(&mut GrpcPlan)| {
        error_of(|plan| {
            *plan = Plan::for_url("https://h/p.S/M".parse().unwrap());
            plan.use_grpc();
            change(&mut plan.grpc);
        })
    };
    let messages = "takes a number of messages from 1 to";
    assert!(error(&|grpc| grpc.messages = Some(0)).contains(messages));
    assert!(error(&|grpc| grpc.messages = Some(100_001)).contains(messages));
    assert!(error(&|grpc| grpc.response_messages = Some(0)).contains(messages));
    let rate = "takes a rate of messages from 0.001/s";
    assert!(error(&|grpc| grpc.message_rate = Some(Rate(2e6))).contains(rate));
    assert!(!error(&|grpc| grpc.message_rate = Some(Rate(0.01))).contains(rate));
}

#[test]
fn limits_of_responses_need_streams_and_whole_calls() {
    let error = |change: &dyn Fn(&mut Plan)| {
        error_of(|plan| {
            *plan = Plan::for_url("https://h/p.S/M".parse().unwrap());
            plan.use_grpc();
            plan.grpc.response_messages = Some(3);
            change(plan);
        })
    };
    assert_eq!(error(&|_| {}), "nothing");
    assert_eq!(error(&|plan| plan.request.version = HttpVersion::Http3), "nothing");
    let web = |plan: &mut Plan, version| {
        plan.carry_grpc(GrpcVariant::Web);
        plan.request.version = version;
    };
    assert_eq!(error(&|plan| web(plan, HttpVersion::Http2)), "nothing");
    let http1 = error(&|plan| web(plan, HttpVersion::Http11));
    assert!(http1.contains("--response-messages") && http1.contains("give --http 2"), "{http1}");
    let long = error(&|plan| {
        web(plan, HttpVersion::Auto);
        plan.grpc.response_messages = None;
        plan.grpc.response_message_max = Some(5);
    });
    assert!(long.contains("--response-message-max"), "{long}");
    let slo = error(&|plan| {
        plan.measure.slo.push(stats::Objective::parse("status-ok>99%").unwrap());
    });
    assert!(slo.contains("CANCELLED"), "{slo}");
    let length = error(&|plan| plan.expect.length = Some(5));
    assert!(length.contains("--expect-length"), "{length}");
}
