//! The suite on Burn's wgpu backend, on whatever adapter there is: in CI Mesa's software Vulkan, lavapipe. Without an adapter every test is skipped by
//! name.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Mutex, OnceLock};

use burn::backend::{Flex, Wgpu};
use burn::prelude::*;
use burn::record::{BinBytesRecorder, FullPrecisionSettings, Recorder};
use burn::tensor::{DType, Distribution};

use jepa_cli::parity::Case;
use jepa_gguf::schema::Activation;
use jepa_models::nn::{BlockConfig, Visibility, set_largest_tensor};
use jepa_models::{Trace, noise};

type Work = Box<dyn FnOnce() + Send>;

/// Runs a test on the one thread that drives the device.
fn on_device(name: &str, test: impl FnOnce() + Send + 'static) {
    let Some(adapter) = jepa_cli::wgpu_adapter() else {
        eprintln!("skipped: {name}: no adapter");
        return;
    };
    set_largest_tensor(adapter.largest_buffer);
    static DEVICE: OnceLock<Mutex<Sender<Work>>> = OnceLock::new();
    let device = DEVICE.get_or_init(|| {
        let (send, receive) = channel::<Work>();
        std::thread::spawn(move || receive.into_iter().for_each(|work| work()));
        Mutex::new(send)
    });
    let (done, outcome) = channel();
    let work = Box::new(move || {
        let _ = done.send(catch_unwind(AssertUnwindSafe(test)));
    });
    device.lock().expect("nobody panics with the sender").send(work).expect("the thread waits for work");
    if let Err(panic) = outcome.recv().expect("the work ends") {
        resume_unwind(panic);
    }
}

/// A hidden layer of 138 MB is larger than the largest buffer of many adapters, 134 MB; the block is right all the same.
#[test]
fn a_hidden_layer_beyond_the_largest_buffer_is_computed_in_pieces() {
    on_device("a_hidden_layer_beyond_the_largest_buffer_is_computed_in_pieces", || {
        let config = BlockConfig {
            embed_dim: 8,
            n_head: 1,
            head_dim: 8,
            ffn_dim: 4200,
            ln_eps: 1e-6,
            act: Activation::GeluErf,
            qkv_fused: true,
            qkv_bias: true,
            layer_scale: false,
        };
        let (cpu, gpu) = (Default::default(), Default::default());
        let block = config.init::<Flex>(&cpu);
        let x = Tensor::<Flex, 3>::random([1, 8200, 8], Distribution::Normal(0.0, 1.0), &cpu);
        let see = &Visibility::Full;
        let want = block.forward(x.clone(), None, see, &mut Trace::none(), "").into_data();
        let recorder = BinBytesRecorder::<FullPrecisionSettings>::default();
        let bytes = recorder.record(block.into_record(), ()).expect("memory holds it");
        let block =
            config.init::<Wgpu>(&gpu).load_record(recorder.load(bytes, &gpu).expect("it was recorded just now"));
        let x = Tensor::<Wgpu, 3>::from_data(x.into_data(), &gpu);
        let got = block.forward(x, None, see, &mut Trace::none(), "").into_data();
        got.assert_approx_eq::<f32>(&want, burn::tensor::Tolerance::rel_abs(1e-3, 1e-3));
    });
}

/// Clips of four lengths in turn, as a folder of videos has them: buffers of one length serve the next.
#[cfg(target_os = "linux")]
#[test]
fn memory_stays_flat_over_clips_of_several_lengths() {
    on_device("memory_stays_flat_over_clips_of_several_lengths", || {
        let case = Case::read(&jepa_tests::fixtures().join("cases/vjepa2")).expect("the committed cases are sound");
        let variant = case.variants(Some("f32")).expect("every case has an f32 model").remove(0);
        let model = jepa_tests::load::<Wgpu>(&variant);
        let config = model.encoder().config().clone();
        let round = || {
            for frames in [2, 4, 8, 16] {
                let tokens = model.encode(noise(&config, 1, frames, 5, &Default::default())).expect("clips fit").tokens;
                let _ = tokens.into_data();
            }
        };
        (0..10).for_each(|_| round());
        let warm = resident_bytes();
        (0..50).for_each(|_| round());
        let grown = resident_bytes().saturating_sub(warm);
        assert!(grown < 8 << 20, "{grown} bytes more than after ten rounds, of {warm}");
    });
}

/// Memory of this process in RAM: with a software adapter, the device's too.
#[cfg(target_os = "linux")]
fn resident_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux has it");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("Linux says so");
    line.trim().trim_end_matches("kB").trim().parse::<u64>().expect("a number") * 1024
}

#[test]
fn some_cases_pass_in_f16() {
    on_device("some_cases_pass_in_f16", || {
        if <Wgpu as Backend>::supports_dtype(&Default::default(), DType::F16) {
            jepa_tests::some_cases_pass_as::<Wgpu>(DType::F16);
        } else {
            eprintln!("skipped: some_cases_pass_in_f16: the adapter has no f16");
        }
    });
}

jepa_tests::suite!(Wgpu, on_device);
