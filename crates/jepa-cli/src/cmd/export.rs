use jepa_gguf::export::{Export, ExportError};
use serde_json::json;

use super::model::open_bundle;
use crate::args::{ExportArgs, Shared};
use crate::exit::{CliError, say_on_stderr};
use crate::interrupt::Unfinished;
use crate::progress::Progress;
use crate::report;

pub(crate) fn run(args: &ExportArgs, shared: &Shared) -> Result<(), CliError> {
    let bundle = open_bundle(&args.model, false, shared)?;
    let refuse = |error| match error {
        ExportError::Io { source, .. } => CliError::output(&args.output, source),
        ExportError::Exists { .. } => CliError::output(&args.output, error),
        source => CliError::Export { path: args.model.clone(), source },
    };
    let export = Export::plan(&bundle).map_err(refuse)?;
    if !shared.quiet && !export.dropped().is_empty() {
        say_on_stderr(&format!(
            "note: left out, {} has no place for them: {} tensors of the predictor (pred.*)",
            export.architecture(),
            export.dropped().len()
        ));
    }
    let writing = export.start(&args.output).map_err(refuse)?;
    let _unfinished = Unfinished::new(writing.temporary_path());
    let progress = Progress::new(export.tensor_count(), shared);
    writing.finish(|_| progress.advance(1)).map_err(refuse)?;
    drop(progress);
    if shared.json {
        return report::print_json(&json!({
            "model": args.model.display().to_string(),
            "output": args.output.display().to_string(),
            "architecture": export.architecture(),
            "tensors": export.tensor_count(),
            "dropped": export.dropped(),
        }));
    }
    if !shared.quiet {
        let (tensors, class) = (export.tensor_count(), export.architecture());
        say_on_stderr(&format!("{class} written to {}: {tensors} tensors, f32", args.output.display()));
    }
    Ok(())
}
