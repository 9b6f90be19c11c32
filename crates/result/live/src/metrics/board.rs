//! Holder of the latest reading.

use crate::metrics::reading::Reading;
use std::sync::{Arc, Mutex, PoisonError};

/// The latest reading, for any number of readers.
#[derive(Clone, Debug, Default)]
pub struct Board(Arc<Mutex<Arc<Reading>>>);

impl Board {
    pub fn pin(&self, reading: Reading) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(reading);
    }

    /// Returns the latest published reading; one without figures before the first.
    pub fn latest(&self) -> Arc<Reading> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
