//! Remaining budget of searches: number of conversations, and time since the first one.

use crate::shrink::Budget;
use units::Nanos;

#[derive(Debug)]
pub(crate) struct SearchBudget {
    /// Maximum per search, or `None` if searches are disabled.
    most: Option<Budget>,
    began: Option<Nanos>,
    spent: u64,
}

impl SearchBudget {
    pub(crate) fn new(most: Option<Budget>) -> SearchBudget {
        SearchBudget { most, began: None, spent: 0 }
    }

    /// Returns whether searches are enabled.
    pub(crate) fn is_wanted(&self) -> bool {
        self.most.is_some()
    }

    /// Starts a new search.
    pub(crate) fn renew(&mut self) {
        self.began = None;
        self.spent = 0;
    }

    /// Returns the remaining budget. The time starts with the first call.
    pub(crate) fn remaining(&mut self, now: Nanos) -> Option<Budget> {
        let most = self.most?;
        let gone = now - *self.began.get_or_insert(now);
        let executions = most.executions.checked_sub(self.spent)?;
        let left = Budget { executions, span: most.span - gone };
        (left.executions > 0 && !left.span.is_zero()).then_some(left)
    }

    /// Counts one conversation.
    pub(crate) fn spend(&mut self) {
        self.spent += 1;
    }

    /// Returns the number of conversations of this search so far.
    pub(crate) fn spent(&self) -> u64 {
        self.spent
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_budget_is_used_up_and_renewed() {
        let (executions, span) = (2, Nanos::from_secs(10));
        let mut budget = SearchBudget::new(Some(Budget { executions, span }));
        let at = Nanos::from_secs;
        let left = |executions, span| Some(Budget { executions, span: at(span) });
        assert_eq!(budget.remaining(at(5)), left(2, 10));
        budget.spend();
        assert_eq!(budget.remaining(at(8)), left(1, 7));
        assert_eq!(budget.remaining(at(15)), None);
        budget.renew();
        assert_eq!(budget.remaining(at(20)), left(2, 10));
        (0..2).for_each(|_| budget.spend());
        assert_eq!((budget.remaining(at(20)), budget.spent()), (None, 2));
        assert!(!SearchBudget::new(None).is_wanted());
        assert_eq!(SearchBudget::new(None).remaining(at(1)), None);
    }
}
