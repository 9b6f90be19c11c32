//! The target list: requests rendered once, and the order in which calls take them.

use crate::SocketCall;
use protocol::http1::request::request_facts;
use protocol::http1::response::Asked;
use std::sync::{Arc, OnceLock};
use units::{Nanos, Purpose, Seed};
use url::Url;

/// Order in which the targets are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// In sequence, restarting at the end.
    InOrder,
    /// Random, by weight.
    Random,
    /// Each target once, in order; the run ends with the list.
    Once,
}

/// Request of one target, rendered once.
#[derive(Clone, Debug)]
pub struct Template {
    /// The endpoint of the plan to which the request is sent.
    pub endpoint: u32,
    pub url: RequestUrl,
    pub method: Arc<str>,
    pub asked: Asked,
    /// The request as sent on a connection that stays open, and as sent with the last call of a
    /// connection.
    pub bytes: Vec<u8>,
    pub last: Vec<u8>,
    /// Position for a `Cookie` line, in each of the two.
    pub cookie_at: usize,
    pub cookie_at_last: usize,
    /// Request for HTTP/2, if connections use it.
    pub http2: Option<http2::Request>,
    /// Request for HTTP/3.
    pub http3: Option<protocol::http3::Coded>,
    /// Fields that redirects have removed.
    pub stripped: Stripped,
    /// Action on the user's WebSocket; `None` if the template is an HTTP request.
    pub socket: Option<Arc<SocketCall>>,
    /// Number of the call among the simultaneous calls of its user; 0 if the user makes one at a
    /// time.
    pub lane: u32,
    /// Timeout of the call from the due instant; `None` for the plan's.
    pub timeout: Option<Nanos>,
}

/// Fields that redirects remove from a request. They stay removed for the rest of the call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stripped {
    /// True if login, cookies and the user's Host field were removed, because the request goes to
    /// another server.
    pub credentials: bool,
    /// True if the body and the fields that describe it were removed, because the method has become
    /// GET.
    pub content: bool,
}

/// URL of a request. Requests that differ only in their targets share one, and the complete URL is
/// built on demand: only cookies and redirects need it.
#[derive(Clone, Debug)]
pub struct RequestUrl {
    shared: Arc<Url>,
    /// URL whose path and query replace those of the shared URL in the request line.
    own: Option<OnceLock<Box<Url>>>,
}

impl RequestUrl {
    /// Returns the URL of a request with its own target, on the server of `shared`.
    pub fn with_own_target(shared: &Arc<Url>) -> RequestUrl {
        RequestUrl { shared: shared.clone(), own: Some(OnceLock::new()) }
    }

    /// Prepares for another request, with its own target in the request line: the complete URL is
    /// rebuilt on demand.
    pub fn renew(&mut self, shared: &Arc<Url>) {
        if !Arc::ptr_eq(&self.shared, shared) {
            self.shared = shared.clone();
        }
        match &mut self.own {
            Some(own) => drop(own.take()),
            None => self.own = Some(OnceLock::new()),
        }
    }

    /// Returns the URL whose scheme, host and port are those of the request.
    pub fn shared(&self) -> &Arc<Url> {
        &self.shared
    }
}

impl From<Arc<Url>> for RequestUrl {
    fn from(shared: Arc<Url>) -> RequestUrl {
        RequestUrl { shared, own: None }
    }
}

impl From<Url> for RequestUrl {
    fn from(url: Url) -> RequestUrl {
        RequestUrl { shared: Arc::new(url), own: None }
    }
}

impl Template {
    /// Returns a request to the first endpoint without any bytes yet.
    pub fn new(url: impl Into<RequestUrl>, method: impl Into<Arc<str>>) -> Template {
        let method = method.into();
        Template {
            endpoint: 0,
            url: url.into(),
            asked: request_facts(&method),
            method,
            bytes: Vec::new(),
            last: Vec::new(),
            cookie_at: 0,
            cookie_at_last: 0,
            http2: None,
            http3: None,
            stripped: Stripped::default(),
            socket: None,
            lane: 0,
            timeout: None,
        }
    }

    /// Adds the same request for HTTP/2, with this scheme.
    ///
    /// # Errors
    /// Fails for a request that HTTP/2 does not have; the text states why.
    pub fn add_http2(&mut self, scheme: &str) -> Result<(), String> {
        let request = http2::Request::from_http1(&self.bytes, scheme).map_err(|why| why.0)?;
        self.http2 = Some(request);
        Ok(())
    }

    /// Returns a call on the open WebSocket at `url`.
    pub fn on_socket(url: Arc<Url>, payload: Vec<u8>, call: Arc<SocketCall>) -> Template {
        Template { bytes: payload, socket: Some(call), ..Template::new(url, "GET") }
    }

    pub fn url(&self) -> &Url {
        let Some(own) = &self.url.own else { return &self.url.shared };
        own.get_or_init(|| Box::new(with_target(&self.url.shared, self.target().unwrap_or("/"))))
    }

    /// Returns the target in the request line; `None` if it is not UTF-8.
    pub fn target(&self) -> Option<&str> {
        let mut words = self.bytes.split(|byte| *byte == b' ');
        std::str::from_utf8(words.nth(1)?).ok()
    }
}

/// Returns the URL with another path and query; `target` begins with a slash.
pub fn with_target(url: &Url, target: &str) -> Url {
    let mut url = url.clone();
    let (path, query) = target.split_once('?').map_or((target, None), |(a, b)| (a, Some(b)));
    url.set_path(path);
    url.set_query(query);
    url
}

