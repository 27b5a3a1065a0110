//! What is shown of a training: burn-train's dashboard on a terminal, a line for each epoch elsewhere.

use std::io::IsTerminal;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use burn::data::dataloader::Progress;
use burn_train::Interrupter;
use burn_train::metric::{
    MetricAttributes, MetricDefinition, MetricEntry, MetricId, NumericAttributes, NumericEntry, SerializedEntry,
};
use burn_train::renderer::tui::TuiMetricsRendererWrapper;
use burn_train::renderer::{MetricState, MetricsRenderer, MetricsRendererTraining, TrainingProgress};
use jepa_models::probe::EpochReport;

use crate::args::Shared;
use crate::exit::say_on_stderr;
use crate::interrupt::keep_ctrl_c;

/// Shows the epochs of a training.
pub(super) enum Display {
    Dashboard(Box<Dashboard>),
    Lines,
    Nothing,
}

impl Display {
    /// The dashboard draws on stdout, so it is there only where nothing else may go.
    pub(super) fn new(shared: &Shared) -> Self {
        let terminals = std::io::stdout().is_terminal() && std::io::stderr().is_terminal();
        match (shared.quiet, terminals && !shared.json && !shared.no_progress) {
            (true, _) => Self::Nothing,
            (false, true) => Self::Dashboard(Box::new(Dashboard::new())),
            (false, false) => Self::Lines,
        }
    }

    /// Shows epoch `done` of at most `all`; says whether the user wants the training to end.
    pub(super) fn epoch(&mut self, done: usize, all: usize, report: &EpochReport) -> bool {
        match self {
            Self::Dashboard(dashboard) => dashboard.epoch(done, all, report),
            Self::Lines => {
                let held = report.held_out.map_or(String::new(), |held| {
                    format!(", held out {:.4}, accuracy {:.1} %", held.loss, held.accuracy * 100.0)
                });
                say_on_stderr(&format!("epoch {done}: loss {:.4}{held}", report.loss));
                false
            }
            Self::Nothing => false,
        }
    }

    /// Gives the terminal back.
    pub(super) fn close(self) {
        if let Self::Dashboard(mut dashboard) = self {
            // The dashboard panics where the user has closed it already.
            let _ = catch_unwind(AssertUnwindSafe(|| dashboard.renderer.on_train_end(None)));
        }
    }
}

/// Loss and accuracy on the terminal.
pub(super) struct Dashboard {
    renderer: TuiMetricsRendererWrapper,
    interrupter: Interrupter,
    loss: MetricId,
    accuracy: MetricId,
}

impl Dashboard {
    fn new() -> Self {
        let interrupter = Interrupter::new();
        let mut renderer = TuiMetricsRendererWrapper::new(interrupter.clone(), None);
        keep_ctrl_c();
        let mut register = |name: &str, unit: Option<&str>, higher_is_better| {
            let id = MetricId::new(Arc::new(name.to_owned()));
            renderer.register_metric(MetricDefinition {
                metric_id: id.clone(),
                name: name.to_owned(),
                description: None,
                attributes: MetricAttributes::Numeric(NumericAttributes {
                    unit: unit.map(str::to_owned),
                    higher_is_better,
                }),
            });
            id
        };
        let (loss, accuracy) = (register("Loss", None, false), register("Accuracy", Some("%"), true));
        Self { renderer, interrupter, loss, accuracy }
    }

    fn epoch(&mut self, done: usize, all: usize, report: &EpochReport) -> bool {
        let numeric = |id: &MetricId, value: f64| {
            let text = format!("{value:.4}");
            let shown = SerializedEntry { formatted: text.clone(), serialized: text };
            MetricState::Numeric(MetricEntry::new(id.clone(), shown), NumericEntry::Value(value))
        };
        let progress = || TrainingProgress {
            progress: None,
            global_progress: Progress { items_processed: done, items_total: all },
            iteration: Some(done),
        };
        let shown = catch_unwind(AssertUnwindSafe(|| {
            self.renderer.update_train(numeric(&self.loss, report.loss));
            self.renderer.render_train(progress(), Vec::new());
            if let Some(held) = report.held_out {
                self.renderer.update_valid(numeric(&self.loss, held.loss));
                self.renderer.update_valid(numeric(&self.accuracy, held.accuracy * 100.0));
                self.renderer.render_valid(progress(), Vec::new());
            }
        }));
        // It panics when the user has asked for the end without more ado.
        shown.is_err() || self.interrupter.should_stop()
    }
}
