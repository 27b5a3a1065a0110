//! Refusing what cannot fit before it runs.

use burn::prelude::Backend;
use jepa_models::EncoderConfig;
use sysinfo::{MemoryRefreshKind, System};

use crate::args::Shared;
use crate::backend::{is_on_host, running_on};
use crate::exit::{CliError, say_on_stderr};

/// Part of the available memory that activations may take.
const USABLE: f64 = 0.9;

/// What to do about an input that is too large for the buffers of a device.
const SMALLER: &str = "lower --frames or --size, or run with `--backend cpu`";

/// The batch size, `wanted` or the largest below it, at which encoding fits into memory; equal results either way.
///
/// `input` is one clip's `[chans, frames, height, width]`, `kept` the number of intermediate outputs kept, `clips` the number of clips of an input. Memory of other devices is not known
/// here: on them the largest buffer decides.
pub(crate) fn fitting_batch<B: Backend>(
    config: &EncoderConfig,
    input: [usize; 4],
    kept: usize,
    clips: usize,
    wanted: usize,
    shared: &Shared,
) -> Result<usize, CliError> {
    let [chans, frames, height, width] = input;
    let shape = |batch: usize| [batch.saturating_mul(clips), chans, frames, height, width];
    let needed = |batch: usize| config.activation_bytes(shape(batch), kept);
    let (on_host, available) = (is_on_host::<B>(), available_bytes());
    let fits = |batch: usize| match on_host {
        true => needed(batch) <= available,
        false => config.fits_device(shape(batch), false),
    };
    if !fits(1) && !on_host {
        return Err(beyond_buffers(format!("one input of {frames} frames at {height}×{width}"), SMALLER));
    }
    if !fits(1) {
        let what = match clips {
            1 => format!("one input of {frames} frames at {height}×{width}"),
            _ => format!("one input of {clips} clips of {frames} frames at {height}×{width}"),
        };
        return Err(CliError::TooBig { what, needed: needed(1), available, next: "lower --frames or --size" });
    }
    let (mut batch, mut too_many) = (1, wanted.saturating_add(1));
    while too_many - batch > 1 {
        let middle = batch + (too_many - batch) / 2;
        if fits(middle) { batch = middle } else { too_many = middle }
    }
    if batch < wanted && !shared.quiet {
        say_on_stderr(&format!("note: {wanted} inputs at once do not fit into memory, {batch} at a time"));
    }
    Ok(batch)
}

/// Refuses to trace one input whose hidden layers are larger than a buffer of the device.
pub(crate) fn refuse_tracing(config: &EncoderConfig, shape: [usize; 5]) -> Result<(), CliError> {
    match config.fits_device(shape, true) {
        true => Ok(()),
        false => Err(beyond_buffers("tracing this input".to_owned(), SMALLER)),
    }
}

/// The refusal of a request with a tensor that is larger than the largest buffer of the device; `next` says what to change.
pub(super) fn beyond_buffers(what: String, next: &'static str) -> CliError {
    CliError::BeyondBuffers { what, device: running_on(), next }
}

/// Refuses `what` when its activations cannot fit; `next` says what to change.
pub(crate) fn refuse_too_big<B: Backend>(what: &str, needed: u64, next: &'static str) -> Result<(), CliError> {
    let available = available_bytes();
    if !is_on_host::<B>() || needed <= available {
        return Ok(());
    }
    Err(CliError::TooBig { what: what.to_owned(), needed, available, next })
}

/// Memory that activations may take: most of what the machine, or the control group of this process where that is less, has left.
fn available_bytes() -> u64 {
    let mut system = System::new();
    system.refresh_memory_specifics(MemoryRefreshKind::nothing().with_ram());
    let machine = system.available_memory();
    let free = system.cgroup_limits().map_or(machine, |limits| machine.min(limits.free_memory));
    (free as f64 * USABLE) as u64
}
