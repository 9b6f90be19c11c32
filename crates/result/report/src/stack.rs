//! Description of our own TCP's figures.

use record::run::StackRecord;
use units::show;

/// Returns a fact about packets, and one about anomalies, if any.
pub(crate) fn facts(stack: &StackRecord) -> Vec<(&'static str, String)> {
    let batched = match stack.batched {
        0 => String::new(),
        batched => format!(" ({} of them in batches)", show::count(batched)),
    };
    let mut facts = vec![(
        "Own TCP",
        format!(
            "{} connections established; {} packets sent, {} received{batched}; {} sent again ({} SYNs; {} \
             timeouts, {} fast recoveries)",
            show::count(stack.established),
            show::count(stack.sent),
            show::count(stack.received),
            show::count(stack.retransmitted),
            show::count(stack.syn_retransmitted),
            show::count(stack.timeouts),
            show::count(stack.recoveries)
        ),
    )];
    let odd: Vec<String> = [
        (stack.out_of_order, "segments arrived out of order"),
        (stack.duplicate, "segments carried no new data"),
        (stack.challenges, "doubtful segments answered"),
        (stack.resets_received, "resets received"),
        (stack.resets_sent, "resets sent"),
        (stack.refused, "packets were rejected by the network device"),
        (stack.missed, "packets were dropped because buffers were full"),
        (stack.tuples_out, "connections found no free address and port"),
    ]
    .iter()
    .filter(|(count, _)| *count > 0)
    .map(|(count, what)| format!("{} {what}", show::count(*count)))
    .collect();
    if !odd.is_empty() {
        facts.push(("", odd.join(", ")));
    }
    facts
}

#[cfg(test)]
mod tests {
    use super::*;
    use sample::StackFacts;

    #[test]
    fn the_counts_are_described_in_words() {
        let quiet =
            StackFacts { sent: 1_200, received: 1_100, established: 8, ..Default::default() };
        let lines = |stack: &StackFacts| {
            facts(&StackRecord::new(stack))
                .iter()
                .map(|(_, text)| format!("{text}\n"))
                .collect::<String>()
        };
        assert_eq!(
            lines(&quiet),
            "8 connections established; 1,200 packets sent, 1,100 received; 0 sent again (0 SYNs; 0 \
             timeouts, 0 fast recoveries)\n"
        );
        let many = lines(&StackFacts { batched: 1_050, ..quiet });
        assert!(many.contains(" 1,100 received (1,050 of them in batches); "), "{many}");
        let odd = StackFacts { retransmitted: 3, refused: 2, missed: 5, out_of_order: 1, ..quiet };
        assert_eq!(
            lines(&odd),
            "8 connections established; 1,200 packets sent, 1,100 received; 3 sent again (0 SYNs; \
             0 timeouts, 0 fast recoveries)\n1 segments arrived out of order, 2 packets were \
             rejected by the network device, 5 packets were dropped because buffers were full\n"
        );
    }
}
