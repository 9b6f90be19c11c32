//! What came of a test, and the questions that its word answers: was it tested at all, what do
//! conversations show of the server's conformance, and what do well-behaved clients feel while it is
//! pressed. Who answers one of them has words for that one alone; the words are put on one ladder here.

/// What one conversation shows, the later, the worse: whether the server does as it should.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum ConversationOutcome {
    /// As it should be.
    #[default]
    Pass,
    /// Permitted, though not the usual way.
    Alternative,
    /// Nothing was learned: no connection, or the instrument was at fault.
    Inconclusive,
    /// Worth a word, no breach.
    Advisory,
    /// Nothing ended a state that a server should end.
    Unbounded,
    Fail,
}

/// What well-behaved clients feel while a case presses, the later, the worse: whether the server holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PressureOutcome {
    /// Next to nothing.
    Held,
    /// Nothing was learned: the instrument was at fault, or too little was seen.
    Inconclusive,
    /// The server refused politely what it could not serve.
    Shed,
    /// They were served late, or some of them not.
    Degraded,
    /// They were not served.
    Denied,
    /// The pressure gone, the server did not get back what it had.
    Leak,
    /// The server died, or was restarted.
    Crashed,
}

/// What a search for a limit shows, which holds several conversations against each other, the later, the
/// worse.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LimitOutcome {
    /// Every amount was taken, or refused, as it should be.
    Pass,
    /// Nothing was learned.
    Inconclusive,
    /// Worth a word, no breach: how it is refused, or that there is no bound.
    Advisory,
    /// An amount failed, and did not fail again.
    Flaky,
    /// It costs the server more than its size explains.
    Degraded,
    Fail,
}

/// What a case of load shows that judges by more than what well-behaved clients feel: by a count of its own, or
/// by a second look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoadOutcome {
    Felt(PressureOutcome),
    /// The load, or what was done beside it, had no effect: nothing can be said of what it would have.
    Unseen,
    /// Worth a word, no breach.
    Advisory,
    /// The effect came in one round, and not in another.
    Flaky,
    /// Nothing ended what pressed.
    Unbounded,
}

/// What came of an exchange, a case, a run, in the word that is published: the later, the worse. It is what
/// a conversation, a search or pressure showed, or one of the three that neither a conversation nor pressure
/// can say by itself: it was [skipped](TestOutcome::Skipped), it [cannot be seen](TestOutcome::Unseen), and it
/// [came and went](TestOutcome::Flaky) in several tries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum TestOutcome {
    /// As it should be.
    #[default]
    Pass,
    /// Pressed, and well-behaved clients felt next to nothing.
    Held,
    /// Permitted, though not the usual way.
    Alternative,
    /// Something that the case needs is not there.
    Skipped,
    /// From outside it cannot be seen.
    Unseen,
    /// Nothing was learned: no connection, or the instrument was at fault.
    Inconclusive,
    /// Worth a word, no breach.
    Advisory,
    /// Pressed, the server refused politely what it could not serve.
    Shed,
    /// It failed in some tries and not in others.
    Flaky,
    /// Pressed, well-behaved clients were served late or some of them not.
    Degraded,
    /// Nothing ended a state that a server should end.
    Unbounded,
    Fail,
    /// Pressed, well-behaved clients were not served.
    Denied,
    /// The pressure gone, the server did not get back what it had.
    Leak,
    /// The server died, or was restarted.
    Crashed,
}

impl TestOutcome {
    /// Every outcome, the best first.
    pub const ALL: [TestOutcome; 15] = [
        TestOutcome::Pass,
        TestOutcome::Held,
        TestOutcome::Alternative,
        TestOutcome::Skipped,
        TestOutcome::Unseen,
        TestOutcome::Inconclusive,
        TestOutcome::Advisory,
        TestOutcome::Shed,
        TestOutcome::Flaky,
        TestOutcome::Degraded,
        TestOutcome::Unbounded,
        TestOutcome::Fail,
        TestOutcome::Denied,
        TestOutcome::Leak,
        TestOutcome::Crashed,
    ];

    pub fn id(self) -> &'static str {
        match self {
            TestOutcome::Pass => "pass",
            TestOutcome::Held => "held",
            TestOutcome::Alternative => "pass-alternative",
            TestOutcome::Skipped => "skipped",
            TestOutcome::Unseen => "unseen",
            TestOutcome::Inconclusive => "inconclusive",
            TestOutcome::Advisory => "advisory",
            TestOutcome::Shed => "shed",
            TestOutcome::Flaky => "flaky",
            TestOutcome::Degraded => "degraded",
            TestOutcome::Unbounded => "unbounded",
            TestOutcome::Fail => "fail",
            TestOutcome::Denied => "denied",
            TestOutcome::Leak => "leak",
            TestOutcome::Crashed => "crashed",
        }
    }

    /// Something was tested, whatever came of it.
    pub fn is_tested(self) -> bool {
        !matches!(self, TestOutcome::Skipped | TestOutcome::Unseen | TestOutcome::Inconclusive)
    }

    /// Something was tested, and it is well.
    pub fn is_well(self) -> bool {
        self <= TestOutcome::Alternative
    }

    /// Something was tested, and it is bad: the run ends with 1.
    pub fn is_finding(self) -> bool {
        self >= TestOutcome::Flaky
    }
}

