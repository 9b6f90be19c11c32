//! Requests sent before the handshake was complete.

use crate::words::counted;
use record::run::EarlyDataRecord;
use units::show;

pub(super) fn sentence(facts: &EarlyDataRecord) -> String {
    if facts.sent == 0 {
        return "no call was sent early: early data needs a session of an earlier connection, and a \
            server whose tickets allow it; --calls N or --close makes more connections"
            .to_owned();
    }
    let mut text = format!(
        "{} sent before the handshake was over (0-RTT): {} accepted",
        counted(facts.sent, "call"),
        show::count(facts.accepted)
    );
    if facts.rejected > 0 {
        let count = show::count(facts.rejected);
        text.push_str(&format!(", {count} rejected by the server and sent again after it"));
    }
    let unknown = facts.sent - facts.accepted - facts.rejected;
    if unknown > 0 {
        text.push_str(&format!(
            ", {} on connections that were never established",
            show::count(unknown)
        ));
    }
    if facts.too_early > 0 {
        let times = counted(facts.too_early, "time");
        text.push_str(&format!("; {times} answered with 425 (Too Early) and sent again"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outcomes_of_early_calls_are_reported() {
        let all = EarlyDataRecord { sent: 1_200, accepted: 1_100, rejected: 90, too_early: 3 };
        assert_eq!(
            sentence(&all),
            "1,200 calls sent before the handshake was over (0-RTT): 1,100 accepted, 90 rejected by the \
             server and sent again after it, 10 on connections that were never established; 3 times \
             answered with 425 (Too Early) and sent again"
        );
        let none = EarlyDataRecord { sent: 0, accepted: 0, rejected: 0, too_early: 0 };
        assert!(sentence(&none).starts_with("no call was sent early"));
    }
}
