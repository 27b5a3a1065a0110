//! How much memory a forward pass takes, known before it runs.

use jepa_gguf::schema::PredictorHparams;

use crate::encoder::EncoderConfig;
use crate::nn::{SCORES_PER_BLOCK, fits};
use crate::predictor::MaskedPredictorConfig;

/// Bytes of one f32.
const F32: u64 = 4;

/// About how many bytes `rows` rows take in a predictor's block.
pub(crate) fn stack_bytes(h: &PredictorHparams, rows: usize) -> u64 {
    row_values(h.embed_dim, h.n_head * h.head_dim, h.ffn_dim).saturating_mul(rows as u64).saturating_mul(F32)
}

impl MaskedPredictorConfig {
    /// About how many bytes of activations a prediction for `batch` inputs takes at its peak, with `context` rows seen and `targets` rows predicted;
    /// weights are not counted. Rather too high than too low; saturates.
    pub fn activation_bytes(&self, batch: usize, context: usize, targets: usize) -> u64 {
        let h = &self.hparams;
        let product = |factors: &[usize]| factors.iter().fold(1u64, |product, &n| product.saturating_mul(n as u64));
        let per_element = context.saturating_add(targets);
        let rows = per_element.saturating_mul(batch);
        // Encoder rows at the input, projected rows at the output.
        let ends = product(&[rows, self.masked.n_hier_in, self.enc_dim.max(h.out_dim), 2, F32 as usize]);
        let all = product(&[batch, h.n_head, per_element, per_element]);
        let scores = all.min(SCORES_PER_BLOCK as u64).max(product(&[batch, h.n_head, per_element]));
        stack_bytes(h, rows).saturating_add(ends).saturating_add(scores.saturating_mul(2 * F32))
    }
}

/// Values that one row of a block holds at its peak.
fn row_values(dim: usize, inner: usize, ffn: usize) -> u64 {
    let (dim, inner, ffn) = (dim as u64, inner as u64, ffn as u64);
    // In the attention: residual and norm; then qkv, its three parts, turned queries and keys with their halves, output.
    let attention = 2 * dim + 12 * inner;
    // In the MLP: residual, norm, and the hidden layer before and after the bias and the activation.
    let mlp = 2 * dim + 3 * ffn;
    attention.max(mlp)
}

impl EncoderConfig {
    /// About how many bytes of activations encoding pixels of `shape` takes at its peak, with `kept` intermediate outputs kept; weights are not
    /// counted. Meant to refuse what cannot fit: it saturates instead of overflowing and is rather too high than too low.
    ///
    /// **Shapes** `[batch, chans, frames, height, width]`.
    pub fn activation_bytes(&self, shape: [usize; 5], kept: usize) -> u64 {
        let h = &self.hparams;
        let [batch, chans, frames, height, width] = shape.map(|n| n as u64);
        let product = |factors: &[u64]| factors.iter().fold(1u64, |product, &n| product.saturating_mul(n));
        let (patch, tubelet) = (h.patch_size as u64, h.tubelet_size as u64);
        let prefix = h.n_registers as u64 + u64::from(h.cls_token);
        let per_element = product(&[frames.div_ceil(tubelet), height / patch, width / patch]).saturating_add(prefix);
        let tokens = product(&[batch, per_element]);
        let kept = (kept + h.hier_layers.len()) as u64 * h.embed_dim as u64;

        // The pixels, and two copies while they are cut into tubelets.
        let pixels = product(&[3, batch, chans, frames.max(tubelet), height, width, F32]);
        let block = product(&[tokens, row_values(h.embed_dim, h.embed_dim, h.ffn_dim) + kept, F32]);
        // Scores, and what the softmax makes of them.
        let heads = h.n_head as u64;
        let scores = product(&[batch, heads, per_element, per_element]).min(SCORES_PER_BLOCK as u64).max(product(&[
            batch,
            heads,
            per_element,
        ]));
        pixels.saturating_add(block).saturating_add(product(&[2, scores, F32]))
    }

