//! Refusing what cannot fit before it runs.

use burn::prelude::Backend;
use jepa_models::EncoderConfig;
use sysinfo::{MemoryRefreshKind, System};

use crate::args::Shared;
use crate::backend::is_on_host;
use crate::exit::{CliError, say_on_stderr};

/// Part of the available memory that activations may take.
const USABLE: f64 = 0.9;

/// The batch size, `wanted` or the largest below it, at which encoding fits into memory; equal results either way.
///
/// `input` is one input's `[chans, frames, height, width]`, `kept` the number of intermediate outputs kept. Memory of other devices is not known
/// here: on them `wanted` stays.
pub(crate) fn fitting_batch<B: Backend>(
    config: &EncoderConfig,
    input: [usize; 4],
    kept: usize,
    wanted: usize,
    shared: &Shared,
) -> Result<usize, CliError> {
    if !is_on_host::<B>() {
        return Ok(wanted);
    }
    let available = (available_bytes() as f64 * USABLE) as u64;
    let [chans, frames, height, width] = input;
    let needed = |batch: usize| config.activation_bytes([batch, chans, frames, height, width], kept);
    let fits = |batch: usize| needed(batch) <= available;
    if !fits(1) {
        let what = format!("one input of {frames} frames at {height}×{width}");
        return Err(CliError::TooBig { what, needed: needed(1), available });
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

/// Memory that this process may still take: the machine's, or its control group's where that is less.
pub(crate) fn available_bytes() -> u64 {
    let mut system = System::new();
    system.refresh_memory_specifics(MemoryRefreshKind::nothing().with_ram());
    let machine = system.available_memory();
    system.cgroup_limits().map_or(machine, |limits| machine.min(limits.free_memory))
}
