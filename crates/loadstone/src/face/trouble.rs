//! Reasons why a run could not start, in the faces' terms.

use super::disk::system_error;
use faces::StartTrouble;
use host::ResolveError;
use session::TooFew;

pub(super) fn from_error(error: &anyhow::Error) -> StartTrouble {
    if let Some(error) = error.downcast_ref::<ResolveError>() {
        return name(error);
    }
    if let Some(error) = error.downcast_ref::<std::io::Error>() {
        return StartTrouble::Bind(system_error(error));
    }
    if let Some(short) = error.downcast_ref::<TooFew>()
        && short.descriptors
    {
        return StartTrouble::Descriptors;
    }
    let text = format!("{error:#}");
    match error.downcast_ref::<net::tls::SetupError>() {
        Some(_) => StartTrouble::Tls(text),
        None => StartTrouble::Other(text),
    }
}

fn name(error: &ResolveError) -> StartTrouble {
    let (host, text) = match error {
        ResolveError::NotFound { host, why } => (host, why.clone()),
        ResolveError::OtherFamily { host, .. } => {
            (host, "No address associated with hostname".to_owned())
        }
        ResolveError::TimedOut { host, .. } => {
            (host, "Temporary failure in name resolution".to_owned())
        }
    };
    let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
    StartTrouble::Name { host, text }
}
