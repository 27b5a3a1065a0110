//! Progress bars: on stderr, when it is a terminal.

use std::io::IsTerminal;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::args::Shared;
use crate::exit::say_on_stderr;

/// A bar over `total` inputs; nothing where progress was switched off or stderr is a file.
pub(crate) struct Progress {
    bar: ProgressBar,
    quiet: bool,
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
        Self { bar, quiet: shared.quiet }
    }

    pub(crate) fn advance(&self, inputs: usize) {
        self.bar.inc(inputs as u64);
    }

    /// A remark above the bar; `-q` silences it.
    pub(crate) fn note(&self, line: &str) {
        if !self.quiet {
            self.error(line);
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
    }
}
