//! The encoder: one module whose optional parts cover all families, and the steps that their graphs are written in.

use burn::module::Param;
use burn::nn::{Initializer, LayerNorm, LayerNormConfig, Linear, LinearConfig};
use burn::prelude::*;
use jepa_gguf::schema::{AttnMode, EncoderHparams, Family, PosInterp, PosType};

use crate::error::ModelError;
use crate::families;
use crate::features::Encoded;
use crate::nn::{
    Act, Block, BlockConfig, Grid, Pixels, Rope, RopeAngles, TokenIds, Visibility, layer_norm, linear, resize_table_2d,
    resize_table_3d, tubelets,
};
use crate::trace::Trace;

/// Two layers with an activation between them: `….0` and `….2` in the file.
pub type Projector<B> = (Linear<B>, Act, Linear<B>);

/// What an [`Encoder`] is made of: the family, which names the graph, and its numbers.
#[derive(Clone, Debug, PartialEq)]
pub struct EncoderConfig {
    /// Which graph it is.
    pub family: Family,
    /// Its sizes and switches.
    pub hparams: EncoderHparams,
}

impl EncoderConfig {
    /// An encoder with Burn's default initialisation; tables and tokens are drawn with standard deviation 0.02.
    pub fn init<B: Backend>(&self, device: &B::Device) -> Encoder<B> {
        let h = &self.hparams;
        let dim = h.embed_dim;
        let patch = |tubelet| LinearConfig::new(h.in_chans * tubelet * h.patch_size * h.patch_size, dim).init(device);
        let norm = || LayerNormConfig::new(dim).with_epsilon(h.ln_eps).init(device);
        let small = Initializer::Normal { mean: 0.0, std: 0.02 };
        let row = |yes: bool| yes.then(|| small.init([dim], device));
        let rows = |n: usize| (n > 0).then(|| small.init([n, dim], device));
        Encoder {
            patch_embed: patch(h.tubelet_size),
            patch_embed_img: h.image_patch_embed.then(|| patch(1)),
            pos_embed: rows(self.table_rows()),
            cls_token: row(h.cls_token),
            reg_tokens: rows(h.n_registers),
            mod_embed_img: row(h.modality_embed),
            mod_embed_video: row(h.modality_embed),
            blk: (0..h.n_layer).map(|_| BlockConfig::from(h).init(device)).collect(),
            norm: norm(),
            hier_norm: h.hier_layers.iter().map(|_| norm()).collect(),
            proj: h.proj.map(|p| {
                (
                    LinearConfig::new(dim, p.hidden).init(device),
                    Act::new(p.act),
                    LinearConfig::new(p.hidden, dim).init(device),
                )
            }),
            config: self.clone(),
        }
    }

    /// The grid that the position table was made for.
    pub fn native_grid(&self) -> Grid {
        let h = &self.hparams;
        let side = h.img_size / h.patch_size;
        Grid { frames: (h.n_frames / h.tubelet_size).max(1), rows: side, cols: side }
    }

    /// Rotary positions of the tokens with these ids on `grid`, one row per batch element or one for all, behind `prefix` tokens without a position;
    /// `None` in an encoder that has a table instead.
    pub(crate) fn rope<B: Backend>(
        &self,
        ids: &[Vec<usize>],
        grid: Grid,
        prefix: usize,
        device: &B::Device,
    ) -> Option<Rope<B>> {
        let angles = RopeAngles::new(self.hparams.rope?, self.hparams.embed_dim / self.hparams.n_head);
        Rope::of_ids(angles, ids, grid, prefix, device)
    }

    /// Which of these tokens see which, behind `prefix` tokens that see all.
    pub(crate) fn visibility(&self, ids: &[Vec<usize>], grid: Grid, prefix: usize) -> Visibility {
        match self.hparams.attn_mode {
            AttnMode::Full => Visibility::Full,
            AttnMode::BlockCausal => {
                let frames = ids.iter().map(|ids| ids.iter().map(|&id| grid.at(id).0).collect()).collect();
                Visibility::BlockCausal { prefix, frames }
            }
        }
    }

    fn table_rows(&self) -> usize {
        let grid = self.native_grid();
        match self.hparams.pos_type {
            PosType::Rope3d => 0,
            PosType::Sincos3d => grid.tokens(),
            PosType::Sincos2d | PosType::Learned => grid.rows * grid.cols + usize::from(self.hparams.cls_token),
        }
    }
}

