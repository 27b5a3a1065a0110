//! Looking inside a forward pass: every intermediate tensor under its name in the schema.

use burn::prelude::*;

/// Takes a tensor with its name.
type Sink<'a, B> = &'a mut dyn FnMut(&str, &Tensor<B, 3>);

/// Receives the intermediate tensors of a forward pass.
///
/// A name is the place in the schema whose output the tensor is: `enc.blk.3.attn_out` is what that projection gives, `enc.blk.3` what the
/// block gives. Between them, `attn` is the joined heads, and `ffn_act` and `proj.act` the hidden layer behind its activation. Shapes are `[batch, tokens, dim]`.
pub struct Trace<'a, B: Backend> {
    sink: Option<Sink<'a, B>>,
}

impl<'a, B: Backend> Trace<'a, B> {
    /// Sees nothing and costs nothing.
    pub fn none() -> Self {
        Self { sink: None }
    }

    /// Hands every tensor to `sink`.
    pub fn to(sink: Sink<'a, B>) -> Self {
        Self { sink: Some(sink) }
    }

    /// Whether somebody looks; asked before anything is computed for the observer alone, and before parts are fused whose results nobody sees.
    /// Results are the same up to rounding.
    pub fn is_watched(&self) -> bool {
        self.sink.is_some()
    }

    /// Shows `x`; the name is made only when somebody looks.
    pub fn see(&mut self, x: &Tensor<B, 3>, name: impl FnOnce() -> String) {
        if let Some(sink) = &mut self.sink {
            sink(&name(), x);
        }
    }
}

impl<B: Backend> std::fmt::Debug for Trace<'_, B> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Trace").field("seen", &self.sink.is_some()).finish()
    }
}
