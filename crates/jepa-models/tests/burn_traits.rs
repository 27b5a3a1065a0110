//! Models from files are Burn modules like any other: records, devices, gradients, optimisers and Burn's other stores work on them, although the
//! matrices of blocks wait in the file until somebody asks.

use std::path::{Path, PathBuf};

use burn::backend::Autodiff;
use burn::module::AutodiffModule;
use burn::optim::{GradientsParams, Optimizer, SgdConfig};
use burn::prelude::*;
use burn_flex::Flex;
use burn_store::{BurnpackStore, ModuleSnapshot, SafetensorsStore};
use jepa_models::tail::{EncoderTail, Unfreeze};
use jepa_models::{Encoder, Jepa, Pixels, nn};

type Train = Autodiff<Flex>;

fn file() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/quickstart/tiny.gguf")
}

fn encoder<B: Backend>() -> Encoder<B> {
    Jepa::<B>::open(file(), &Default::default()).expect("the committed model is sound").encoder().clone()
}

fn tokens<B: Backend>(encoder: &Encoder<B>) -> Vec<f32> {
    let values = (0..3 * 64 * 64).map(|i| (i as f32 * 0.37).sin()).collect();
    let pixels = Tensor::from_data(TensorData::new::<f32, _>(values, [1, 3, 64, 64]), &Default::default());
    encoder
        .encode(Pixels::from_normalised_images(pixels))
        .expect("the committed model is sound")
        .tokens
        .into_data()
        .iter()
        .collect()
}

fn assert_close(got: &[f32], want: &[f32]) {
    let worst = got.iter().zip(want).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
    assert!(got.len() == want.len() && worst < 1e-4, "{worst}");
}

/// One step that makes the tokens smaller.
fn stepped(encoder: Encoder<Train>) -> Encoder<Train> {
    let pixels = Tensor::<Train, 4>::ones([1, 3, 64, 64], &Default::default());
    let loss = encoder
        .encode(Pixels::from_normalised_images(pixels))
        .expect("the committed model is sound")
        .tokens
        .powi_scalar(2)
        .mean();
    let grads = GradientsParams::from_grads(loss.backward(), &encoder);
    SgdConfig::new().init().step(0.5, encoder, grads)
}

#[test]
fn a_record_holds_every_weight() {
    let loaded = encoder::<Flex>();
    let fresh = loaded.config().init::<Flex>(&Default::default());
    let recorded = fresh.load_record(loaded.clone().into_record());
    assert_close(&tokens(&recorded), &tokens(&loaded));
}

#[test]
fn a_fork_is_the_same_model() {
    let loaded = encoder::<Flex>();
    assert_close(&tokens(&loaded.clone().fork(&Default::default())), &tokens(&loaded));
}

#[test]
fn the_valid_module_is_the_same_model_on_the_kernels() {
    let tracked = encoder::<Train>();
    assert_close(&tokens(&tracked.valid()), &tokens(&tracked));
}

/// What was trained is what runs, not what the file has.
#[test]
fn an_optimiser_moves_matrices_that_waited_in_the_file() {
    let before = encoder::<Train>();
    let after = stepped(before.clone());
    let weight = |encoder: &Encoder<Train>| encoder.blk[0].ffn_up.weight.val().into_data();
    assert_ne!(weight(&after), weight(&before));
    let (moved, tracked) = (tokens(&after.valid()), tokens(&after));
    assert_close(&moved, &tracked);
    let distance = moved.iter().zip(tokens(&before)).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
    assert!(distance > 1e-3, "{distance}");
}

#[test]
fn a_frozen_encoder_gets_no_gradients() {
    let frozen = encoder::<Train>().no_grad();
    let weights = |encoder: &Encoder<Train>| encoder.blk[1].attn_out.weight.val().into_data();
    assert_eq!(weights(&stepped(frozen.clone())), weights(&frozen));
    assert!(!frozen.blk[0].ffn_down.weight.val().is_require_grad());
    assert!(!frozen.patch_embed.weight.val().is_require_grad());
}

#[test]
fn burns_other_stores_save_and_load_it() {
    let folder = tempfile::tempdir().unwrap();
    let loaded = encoder::<Flex>();
    let fresh = || loaded.config().init::<Flex>(&Default::default());
    let path = folder.path().join("encoder.safetensors");
    loaded.save_into(&mut SafetensorsStore::from_file(path.clone())).unwrap();
    let mut other = fresh();
    other.load_from(&mut SafetensorsStore::from_file(path)).unwrap();
    assert_close(&tokens(&other), &tokens(&loaded));

    let path = folder.path().join("encoder.bpk");
    loaded.save_into(&mut BurnpackStore::from_file(&path)).unwrap();
    let mut other = fresh();
    other.load_from(&mut BurnpackStore::from_file(&path)).unwrap();
    assert_close(&tokens(&other), &tokens(&loaded));
}

/// The last blocks go on where the others stopped; of them only what is to be trained moves.
#[test]
fn a_tail_is_the_rest_of_the_encoder_and_moves_alone() {
    let encoder = encoder::<Train>();
    let pixels = || Pixels::from_normalised_images(Tensor::<Train, 4>::ones([1, 3, 64, 64], &Default::default()) * 0.3);
    let whole: Vec<f32> = encoder.encode(pixels()).unwrap().tokens.into_data().iter().collect();
    for (unfreeze, first, moving) in [(Unfreeze::Last(1), 1, "ffn_up"), (Unfreeze::Norms, 0, "ln2")] {
        let entering = encoder.encode_until(pixels(), first).unwrap();
        let tail = EncoderTail::new(&encoder, unfreeze, entering.grid, entering.prefix).unwrap();
        let encoded = tail.forward(entering.tokens.clone());
        assert_close(&encoded.tokens.clone().into_data().iter().collect::<Vec<f32>>(), &whole);

        let grads = GradientsParams::from_grads(encoded.tokens.powi_scalar(2).mean().backward(), &tail);
        let moved = SgdConfig::new().init().step(0.5, tail.clone(), grads);
        let parts = |tail: &EncoderTail<Train>| {
            let block = &tail.blk[0];
            [("ffn_up", block.ffn_up.weight.val().into_data()), ("ln2", block.ln2.gamma.val().into_data())]
        };
        for ((name, before), (_, after)) in parts(&tail).into_iter().zip(parts(&moved)) {
            let both = matches!(unfreeze, Unfreeze::Last(_));
            assert_eq!(before != after, both || name == moving, "{unfreeze}: {name}");
        }
    }
    assert!(EncoderTail::new(&encoder, Unfreeze::Last(3), nn::Grid { frames: 1, rows: 8, cols: 8 }, 0).is_err());
}