/// The encoder of any family.
///
/// Which parts exist follows from the configuration; what is done with them is written in the family's file under [`crate::families`].
#[derive(Module, Debug)]
pub struct Encoder<B: Backend> {
    /// Tubelets to tokens.
    pub patch_embed: Linear<B>,
    /// Patches of a single picture to tokens (V-JEPA 2.1).
    pub patch_embed_img: Option<Linear<B>>,
    /// Position table; row 0 belongs to CLS where there is one.
    pub pos_embed: Option<Param<Tensor<B, 2>>>,
    /// CLS token.
    pub cls_token: Option<Param<Tensor<B, 1>>>,
    /// Register tokens.
    pub reg_tokens: Option<Param<Tensor<B, 2>>>,
    /// Added to every token of a picture (V-JEPA 2.1).
    pub mod_embed_img: Option<Param<Tensor<B, 1>>>,
    /// Added to every token of a clip (V-JEPA 2.1).
    pub mod_embed_video: Option<Param<Tensor<B, 1>>>,
    /// The blocks.
    pub blk: Vec<Block<B>>,
    /// Final norm.
    pub norm: LayerNorm<B>,
    /// Norms of the hierarchical outputs (V-JEPA 2.1).
    pub hier_norm: Vec<LayerNorm<B>>,
    /// Projector from CLS to the state (LeWM).
    pub proj: Option<Projector<B>>,
    #[module(skip)]
    config: EncoderConfig,
}

/// What enters a block of an encoder.
#[derive(Debug)]
pub struct Entering<B: Backend> {
    /// `[batch, prefix + patches, embed_dim]`.
    pub tokens: Tensor<B, 3>,
    /// Patch grid of the input.
    pub grid: Grid,
    /// CLS and register tokens before the patches.
    pub prefix: usize,
}

/// What to do besides encoding every token.
#[derive(Clone, Copy, Debug, Default)]
pub struct EncodeOptions<'a> {
    /// Encode only these patch tokens; the rest stays unseen.
    pub context: Option<&'a TokenIds>,
    /// Blocks whose normalised output is kept, counted from 0.
    pub layers: &'a [usize],
}

impl<B: Backend> Encoder<B> {
    /// What the encoder is made of.
    pub fn config(&self) -> &EncoderConfig {
        &self.config
    }

    /// Overrides the rule by which a stored table is resized to another grid.
    pub fn set_pos_interp(&mut self, interp: PosInterp) {
        self.config.hparams.pos_interp = interp;
    }

    /// Encodes a batch of pictures or clips.
    ///
    /// **Shapes** `[batch, chans, frames, height, width]` → tokens `[batch, prefix + patches, embed_dim]`.
    ///
    /// # Errors
    /// Pixels that do not fit the model: [`ModelError::Channels`], [`ModelError::TooSmall`], [`ModelError::ClipForImageModel`].
    pub fn encode(&self, pixels: Pixels<B>) -> Result<Encoded<B>, ModelError> {
        self.encode_with(pixels, EncodeOptions::default(), &mut Trace::none())
    }

    /// Encodes with options and an observer.
    ///
    /// # Errors
    /// As [`Self::encode`]; [`ModelError::TokenIds`] for ids off the grid, [`ModelError::Layer`] for a block that is not there.
    pub fn encode_with(
        &self,
        pixels: Pixels<B>,
        options: EncodeOptions<'_>,
        trace: &mut Trace<'_, B>,
    ) -> Result<Encoded<B>, ModelError> {
        if let Some(layer) = options.layers.iter().find(|&&layer| layer >= self.blk.len()) {
            return Err(ModelError::Layer { found: layer.to_string(), last: self.blk.len() - 1 });
        }
        let mut pass = Pass { options, trace, outputs: Vec::new() };
        let embedded = families::embed(self, pixels, &mut pass)?;
        let (x, grid, prefix) = (embedded.tokens, embedded.grid, embedded.prefix);
        let last = self.run_blocks(x, embedded.rope.as_ref(), &embedded.visibility, &mut pass);
        let tokens = self.normed(&self.norm, last);
        pass.trace.see(&tokens, || "enc.norm".into());
        Ok(self.collect(tokens, grid, prefix, pass))
    }

