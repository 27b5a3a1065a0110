//! The last blocks of an encoder as a module of their own: what is trained where the blocks before stay as they are.

use burn::module::{ModuleMapper, Param};
use burn::nn::LayerNorm;
use burn::prelude::*;

use crate::encoder::{Encoder, EncoderConfig, Projector};
use crate::error::ModelError;
use crate::features::Encoded;
use crate::nn::{Block, Grid, layer_norm};
use crate::trace::Trace;

/// Which parameters of an encoder are trained.
///
/// ```
/// use jepa_models::tail::Unfreeze;
///
/// assert_eq!("last:2".parse::<Unfreeze>()?, Unfreeze::Last(2));
/// assert_eq!("norms".parse::<Unfreeze>()?, Unfreeze::Norms);
/// assert!("last:0".parse::<Unfreeze>().is_err());
/// # Ok::<(), jepa_models::ModelError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Unfreeze {
    /// The last blocks, so many of them, and the final norm.
    Last(usize),
    /// The norms of all blocks and the final one.
    Norms,
}

impl std::str::FromStr for Unfreeze {
    type Err = ModelError;

    fn from_str(text: &str) -> Result<Self, ModelError> {
        let last = text.strip_prefix("last:").and_then(|n| n.parse().ok()).filter(|&n| n > 0);
        match last {
            Some(n) => Ok(Self::Last(n)),
            None if text == "norms" => Ok(Self::Norms),
            None => Err(ModelError::Unfreeze { found: text.to_owned() }),
        }
    }
}

impl std::fmt::Display for Unfreeze {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Last(n) => write!(f, "last:{n}"),
            Self::Norms => f.write_str("norms"),
        }
    }
}

impl Unfreeze {
    /// The first block that is trained, of an encoder with `n_layer`.
    ///
    /// # Errors
    /// [`ModelError::Blocks`] for more blocks than there are.
    pub fn first_block(self, n_layer: usize) -> Result<usize, ModelError> {
        match self {
            Self::Norms => Ok(0),
            Self::Last(n) => n_layer.checked_sub(n).ok_or(ModelError::Blocks { found: n, n_layer }),
        }
    }
}

/// The blocks of an encoder from one on, its final norm and its projector.
///
/// It goes on where [`Encoder::encode_until`] stopped, for inputs of one grid. Hierarchical outputs are not made.
#[derive(Module, Debug)]
pub struct EncoderTail<B: Backend> {
    /// The blocks, the first one of them being block [`Self::first`] of the encoder.
    pub blk: Vec<Block<B>>,
    /// Final norm.
    pub norm: LayerNorm<B>,
    /// Projector from CLS to the state (LeWM).
    pub proj: Option<Projector<B>>,
    #[module(skip)]
    config: EncoderConfig,
    first: usize,
    #[module(skip)]
    grid: Grid,
    prefix: usize,
}

impl<B: Backend> EncoderTail<B> {
    /// What of `encoder` is trained; parameters that are not get no gradient. `grid` and `prefix` are those of the tokens that will come.
    ///
    /// # Errors
    /// [`ModelError::Layer`] for more blocks than there are.
    pub fn new(encoder: &Encoder<B>, unfreeze: Unfreeze, grid: Grid, prefix: usize) -> Result<Self, ModelError> {
        let first = unfreeze.first_block(encoder.blk.len())?;
        let config = encoder.config().clone();
        let tail = Self {
            blk: encoder.blk[first..].to_vec(),
            norm: encoder.norm.clone(),
            proj: encoder.proj.clone(),
            config,
            first,
            grid,
            prefix,
        };
        Ok(match unfreeze {
            Unfreeze::Last(_) => Self { proj: tail.proj.map(Module::no_grad), ..tail },
            Unfreeze::Norms => tail.map(&mut NormsOnly { within: Vec::new() }),
        })
    }

    /// What the encoder is made of.
    pub fn config(&self) -> &EncoderConfig {
        &self.config
    }

    /// The encoder's number of the first block.
    pub fn first(&self) -> usize {
        self.first
    }

    /// The encoder's output.
    ///
    /// **Shapes** `[batch, prefix + patches, embed_dim]` → tokens of the same shape.
    pub fn forward(&self, tokens: Tensor<B, 3>) -> Encoded<B> {
        let ids = [(0..self.grid.tokens()).collect()];
        let rope = self.config.rope(&ids, self.grid, self.prefix, &tokens.device());
        let visibility = self.config.visibility(&ids, self.grid, self.prefix);
        let mut x = tokens;
        for (i, block) in self.blk.iter().enumerate() {
            x = block.forward(
                x,
                rope.as_ref(),
                &visibility,
                &mut Trace::none(),
                &format!("enc.blk.{}", self.first + i),
            );
        }
        Encoded {
            tokens: layer_norm(&self.norm, self.config.hparams.ln_eps, x),
            hier: Vec::new(),
            layers: Vec::new(),
            grid: self.grid,
            prefix: self.prefix,
            config: self.config.clone(),
            proj: self.proj.clone(),
        }
    }
}

/// Leaves gradients to norms alone.
struct NormsOnly {
    /// For each field on the way to a parameter whether it is one of a norm.
    within: Vec<bool>,
}

impl<B: Backend> ModuleMapper<B> for NormsOnly {
    fn enter_module(&mut self, _field: &str, container: &str) {
        self.within.push(container == "Struct:LayerNorm");
    }

    fn exit_module(&mut self, _field: &str, _container: &str) {
        self.within.pop();
    }

    fn map_float<const D: usize>(&mut self, param: Param<Tensor<B, D>>) -> Param<Tensor<B, D>> {
        param.set_require_grad(self.within.last() == Some(&true))
    }
}
