//! Ends of gRPC calls.

use plan::{GrpcCode, Plan};

#[cfg(any(test, feature = "schema"))]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stats::Measurement;
use std::collections::BTreeMap;

/// `grpc` of a run; null if its calls are not gRPC. Calls without a complete response are only in
/// `failures`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(JsonSchema))]
pub struct GrpcRecord {
    /// Whole responses by status code, in the order of the codes. Calls that the client ended at a
    /// limit of their messages have the status with which it ended them.
    pub statuses: Vec<GrpcStatusRecord>,
    /// Of these, responses without `grpc-status`, whose code follows from the HTTP status.
    pub without_status: u64,
    /// Messages of statuses other than OK, after the name of the status; the first 16 different
    /// ones of each worker.
    pub messages: BTreeMap<String, u64>,
}

/// One status code.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(JsonSchema))]
pub struct GrpcStatusRecord {
    #[cfg_attr(any(test, feature = "schema"), schemars(range(max = 16)))]
    pub code: u32,
    /// Name as in the specification: `NOT_FOUND`.
    pub name: String,
    pub calls: u64,
    /// The plan counts it as success.
    pub expected: bool,
}

impl GrpcRecord {
    pub(crate) fn new(plan: &Plan, measurement: &Measurement) -> Option<GrpcRecord> {
        let tally = &measurement.total.streams.grpc;
        let row = |(number, calls): (&u32, &u64)| {
            let code = GrpcCode::from_number(*number);
            let expected = plan.may_expect_grpc(code);
            GrpcStatusRecord {
                code: *number,
                name: code.name().to_owned(),
                calls: *calls,
                expected,
            }
        };
        plan.has_grpc().then(|| GrpcRecord {
            statuses: tally.statuses.iter().map(row).collect(),
            without_status: tally.unsent,
            messages: tally.messages.clone(),
        })
    }
}