    /// Encodes a batch up to the block `first`, counted from 0: the tokens that enter it. [`EncoderTail`](crate::tail::EncoderTail) goes on from there.
    ///
    /// **Shapes** `[batch, chans, frames, height, width]` → `[batch, prefix + patches, embed_dim]`.
    ///
    /// # Errors
    /// As [`Self::encode`]; [`ModelError::Layer`] for a block that is not there.
    pub fn encode_until(&self, pixels: Pixels<B>, first: usize) -> Result<Entering<B>, ModelError> {
        let Some(before) = self.blk.get(..first) else {
            return Err(ModelError::Layer { found: first.to_string(), last: self.blk.len() - 1 });
        };
        let mut trace = Trace::none();
        let mut pass = Pass { options: EncodeOptions::default(), trace: &mut trace, outputs: Vec::new() };
        let Embedded { mut tokens, grid, prefix, rope, visibility } = families::embed(self, pixels, &mut pass)?;
        for (i, block) in before.iter().enumerate() {
            tokens = block.forward(tokens, rope.as_ref(), &visibility, pass.trace, &format!("enc.blk.{i}"));
        }
        Ok(Entering { tokens, grid, prefix })
    }

    fn collect(&self, tokens: Tensor<B, 3>, grid: Grid, prefix: usize, pass: Pass<'_, '_, B>) -> Encoded<B> {
        let Pass { options, trace, outputs } = pass;
        let at = |layer: usize| {
            outputs.iter().find(|(i, _)| *i == layer).map(|(_, x)| x.clone()).expect("run_blocks kept this layer")
        };
        let hier_layers = &self.config.hparams.hier_layers;
        let hier: Vec<_> =
            hier_layers.iter().zip(&self.hier_norm).map(|(&layer, norm)| self.normed(norm, at(layer))).collect();
        for (k, x) in hier.iter().enumerate() {
            trace.see(x, || format!("enc.hier_norm.{k}"));
        }
        let layers = options.layers.iter().map(|&layer| match hier_layers.iter().position(|&l| l == layer) {
            Some(k) => hier[k].clone(),
            None => self.normed(&self.norm, at(layer)),
        });
        let encoded = Encoded {
            layers: layers.collect(),
            tokens,
            hier,
            grid,
            prefix,
            config: self.config.clone(),
            proj: self.proj.clone(),
        };
        encoded.trace_state(trace);
        encoded
    }

    fn normed(&self, norm: &LayerNorm<B>, x: Tensor<B, 3>) -> Tensor<B, 3> {
        layer_norm(norm, self.config.hparams.ln_eps, x)
    }

    /// Blocks in order, keeping the outputs that somebody asked for.
    fn run_blocks(
        &self,
        mut x: Tensor<B, 3>,
        rope: Option<&Rope<B>>,
        visibility: &Visibility,
        pass: &mut Pass<'_, '_, B>,
    ) -> Tensor<B, 3> {
        for (i, block) in self.blk.iter().enumerate() {
            x = block.forward(x, rope, visibility, pass.trace, &format!("enc.blk.{i}"));
            if pass.options.layers.contains(&i) || self.config.hparams.hier_layers.contains(&i) {
                pass.outputs.push((i, x.clone()));
            }
        }
        x
    }

    /// Pixels to patch tokens by the video (or only) patch embedding.
    ///
    /// **Shapes** `[batch, chans, frames, height, width]` → `[batch, patches, embed_dim]`.
    pub(crate) fn patches(
        &self,
        pixels: Pixels<B>,
        pass: &mut Pass<'_, '_, B>,
    ) -> Result<(Tensor<B, 3>, Grid), ModelError> {
        self.patches_by(&self.patch_embed, self.config.hparams.tubelet_size, "enc.patch_embed", pixels, pass)
    }

    /// Pixels of single pictures to patch tokens by the picture's own patch embedding.
    pub(crate) fn image_patches(
        &self,
        pixels: Pixels<B>,
        pass: &mut Pass<'_, '_, B>,
    ) -> Result<(Tensor<B, 3>, Grid), ModelError> {
        let embed = self.part(&self.patch_embed_img, "enc.patch_embed_img")?;
        self.patches_by(embed, 1, "enc.patch_embed_img", pixels, pass)
    }

    fn patches_by(
        &self,
        embed: &Linear<B>,
        tubelet: usize,
        name: &str,
        pixels: Pixels<B>,
        pass: &mut Pass<'_, '_, B>,
    ) -> Result<(Tensor<B, 3>, Grid), ModelError> {
        let h = &self.config.hparams;
        let batch = pixels.dims()[0];
        let (rows, grid) = tubelets(pixels, h.in_chans, tubelet, h.patch_size)?; //   [b, n, c·τ·p·p]
        if let Some(context) = pass.options.context {
            context.check(batch, grid.tokens())?;
        }
        let x = linear(embed, rows); //                                         [b, n, dim]
        pass.trace.see(&x, || name.to_owned());
        Ok((x, grid))
    }

