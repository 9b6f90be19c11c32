//! Reasons for the end of a connection.

use conduit::IoError;
use conduit::streams::{BEYOND_LIMITS, BROKEN_RULES, TRANSPORT};
use quinn_proto::{ConnectionError, TransportErrorCode};
use rustls::AlertDescription;
use sample::{FailureClass, http3_code_name};

/// End of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Loss {
    /// Failure class; `None` for an orderly close.
    pub(crate) class: Option<FailureClass>,
    /// Reason as text; empty for an orderly close.
    pub(crate) why: Option<String>,
}

/// TLS alerts as QUIC error codes (RFC 9001 section 4.8).
const CRYPTO: std::ops::Range<u64> = 0x100..0x200;
/// no_application_protocol (RFC 8446 section 6.2).
const NO_PROTOCOL: u64 = 0x178;
/// Alerts about the certificate of the peer: 42 to 48.
const CERTIFICATE: std::ops::RangeInclusive<u64> = 0x12a..=0x130;
/// H3_NO_ERROR.
const H3_NO_ERROR: u64 = 0x100;

impl Loss {
    /// Creates the loss. `was_established`: whether the handshake was complete.
    pub(crate) fn new(reason: &ConnectionError, was_established: bool) -> Loss {
        let lost = |class, why: String| Loss { class: Some(class), why: Some(why) };
        match reason {
            ConnectionError::ApplicationClosed(close) => {
                let code = close.error_code.into_inner();
                if code == H3_NO_ERROR || code == 0 {
                    return Loss { class: None, why: None };
                }
                let text = String::from_utf8_lossy(&close.reason);
                let why =
                    format!("the server closed it with {}{}", http3_code_name(code), tail(&text));
                lost(FailureClass::Protocol, why)
            }
            ConnectionError::ConnectionClosed(close) => {
                let code = u64::from(close.error_code);
                let text = String::from_utf8_lossy(&close.reason);
                match code {
                    0 => Loss { class: None, why: None },
                    NO_PROTOCOL => lost(FailureClass::Protocol, NO_HTTP3.to_owned()),
                    code if CRYPTO.contains(&code) => {
                        lost(FailureClass::Tls, format!("{}{}", alert(code), tail(&text)))
                    }
                    _ => {
                        let code = close.error_code;
                        let why = format!("the server closed it with QUIC's {code}{}", tail(&text));
                        lost(FailureClass::Protocol, why)
                    }
                }
            }
            ConnectionError::TransportError(error) => {
                let code = u64::from(error.code);
                let class = if rejects_certificate(code, &error.reason) {
                    FailureClass::Certificate
                } else if CRYPTO.contains(&code) {
                    FailureClass::Tls
                } else {
                    FailureClass::Protocol
                };
                let why =
                    if error.reason.is_empty() { error.to_string() } else { error.reason.clone() };
                lost(class, why)
            }
            ConnectionError::VersionMismatch => {
                lost(FailureClass::Protocol, "the server speaks no version 1 of QUIC".to_owned())
            }
            ConnectionError::Reset => {
                lost(FailureClass::Reset, "the server no longer knows the connection".to_owned())
            }
            ConnectionError::TimedOut if was_established => {
                lost(FailureClass::SocketTimeout, "idle for longer than negotiated".to_owned())
            }
            ConnectionError::TimedOut => {
                lost(FailureClass::ConnectTimeout, "no response over UDP".to_owned())
            }
            other => lost(FailureClass::OtherIo, other.to_string()),
        }
    }

    /// Returns the code with which the peer closed the connection, as encoded in pieces.
    pub(crate) fn code_of(reason: &ConnectionError) -> Option<u64> {
        match reason {
            ConnectionError::ApplicationClosed(close) => Some(close.error_code.into_inner()),
            ConnectionError::ConnectionClosed(close) => {
                Some(u64::from(close.error_code) | TRANSPORT)
            }
            _ => None,
        }
    }

    /// Returns the peer's violation, if it is reported like frames, for which the library closed
    /// the connection itself.
    pub(crate) fn fault_of(reason: &ConnectionError) -> Option<u64> {
        let ConnectionError::TransportError(error) = reason else { return None };
        let limits = [
            TransportErrorCode::FLOW_CONTROL_ERROR,
            TransportErrorCode::STREAM_LIMIT_ERROR,
            TransportErrorCode::STREAM_STATE_ERROR,
        ];
        Some(if limits.contains(&error.code) { BEYOND_LIMITS } else { BROKEN_RULES })
    }