    /// Whether every tensor of an encoding stays below the largest that the device can be given ([`crate::nn::set_largest_tensor`]); hidden layers
    /// are cut to fit unless they are traced.
    ///
    /// **Shapes** `[batch, chans, frames, height, width]`.
    pub fn fits_device(&self, shape: [usize; 5], traced: bool) -> bool {
        let h = &self.hparams;
        let [batch, chans, frames, height, width] = shape;
        let rows = [frames.div_ceil(h.tubelet_size), height / h.patch_size, width / h.patch_size];
        let tokens = rows.into_iter().fold(1usize, usize::saturating_mul);
        let tokens = tokens.saturating_add(h.n_registers + usize::from(h.cls_token));
        let widest = if traced { h.ffn_dim.max(3 * h.embed_dim) } else { h.embed_dim };
        fits(&[batch, chans, frames.max(h.tubelet_size), height, width]) && fits(&[batch, tokens, widest])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jepa_gguf::schema::{EncoderHparams, Family, PosType};

    fn vjepa2_predictor() -> MaskedPredictorConfig {
        use jepa_gguf::schema::{MaskedHparams, PredictorKind};
        let masked = MaskedHparams {
            n_mask_tokens: 10,
            rope: None,
            grid_size: 16,
            n_hier_in: 1,
            embed_hidden: None,
            modality_embed: false,
            context_proj: false,
        };
        let hparams = PredictorHparams {
            embed_dim: 384,
            n_layer: 12,
            n_head: 12,
            head_dim: 32,
            ffn_dim: 1536,
            out_dim: 1024,
            ln_eps: 1e-6,
            act: jepa_gguf::schema::Activation::GeluErf,
            qkv_bias: true,
            kind: PredictorKind::Masked(masked.clone()),
        };
        MaskedPredictorConfig { hparams, masked, enc_dim: 1024, table_rows: 0, qkv_fused: true }
    }

    /// ViT-L/16 with tubelets of two frames.
    fn vit_l() -> EncoderConfig {
        let hparams = EncoderHparams {
            tubelet_size: 2,
            n_frames: 16,
            pos_type: PosType::Rope3d,
            ..EncoderHparams::vit([1024, 24, 16, 4096], 16, 256)
        };
        EncoderConfig { family: Family::Vjepa2, hparams }
    }

    #[test]
    fn grows_with_tokens_and_not_with_their_square() {
        let bytes = |frames| vit_l().activation_bytes([1, 3, frames, 256, 256], 0);
        assert!(bytes(64) < 5 * bytes(16));
        assert!(bytes(64) > 2 * bytes(16));
    }

    /// Weights in f32 and activations of 8192 tokens: 64 frames of 256 × 256 pixels.
    #[test]
    fn a_clip_of_64_frames_through_vit_l_stays_within_4_gb() {
        let weights = 24 * (4 * 1024 * 1024 + 2 * 1024 * 4096) * F32;
        let activations = vit_l().activation_bytes([1, 3, 64, 256, 256], 0);
        assert!(weights + activations < 4_000_000_000, "{activations} bytes of activations");
    }

    #[test]
    fn a_prediction_grows_with_its_rows() {
        let bytes = |batch, context, targets| vjepa2_predictor().activation_bytes(batch, context, targets);
        // The residual, the queries, keys and values, and the hidden layer of 16384 further rows.
        assert!(bytes(1, 16384, 16384) - bytes(1, 8192, 8192) > 16384 * (4 * 384 + 1536) * 4);
        assert_eq!(bytes(1, 100, 300), bytes(1, 300, 100));
        assert!(bytes(8, 100, 100) > 4 * bytes(1, 100, 100));
        assert_eq!(bytes(usize::MAX, usize::MAX, 1), u64::MAX);
    }

    #[test]
    fn saturates_instead_of_wrapping() {
        assert_eq!(vit_l().activation_bytes([usize::MAX, 3, 1 << 40, 1 << 40, 1 << 40], 0), u64::MAX);
    }
}
