//! What a bench prints.

use serde::Serialize;

use crate::report::Report;

#[derive(Serialize)]
#[serde(transparent)]
pub(super) struct Measured(pub(super) Vec<Line>);

#[derive(Serialize)]
pub(super) struct Line {
    pub(super) task: &'static str,
    pub(super) shape: String,
    pub(super) precision: &'static str,
    /// Type of the activations.
    pub(super) dtype: &'static str,
    /// Type that most weights are stored in.
    pub(super) weights: String,
    pub(super) threads: usize,
    pub(super) batch: usize,
    /// Tokens of one input that pass through the layers.
    pub(super) tokens: usize,
    pub(super) layers: usize,
    pub(super) ms_median: f64,
    pub(super) ms_min: f64,
    pub(super) cpu_ms_min: f64,
    /// The most memory that the process had in these passes, mapped pages of files included.
    pub(super) peak_rss_mb: Option<f64>,
    /// Time to open and load; on the first line of a model only.
    pub(super) load_ms: Option<f64>,
}

impl Report for Measured {
    fn text(&self) -> String {
        let width = self.0.iter().map(|line| line.shape.chars().count()).max().unwrap_or(0).max("model".len());
        let mut text = format!(
            "{:width$}  task       threads  batch  tokens  ms (median)  ms (best)  cpu ms (best)  tokens/s  peak MB\n",
            "model"
        );
        for line in &self.0 {
            let rate = (line.batch * line.tokens) as f64 / line.ms_median * 1e3;
            let peak = line.peak_rss_mb.map_or("-".to_owned(), |mb| format!("{mb:.0}"));
            text += &format!(
                "{:width$}  {:9}  {:7}  {:5}  {:6}  {:11.1}  {:9.1}  {:13.1}  {rate:8.0}  {peak:>7}\n",
                line.shape,
                line.task,
                line.threads,
                line.batch,
                line.tokens,
                line.ms_median,
                line.ms_min,
                line.cpu_ms_min
            );
        }
        text
    }
}

/// Makes the peak start anew, where the system can: what was measured before is not this line's.
pub(super) fn forget_peak() {
    let _ = std::fs::write("/proc/self/clear_refs", "5");
}

/// The most memory this process has had since, mapped pages of files included; where the system tells.
pub(super) fn peak_rss_mb() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kilobytes: f64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kilobytes * 1024.0 / 1e6)
}
