//! Packing gives the bits that ggml's own quantiser gives. The vectors come from `tests/reference/pack_vectors.py`; a folder of more of them is
//! replayed when `JEPA_PACK_VECTORS` names it.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::path::{Path, PathBuf};

use jepa_gguf::quant::{dequantize, quantize};
use jepa_gguf::{GgmlType, GgufError};

const ROW: usize = 512;

fn floats(path: &Path) -> Vec<f32> {
    std::fs::read(path).unwrap().chunks(4).map(|b| f32::from_le_bytes(b.try_into().unwrap())).collect()
}

fn packed(dtype: GgmlType, values: &[f32], importance: Option<&[f32]>) -> Vec<u8> {
    let mut out = vec![0x55; values.len() / dtype.block_len() * dtype.block_bytes()];
    quantize(dtype, values, ROW, importance, &mut out).unwrap();
    out
}

fn folders() -> Vec<PathBuf> {
    let committed = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/pack");
    [Some(committed), std::env::var_os("JEPA_PACK_VECTORS").map(PathBuf::from)].into_iter().flatten().collect()
}

#[test]
fn every_format_gives_the_bits_of_ggml() {
    for folder in folders() {
        let (values, importance) = (floats(&folder.join("values.f32")), floats(&folder.join("importance.f32")));
        for &dtype in GgmlType::ALL.iter().filter(|t| !t.is_float()) {
            for (suffix, importance) in [("plain", None), ("weighted", Some(&importance[..]))] {
                let wanted = std::fs::read(folder.join(format!("{dtype}.{suffix}"))).unwrap();
                let found = packed(dtype, &values, importance);
                let blocks = found.chunks(dtype.block_bytes()).zip(wanted.chunks(dtype.block_bytes()));
                let other: Vec<usize> = blocks.enumerate().filter(|(_, (a, b))| a != b).map(|(i, _)| i).collect();
                assert!(other.is_empty(), "{dtype} {suffix}: {} blocks differ, the first is {}", other.len(), other[0]);
            }
        }
    }
}

#[test]
fn floats_round_to_the_nearest() {
    let values: Vec<f32> = (0..ROW).map(|i| (i as f32 - 500.0) * 0.001_234_5).collect();
    for (dtype, bar) in [(GgmlType::F32, 0.0), (GgmlType::F16, 1.0 / 2048.0), (GgmlType::Bf16, 1.0 / 256.0)] {
        let mut back = vec![0.0; ROW];
        dequantize(dtype, &packed(dtype, &values, None), &mut back).unwrap();
        for (back, v) in back.iter().zip(&values) {
            assert!((back - v).abs() <= bar * v.abs(), "{dtype}: {back} {v}");
        }
    }
}

#[test]
fn important_columns_lose_less() {
    let values: Vec<f32> =
        (0..ROW as u32).map(|i| ((i.wrapping_mul(2_654_435_761) >> 8) as f32 / 8_388_608.0 - 1.0) * 0.1).collect();
    let importance: Vec<f32> = (0..ROW).map(|i| if i % 8 == 0 { 100.0 } else { 0.01 }).collect();
    for &dtype in GgmlType::ALL.iter().filter(|t| !t.is_float() && **t != GgmlType::Q8_0) {
        let error = |importance: Option<&[f32]>| {
            let mut back = vec![0.0; ROW];
            dequantize(dtype, &packed(dtype, &values, importance), &mut back).unwrap();
            (0..ROW).step_by(8).map(|i| f64::from(back[i] - values[i]).powi(2)).sum::<f64>()
        };
        assert!(error(Some(&importance)) < error(None), "{dtype}");
    }
}

#[test]
fn rows_that_are_no_blocks_and_wrong_lengths_are_refused() {
    let refused = |dtype, n, row, out: usize| quantize(dtype, &vec![0.0; n], row, None, &mut vec![0; out]).is_err();
    assert!(refused(GgmlType::Q8_0, 48, 48, 51));
    assert!(refused(GgmlType::Q8_0, 64, 0, 68));
    assert!(refused(GgmlType::Q8_0, 64, 32, 67));
    assert!(refused(GgmlType::Q4K, 128, 128, 72));
    assert!(!refused(GgmlType::Q8_0, 64, 32, 68));
    let error = quantize(GgmlType::Q4K, &[0.0; 256], 256, Some(&[1.0; 255]), &mut [0; 144]).unwrap_err();
    assert!(matches!(error, GgufError::Importance { found: 255, wanted: 256 }));
}
