//! Pages that are generated from code.

use std::fs;

use crate::process::{Outcome, root};
use crate::{bench, gpu};

/// Writes the pages, or checks that they are fresh.
pub(crate) fn run(check: bool) -> Outcome {
    let figures = fs::read_to_string(root().join(bench::FIGURES))?;
    let cards = fs::read_to_string(root().join(gpu::FIGURES)).ok();
    let performance = bench::page(&figures)? + &gpu::section(cards.as_deref())?;
    let pages = [("docs/schema.md", jepa_gguf::schema::schema_page()), ("docs/performance.md", performance)];
    for (name, page) in pages {
        let path = root().join(name);
        if !check {
            fs::write(&path, page)?;
        } else if fs::read_to_string(&path).unwrap_or_default() != page {
            return Err(format!("{name} is stale; run `cargo xtask docs`").into());
        }
    }
    Ok(())
}
