//! The messages of Prometheus' `io/prometheus/client/metrics.proto` that we write, as read by
//! prost.

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct MetricFamily {
    #[prost(string, tag = "1")]
    pub(super) name: String,
    #[prost(string, tag = "2")]
    pub(super) help: String,
    /// COUNTER 0, GAUGE 1, HISTOGRAM 4.
    #[prost(int32, tag = "3")]
    pub(super) kind: i32,
    #[prost(message, repeated, tag = "4")]
    pub(super) metric: Vec<Metric>,
    #[prost(string, tag = "5")]
    pub(super) unit: String,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Metric {
    #[prost(message, repeated, tag = "1")]
    pub(super) label: Vec<LabelPair>,
    #[prost(message, optional, tag = "2")]
    pub(super) gauge: Option<Number>,
    #[prost(message, optional, tag = "3")]
    pub(super) counter: Option<Number>,
    #[prost(message, optional, tag = "7")]
    pub(super) histogram: Option<Histogram>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct LabelPair {
    #[prost(string, tag = "1")]
    pub(super) name: String,
    #[prost(string, tag = "2")]
    pub(super) value: String,
}

/// A gauge, or a counter without an exemplar.
#[derive(Clone, Copy, PartialEq, prost::Message)]
pub(super) struct Number {
    #[prost(double, tag = "1")]
    pub(super) value: f64,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Histogram {
    #[prost(uint64, tag = "1")]
    pub(super) sample_count: u64,
    #[prost(double, tag = "2")]
    pub(super) sample_sum: f64,
    #[prost(message, repeated, tag = "3")]
    pub(super) bucket: Vec<Bucket>,
    #[prost(sint32, tag = "5")]
    pub(super) schema: i32,
    #[prost(double, tag = "6")]
    pub(super) zero_threshold: f64,
    #[prost(uint64, tag = "7")]
    pub(super) zero_count: u64,
    #[prost(message, repeated, tag = "12")]
    pub(super) positive_span: Vec<BucketSpan>,
    #[prost(sint64, repeated, tag = "13")]
    pub(super) positive_delta: Vec<i64>,
    #[prost(message, optional, tag = "15")]
    pub(super) start_timestamp: Option<Timestamp>,
}

#[derive(Clone, Copy, PartialEq, prost::Message)]
pub(super) struct Bucket {
    #[prost(uint64, tag = "1")]
    pub(super) cumulative_count: u64,
    #[prost(double, tag = "2")]
    pub(super) upper_bound: f64,
}

#[derive(Clone, Copy, PartialEq, prost::Message)]
pub(super) struct BucketSpan {
    #[prost(sint32, tag = "1")]
    pub(super) offset: i32,
    #[prost(uint32, tag = "2")]
    pub(super) length: u32,
}

#[derive(Clone, Copy, PartialEq, prost::Message)]
pub(super) struct Timestamp {
    #[prost(int64, tag = "1")]
    pub(super) seconds: i64,
    #[prost(int32, tag = "2")]
    pub(super) nanos: i32,
}