    /// Returns the loss of the path: the socket itself has failed, as by ICMP.
    pub(crate) fn on_path(class: FailureClass, was_established: bool) -> Loss {
        // an established connection whose port is now closed has lost its server, as by a reset
        let class = match class {
            FailureClass::Refused if was_established => FailureClass::Reset,
            other => other,
        };
        Loss { class: Some(class), why: Some(class.explain().to_owned()) }
    }

    /// Returns the result of a read from the connection: `orderly` after an orderly close,
    /// otherwise the failure.
    pub(crate) fn after_close<T>(&self, orderly: T) -> Result<T, IoError> {
        self.class.map_or(Ok(orderly), |class| Err(IoError::Failed(class)))
    }
}

/// Returns whether the code means that our side rejects the peer's certificate. A bad signature has
/// an alert with other causes too (51, decrypt_error): then the text of the TLS library decides.
fn rejects_certificate(code: u64, reason: &str) -> bool {
    CERTIFICATE.contains(&code)
        || CRYPTO.contains(&code) && reason.starts_with("invalid peer certificate")
}

/// Returns the text of a TLS alert from the server, which is the same as over TCP.
fn alert(code: u64) -> String {
    rustls::Error::AlertReceived(AlertDescription::from(code as u8)).to_string()
}

const NO_HTTP3: &str = "the server speaks QUIC, but not HTTP/3 (ALPN h3)";

/// Maximum length of the peer's reason phrase.
const TAIL_MAX: usize = 120;

fn tail(text: &str) -> String {
    let shown: String =
        text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(TAIL_MAX).collect();
    if shown.is_empty() { shown } else { format!(": {shown}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quinn_proto::{ConnectionClose, TransportError};

    #[test]
    fn an_alert_of_the_server_has_its_name() {
        let described = |alert, reason: &'static str| {
            let error_code = TransportErrorCode::crypto(alert);
            let reason = reason.as_bytes().into();
            let close = ConnectionClose { error_code, frame_type: None, reason };
            let loss = Loss::new(&ConnectionError::ConnectionClosed(close), false);
            (loss.class.expect("no orderly end"), loss.why.unwrap_or_default())
        };
        let tls = |text: &str| (FailureClass::Tls, text.to_owned());
        assert_eq!(described(40, ""), tls("received fatal alert: HandshakeFailure"));
        let asked = "received fatal alert: CertificateRequired: none came";
        assert_eq!(described(116, "none came"), tls(asked));
        assert_eq!(described(250, ""), tls("received fatal alert: AlertDescription(0xfa)"));
        assert_eq!(described(120, ""), (FailureClass::Protocol, NO_HTTP3.to_owned()));
    }

    /// As over TCP, where one class contains all certificate errors.
    #[test]
    fn certificate_alerts_are_distinguished_from_others() {
        let class = |alert, reason: &str| {
            let (code, reason) = (TransportErrorCode::crypto(alert), reason.to_owned());
            let error = TransportError { code, frame: None, reason };
            Loss::new(&ConnectionError::TransportError(error), false).class
        };
        let table = [
            (42, "invalid peer certificate: BadEncoding", FailureClass::Certificate),
            (48, "invalid peer certificate: UnknownIssuer", FailureClass::Certificate),
            // decrypt_error, which is also that of a Finished message
            (51, "invalid peer certificate: BadSignature", FailureClass::Certificate),
            (51, "cannot decrypt peer's message", FailureClass::Tls),
            (40, "peer is incompatible: NoCipherSuitesInCommon", FailureClass::Tls),
        ];
        for (alert, reason, expected) in table {
            assert_eq!(class(alert, reason), Some(expected), "{alert} {reason}");
        }
    }

    #[test]
    fn library_close_reasons_are_distinguished() {
        let error = |code| {
            let (frame, reason) = (None, String::new());
            ConnectionError::TransportError(TransportError { code, frame, reason })
        };
        let table = [
            (error(TransportErrorCode::FLOW_CONTROL_ERROR), Some(BEYOND_LIMITS)),
            (error(TransportErrorCode::STREAM_LIMIT_ERROR), Some(BEYOND_LIMITS)),
            (error(TransportErrorCode::STREAM_STATE_ERROR), Some(BEYOND_LIMITS)),
            (error(TransportErrorCode::FRAME_ENCODING_ERROR), Some(BROKEN_RULES)),
            (error(TransportErrorCode::crypto(10)), Some(BROKEN_RULES)),
            (ConnectionError::Reset, None),
            (ConnectionError::TimedOut, None),
        ];
        for (reason, expected) in table {
            assert_eq!(Loss::fault_of(&reason), expected, "{reason:?}");
        }
    }
}
