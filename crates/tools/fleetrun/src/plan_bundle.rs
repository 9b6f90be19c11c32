//! Sealed data for an agent: the plan, and values that the manager determined for all agents.

use engine::{Endpoint, endpoint_key};
use plan::{Plan, Secrets};
use serde::{Deserialize, Serialize};
use session::{Env, Session};
use std::collections::BTreeMap;
use std::sync::Arc;
use url::Url;

/// Plan and shared values for an agent.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PlanBundle {
    /// The plan as TOML, with its secrets.
    plan: String,
    /// Values that the setup of journeys captured.
    given: BTreeMap<String, String>,
    /// Hosts that the first call was redirected to, as `scheme://host:port`.
    met: Vec<String>,
    /// Number of tokens to request before the start.
    pub(crate) tokens: u32,
}

impl PlanBundle {
    /// Builds the bundle from a plan that the manager prepared.
    pub(crate) fn new(
        plan: &Plan,
        endpoints: &[Endpoint],
        captured: &BTreeMap<String, String>,
    ) -> PlanBundle {
        let known: Vec<String> =
            plan.targets.iter().map(|target| endpoint_key(&target.url)).collect();
        let keys = endpoints.iter().map(|endpoint| &endpoint.key);
        PlanBundle {
            plan: plan::to_toml(plan, Secrets::Shown),
            given: captured.clone(),
            met: keys.filter(|key| !known.contains(key)).cloned().collect(),
            tokens: 0,
        }
    }

    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("a bundle is always valid JSON")
    }

    /// # Errors
    /// Fails if the bytes are malformed.
    pub(crate) fn read(bytes: &[u8]) -> Result<PlanBundle, String> {
        serde_json::from_slice(bytes)
            .map_err(|error| format!("the data sent with the plan cannot be read: {error}"))
    }

    /// Returns the validated plan.
    ///
    /// # Errors
    /// Fails for a plan that this version cannot read or that breaks a rule.
    pub(crate) fn plan(&self) -> Result<Plan, String> {
        let mut plan =
            plan::from_toml(&self.plan, &plan::NoFiles).map_err(|error| error.to_string())?;
        session::declare_streams(&mut plan).map_err(|failure| failure.text)?;
        plan::validate(&plan).map_err(|problems| {
            problems.into_iter().map(|problem| problem.text).collect::<Vec<_>>().join("; ")
        })?;
        Ok(plan)
    }

    /// Returns the hosts, other than the targets, that the first call was redirected to.
    ///
    /// # Errors
    /// Fails for an invalid URL.
    pub(crate) fn redirected_hosts(&self) -> Result<Vec<Url>, String> {
        let read = |key: &String| Url::parse(key).map_err(|error| format!("{key}: {error}"));
        self.met.iter().map(read).collect()
    }

    /// Prepares a part of `plan`: addresses, TLS, captured setup values, and this machine's path or
    /// own TCP stack if the plan has one.
    ///
    /// # Errors
    /// Fails for features that this machine does not support.
    pub(crate) fn open(self, plan: &Plan) -> anyhow::Result<Session> {
        // bounds of the fleet are not this machine's: its part determines its needs
        let mut part = plan.clone();
        for load in part.loads_mut() {
            if let plan::Load::Open { connections_max, .. } = load {
                *connections_max = None;
            }
        }
        let met = self.redirected_hosts().map_err(anyhow::Error::msg)?;
        // the part of the next step may be larger
        let env = Arc::new(Env::for_variations([]));
        let mut session = Session::open_with(&part, &met, "", &env)?;
        session.replace_plan(plan.clone());
        session.receive(self.given)?;
        // before the start that all agents share
        session.request_tokens(plan, self.tokens)?;
        Ok(session)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bundle_has_the_plan_and_the_findings() {
        let plan = Plan::for_url(Url::parse("http://127.0.0.1:8080/a").unwrap());
        let captured = BTreeMap::from([("token".into(), "s3cret".into())]);
        let plan_bundle =
            PlanBundle::read(&PlanBundle::new(&plan, &[], &captured).to_bytes()).unwrap();
        assert_eq!(plan_bundle.plan().unwrap(), plan);
        assert_eq!(plan_bundle.met, Vec::<String>::new());
        let ready = plan_bundle.open(&plan).unwrap();
        assert_eq!(ready.captured()["token"], "s3cret");
        assert_eq!(ready.endpoints()[0].key, "http://127.0.0.1:8080");
        let why = PlanBundle::read(b"{\"plan\": \"\", \"more\": 1}").unwrap_err();
        assert!(why.contains("cannot be read"), "{why}");
    }
}
