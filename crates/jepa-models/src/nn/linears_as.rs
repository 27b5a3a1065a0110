use burn::module::{ModuleMapper, Param};
use burn::prelude::*;
use burn::tensor::DType;

use super::as_type;

/// `module` with its linear layers in another type, f16 or bf16, as [`crate::Jepa::from_bundle_as`] loads them; everything else stays as it is.
///
/// Weights that wait in a file are read; a model from a file is better loaded in its type.
pub fn with_linears_as<B: Backend, M: Module<B>>(module: M, dtype: DType) -> M {
    module.map(&mut LinearsAs { dtype, within: Vec::new() })
}

struct LinearsAs {
    dtype: DType,
    /// For each field on the way to a parameter whether it is one of a linear layer.
    within: Vec<bool>,
}

impl<B: Backend> ModuleMapper<B> for LinearsAs {
    fn enter_module(&mut self, _field: &str, container: &str) {
        self.within.push(container == "Struct:Linear");
    }

    fn exit_module(&mut self, _field: &str, _container: &str) {
        self.within.pop();
    }

    fn map_float<const D: usize>(&mut self, param: Param<Tensor<B, D>>) -> Param<Tensor<B, D>> {
        if self.within.last() == Some(&true) { param.map(|x| as_type(x, self.dtype)) } else { param }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::EncoderConfig;
    use burn_flex::Flex;

    #[test]
    fn layers_change_and_norms_tables_and_tokens_do_not() {
        let mut config = EncoderConfig::of_shape("vit-s").unwrap();
        (config.hparams.n_layer, config.hparams.cls_token) = (1, true);
        let encoder = with_linears_as(config.init::<Flex>(&Default::default()), DType::F16);
        let block = &encoder.blk[0];
        assert_eq!(encoder.patch_embed.weight.val().dtype(), DType::F16);
        assert_eq!(block.ffn_up.weight.val().dtype(), DType::F16);
        assert_eq!(block.ffn_up.bias.as_ref().unwrap().val().dtype(), DType::F16);
        assert_eq!(block.ln1.gamma.val().dtype(), DType::F32);
        assert_eq!(encoder.cls_token.as_ref().unwrap().val().dtype(), DType::F32);
    }
}
