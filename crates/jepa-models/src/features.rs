//! What an encoder gives: tokens, hierarchical and intermediate outputs, and the ways to make one vector of them.

use crate::encoder::{EncoderConfig, Projector};
use crate::error::ModelError;
use crate::families;
use crate::nn::{Grid, linear};
use crate::trace::Trace;
use burn::prelude::*;
use jepa_gguf::schema::{HeadHparams, HeadPool};

/// How tokens become one vector.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Pool {
    /// What the family's reference does: [`families::about`] says which.
    Auto,
    /// Mean over the patch tokens, without CLS and registers.
    Mean,
    /// The CLS token.
    Cls,
    /// The state of the world: the projected CLS token (LeWM).
    State,
}

impl From<HeadPool> for Pool {
    fn from(word: HeadPool) -> Self {
        match word {
            HeadPool::Auto => Self::Auto,
            HeadPool::Mean => Self::Mean,
            HeadPool::Cls => Self::Cls,
            HeadPool::State => Self::State,
        }
    }
}

/// What a head reads of an encoder: `jepa.head.pool` and `jepa.head.layers`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeadReads {
    /// How a linear head's tokens become one vector.
    pub pool: Pool,
    /// Blocks whose normalised outputs are read, counted from 0; empty for the encoder's output.
    pub layers: Vec<usize>,
}

impl Default for HeadReads {
    fn default() -> Self {
        Self { pool: Pool::Auto, layers: Vec::new() }
    }
}

impl From<&HeadHparams> for HeadReads {
    fn from(head: &HeadHparams) -> Self {
        Self { pool: head.pool.into(), layers: head.layers.clone() }
    }
}

/// The output of an encoder.
#[derive(Debug)]
pub struct Encoded<B: Backend> {
    /// Tokens after the final norm, `[batch, prefix + patches, embed_dim]`; with context ids only the kept patches, in their order.
    pub tokens: Tensor<B, 3>,
    /// Hierarchical outputs, each after its own norm, shaped as `tokens`, lowest layer first (V-JEPA 2.1).
    pub hier: Vec<Tensor<B, 3>>,
    /// Normalised outputs of the layers asked for, shaped as `tokens`, in the order asked.
    pub layers: Vec<Tensor<B, 3>>,
    /// Patch grid of the input.
    pub grid: Grid,
    /// CLS and register tokens before the patches.
    pub prefix: usize,
    pub(crate) config: EncoderConfig,
    pub(crate) proj: Option<Projector<B>>,
}

impl<B: Backend> Encoded<B> {
    /// One vector per input.
    ///
    /// **Shapes** → `[batch, embed_dim]`.
    ///
    /// # Errors
    /// [`ModelError::Pool`] when the family has no such row.
    pub fn pooled(&self, pool: Pool) -> Result<Tensor<B, 2>, ModelError> {
        self.pool(&self.tokens, pool)
    }

    /// The layers asked for, each pooled, joined on the last axis in the order asked.
    ///
    /// **Shapes** → `[batch, layers · embed_dim]`.
    ///
    /// # Errors
    /// As [`Self::pooled`].
    pub fn pooled_layers(&self, pool: Pool) -> Result<Tensor<B, 2>, ModelError> {
        let rows: Vec<_> = self.layers.iter().map(|x| self.pool(x, pool)).collect::<Result<_, _>>()?;
        Ok(Tensor::cat(rows, 1))
    }

    /// What a linear head reads; the layers must be those that were asked for.
    ///
    /// **Shapes** → `[batch, max(layers, 1) · embed_dim]`.
    ///
    /// # Errors
    /// As [`Self::pooled`].
    pub fn pooled_for(&self, reads: &HeadReads) -> Result<Tensor<B, 2>, ModelError> {
        if reads.layers.is_empty() { self.pooled(reads.pool) } else { self.pooled_layers(reads.pool) }
    }

    /// The layers asked for, their tokens joined one layer after the other; the output's tokens when none was.
    ///
    /// **Shapes** → `[batch, layers · tokens, embed_dim]`.
    pub fn joined_layers(&self) -> Tensor<B, 3> {
        match self.layers.as_slice() {
            [] => self.tokens.clone(),
            layers => Tensor::cat(layers.to_vec(), 1),
        }
    }

    /// The last `n` hierarchical outputs joined on the last axis, lowest layer first: what the predictor of V-JEPA 2.1 reads
    /// (`jepa.pred.n_hier_in`). `None` when there are fewer.
    ///
    /// **Shapes** → `[batch, tokens, n · embed_dim]`.
    pub fn hier_concat(&self, n: usize) -> Option<Tensor<B, 3>> {
        let first = self.hier.len().checked_sub(n)?;
        (n > 0).then(|| Tensor::cat(self.hier[first..].to_vec(), 2))
    }

