//! Every case on AMX kernels, where products at the default precision are sums of bf16 products: on the machine's own tiles, or with their instructions
//! executed one by one. A program of its own, since a process has one instruction set.

#[path = "../crates/jepa-kernels/tests/emulated/mod.rs"]
#[allow(dead_code, reason = "the kernels' own tests use the rest")]
mod emulated;

use burn::backend::Flex;
use jepa_models::cpu::{Precision, set_float32_matmul_precision};
use jepa_models::{Agreement, EncoderConfig, noise};

/// Whether there is AMX, which is then what this process runs on.
fn on_amx(name: &str) -> bool {
    let Some(amx) = emulated::amx() else {
        eprintln!("skipped: {name} on AMX: {}", emulated::WITHOUT);
        return false;
    };
    assert_eq!(amx.choose(), Ok(amx));
    true
}

/// The precision is the process's, so one test follows the other.
#[test]
fn every_case_passes_and_a_real_size_is_as_exact_as_it_should() {
    if on_amx("every_case_passes_and_a_real_size_is_as_exact_as_it_should") {
        jepa_tests::every_case_passes::<Flex>();
        a_real_size_is_as_exact_as_it_should();
    }
}

/// Two layers of ViT-S: split products are f32's but for 1e-4, those of plain bf16 are not.
fn a_real_size_is_as_exact_as_it_should() {
    let device = Default::default();
    let mut config = EncoderConfig::of_shape("vit-s").expect("it is one of the sizes");
    config.hparams.n_layer = 2;
    let encoder = config.init::<Flex>(&device);
    let pixels = noise(&config, 1, 1, 0, &device);
    let tokens = |precision| {
        set_float32_matmul_precision(precision);
        let tokens = encoder.encode(pixels.clone()).expect("it takes noise").tokens;
        tokens.into_data().iter::<f64>().collect::<Vec<_>>()
    };
    let exact = tokens(Precision::Highest);
    let [high, medium] =
        [Precision::High, Precision::Medium].map(|it| Agreement::of(&tokens(it), &exact, config.hparams.embed_dim));
    assert!(high.rel_max > 0.0, "large products are split");
    assert!(high.rel_max < 1e-4 && high.cos_min > 0.999_999_9, "{high:?}");
    assert!(medium.rel_max > 10.0 * high.rel_max && medium.cos_mean > 0.9999, "{medium:?}");
}
