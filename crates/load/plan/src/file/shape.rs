//! The tables of the file, in the order in which they are printed. An absent key is `None`.

use super::keys::{
    CONNECTION, DRIVER, EXPECT, GRPC, HTTP2, Keys, LOAD, MEASURE, REQUEST, STOP, TIMEOUTS, TLS,
    TOKEN, WEBSOCKET,
};
use crate::options::Scalar;
use serde::{Deserialize, Serialize};

macro_rules! tables {
    ($($(#[$doc:meta])* $name:ident { $($(#[$key:meta])* $field:ident: $of:ty,)* })*) => {
        $(
            $(#[$doc])*
            #[derive(Clone, Debug, Default, Serialize, Deserialize)]
            #[serde(deny_unknown_fields, default)]
            pub(super) struct $name {
                $(
                    $(#[$key])*
                    #[serde(skip_serializing_if = "Option::is_none")]
                    pub(super) $field: Option<$of>,
                )*
            }
        )*
    };
}

tables! {
    PlanFile {
        version: i64,
        seed: Scalar,
        /// `in-order`, `random` or `once`.
        order: String,
        /// Rows of the targets, from 0, in the order of the calls.
        sequence: Vec<u32>,
        /// Elements of a file that its import omitted; absent if there are none.
        not_imported: Vec<String>,
        /// Replacement for `targets` in handwritten files: one URL, or a file with a list.
        url: String,
        urls_file: String,
        request: Keys<REQUEST>,
        /// Absent if no tokens are used.
        token: Keys<TOKEN>,
        /// Absent without scripts.
        script: ScriptTable,
        /// Absent for other loads.
        specweb99: Specweb99Table,
        connection: Keys<CONNECTION>,
        http2: Keys<HTTP2>,
        grpc: Keys<GRPC>,
        /// Absent if the plan has no WebSocket.
        websocket: Keys<WEBSOCKET>,
        tls: Keys<TLS>,
        load: Keys<LOAD>,
        /// Several loads at once, in place of `load`.
        scenario: Vec<ScenarioTable>,
        stop: Keys<STOP>,
        timeouts: Keys<TIMEOUTS>,
        expect: Keys<EXPECT>,
        measure: Keys<MEASURE>,
        driver: Keys<DRIVER>,
        targets: Vec<TargetTable>,
        /// These five keys define journeys; `journey::read` interprets them.
        vars: toml::Value,
        feeder: toml::Value,
        setup: toml::Value,
        journey: toml::Value,
        teardown: toml::Value,
    }

    TargetTable {
        url: String,
        name: Scalar,
        weight: Scalar,
        method: Scalar,
        headers: Vec<String>,
        body: Scalar,
        body_base64: String,
        body_file: String,
        raw: Scalar,
        raw_base64: String,
        raw_file: String,
    }

    ScriptTable {
        name: String,
        text: Scalar,
        text_base64: String,
        text_file: String,
        args: Vec<String>,
    }

    Specweb99Table {
        directories: Scalar,
        files_seed: Scalar,
    }

    ScenarioTable {
        name: String,
        start: Scalar,
        duration: Scalar,
        /// Names of journeys, or of targets; absent: all.
        journeys: Vec<String>,
        targets: Vec<String>,
        load: Keys<LOAD>,
    }
}
