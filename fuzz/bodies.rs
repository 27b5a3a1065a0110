//! What the fuzz targets run, and what `crates/jepa-gguf/tests/corpus.rs` replays on stable Rust. None of them may panic, whatever the bytes are.

use jepa_gguf::checkpoint::{Checkpoint, SourceType};
use jepa_gguf::quant::{dequantize, quantize};
use jepa_gguf::{Bundle, GgmlType, Gguf};

/// Values that are unpacked at most: more would only be slow.
const MOST_VALUES: usize = 1 << 16;

/// The container, and the numbers of every tensor.
pub(crate) fn gguf(data: &[u8]) {
    let Ok(file) = Gguf::from_bytes(data.to_vec()) else { return };
    for info in file.tensors().iter().filter(|info| info.element_count() <= MOST_VALUES) {
        let view = file.tensor(info.name()).expect("listed by the file");
        assert_eq!(view.to_f32().len(), info.element_count());
    }
}

/// The container and the schema.
pub(crate) fn schema(data: &[u8]) {
    let Ok(file) = Gguf::from_bytes(data.to_vec()) else { return };
    if let Ok(bundle) = Bundle::from_gguf(file) {
        assert!(bundle.hparams().enc.n_layer > 0);
    }
}

/// A block format, named by the first byte, unpacked from the rest and packed again.
pub(crate) fn blocks(data: &[u8]) {
    let Some((&first, bytes)) = data.split_first() else { return };
    let dtype = GgmlType::ALL[usize::from(first) % GgmlType::ALL.len()];
    let blocks = (bytes.len() / dtype.block_bytes()).min(MOST_VALUES / dtype.block_len());
    let bytes = &bytes[..blocks * dtype.block_bytes()];
    let mut values = vec![0.0; blocks * dtype.block_len()];
    dequantize(dtype, bytes, &mut values).expect("whole blocks");
    if blocks > 0 {
        let importance: Vec<f32> = values.iter().map(|v| v.abs()).collect();
        let mut packed = vec![0; bytes.len()];
        quantize(dtype, &values, values.len(), None, &mut packed).expect("whole blocks");
        quantize(dtype, &values, values.len(), Some(&importance), &mut packed).expect("whole blocks");
    }
}

/// Any checkpoint, and the numbers of every tensor.
pub(crate) fn checkpoint(data: &[u8]) {
    let Ok(checkpoint) = Checkpoint::from_bytes(data.to_vec()) else { return };
    for tensor in checkpoint.tensors() {
        let elements: usize = tensor.shape.iter().product();
        if elements > MOST_VALUES || tensor.dtype == SourceType::Integer {
            continue;
        }
        if let Ok(values) = checkpoint.read(&tensor.name) {
            assert_eq!(values.len(), elements);
        }
    }
}