    /// The 2-D position table on `grid`: the CLS row, where there is one, and the patch rows.
    ///
    /// The stored rows are used as they are when the picture is square and has as many patches; otherwise they are resized.
    pub(crate) fn table_2d(
        &self,
        grid: Grid,
        square: bool,
    ) -> Result<(Option<Tensor<B, 2>>, Tensor<B, 2>), ModelError> {
        let table = self.part(&self.pos_embed, "enc.pos_embed")?.val();
        let cls = usize::from(self.config.hparams.cls_token);
        let (first, rows) =
            (table.clone().narrow(0, 0, cls.max(1)), table.clone().narrow(0, cls, table.dims()[0] - cls));
        let native = Grid { frames: 1, ..self.config.native_grid() };
        let rows = if square && grid.tokens() == native.tokens() {
            rows
        } else {
            resize_table_2d(rows, native, grid, self.config.hparams.pos_interp)
        };
        Ok(((cls == 1).then_some(first), rows))
    }

    /// The 3-D position table on `grid`, trilinear when it is not the native one.
    pub(crate) fn table_3d(&self, grid: Grid) -> Result<Tensor<B, 2>, ModelError> {
        let table = self.part(&self.pos_embed, "enc.pos_embed")?.val();
        let native = self.config.native_grid();
        Ok(if grid == native { table } else { resize_table_3d(table, native, grid) })
    }

    /// Rotary positions of the tokens that are encoded, behind `prefix` tokens without a position.
    pub(crate) fn rope(
        &self,
        grid: Grid,
        prefix: usize,
        pass: &Pass<'_, '_, B>,
    ) -> Result<Option<Rope<B>>, ModelError> {
        self.part(&self.config.hparams.rope, "jepa.enc.rope_theta")?;
        Ok(self.config.rope(&pass.kept_ids(grid), grid, prefix, &self.patch_embed.weight.device()))
    }

    /// CLS as a row for every batch element, `[batch, 1, dim]`.
    pub(crate) fn cls_rows(&self, batch: usize) -> Result<Tensor<B, 3>, ModelError> {
        let cls = self.part(&self.cls_token, "enc.cls_token")?.val();
        let dim = cls.dims()[0];
        Ok(cls.reshape([1, 1, dim]).expand([batch, 1, dim]))
    }

    /// A part that the family's graph needs.
    pub(crate) fn part<'a, T>(&self, part: &'a Option<T>, name: &'static str) -> Result<&'a T, ModelError> {
        part.as_ref().ok_or(ModelError::MissingPart { family: self.config.family, part: name })
    }
}

/// One forward pass: what was asked for and what has been kept so far.
#[derive(Debug)]
pub(crate) struct Pass<'o, 't, B: Backend> {
    pub(crate) options: EncodeOptions<'o>,
    pub(crate) trace: &'o mut Trace<'t, B>,
    outputs: Vec<(usize, Tensor<B, 3>)>,
}

impl<B: Backend> Pass<'_, '_, B> {
    /// The patch tokens that are encoded: the context's, or all. `[batch, patches, dim]` → `[batch, kept, dim]`.
    pub(crate) fn keep(&self, x: Tensor<B, 3>) -> Tensor<B, 3> {
        match self.options.context {
            Some(context) => context.gather(x),
            None => x,
        }
    }

    /// Ids of the tokens that are encoded: one row per batch element, or one for all.
    pub(crate) fn kept_ids(&self, grid: Grid) -> Vec<Vec<usize>> {
        match self.options.context {
            Some(context) => context.rows().to_vec(),
            None => vec![(0..grid.tokens()).collect()],
        }
    }
}

/// What a family makes of pixels before the blocks run.
#[derive(Debug)]
pub(crate) struct Embedded<B: Backend> {
    /// `[batch, prefix + patches, dim]`, positions added.
    pub(crate) tokens: Tensor<B, 3>,
    pub(crate) grid: Grid,
    /// Tokens before the patches.
    pub(crate) prefix: usize,
    pub(crate) rope: Option<Rope<B>>,
    pub(crate) visibility: Visibility,
}
