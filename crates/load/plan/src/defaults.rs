//! The defaults of `run`, in one place.

use crate::fold::Folds;
use crate::model::*;
use units::Nanos;
use url::Url;

impl Plan {
    /// Returns the settings of `run URL` without options: a closed loop of 10 users for 10 seconds.
    pub fn for_url(url: Url) -> Plan {
        Plan::for_targets(vec![TargetPlan::new(url)])
    }

    /// Returns the defaults for a list of targets.
    pub fn for_targets(targets: Vec<TargetPlan>) -> Plan {
        Plan {
            targets: targets.into(),
            order: Order::InOrder,
            sequence: Vec::new(),
            request: RequestPlan::default(),
            token: crate::TokenPlan::default(),
            script: None,
            journeys: None,
            specweb99: None,
            connection: ConnectionPlan::default(),
            http2: Http2Plan::default(),
            grpc: crate::GrpcPlan::default(),
            websocket: crate::WebSocketPlan::default(),
            tls: TlsPlan::default(),
            load: Load::Closed { users: 10, think: Think::None, session: None },
            stages: None,
            scenarios: Vec::new(),
            stop: Stop {
                duration: Some(Nanos::from_secs(10)),
                requests: None,
                bytes: None,
                at_once: false,
                at_loss: false,
                warm_up: Nanos::ZERO,
                abort_if: None,
                until_sure: false,
            },
            timeouts: Timeouts {
                connect: Nanos::from_secs(5),
                first_byte: None,
                progress: None,
                answer: None,
                call: Nanos::from_secs(30),
            },
            expect: Expect::default(),
            measure: MeasurePlan::default(),
            driver: DriverPlan {
                threads: None,
                cpus: Vec::new(),
                nice: None,
                spin: Nanos::from_micros(100),
                stack: crate::StackChoice::Auto,
                sources: None,
                tcp: None,
            },
            seed: 1,
            not_imported: Vec::new(),
        }
    }

    /// Sets the method: without a method, or with the default one, a request with a body is a POST.
    pub fn post_bodies(&mut self) {
        if self.request.method != "GET" {
            return;
        }
        if self.request.body.is_some() {
            self.request.method = "POST".into();
        }
        // a list that other plans may share is not modified
        let bodies = |target: &TargetPlan| target.body.is_some() && target.method.is_none();
        if self.targets.iter().any(bodies) {
            for target in self.targets.iter_mut().filter(|target| bodies(target)) {
                target.method = Some("POST".into());
            }
        }
    }
}

impl Default for RequestPlan {
    fn default() -> Self {
        RequestPlan {
            method: "GET".into(),
            version: HttpVersion::Http11,
            headers: Vec::new(),
            body: None,
            auth: None,
            user_agent: concat!("loadstone/", env!("CARGO_PKG_VERSION")).into(),
            priority: None,
            compressed: false,
            follow_max: 0,
            follow_auth: Vec::new(),
            cookies: false,
            last_cookie: false,
        }
    }
}

impl Default for ConnectionPlan {
    fn default() -> Self {
        ConnectionPlan {
            calls: None,
            pipeline: 1,
            group: None,
            depth: None,
            per_user: 1,
            tries: 4,
            resend: false,
            needs_length: false,
            head_max: 64 << 10,
            unix: None,
            resolve: Vec::new(),
            bind: Vec::new(),
            send_buffer: None,
            recv_buffer: None,
            nodelay: true,
            reset_on_close: false,
            reconnect_pause: Nanos::from_millis(10),
            proxy: None,
            prefer: AddressFamily::Any,
            addresses: AddressOrder::InTurn,
            path: None,
            clients: None,
            idle: None,
            migrate: None,
        }
    }
}

impl Default for Http2Plan {
    /// Windows so large that the client is not the limit; tables and frames have the standard's
    /// initial sizes.
    fn default() -> Self {
        Http2Plan {
            stream_window: (1 << 30) - 1,
            connection_window: (1 << 30) - 1,
            header_table: 4_096,
            encoder_table: 4_096,
            frame_max: 16_384,
        }
    }
}

impl Default for TlsPlan {
    fn default() -> Self {
        TlsPlan {
            insecure: false,
            ca: None,
            cert: None,
            key: None,
            resumption: true,
            early_data: false,
            user_sessions: false,
            sni: true,
            versions: TlsVersions::Any,
            alpn: vec!["http/1.1".into()],
            server_name: None,
            groups: Vec::new(),
            ciphers: Vec::new(),
        }
    }
}

impl Default for MeasurePlan {
    fn default() -> Self {
        MeasurePlan {
            repeat: 1,
            slo: Vec::new(),
            quantiles: vec![0.5, 0.9, 0.99, 0.999, 1.0],
            conforming_bps: 320_000.0,
            conforming_counts_heads: false,
            interval: Nanos::SECOND,
            tcp_info_share: 1.0 / 16.0,
            doubt_max: stats::verdict::DOUBT_MAX,
            stream: None,
            folds: Folds::default(),
        }
    }
}
