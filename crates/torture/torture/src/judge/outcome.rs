//! Outcomes of tests, and the questions they answer: whether something was tested, whether the
//! server conforms, and how well-behaved clients are affected by load. Each question has its own
//! enum; [`TestOutcome`] orders all of them.

/// Outcome of one conversation, in increasing severity: whether the server conforms.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum ConversationOutcome {
    /// Conforms.
    #[default]
    Pass,
    /// Allowed, but not the usual behavior.
    Alternative,
    /// Inconclusive: no connection, or a problem of the client.
    Inconclusive,
    /// Merits an advisory, but is not a violation.
    Advisory,
    /// A state that the server should end has no timeout.
    Unbounded,
    Fail,
}

/// Effect of a stress case on well-behaved clients, in increasing severity: whether the server
/// holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PressureOutcome {
    /// Almost no effect.
    Held,
    /// Inconclusive: a problem of the client, or too few observations.
    Inconclusive,
    /// The server properly refused requests that it could not serve.
    Shed,
    /// Clients were served slowly, or some not at all.
    Degraded,
    /// Clients were not served.
    Denied,
    /// The server did not release its resources after the load.
    Leak,
    /// The server crashed or was restarted.
    Crashed,
}

/// Outcome of a search for a limit, which compares several conversations, in increasing severity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LimitOutcome {
    /// Every amount was accepted or refused properly.
    Pass,
    /// Inconclusive.
    Inconclusive,
    /// Merits an advisory, but is not a violation: how it is refused, or that there is no limit.
    Advisory,
    /// An amount failed once, but not again.
    Flaky,
    /// It costs the server more than its size explains.
    Degraded,
    Fail,
}

/// Outcome of a load case that judges more than the effect on clients: by its own count, or a
/// second look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoadOutcome {
    Felt(PressureOutcome),
    /// The load, or the action during it, had no effect, so nothing can be concluded.
    Unseen,
    /// Merits an advisory, but is not a violation.
    Advisory,
    /// The effect was present in one round but not in another.
    Flaky,
    /// The server never closed the connections of the load.
    Unbounded,
}

/// Published outcome of an exchange, a case or a run, in increasing severity. It comes from a
/// conversation, a search or a load, or is one of the three that these cannot produce:
/// [skipped](TestOutcome::Skipped), [unseen](TestOutcome::Unseen), or [flaky](TestOutcome::Flaky)
/// over several attempts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum TestOutcome {
    /// Conforms.
    #[default]
    Pass,
    /// Under load, with almost no effect on well-behaved clients.
    Held,
    /// Allowed, but not the usual behavior.
    Alternative,
    /// A precondition of the case is missing.
    Skipped,
    /// The outcome is not visible from outside.
    Unseen,
    /// Inconclusive: no connection, or a problem of the client.
    Inconclusive,
    /// Merits an advisory, but is not a violation.
    Advisory,
    /// Under load, the server properly refused requests that it could not serve.
    Shed,
    /// Failed in some attempts but not in others.
    Flaky,
    /// Under load, well-behaved clients were served slowly, or some not at all.
    Degraded,
    /// A state that the server should end has no timeout.
    Unbounded,
    Fail,
    /// Under load, well-behaved clients were not served.
    Denied,
    /// The server did not release its resources after the load.
    Leak,
    /// The server crashed or was restarted.
    Crashed,
}

impl TestOutcome {
    /// All outcomes, best first.
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

    /// Returns whether something was tested, regardless of the outcome.
    pub fn is_tested(self) -> bool {
        !matches!(self, TestOutcome::Skipped | TestOutcome::Unseen | TestOutcome::Inconclusive)
    }

    /// Returns whether something was tested and the outcome is good.
    pub fn is_favorable(self) -> bool {
        self <= TestOutcome::Alternative
    }

    /// Returns whether something was tested and the outcome is bad: the run exits with code 1.
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
    fn outcomes_of_each_question_keep_their_order() {
        use ConversationOutcome::{Advisory, Alternative, Fail, Pass, Unbounded};
        use PressureOutcome::{Crashed, Degraded, Denied, Held, Inconclusive, Leak, Shed};
        let unknown = ConversationOutcome::Inconclusive;
        let shown = [Pass, Alternative, unknown, Advisory, Unbounded, Fail];
        let felt = [Held, Inconclusive, Shed, Degraded, Denied, Leak, Crashed];
        assert!(shown.is_sorted() && shown.map(TestOutcome::from).is_sorted());
        assert!(felt.is_sorted() && felt.map(TestOutcome::from).is_sorted());
        let own: Vec<TestOutcome> =
            shown.map(TestOutcome::from).into_iter().chain(felt.map(TestOutcome::from)).collect();
        let others: Vec<&str> = TestOutcome::ALL
            .into_iter()
            .filter(|one| !own.contains(one))
            .map(TestOutcome::id)
            .collect();
        assert_eq!(others, ["skipped", "unseen", "flaky"]);
    }

    #[test]
    fn limit_and_load_outcomes_map_to_test_outcomes() {
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
    fn an_untested_outcome_is_neither_good_nor_a_finding() {
        assert!(TestOutcome::ALL.is_sorted());
        for one in TestOutcome::ALL {
            let untested = ["skipped", "unseen", "inconclusive"].contains(&one.id());
            assert_eq!(one.is_tested(), !untested, "{}", one.id());
            assert!(!(untested && (one.is_favorable() || one.is_finding())), "{}", one.id());
        }
    }
}
