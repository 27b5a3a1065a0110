//! Large weights that stay in their file until somebody asks for them.

use std::sync::Arc;

use burn::module::{Param, ParamId};
use burn::nn::Linear;
use burn::prelude::*;
use burn::tensor::DType;
use jepa_gguf::{Gguf, TensorHandle};

/// The matrices of a block: their fields, which are their names in the file.
const MATRICES: [&str; 7] = ["attn_qkv", "attn_q", "attn_k", "attn_v", "attn_out", "ffn_up", "ffn_down"];

/// Whether the parameter at `path` is loaded with its module: all are but the matrices of blocks, `blk.3.ffn_up.weight`, which read the file themselves.
pub(crate) fn is_loaded_at_once(path: &str, _containers: &str) -> bool {
    let mut parts = path.split('.');
    let of_block = parts.next() == Some("blk") && parts.next().is_some();
    !(of_block && parts.next().is_some_and(|part| MATRICES.contains(&part)) && parts.next() == Some("weight"))
}

/// A matrix as its file has it, `[out, in]`.
#[derive(Debug)]
pub(crate) struct StoredMatrix {
    pub(crate) handle: TensorHandle,
    /// Where the kernels may keep it as bf16.
    #[cfg(feature = "cpu")]
    pub(crate) packed: jepa_kernels::PackedWeights,
}

/// The matrices of a block as their file has them, in the order of [`MATRICES`].
#[derive(Clone, Debug, Default)]
pub(crate) struct StoredMatrices([Option<Arc<StoredMatrix>>; MATRICES.len()]);

impl StoredMatrices {
    /// Those of the block called `at`.
    pub(crate) fn of(file: &Arc<Gguf>, at: &str) -> Self {
        Self(MATRICES.map(|name| {
            let handle = TensorHandle::new(file, &format!("{at}.{name}.weight"))?;
            Some(Arc::new(StoredMatrix {
                handle,
                #[cfg(feature = "cpu")]
                packed: jepa_kernels::PackedWeights::default(),
            }))
        }))
    }

    /// The one whose field is called `name`.
    pub(crate) fn get(&self, name: &str) -> Option<&Arc<StoredMatrix>> {
        let place = MATRICES.iter().position(|matrix| *matrix == name)?;
        self.0[place].as_ref()
    }
}

/// Makes the weight of `layer` read `matrix` as `dtype` when it is first asked for; the kernels of the CPU backend never ask.
pub(crate) fn leave_in_file<B: Backend>(layer: &mut Linear<B>, matrix: &StoredMatrix, dtype: DType) {
    let handle = matrix.handle.clone();
    let [d_out, d_in] = [handle.info().row_count(), handle.info().row_len()];
    let read = move |device: &B::Device, require_grad: bool| {
        let data = TensorData::new(handle.view().to_f32_transposed(), [d_in, d_out]);
        Tensor::from_data(data.convert_dtype(dtype), (device, dtype)).set_require_grad(require_grad)
    };
    let device = layer.weight.lazy_device();
    // A weight tracks gradients until it is told not to, as those of a fresh layer do.
    layer.weight = Param::uninitialized(ParamId::new(), read, device, true, [d_in, d_out].into());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_matrices_of_blocks_wait() {
        for path in ["blk.0.attn_qkv.weight", "blk.11.ffn_down.weight"] {
            assert!(!is_loaded_at_once(path, ""), "{path}");
        }
        for path in ["blk.0.attn_qkv.bias", "blk.0.ln1.gamma", "patch_embed.weight", "blk.0.ls1", "proj.0.weight"] {
            assert!(is_loaded_at_once(path, ""), "{path}");
        }
    }
}
