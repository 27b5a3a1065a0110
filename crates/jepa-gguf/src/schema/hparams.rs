//! The hyper-parameters of a bundle: every number that a graph needs, typed, in range and consistent with each other.
//!
//! Field names are the schema's key names without their `jepa.enc.` / `jepa.pred.` / `jepa.head.` / `jepa.pre.` prefix. Sizes are `usize`
//! because every one of them has been checked against a cap before it gets here.

/// Declares an enum whose variants are spelled by strings in the file.
macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident = $word:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $name { $($(#[$vdoc])* $variant),+ }

        impl $name {
            /// Every value, in the order of the schema.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];
            /// Every word a file may use, in the order of [`Self::ALL`].
            pub const WORDS: &'static [&'static str] = &[$($word),+];

            /// The word a file uses for this value.
            pub const fn word(self) -> &'static str {
                match self { $(Self::$variant => $word),+ }
            }

            /// The value a file means by `word`; `None` for a word the schema does not have.
            pub fn from_word(word: &str) -> Option<Self> {
                match word { $($word => Some(Self::$variant),)+ _ => None }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.word())
            }
        }
    };
}

words! {
    /// `jepa.family`: which graph the encoder (and its predictor) is.
    Family {
        /// I-JEPA.
        Ijepa = "ijepa",
        /// V-JEPA (1).
        Vjepa = "vjepa",
        /// V-JEPA 2, its classifiers and V-JEPA 2-AC.
        Vjepa2 = "vjepa2",
        /// V-JEPA 2.1.
        Vjepa2_1 = "vjepa2_1",
        /// LeVJEPA.
        Levjepa = "levjepa",
        /// DINOv2-style ViTs: LeJEPA, lite_ssl, Dinov2WithRegisters.
        Hfvit = "hfvit",
        /// LeWorldModel.
        Lewm = "lewm",
    }
}

words! {
    /// `jepa.modality`: what the encoder was trained on.
    Modality { /// Pictures.
        Image = "image", /// Clips.
        Video = "video", /// Both.
        ImageAndVideo = "image+video" }
}

words! {
    /// An activation function.
    Activation {
        /// `x/2 (1 + erf(x/√2))`.
        GeluErf = "gelu_erf",
        /// `x/2 (1 + tanh(√(2/π)(x + 0.044715 x³)))`.
        GeluTanh = "gelu_tanh",
        /// `x/(1 + e^-x)`.
        Silu = "silu",
    }
}

words! {
    /// `jepa.enc.pos_type`: how a token knows where it is.
    PosType {
        /// A stored 2-D sine-cosine table.
        Sincos2d = "sincos2d",
        /// A stored 3-D sine-cosine table.
        Sincos3d = "sincos3d",
        /// A stored, learned table.
        Learned = "learned",
        /// Rotary positions over frame, row and column; no table.
        Rope3d = "rope3d",
    }
}

words! {
    /// `jepa.enc.rope_freq_layout`: how the frequencies of one axis are laid over its lanes.
    RopeLayout {
        /// `ω_0 … ω_{d/2-1} ω_0 … ω_{d/2-1}`.
        Tiled = "tiled",
        /// `ω_0 ω_0 ω_1 ω_1 …`.
        Interleaved = "interleaved",
    }
}

words! {
    /// `jepa.enc.attn_mode`: which tokens a token may look at.
    AttnMode {
        /// All of them.
        Full = "full",
        /// Those of its own and earlier frames; the CLS row sees everything and is seen by nobody else.
        BlockCausal = "block_causal",
    }
}

words! {
    /// `jepa.enc.pos_interp`: how a stored 2-D table is resized to another grid (an extension of ours to the schema).
    PosInterp {
        /// Bicubic, sampled at steps of `n/(m + 0.1)`: the DINOv2 rule.
        Offset = "offset",
        /// Bicubic, sampled at steps of `n/m`.
        Size = "size",
        /// Bicubic with an antialias filter.
        Antialias = "antialias",
    }
}

