//! Progress bars and remarks: on stderr, the bars when it is a terminal.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::args::Shared;
use crate::exit::say_on_stderr;

/// A bar over `total` inputs; nothing where progress was switched off or stderr is a file.
pub(crate) struct Progress {
    bar: ProgressBar,
    quiet: bool,
    verbose: bool,
    /// How many inputs each remark holds for.
    remarks: RefCell<BTreeMap<String, usize>>,
}

impl Progress {
    pub(crate) fn new(total: usize, shared: &Shared) -> Self {
        let visible = total > 1 && !shared.quiet && !shared.no_progress && std::io::stderr().is_terminal();
        let bar = ProgressBar::with_draw_target(
            Some(total as u64),
            if visible { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() },
        );
        let style = ProgressStyle::with_template("{bar:32} {pos}/{len} {per_sec} eta {eta}")
            .expect("the template names known fields only");
        bar.set_style(style);
        bar.enable_steady_tick(Duration::from_millis(250));
        Self { bar, quiet: shared.quiet, verbose: shared.verbose, remarks: RefCell::default() }
    }

    pub(crate) fn advance(&self, inputs: usize) {
        self.bar.inc(inputs as u64);
    }

    /// A remark on an input. The same remark on many inputs is made once and counted at the end; `-v` makes them all, `-q` none.
    pub(crate) fn remark(&self, input: &str, remark: &str) {
        if self.quiet {
            return;
        }
        let mut remarks = self.remarks.borrow_mut();
        let inputs = remarks.entry(remark.to_owned()).or_insert(0);
        *inputs += 1;
        if *inputs == 1 || self.verbose {
            self.error(&format!("note: {input}: {remark}"));
        }
    }

    /// A fault above the bar; never silenced.
    pub(crate) fn error(&self, line: &str) {
        self.bar.suspend(|| say_on_stderr(line));
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
        for (remark, inputs) in self.remarks.borrow().iter().filter(|(_, inputs)| **inputs > 1 && !self.verbose) {
            say_on_stderr(&format!("note: {} more inputs: {remark}", inputs - 1));
        }
    }
}
