//! Unpacking gives the bits that gguf-py gives. The vectors come from `tests/reference/quant_vectors.py`.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::path::PathBuf;

use jepa_gguf::GgmlType;
use jepa_gguf::quant::dequantize;

fn vector(dtype: GgmlType, ending: &str) -> Vec<u8> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/quant");
    std::fs::read(folder.join(format!("{dtype}.{ending}"))).unwrap()
}

#[test]
fn every_format_gives_the_reference_bits() {
    for &dtype in GgmlType::ALL.iter().filter(|&&t| t != GgmlType::F32) {
        let blocks = vector(dtype, "blocks");
        let wanted: Vec<u32> =
            vector(dtype, "values").chunks(4).map(|b| u32::from_le_bytes(b.try_into().unwrap())).collect();
        let mut found = vec![0.0; wanted.len()];
        dequantize(dtype, &blocks, &mut found).unwrap();
        for (i, (found, &wanted)) in found.iter().zip(&wanted).enumerate() {
            assert_eq!(found.to_bits(), wanted, "{dtype} value {i}: {found}, wanted {}", f32::from_bits(wanted));
        }
        assert!(wanted.iter().collect::<std::collections::HashSet<_>>().len() > 20, "{dtype}: the vector says little");
    }
}

#[test]
fn a_changed_block_gives_other_values() {
    for &dtype in GgmlType::ALL.iter().filter(|&&t| t != GgmlType::F32) {
        let mut blocks = vector(dtype, "blocks");
        let values = blocks.len() / dtype.block_bytes() * dtype.block_len();
        let (mut before, mut after) = (vec![0.0; values], vec![0.0; values]);
        dequantize(dtype, &blocks, &mut before).unwrap();
        // In the fourth block, whose scale is neither zero nor tiny, between the scales at both ends of every format.
        let at = 3 * dtype.block_bytes() + dtype.block_bytes() / 2;
        blocks[at] ^= 0x55;
        dequantize(dtype, &blocks, &mut after).unwrap();
        assert_ne!(before, after, "{dtype}");
    }
}