words! {
    /// `jepa.pre.resample`: the filter that resizes pictures.
    Resample { /// Triangle filter.
        Bilinear = "bilinear", /// Cubic filter, a = -0.5.
        Bicubic = "bicubic" }
}

words! {
    /// `jepa.pre.resize_mode`: what the resize keeps.
    ResizeMode {
        /// The short side becomes `resize_short`, then the centre is cropped.
        ShortestEdge = "shortest_edge",
        /// The picture becomes `crop` × `crop`, whatever its aspect.
        Squash = "squash",
    }
}

words! {
    /// `jepa.head.pool`: what a linear head reads (an extension of ours to the schema).
    HeadPool {
        /// What the family's reference pools.
        Auto = "auto",
        /// Mean over the patch tokens.
        Mean = "mean",
        /// The CLS token.
        Cls = "cls",
        /// The projected CLS token.
        State = "state",
    }
}

/// What a bundle says about itself and its parts.
#[derive(Clone, Debug, PartialEq)]
pub struct Hparams {
    /// `general.name`.
    pub name: Option<String>,
    /// `general.license`.
    pub license: Option<String>,
    /// `general.source_url` or its alias `general.source.url`.
    pub source_url: Option<String>,
    /// `jepa.family`.
    pub family: Family,
    /// `jepa.modality`.
    pub modality: Modality,
    /// `jepa.enc.*`.
    pub enc: EncoderHparams,
    /// `jepa.pred.*`, when the bundle has a predictor.
    pub pred: Option<PredictorHparams>,
    /// `jepa.head.*`, when the bundle has a head.
    pub head: Option<HeadHparams>,
    /// `jepa.pre.*`.
    pub pre: PreprocessHparams,
}

/// `jepa.enc.*`: the encoder.
#[derive(Clone, Debug, PartialEq)]
pub struct EncoderHparams {
    /// Width of a token.
    pub embed_dim: usize,
    /// Number of blocks.
    pub n_layer: usize,
    /// Attention heads; divides `embed_dim`.
    pub n_head: usize,
    /// Hidden width of a block's MLP.
    pub ffn_dim: usize,
    /// Side of a patch in pixels.
    pub patch_size: usize,
    /// Frames in one token.
    pub tubelet_size: usize,
    /// Side of the training crop in pixels.
    pub img_size: usize,
    /// Frames of a training clip; 1 for pictures.
    pub n_frames: usize,
    /// Colour channels.
    pub in_chans: usize,
    /// Epsilon of every LayerNorm of the encoder.
    pub ln_eps: f64,
    /// Activation of the blocks' MLPs.
    pub act: Activation,
    /// Position scheme.
    pub pos_type: PosType,
    /// Rule for other grids; set for the families that store a 2-D table, the file's own or the family's.
    pub pos_interp: PosInterp,
    /// Rotary positions; set exactly when `pos_type` is `rope3d`.
    pub rope: Option<RopeHparams>,
    /// Whether a CLS token comes first.
    pub cls_token: bool,
    /// Register tokens between CLS and the patches.
    pub n_registers: usize,
    /// One `attn_qkv` tensor, or three of `attn_q`, `attn_k`, `attn_v`.
    pub qkv_fused: bool,
    /// Modality vectors for pictures and clips (V-JEPA 2.1).
    pub modality_embed: bool,
    /// A patch embedding of its own for pictures (V-JEPA 2.1).
    pub image_patch_embed: bool,
    /// Blocks whose output gets a norm of its own (V-JEPA 2.1), ascending; empty elsewhere.
    pub hier_layers: Vec<usize>,
    /// Layer scale `ls1`, `ls2` in every block.
    pub layer_scale: bool,
    /// Which tokens see which.
    pub attn_mode: AttnMode,
    /// The projector behind the CLS token (LeWM).
    pub proj: Option<ProjectorHparams>,
}