/// The targets of a plan and the rule for choosing among them.
#[derive(Clone, Debug)]
pub struct Targets {
    templates: Vec<Template>,
    order: Order,
    /// Rows by call index, in place of round robin; empty: not set.
    sequence: Vec<u32>,
    /// Every call uses the first row.
    single: bool,
    /// Running sums of the weights; empty unless the order is random.
    sums: Vec<f64>,
    seed: Seed,
}

impl Targets {
    /// Creates the targets. `weights` are above zero, one for each template; there is at least one
    /// template.
    pub fn new(templates: Vec<Template>, weights: &[f64], order: Order, seed: Seed) -> Targets {
        assert!(!templates.is_empty(), "a plan has a target");
        let mut sum = 0.0;
        let sums = weights.iter().map(|weight| {
            sum += weight;
            sum
        });
        let sums = if order == Order::Random { sums.collect() } else { Vec::new() };
        let single = templates.len() == 1 && order == Order::InOrder;
        Targets { templates, order, sequence: Vec::new(), single, sums, seed }
    }

    /// Uses the rows in this order, unless they are random. Every row is one of the templates.
    pub fn in_sequence(self, sequence: Vec<u32>) -> Targets {
        Targets { single: self.single && sequence.is_empty(), sequence, ..self }
    }

    /// Returns the row of call `index`; `None` if the list is used up.
    #[inline]
    pub fn pick(&self, index: u64) -> Option<u32> {
        if self.single {
            return Some(0);
        }
        let count = self.templates.len() as u64;
        if !self.sequence.is_empty() && self.order != Order::Random {
            return self.listed(index);
        }
        match self.order {
            Order::InOrder => Some((index % count) as u32),
            Order::Once => (index < count).then_some(index as u32),
            Order::Random => Some(self.draw(index)),
        }
    }

    fn listed(&self, index: u64) -> Option<u32> {
        let count = self.sequence.len() as u64;
        let ended = self.order == Order::Once && index >= count;
        (!ended).then(|| self.sequence[(index % count) as usize])
    }

    /// Returns the number of calls that the list permits; `None` for no limit.
    pub fn calls_max(&self) -> Option<u64> {
        let listed = [self.templates.len(), self.sequence.len()];
        let count = listed[usize::from(!self.sequence.is_empty())];
        (self.order == Order::Once).then_some(count as u64)
    }

    #[inline]
    pub fn template(&self, row: u32) -> &Template {
        &self.templates[row as usize]
    }

    pub fn len(&self) -> usize {
        self.templates.len()
    }

    pub fn is_empty(&self) -> bool {
        self.templates.is_empty()
    }

    fn draw(&self, index: u64) -> u32 {
        let total = self.sums.last().copied().unwrap_or(0.0);
        let point = self.seed.stream(Purpose::Targets, index).unit() * total;
        let row = self.sums.partition_point(|sum| *sum <= point);
        row.min(self.sums.len().saturating_sub(1)) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn targets(order: Order, weights: &[f64]) -> Targets {
        let template = Template::new(Url::parse("http://h/").unwrap(), "GET");
        Targets::new(vec![template; weights.len()], weights, order, Seed(11))
    }

    #[test]
    fn in_order_wraps_and_once_ends() {
        let picks = |order| {
            let list = targets(order, &[1.0; 3]);
            (0..5).map(|index| list.pick(index)).collect::<Vec<_>>()
        };
        assert_eq!(picks(Order::InOrder), [Some(0), Some(1), Some(2), Some(0), Some(1)]);
        assert_eq!(picks(Order::Once), [Some(0), Some(1), Some(2), None, None]);
    }

    #[test]
    fn a_sequence_replaces_the_list() {
        let picks = |order| {
            let list = targets(order, &[1.0; 3]).in_sequence(vec![2, 2, 0, 1]);
            (0..6).map(|index| list.pick(index)).collect::<Vec<_>>()
        };
        let round = [Some(2), Some(2), Some(0), Some(1)];
        assert_eq!(picks(Order::InOrder), [&round[..], &[Some(2), Some(2)]].concat());
        assert_eq!(picks(Order::Once), [&round[..], &[None, None]].concat());
        let once = targets(Order::Once, &[1.0; 3]).in_sequence(vec![2; 5]);
        assert_eq!(once.calls_max(), Some(5));
    }

    #[test]
    fn random_draws_follow_the_weights() {
        let list = targets(Order::Random, &[1.0, 3.0, 6.0]);
        let mut seen = [0u32; 3];
        for index in 0..100_000 {
            seen[list.pick(index).unwrap() as usize] += 1;
        }
        for (count, expected) in seen.iter().zip([10_000.0, 30_000.0, 60_000.0]) {
            // five standard deviations of a binomial
            assert!((f64::from(*count) - expected).abs() < 5.0 * expected.sqrt(), "{seen:?}");
        }
    }

    #[test]
    fn a_draw_depends_on_the_index_only() {
        let list = targets(Order::Random, &[1.0; 50]);
        let forward: Vec<_> = (0..100).map(|index| list.pick(index)).collect();
        let mut backward: Vec<_> = (0..100).rev().map(|index| list.pick(index)).collect();
        backward.reverse();
        assert_eq!(forward, backward);
    }
}
