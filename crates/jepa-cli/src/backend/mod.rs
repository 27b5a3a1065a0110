//! Backends: which ones are compiled in, which one is meant, and how a task gets onto it.

#[cfg(feature = "cuda")]
mod cuda;
#[cfg(any(feature = "wgpu-untuned", feature = "cuda"))]
mod fault;
#[cfg(feature = "wgpu-untuned")]
mod wgpu;

mod checked;

use std::any::TypeId;
use std::sync::OnceLock;

use burn::prelude::Backend;
use clap::ValueEnum;
use jepa_models::nn::set_largest_tensor;
use serde::Serialize;

#[cfg(feature = "cpu")]
use crate::args::PrecisionWord;
use crate::args::{DtypeWord, Shared};
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
            Self::Wgpu => cfg!(feature = "wgpu-untuned"),
            Self::Cuda => cfg!(feature = "cuda"),
        }
    }

    /// Those that this binary holds, in the order in which a default is chosen.
    pub(crate) fn compiled() -> impl Iterator<Item = Self> {
        [Self::Cuda, Self::Wgpu, Self::Cpu, Self::Ndarray].into_iter().filter(|name| name.is_compiled())
    }
}

pub(crate) use checked::check_once;

/// What the process computes on.
static RUNNING_ON: OnceLock<String> = OnceLock::new();

/// What the process computes on: backend, device and driver.
pub(crate) fn running_on() -> String {
    RUNNING_ON.get().cloned().unwrap_or_default()
}

/// Name of the machine's own processor among devices.
pub(crate) const PROCESSOR: &str = "CPU";

/// A device that a backend can run on.
#[derive(Debug, Serialize)]
pub(crate) struct Found {
    pub(crate) name: String,
    /// Driver and its version.
    pub(crate) driver: String,
    /// Whether it is a program on the CPU.
    pub(crate) software: bool,
    /// Bytes of the largest buffer that a kernel can be given, where there is a limit.
    pub(crate) largest_buffer: Option<u64>,
}

impl BackendName {
    /// Devices that it finds, the one to use first.
    ///
    /// # Errors
    /// [`CliError::NoDevice`] when it finds none, [`CliError::BackendNotCompiled`].
    pub(crate) fn devices(self) -> Result<Vec<Found>, CliError> {
        let processor = |library: &str| Found {
            name: PROCESSOR.into(),
            driver: library.into(),
            software: false,
            largest_buffer: None,
        };
        match self {
            #[cfg(feature = "cpu")]
            Self::Cpu => Ok(vec![processor("burn-flex")]),
            #[cfg(feature = "ndarray")]
            Self::Ndarray => Ok(vec![processor("burn-ndarray")]),
            #[cfg(feature = "wgpu-untuned")]
            Self::Wgpu => Ok(wgpu::adapters()?.into_iter().map(|adapter| adapter.found).collect()),
            #[cfg(feature = "cuda")]
            Self::Cuda => cuda::cards(),
            #[allow(unreachable_patterns, reason = "unreachable only when every backend is compiled in")]
            name => {
                let _ = processor;
                Err(CliError::BackendNotCompiled { name: name.word(), compiled: compiled_words() })
            }
        }
    }

    /// The best of this binary that has a device: cards before processors, and those before programs that pretend to be cards.
    ///
    /// # Errors
    /// [`CliError::NoDevice`] of the last one tried, [`CliError::BackendNotCompiled`].
    pub(crate) fn best() -> Result<Self, CliError> {
        let (mut software, mut none) = (None, None);
        for name in Self::compiled() {
            match name.devices() {
                Ok(devices) if devices.iter().all(|device| device.software) => software = Some(name),
                Ok(_) => return Ok(name),
                Err(error) => none = Some(error),
            }
        }
        match (software, none) {
            (Some(name), _) => Ok(name),
            (None, Some(error)) => Err(error),
            (None, None) => Err(CliError::BackendNotCompiled { name: Self::Cpu.word(), compiled: compiled_words() }),
        }
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
///
/// # Errors
/// [`CliError::Dtype`] for a `--dtype` that the device cannot compute in, [`CliError::NoDevice`], [`CliError::BackendNotCompiled`], and the task's own.
pub(crate) fn run_on<T: Task>(task: T, shared: &Shared) -> Result<T::Output, CliError> {
    let name = match shared.backend {
        Some(name) => name,
        None => {
            let name = BackendName::best()?;
            if !shared.quiet {
                say_on_stderr(&format!("backend: {}", name.word()));
            }
            name
        }
    };
    if matches!(name, BackendName::Cpu | BackendName::Ndarray) && shared.dtype != DtypeWord::F32 {
        return Err(CliError::usage(format!(
            "--dtype {}: the {} backend computes in f32; `--dtype` is for wgpu and cuda, `--precision medium` is its like on the CPU",
            shared.dtype.dtype().name(),
            name.word()
        )));
    }
    let device = name.devices()?.into_iter().next();
    if let Some(device) = device {
        let Found { name: device, driver, software, largest_buffer } = device;
        if let Some(bytes) = largest_buffer {
            set_largest_tensor(bytes);
        }
        if software && !shared.quiet {
            say_on_stderr(&format!("note: {device} is a program on the CPU, not a graphics card"));
        }
        RUNNING_ON.get_or_init(|| format!("{}: {device} ({driver})", name.word()));
    }
    match name {
        #[cfg(feature = "cpu")]
        BackendName::Cpu => {
            choose_kernels(shared)?;
            task.run::<burn::backend::Flex>(Default::default())
        }
        #[cfg(feature = "ndarray")]
        BackendName::Ndarray => task.run::<burn::backend::NdArray>(Default::default()),
        #[cfg(feature = "wgpu-untuned")]
        BackendName::Wgpu => {
            fault::end_on_device_fault();
            run_in::<burn::backend::Wgpu, T>(task, wgpu::adapters()?.swap_remove(0).device, shared)
        }
        #[cfg(feature = "cuda")]
        BackendName::Cuda => {
            fault::end_on_device_fault();
            run_in::<burn::backend::Cuda, T>(task, Default::default(), shared)
        }
        #[allow(unreachable_patterns, reason = "unreachable only when every backend is compiled in")]
        name => Err(CliError::BackendNotCompiled { name: name.word(), compiled: compiled_words() }),
    }
}

/// Runs `task` on a device that must be able to compute in the type asked for.
#[cfg(any(feature = "wgpu-untuned", feature = "cuda"))]
fn run_in<B: Backend, T: Task>(task: T, device: B::Device, shared: &Shared) -> Result<T::Output, CliError> {
    let dtype = shared.dtype.dtype();
    if !B::supports_dtype(&device, dtype) {
        return Err(CliError::Dtype { dtype: dtype.name(), device: running_on() });
    }
    task.run::<B>(device)
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