impl EncoderHparams {
    /// A ViT of pictures in three channels without any optional part: a learned position table, full attention, GELU, eps 1e-6, no CLS token.
    ///
    /// ```
    /// use jepa_gguf::schema::{EncoderHparams, PosType};
    ///
    /// // ViT-Ti/16 at 224², with a CLS token.
    /// let enc = EncoderHparams { cls_token: true, ..EncoderHparams::vit([192, 12, 3, 768], 16, 224) };
    /// assert_eq!((enc.embed_dim, enc.ffn_dim, enc.pos_type), (192, 768, PosType::Learned));
    /// ```
    pub fn vit([embed_dim, n_layer, n_head, ffn_dim]: [usize; 4], patch_size: usize, img_size: usize) -> Self {
        Self {
            embed_dim,
            n_layer,
            n_head,
            ffn_dim,
            patch_size,
            tubelet_size: 1,
            img_size,
            n_frames: 1,
            in_chans: 3,
            ln_eps: 1e-6,
            act: Activation::GeluErf,
            pos_type: PosType::Learned,
            pos_interp: PosInterp::Size,
            rope: None,
            cls_token: false,
            n_registers: 0,
            qkv_fused: true,
            modality_embed: false,
            image_patch_embed: false,
            hier_layers: Vec::new(),
            layer_scale: false,
            attn_mode: AttnMode::Full,
            proj: None,
        }
    }
}

/// Rotary positions of a stack.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RopeHparams {
    /// Base of the frequencies.
    pub theta: f64,
    /// Layout of the frequencies over the lanes.
    pub layout: RopeLayout,
    /// Whether rows and columns are rescaled to `ref_grid`.
    pub interpolate: bool,
    /// The grid that positions are rescaled to.
    pub ref_grid: usize,
}

/// A two-layer MLP stored as `….0` and `….2`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ProjectorHparams {
    /// Hidden width, read off the tensor.
    pub hidden: usize,
    /// Activation between the two layers.
    pub act: Activation,
}

/// `jepa.pred.*`: a predictor.
#[derive(Clone, Debug, PartialEq)]
pub struct PredictorHparams {
    /// Width of a predictor token.
    pub embed_dim: usize,
    /// Number of blocks.
    pub n_layer: usize,
    /// Attention heads.
    pub n_head: usize,
    /// Width of a head; `n_head · head_dim` may differ from `embed_dim` for LeWM only.
    pub head_dim: usize,
    /// Hidden width of a block's MLP.
    pub ffn_dim: usize,
    /// Width of what `pred.proj` predicts, per hierarchical output.
    pub out_dim: usize,
    /// Epsilon of the affine LayerNorms.
    pub ln_eps: f64,
    /// Activation of the blocks' MLPs.
    pub act: Activation,
    /// Whether `attn_qkv` has a bias.
    pub qkv_bias: bool,
    /// What this predictor predicts, with the numbers only it has.
    pub kind: PredictorKind,
}

/// `jepa.pred.kind` and what belongs to it.
#[derive(Clone, Debug, PartialEq)]
pub enum PredictorKind {
    /// Fills in masked tokens.
    Masked(MaskedHparams),
    /// Next frame's tokens from actions and states (V-JEPA 2-AC).
    Ac(AcHparams),
    /// Next state's embedding from actions (LeWM).
    Lewm(LewmHparams),
}

/// A masked predictor.
#[derive(Clone, Debug, PartialEq)]
pub struct MaskedHparams {
    /// Rows of `pred.mask_tokens`.
    pub n_mask_tokens: usize,
    /// Rotary positions, or `None` when `pred.pos_embed` is stored.
    pub rope: Option<RopeHparams>,
    /// Side of the grid on which token ids are decoded.
    pub grid_size: usize,
    /// Hierarchical encoder outputs joined at the input (V-JEPA 2.1).
    pub n_hier_in: usize,
    /// Hidden width of `pred.embed` when it is an MLP (`n_hier_in > 1`).
    pub embed_hidden: Option<usize>,
    /// Modality vectors on every row (V-JEPA 2.1).
    pub modality_embed: bool,
    /// A projection for the context rows (V-JEPA 2.1).
    pub context_proj: bool,
}

