//! A running torture: the part of each case that is stored when it ends, and the record made from
//! these if the program was killed.

use super::{CaseRecord, LimitRecord, TortureRecord, cost, counted};
use serde::{Deserialize, Serialize};
use torture::result::CaseResult;
use units::Nanos;

/// A finished case of a running torture.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OverCase {
    /// Case; nothing is waived yet: waivers are applied at the end.
    pub case: CaseRecord,
    /// The numbers that it measured.
    pub limits: Vec<LimitRecord>,
    /// The values in seconds are times for which the server keeps a state.
    pub is_meter: bool,
}

impl OverCase {
    pub fn new(result: &CaseResult) -> OverCase {
        OverCase {
            case: CaseRecord::new(result, &[]),
            limits: LimitRecord::for_case(result).collect(),
            is_meter: cost::is_meter(&result.case),
        }
    }
}

impl TortureRecord {
    /// Creates the record of an unfinished torture from the initial facts and the finished cases.
    /// `why`: how it ended.
    pub fn cut_short(self, over: Vec<OverCase>, why: &str) -> TortureRecord {
        let cases = match over.len() {
            1 => "1 case".to_owned(),
            n => format!("{n} cases"),
        };
        let took = over.iter().fold(Nanos::ZERO, |all, one| all + one.case.elapsed());
        let limits: Vec<LimitRecord> = over.iter().flat_map(|one| one.limits.clone()).collect();
        let is_meter = |id: &str| over.iter().any(|one| one.is_meter && one.case.id == id);
        let costs = cost::costs(&limits, self.slots_named, is_meter);
        let all: Vec<CaseRecord> = over.into_iter().map(|one| one.case).collect();
        TortureRecord {
            elapsed_s: took.as_secs_f64(),
            ended_early: Some(format!("{why} after {cases}")),
            interrupted: true,
            findings: counted(&all),
            costs,
            limits,
            cases: all,
            ..self
        }
    }
}
