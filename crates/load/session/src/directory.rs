//! Endpoints that guided users discover: looked up when first needed.

use crate::servers::endpoint_of;
use engine::Endpoint;
use plan::Plan;
use std::sync::Arc;
use url::Url;

/// The system's resolver, with the plan's rules.
#[derive(Debug)]
pub struct SystemResolver(pub Arc<Plan>);

impl engine::Directory for SystemResolver {
    fn endpoint(&mut self, url: &Url) -> Option<Endpoint> {
        endpoint_of(&self.0, url).ok()
    }
}