/// The action-conditioned predictor of V-JEPA 2.
#[derive(Clone, Debug, PartialEq)]
pub struct AcHparams {
    /// Rotary positions.
    pub rope: RopeHparams,
    /// Side of the grid of one frame.
    pub grid_size: usize,
    /// Width of an action.
    pub action_dim: usize,
    /// Width of a state (pose).
    pub state_dim: usize,
    /// Whether a frame sees earlier frames only.
    pub frame_causal: bool,
    /// Most frames that one call may hold.
    pub n_frames: usize,
    /// Whether latents are normalised before and between steps.
    pub normalize_reps: bool,
    /// Epsilon of that norm.
    pub norm_reps_eps: f64,
}

/// The predictor of LeWM.
#[derive(Clone, Debug, PartialEq)]
pub struct LewmHparams {
    /// Width of an action.
    pub action_dim: usize,
    /// Most frames in one window.
    pub n_frames: usize,
    /// Epsilon of the norms without weights.
    pub adaln_eps: f64,
    /// Hidden width of `pred.action_embed`.
    pub action_hidden: usize,
    /// Activation inside `pred.action_embed`.
    pub action_act: Activation,
    /// Hidden width and activation of `pred.proj`.
    pub proj: ProjectorHparams,
}

/// `jepa.head.*`: a head.
#[derive(Clone, Debug, PartialEq)]
pub struct HeadHparams {
    /// What the head is, with the numbers only it has.
    pub kind: HeadKind,
    /// Number of classes.
    pub n_classes: usize,
    /// `jepa.head.labels`, one per class when present.
    pub labels: Option<Vec<String>>,
    /// What a linear head reads of each output of the encoder.
    pub pool: HeadPool,
    /// Blocks whose normalised outputs the head reads, counted from 0: joined on the last axis after pooling for a linear head, as tokens for an
    /// attentive one. Empty means the encoder's output.
    pub layers: Vec<usize>,
}

impl HeadHparams {
    /// A head on the encoder's output, pooled as the family's reference does.
    pub fn new(kind: HeadKind, n_classes: usize, labels: Option<Vec<String>>) -> Self {
        Self { kind, n_classes, labels, pool: HeadPool::Auto, layers: Vec::new() }
    }

    /// Whether it reads what a head without the keys `jepa.head.pool` and `jepa.head.layers` reads.
    pub fn reads_the_usual(&self) -> bool {
        self.pool == HeadPool::Auto && self.layers.is_empty()
    }
}

/// `jepa.head.kind` and what belongs to it.
#[derive(Clone, Debug, PartialEq)]
pub enum HeadKind {
    /// Attentive pooler and classifier (V-JEPA 2).
    AttentivePool {
        /// Self-attention blocks before the pooling.
        n_pool_layers: usize,
        /// Hidden width of the MLPs of those blocks, read off the tensor; equals `xattn_ffn_dim` when there are none.
        ffn_dim: usize,
        /// Hidden width of the MLP behind the cross-attention, read off the tensor.
        xattn_ffn_dim: usize,
    },
    /// One linear layer on the pooled vector.
    LinearCls,
}

/// `jepa.pre.*`: what happens to a picture before the encoder sees it.
#[derive(Clone, Debug, PartialEq)]
pub struct PreprocessHparams {
    /// Mean of each channel after `rescale`.
    pub mean: [f32; 3],
    /// Standard deviation of each channel after `rescale`; positive.
    pub std: [f32; 3],
    /// Length of the short side after the resize.
    pub resize_short: usize,
    /// Side of the centre crop.
    pub crop: usize,
    /// Resampling filter.
    pub resample: Resample,
    /// What the resize keeps.
    pub resize_mode: ResizeMode,
    /// Scale from 0..=255 to the unit of `mean` and `std`.
    pub rescale: f32,
}
