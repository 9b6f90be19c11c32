//! Names that users give to results, and deleting results.

use crate::{Progress, ResultKind, RunId, Store, StoreError};
use rusqlite::{TransactionBehavior, params};

/// Maximum length of a tag in characters.
const TAG_CHARS_MAX: usize = 64;

impl Store {
    /// Adds a tag to a result; another result loses it.
    ///
    /// # Errors
    /// Fails for a name that could be an id, or if the store cannot be written.
    pub fn tag(&mut self, id: &RunId, tag: &str) -> Result<Option<RunId>, StoreError> {
        check(tag)?;
        let before = self.find(tag).ok().filter(|before| before != id);
        let done = self.connection.execute(
            "INSERT OR REPLACE INTO tag (name, result) VALUES (?1, ?2)",
            params![tag, id.number],
        );
        self.explain_error(done)?;
        Ok(before)
    }

    /// Removes a tag; returns the result that had it.
    ///
    /// # Errors
    /// Fails if there is no such tag, or the store cannot be written.
    pub fn untag(&mut self, tag: &str) -> Result<RunId, StoreError> {
        let unknown =
            || StoreError::Unknown { wanted: tag.to_owned(), why: "no result has this tag".into() };
        let id = check(tag).and_then(|()| self.find(tag)).map_err(|_| unknown())?;
        let done = self.connection.execute("DELETE FROM tag WHERE name = ?1", [tag]);
        match self.explain_error(done)? {
            0 => Err(unknown()),
            _ => Ok(id),
        }
    }

    /// Removes an empty result of this process.
    pub(crate) fn forget(&mut self, id: &RunId) -> Result<(), StoreError> {
        let done = self.connection.execute("DELETE FROM result WHERE number = ?1", [id.number]);
        self.explain_error(done).map(|_| ())
    }

    /// Removes results, all of them or none. The file keeps its size; later results reuse the
    /// space.
    ///
    /// # Errors
    /// Fails if it is still running, or the store cannot be written.
    pub fn delete(&mut self, ids: &[RunId]) -> Result<(), StoreError> {
        for id in ids {
            if self.show(&id.to_string())?.progress == Progress::Running {
                return Err(StoreError::Running(id.to_string()));
            }
        }
        let done = self.in_transaction(TransactionBehavior::Immediate, |transaction| {
            for id in ids {
                transaction.execute("DELETE FROM result WHERE number = ?1", [id.number])?;
            }
            Ok(())
        });
        self.explain_error(done)
    }
}

fn check(tag: &str) -> Result<(), StoreError> {
    let bad = |why| StoreError::BadTag { tag: tag.to_owned(), why };
    let allowed = |c: char| c.is_alphanumeric() || "-_.+/:@".contains(c);
    let number_of = |kind: ResultKind| tag.strip_prefix(kind.id())?.strip_prefix('-');
    let kind = ResultKind::ALL.into_iter().find_map(number_of);
    let number = |text: &str| !text.is_empty() && text.chars().all(|c| c.is_ascii_digit());
    if tag.is_empty() || tag.chars().count() > TAG_CHARS_MAX {
        return Err(bad("it has 1 to 64 characters"));
    }
    if !tag.chars().all(allowed) || tag.starts_with('-') {
        return Err(bad(
            "it is made of letters, digits and - _ . + / : @, and does not begin with \
            -",
        ));
    }
    if number(tag) || kind.is_some_and(number) || tag == "last" || tag.starts_with("last~") {
        return Err(bad("it looks like an id"));
    }
    Ok(())
}
