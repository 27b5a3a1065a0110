use serde::Serialize;

use crate::args::Shared;
use crate::backend::{BackendName, Found, PROCESSOR};
use crate::exit::CliError;
use crate::report::{self, Report};

#[derive(Serialize)]
struct Devices {
    backends: Vec<BackendLine>,
    cpu: Cpu,
}

#[derive(Serialize)]
struct BackendLine {
    name: &'static str,
    compiled: bool,
    default: bool,
    /// What it runs on in general.
    device: &'static str,
    /// What it runs on here, the first one first.
    devices: Vec<Found>,
    /// Why there is nothing to run on.
    missing: Option<String>,
}

#[derive(Serialize)]
struct Cpu {
    arch: &'static str,
    threads: usize,
    instruction_sets: Vec<&'static str>,
    /// Kernels that were chosen at run time.
    kernels: &'static str,
}

pub(crate) fn run(shared: &Shared) -> Result<(), CliError> {
    let default = BackendName::best().ok();
    let line = |name: BackendName, device| {
        let (devices, missing) = match name.devices() {
            Ok(devices) => (devices, None),
            Err(CliError::NoDevice { what, next, .. }) => (Vec::new(), Some(format!("{what}; {next}"))),
            Err(_) => (Vec::new(), None),
        };
        let compiled = name.is_compiled();
        BackendLine { name: name.word(), compiled, default: default == Some(name), device, devices, missing }
    };
    let instruction_sets = instruction_sets();
    let kernels = kernels()?;
    let devices = Devices {
        backends: vec![
            line(BackendName::Cpu, "CPU, burn-flex"),
            line(BackendName::Ndarray, "CPU, burn-ndarray"),
            line(BackendName::Wgpu, "Vulkan, Metal, DX12 or WebGPU"),
            line(BackendName::Cuda, "NVIDIA"),
        ],
        cpu: Cpu { arch: std::env::consts::ARCH, threads: rayon::current_num_threads(), instruction_sets, kernels },
    };
    report::print(&devices, shared)
}

/// Name of the kernel set of the `cpu` backend.
#[cfg(feature = "cpu")]
fn kernels() -> Result<&'static str, CliError> {
    let isa = jepa_models::cpu::Isa::chosen().map_err(|error| CliError::usage(error.to_string()))?;
    Ok(isa.name())
}

#[cfg(not(feature = "cpu"))]
fn kernels() -> Result<&'static str, CliError> {
    Ok("not in this binary")
}

#[cfg(target_arch = "x86_64")]
fn instruction_sets() -> Vec<&'static str> {
    macro_rules! found {
        ($($name:tt),+) => { [$(($name, std::arch::is_x86_feature_detected!($name))),+] };
    }
    found!(
        "sse4.2",
        "avx",
        "avx2",
        "fma",
        "f16c",
        "avxvnni",
        "avx512f",
        "avx512bw",
        "avx512vl",
        "avx512vnni",
        "avx512bf16",
        "avx512fp16"
    )
    .into_iter()
    .filter_map(|(name, found)| found.then_some(name))
    .collect()
}

#[cfg(not(target_arch = "x86_64"))]
fn instruction_sets() -> Vec<&'static str> {
    Vec::new()
}

impl Report for Devices {
    fn text(&self) -> String {
        let mut text = String::from("backends\n");
        for backend in &self.backends {
            let state = match (backend.compiled, backend.default) {
                (true, true) => "in this binary, default",
                (true, false) => "in this binary",
                (false, _) => "not in this binary",
            };
            text += &format!("  {:8} {state:24} {}\n", backend.name, backend.device);
            if let Some(missing) = &backend.missing {
                text += &format!("    {missing}\n");
            }
            // A processor is described below.
            for found in backend.devices.iter().filter(|found| found.name != PROCESSOR) {
                let software = if found.software { ", a program on the CPU" } else { "" };
                let limit =
                    found.largest_buffer.map_or(String::new(), |bytes| format!(", buffers up to {} MiB", bytes >> 20));
                text += &format!("    {} ({}){software}{limit}\n", found.name, found.driver);
            }
        }
        let sets = if self.cpu.instruction_sets.is_empty() {
            "none detected".into()
        } else {
            self.cpu.instruction_sets.join(" ")
        };
        text += &format!(
            "cpu\n  {}, {} threads\n  {sets}\n  kernels: {}\n",
            self.cpu.arch, self.cpu.threads, self.cpu.kernels
        );
        text
    }
}
