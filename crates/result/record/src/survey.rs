//! `loadstone.survey/1`: the software of each server. Every key is always present; times are in
//! seconds; unknown values are null.

use crate::{document, timestamp};
#[cfg(any(test, feature = "schema"))]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::net::SocketAddr;
use torture::survey::{Confidence, Software, tally};

/// The schema that is written, and the only one that is accepted.
pub const SCHEMA: &str = "loadstone.survey/1";

/// Subject of the survey.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum SurveyKind {
    WebServers,
    NameServers,
}

/// The result of a survey.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(JsonSchema))]
pub struct SurveyRecord {
    pub schema: String,
    pub kind: SurveyKind,
    /// Date and time, UTC.
    pub started: String,
    pub started_unix_s: f64,
    #[cfg_attr(any(test, feature = "schema"), schemars(range(min = 0.0)))]
    pub elapsed_s: f64,
    /// Ended by a signal: servers that were not visited are not reached.
    pub interrupted: bool,
    /// Number of reached servers per software, by name.
    pub software: Vec<SoftwareRow>,
    /// One entry for each address and port, in the order of the list; then the lines without a
    /// server.
    pub servers: Vec<SurveyedServer>,
}

/// A row of the table of software.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(JsonSchema))]
pub struct SoftwareRow {
    pub name: String,
    #[cfg_attr(any(test, feature = "schema"), schemars(range(min = 1)))]
    pub count: u64,
    /// The least certain of them: `agreed`, `disputed`, `behaved`, `claimed` or `unknown`.
    #[cfg_attr(
        any(test, feature = "schema"),
        schemars(schema_with = "crate::schema::software_confidence")
    )]
    pub least: String,
}

/// One server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(JsonSchema))]
pub struct SurveyedServer {
    /// Names as in the list.
    pub names: Vec<String>,
    /// Null for a line without a server.
    pub address: Option<String>,
    pub reached: bool,
    /// Reason why it was not reached.
    pub trouble: Option<String>,
    /// Counted figures; null if it was not reached.
    pub software: Option<String>,
    #[cfg_attr(
        any(test, feature = "schema"),
        schemars(schema_with = "crate::schema::software_confidence_or_none")
    )]
    pub confidence: Option<String>,
    /// The server's claim, as received; empty without a claim.
    pub claim: String,
    /// The software that it behaves like, and the matched share of that fingerprint, 0..=1.
    pub behaves: Option<BehavesRecord>,
    /// Versions of HTTP that were seen: `1.0`, `1.1`, `2`.
    pub http: Vec<String>,
    /// TLS versions with a completed handshake.
    pub tls: Vec<String>,
    /// Time for which connections were kept; null inside: longer than 75 s.
    pub deadlines: Option<SurveyedDeadlines>,
    /// The requests, and the signature of each reply.
    pub evidence: Vec<EvidenceRow>,
}

/// Behavior of a server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(JsonSchema))]
pub struct BehavesRecord {
    pub software: String,
    /// Share of the fingerprint's weight that matched.
    #[cfg_attr(any(test, feature = "schema"), schemars(range(min = 0.0, max = 1.0)))]
    pub share: f64,
}

/// Time for which connections were kept; null: longer than 75 s.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(JsonSchema))]
pub struct SurveyedDeadlines {
    #[cfg_attr(any(test, feature = "schema"), schemars(range(min = 0.0)))]
    pub idle_s: Option<f64>,
    #[cfg_attr(any(test, feature = "schema"), schemars(range(min = 0.0)))]
    pub half_head_s: Option<f64>,
}

/// A request and its reply.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(JsonSchema))]
pub struct EvidenceRow {
    pub question: String,
    pub seen: String,
}

impl SurveyedServer {
    /// Returns the record of a server without observations.
    pub fn at(address: SocketAddr, names: &[String]) -> SurveyedServer {
        SurveyedServer {
            address: Some(address.to_string()),
            ..SurveyedServer::named(names.to_vec())
        }
    }

    /// Returns the record of a line without a usable address.
    pub fn lost(name: &str, why: &str) -> SurveyedServer {
        SurveyedServer::named(vec![name.to_owned()]).unreached(why)
    }

    fn named(names: Vec<String>) -> SurveyedServer {
        SurveyedServer {
            names,
            address: None,
            reached: false,
            trouble: None,
            software: None,
            confidence: None,
            claim: String::new(),
            behaves: None,
            http: Vec::new(),
            tls: Vec::new(),
            deadlines: None,
            evidence: Vec::new(),
        }
    }

    #[must_use]
    pub fn unreached(self, why: &str) -> SurveyedServer {
        SurveyedServer { reached: false, trouble: Some(why.to_owned()), ..self }
    }

    /// Records that the server answered, with the conclusion about it.
    pub fn set_software(&mut self, found: &Software, evidence: &[(String, String)]) {
        self.reached = true;
        self.software = Some(found.name.clone());
        self.confidence = Some(found.confidence.id().to_owned());
        self.claim.clone_from(&found.claim);
        self.behaves = found
            .behaves
            .map(|(software, share)| BehavesRecord { software: software.to_owned(), share });
        let row = |(question, seen): &(String, String)| EvidenceRow {
            question: question.clone(),
            seen: seen.clone(),
        };
        self.evidence = evidence.iter().map(row).collect();
    }

    fn found(&self) -> Option<Software> {
        let confidence = self.confidence.as_deref();
        let confidence = Confidence::ALL.into_iter().find(|one| Some(one.id()) == confidence)?;
        Some(Software {
            name: self.software.clone()?,
            confidence,
            claim: String::new(),
            behaves: None,
        })
    }
}

impl SurveyRecord {
    /// Creates the record, with the servers counted by their software.
    pub fn new(kind: SurveyKind, servers: Vec<SurveyedServer>) -> SurveyRecord {
        let found: Vec<Software> = servers.iter().filter_map(SurveyedServer::found).collect();
        let row = |one: torture::survey::SoftwareCount| SoftwareRow {
            name: one.name,
            count: one.count,
            least: one.least.id().to_owned(),
        };
        SurveyRecord {
            schema: SCHEMA.to_owned(),
            kind,
            started: timestamp(0.0),
            started_unix_s: 0.0,
            elapsed_s: 0.0,
            interrupted: false,
            software: tally(&found).into_iter().map(row).collect(),
            servers,
        }
    }

    #[must_use]
    pub fn with_start(self, unix_s: f64) -> SurveyRecord {
        SurveyRecord { started: timestamp(unix_s), started_unix_s: unix_s, ..self }
    }

    #[must_use]
    pub fn with_duration(self, elapsed_s: f64, interrupted: bool) -> SurveyRecord {
        SurveyRecord { elapsed_s, interrupted, ..self }
    }
}

/// Reads a record from JSON.
///
/// # Errors
/// Fails if the text is not JSON, or JSON of another kind.
pub fn read(text: &str) -> Result<SurveyRecord, String> {
    document::read(text, SCHEMA, "loadstone survey --json")
}
