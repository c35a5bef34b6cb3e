//! Result files in, one self-contained HTML page out.

use esker_lab_core::{Result, schema::Run};

/// The page.
pub fn render(_runs: &[Run]) -> Result<String> {
    Ok(String::new())
}
