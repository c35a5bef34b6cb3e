//! What is asked about a row that stays by the drop rules: is it too old, and does the user's filter want it.

use crate::hooks::{CompactionFilter, FilterDecision};
use crate::key::{KeyOrder, Sequence};

/// Which rows are older than they may become.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expired {
    /// None that is known.
    Nothing,
    /// Those with numbers from 1 up to this one. Number 0 says nothing about age.
    Until(Sequence),
    /// All of the job's.
    Everything,
}

impl Expired {
    fn has(self, sequence: Sequence) -> bool {
        match self {
            Self::Nothing => false,
            Self::Until(last) => (1..=last).contains(&sequence),
            Self::Everything => true,
        }
    }
}

/// The user's filter and the age limit of the family, as one.
pub struct RowFilter {
    user: Option<Box<dyn CompactionFilter>>,
    expired: Expired,
    /// The user's filter removes everything before this key.
    skip_until: Option<Vec<u8>>,
}

/// What becomes of a row.
pub(super) enum Judgement {
    Keep,
    Remove,
    Change(Vec<u8>),
}

impl RowFilter {
    /// `None` if every row would stay.
    pub fn new(user: Option<Box<dyn CompactionFilter>>, expired: Expired) -> Option<Self> {
        (user.is_some() || expired != Expired::Nothing).then_some(Self {
            user,
            expired,
            skip_until: None,
        })
    }

    /// What can be said without the value; `None`: it is needed.
    pub(super) fn judge_key(
        &mut self,
        order: &KeyOrder,
        key: &[u8],
        sequence: Sequence,
    ) -> Option<Judgement> {
        if self.expired.has(sequence) {
            return Some(Judgement::Remove);
        }
        if let Some(until) = &self.skip_until {
            if order.compare(key, until).is_lt() {
                return Some(Judgement::Remove);
            }
            self.skip_until = None;
        }
        let Some(user) = &mut self.user else {
            return Some(Judgement::Keep);
        };
        let decision = user.decide_by_key(key)?;
        Some(self.judgement(decision))
    }

    /// What becomes of the row with this value.
    pub(super) fn judge(&mut self, key: &[u8], value: &[u8]) -> Judgement {
        match &mut self.user {
            Some(user) => {
                let decision = user.decide(key, value);
                self.judgement(decision)
            }
            None => Judgement::Keep,
        }
    }

    fn judgement(&mut self, decision: FilterDecision) -> Judgement {
        match decision {
            FilterDecision::Keep => Judgement::Keep,
            FilterDecision::Remove => Judgement::Remove,
            FilterDecision::Change(value) => Judgement::Change(value),
            FilterDecision::SkipUntil(until) => {
                self.skip_until = Some(until);
                Judgement::Remove
            }
        }
    }
}