impl From<ConversationOutcome> for TestOutcome {
    fn from(shown: ConversationOutcome) -> TestOutcome {
        match shown {
            ConversationOutcome::Pass => TestOutcome::Pass,
            ConversationOutcome::Alternative => TestOutcome::Alternative,
            ConversationOutcome::Inconclusive => TestOutcome::Inconclusive,
            ConversationOutcome::Advisory => TestOutcome::Advisory,
            ConversationOutcome::Unbounded => TestOutcome::Unbounded,
            ConversationOutcome::Fail => TestOutcome::Fail,
        }
    }
}

impl From<PressureOutcome> for TestOutcome {
    fn from(felt: PressureOutcome) -> TestOutcome {
        match felt {
            PressureOutcome::Held => TestOutcome::Held,
            PressureOutcome::Inconclusive => TestOutcome::Inconclusive,
            PressureOutcome::Shed => TestOutcome::Shed,
            PressureOutcome::Degraded => TestOutcome::Degraded,
            PressureOutcome::Denied => TestOutcome::Denied,
            PressureOutcome::Leak => TestOutcome::Leak,
            PressureOutcome::Crashed => TestOutcome::Crashed,
        }
    }
}

impl From<LimitOutcome> for TestOutcome {
    fn from(shown: LimitOutcome) -> TestOutcome {
        match shown {
            LimitOutcome::Pass => TestOutcome::Pass,
            LimitOutcome::Inconclusive => TestOutcome::Inconclusive,
            LimitOutcome::Advisory => TestOutcome::Advisory,
            LimitOutcome::Flaky => TestOutcome::Flaky,
            LimitOutcome::Degraded => TestOutcome::Degraded,
            LimitOutcome::Fail => TestOutcome::Fail,
        }
    }
}

impl From<PressureOutcome> for LoadOutcome {
    fn from(felt: PressureOutcome) -> LoadOutcome {
        LoadOutcome::Felt(felt)
    }
}

impl From<LoadOutcome> for TestOutcome {
    fn from(shown: LoadOutcome) -> TestOutcome {
        match shown {
            LoadOutcome::Felt(felt) => felt.into(),
            LoadOutcome::Unseen => TestOutcome::Unseen,
            LoadOutcome::Advisory => TestOutcome::Advisory,
            LoadOutcome::Flaky => TestOutcome::Flaky,
            LoadOutcome::Unbounded => TestOutcome::Unbounded,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_of_each_question_keep_their_order_on_the_ladder() {
        use ConversationOutcome::{Advisory, Alternative, Fail, Pass, Unbounded};
        use PressureOutcome::{Crashed, Degraded, Denied, Held, Inconclusive, Leak, Shed};
        let unknown = ConversationOutcome::Inconclusive;
        let shown = [Pass, Alternative, unknown, Advisory, Unbounded, Fail];
        let felt = [Held, Inconclusive, Shed, Degraded, Denied, Leak, Crashed];
        assert!(shown.is_sorted() && shown.map(TestOutcome::from).is_sorted());
        assert!(felt.is_sorted() && felt.map(TestOutcome::from).is_sorted());
        let said: Vec<TestOutcome> =
            shown.map(TestOutcome::from).into_iter().chain(felt.map(TestOutcome::from)).collect();
        let others: Vec<&str> = TestOutcome::ALL
            .into_iter()
            .filter(|one| !said.contains(one))
            .map(TestOutcome::id)
            .collect();
        assert_eq!(others, ["skipped", "unseen", "flaky"]);
    }

    #[test]
    fn a_search_and_a_load_say_what_is_on_the_ladder_too() {
        use LimitOutcome::{Advisory, Degraded, Fail, Flaky, Inconclusive, Pass};
        let limits = [Pass, Inconclusive, Advisory, Flaky, Degraded, Fail];
        assert!(limits.is_sorted() && limits.map(TestOutcome::from).is_sorted());
        let loads = [
            LoadOutcome::from(PressureOutcome::Shed),
            LoadOutcome::Unseen,
            LoadOutcome::Advisory,
            LoadOutcome::Flaky,
            LoadOutcome::Unbounded,
        ];
        let words = loads.map(|one| TestOutcome::from(one).id());
        assert_eq!(words, ["shed", "unseen", "advisory", "flaky", "unbounded"]);
    }

    #[test]
    fn what_is_not_tested_is_neither_well_nor_a_finding() {
        assert!(TestOutcome::ALL.is_sorted());
        for one in TestOutcome::ALL {
            let untested = ["skipped", "unseen", "inconclusive"].contains(&one.id());
            assert_eq!(one.is_tested(), !untested, "{}", one.id());
            assert!(!(untested && (one.is_well() || one.is_finding())), "{}", one.id());
        }
    }
}
