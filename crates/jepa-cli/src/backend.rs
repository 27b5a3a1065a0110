//! Backends: which ones are compiled in, which one is meant, and how a task gets onto it.

use std::any::TypeId;

use burn::prelude::Backend;
use clap::ValueEnum;

#[cfg(feature = "cpu")]
use crate::args::PrecisionWord;
use crate::args::Shared;
use crate::exit::{CliError, say_on_stderr};

/// A backend that a binary may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum BackendName {
    /// Burn's flex backend, on the CPU
    Cpu,
    /// Burn's ndarray backend, on the CPU
    Ndarray,
    /// Vulkan, Metal, DX12 or WebGPU
    Wgpu,
    /// NVIDIA
    Cuda,
}

impl BackendName {
    /// The word on the command line, which is also the cargo feature.
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Cpu => "cpu",
            Self::Ndarray => "ndarray",
            Self::Wgpu => "wgpu",
            Self::Cuda => "cuda",
        }
    }

    /// Whether this binary holds it.
    pub(crate) const fn is_compiled(self) -> bool {
        match self {
            Self::Cpu => cfg!(feature = "cpu"),
            Self::Ndarray => cfg!(feature = "ndarray"),
            Self::Wgpu => cfg!(feature = "wgpu"),
            Self::Cuda => cfg!(feature = "cuda"),
        }
    }

    /// Those that this binary holds, in the order in which a default is chosen.
    pub(crate) fn compiled() -> impl Iterator<Item = Self> {
        [Self::Cuda, Self::Wgpu, Self::Cpu, Self::Ndarray].into_iter().filter(|name| name.is_compiled())
    }
}

/// Something that runs on any backend.
pub(crate) trait Task {
    /// What it gives.
    type Output;

    /// Runs it.
    fn run<B: Backend>(self, device: B::Device) -> Result<Self::Output, CliError>;
}

/// Runs `task` on the backend that was asked for, or on the default one, which is named on stderr.
pub(crate) fn run_on<T: Task>(task: T, shared: &Shared) -> Result<T::Output, CliError> {
    let name = match shared.backend {
        Some(name) => name,
        None => {
            let name = BackendName::compiled().next().ok_or_else(no_backend)?;
            if !shared.quiet {
                say_on_stderr(&format!("backend: {}", name.word()));
            }
            name
        }
    };
    match name {
        #[cfg(feature = "cpu")]
        BackendName::Cpu => {
            choose_kernels(shared)?;
            task.run::<burn::backend::Flex>(Default::default())
        }
        #[cfg(feature = "ndarray")]
        BackendName::Ndarray => task.run::<burn::backend::NdArray>(Default::default()),
        #[cfg(feature = "wgpu")]
        BackendName::Wgpu => task.run::<burn::backend::Wgpu>(Default::default()),
        #[cfg(feature = "cuda")]
        BackendName::Cuda => task.run::<burn::backend::Cuda>(Default::default()),
        #[allow(unreachable_patterns, reason = "unreachable only when every backend is compiled in")]
        name => Err(CliError::BackendNotCompiled { name: name.word(), compiled: compiled_words() }),
    }
}

/// Checks that the kernels asked for exist here, and sets the precision of their products.
#[cfg(feature = "cpu")]
fn choose_kernels(shared: &Shared) -> Result<(), CliError> {
    use jepa_models::cpu::{Isa, Precision, set_float32_matmul_precision};

    Isa::chosen().map_err(|error| CliError::usage(error.to_string()))?;
    set_float32_matmul_precision(match shared.precision {
        PrecisionWord::Highest => Precision::Highest,
        PrecisionWord::High => Precision::High,
        PrecisionWord::Medium => Precision::Medium,
    });
    Ok(())
}

/// Whether `B` computes in the memory of this machine.
pub(crate) fn is_on_host<B: Backend>() -> bool {
    let _backend = TypeId::of::<B>();
    #[cfg(feature = "cpu")]
    if _backend == TypeId::of::<burn::backend::Flex>() {
        return true;
    }
    #[cfg(feature = "ndarray")]
    if _backend == TypeId::of::<burn::backend::NdArray>() {
        return true;
    }
    false
}

/// Sets the number of threads of every CPU kernel in this process.
pub(crate) fn limit_threads(threads: usize) -> Result<(), CliError> {
    rayon::ThreadPoolBuilder::new()
        .num_threads(threads)
        .build_global()
        .map_err(|error| CliError::usage(format!("--threads {threads}: {error}")))
}

/// Runs `work` with a number of threads.
pub(crate) fn with_threads<R: Send>(threads: usize, work: impl FnOnce() -> R + Send) -> Result<R, CliError> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
    let pool = pool.map_err(|error| CliError::usage(format!("--threads {threads}: {error}")))?;
    Ok(pool.install(work))
}

fn compiled_words() -> String {
    let words: Vec<_> = BackendName::compiled().map(BackendName::word).collect();
    if words.is_empty() { "none".to_owned() } else { words.join(", ") }
}

fn no_backend() -> CliError {
    CliError::BackendNotCompiled { name: BackendName::Cpu.word(), compiled: compiled_words() }
}
