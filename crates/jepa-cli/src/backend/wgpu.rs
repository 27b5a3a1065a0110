//! Adapters, asked of wgpu itself before Burn is touched: Burn aborts the process where there is none.

use burn::backend::wgpu::WgpuDevice;
use wgpu::{Backends, DeviceType, Instance, InstanceDescriptor};

use super::Found;
use crate::exit::CliError;

/// The one interface that Burn uses on this system.
const INTERFACE: Backends = if cfg!(target_vendor = "apple") {
    Backends::METAL
} else if cfg!(windows) {
    Backends::DX12
} else {
    Backends::VULKAN
};

/// What computes: a card, or a program that pretends to be one.
pub(super) struct Adapter {
    pub(super) found: Found,
    pub(super) device: WgpuDevice,
}

/// All adapters, the one to use first: cards before what is built into the processor, software last.
///
/// # Errors
/// [`CliError::NoDevice`] when there is none.
pub(super) fn adapters() -> Result<Vec<Adapter>, CliError> {
    let instance =
        Instance::new(InstanceDescriptor { backends: INTERFACE, ..InstanceDescriptor::new_without_display_handle() });
    let mut counts = [0; 5];
    let mut adapters: Vec<_> = pollster::block_on(instance.enumerate_adapters(INTERFACE))
        .iter()
        .map(|adapter| {
            let (info, limits) = (adapter.get_info(), adapter.limits());
            let rank = rank(info.device_type);
            let index = counts[rank];
            counts[rank] += 1;
            let device = match info.device_type {
                DeviceType::DiscreteGpu => WgpuDevice::DiscreteGpu(index),
                DeviceType::IntegratedGpu => WgpuDevice::IntegratedGpu(index),
                DeviceType::VirtualGpu => WgpuDevice::VirtualGpu(index),
                DeviceType::Cpu => WgpuDevice::Cpu,
                DeviceType::Other => WgpuDevice::DefaultDevice,
            };
            let found = Found {
                name: info.name,
                driver: [info.driver, info.driver_info].join(" ").trim().to_owned(),
                software: info.device_type == DeviceType::Cpu,
                largest_buffer: Some(limits.max_storage_buffer_binding_size),
            };
            (rank, Adapter { found, device })
        })
        .collect();
    adapters.sort_by_key(|(rank, _)| *rank);
    if adapters.is_empty() {
        let what = format!("no {} adapter was found", interface());
        let next = "install the driver of the graphics card, or run with `--backend cpu`";
        return Err(CliError::NoDevice { backend: "wgpu", what, next });
    }
    Ok(adapters.into_iter().map(|(_, adapter)| adapter).collect())
}

fn interface() -> &'static str {
    if INTERFACE == Backends::METAL {
        "Metal"
    } else if INTERFACE == Backends::DX12 {
        "DX12"
    } else {
        "Vulkan"
    }
}

fn rank(kind: DeviceType) -> usize {
    match kind {
        DeviceType::DiscreteGpu => 0,
        DeviceType::IntegratedGpu => 1,
        DeviceType::VirtualGpu => 2,
        DeviceType::Other => 3,
        DeviceType::Cpu => 4,
    }
}