    fn pool(&self, tokens: &Tensor<B, 3>, pool: Pool) -> Result<Tensor<B, 2>, ModelError> {
        self.config.check_pool(pool)?;
        let [_, n, _] = tokens.dims();
        let cls = || tokens.clone().narrow(1, 0, 1).squeeze_dim(1); //             [b, dim]
        Ok(match (pool, &self.proj) {
            (Pool::Auto, _) => self.pool(tokens, families::about(self.config.family).pool)?,
            (Pool::Mean, _) => tokens.clone().narrow(1, self.prefix, n - self.prefix).mean_dim(1).squeeze_dim(1), // [b, dim]
            (Pool::State, Some((up, act, down))) => linear(down, act.forward(linear(up, cls()))), // [b, dim]
            (Pool::Cls | Pool::State, _) => cls(),
        })
    }

    /// Shows the projector's steps to `trace`.
    pub(crate) fn trace_state(&self, trace: &mut Trace<'_, B>) {
        if let Some((up, act, down)) = self.proj.as_ref().filter(|_| trace.is_watched()) {
            let hidden = linear(up, self.tokens.clone().narrow(1, 0, 1));
            trace.see(&hidden, || "enc.proj.0".into());
            let hidden = act.forward(hidden);
            trace.see(&hidden, || "enc.proj.act".into());
            trace.see(&linear(down, hidden), || "enc.proj.2".into());
        }
    }
}

impl EncoderConfig {
    /// Whether the encoder has what `pool` needs.
    ///
    /// # Errors
    /// [`ModelError::Pool`] when it has no such row.
    pub fn check_pool(&self, pool: Pool) -> Result<(), ModelError> {
        let (cls, proj) = (self.hparams.cls_token, self.hparams.proj.is_some());
        let (wanted, missing) = match pool {
            Pool::Auto => return self.check_pool(families::about(self.family).pool),
            Pool::Cls if !cls => ("cls", "no CLS token"),
            Pool::State if !(cls && proj) => ("state", "no projector"),
            _ => return Ok(()),
        };
        let available = match (cls, proj) {
            (false, _) => "mean",
            (true, false) => "cls or mean",
            (true, true) => "state, cls or mean",
        };
        Err(ModelError::Pool { wanted, family: self.family, missing, available })
    }
}

/// A choice of layers as people write it: `3,7,last` or `last4`.
///
/// ```
/// use jepa_models::LayerSelection;
///
/// let layers: LayerSelection = "0,last".parse()?;
/// assert_eq!(layers.resolve(12)?, [0, 11]);
/// assert_eq!("last4".parse::<LayerSelection>()?.resolve(12)?, [8, 9, 10, 11]);
/// # Ok::<(), jepa_models::ModelError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LayerSelection {
    words: Vec<LayerWord>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LayerWord {
    Index(usize),
    Last(usize),
}

impl std::str::FromStr for LayerSelection {
    type Err = ModelError;

    fn from_str(text: &str) -> Result<Self, ModelError> {
        let word = |word: &str| {
            let parsed = match word.strip_prefix("last") {
                Some("") => Some(LayerWord::Last(1)),
                Some(count) => count.parse().ok().filter(|&n| n > 0).map(LayerWord::Last),
                None => word.parse().ok().map(LayerWord::Index),
            };
            parsed.ok_or_else(|| ModelError::LayerWord { found: word.to_owned() })
        };
        Ok(Self { words: text.split(',').map(|w| word(w.trim())).collect::<Result<_, _>>()? })
    }
}

impl LayerSelection {
    /// The layers of an encoder with `n_layer` blocks, counted from 0, in the order written.
    ///
    /// # Errors
    /// [`ModelError::Layer`] for a layer that is not there.
    pub fn resolve(&self, n_layer: usize) -> Result<Vec<usize>, ModelError> {
        let mut layers = Vec::new();
        for word in &self.words {
            match *word {
                LayerWord::Index(layer) if layer < n_layer => layers.push(layer),
                LayerWord::Last(count) if count <= n_layer => layers.extend(n_layer - count..n_layer),
                LayerWord::Index(layer) => {
                    return Err(ModelError::Layer { found: layer.to_string(), last: n_layer - 1 });
                }
                LayerWord::Last(count) => {
                    return Err(ModelError::Layer { found: format!("last{count}"), last: n_layer - 1 });
                }
            }
        }
        Ok(layers)
    }
}
