//! The numbers inside a tensor, when the backend keeps them in this process.

use std::any::{Any, TypeId};

use burn::prelude::*;
use burn::tensor::TensorPrimitive;
use burn::tensor::ops::FloatTensor;
use burn_flex::FlexTensor;

/// Whether `B` keeps its tensors as flex does.
pub(super) fn is_flex<B: Backend>() -> bool {
    TypeId::of::<FloatTensor<B>>() == TypeId::of::<FlexTensor>()
}

/// The f32 values of a tensor, row-major and without gaps.
pub(super) struct Values(FlexTensor);

impl Values {
    /// Takes the tensor apart; gives it back when its values are not f32 in this process.
    pub(super) fn of<B: Backend, const D: usize>(x: Tensor<B, D>) -> Result<Self, Tensor<B, D>> {
        if !is_flex::<B>() {
            return Err(x);
        }
        let primitive = match x.into_primitive() {
            TensorPrimitive::Float(primitive) => primitive,
            other => return Err(Tensor::from_primitive(other)),
        };
        let flex: FlexTensor = cast(primitive);
        if flex.dtype() != burn::tensor::DType::F32 {
            return Err(Tensor::from_primitive(TensorPrimitive::Float(cast(flex))));
        }
        let whole = flex.as_slice::<f32>().is_some_and(|values| values.len() == flex.storage::<f32>().len());
        Ok(Self(if whole { flex } else { flex.to_contiguous() }))
    }

    pub(super) fn as_slice(&self) -> &[f32] {
        self.0.storage()
    }

    /// The values to change; they are copied first when another tensor shares them.
    pub(super) fn as_mut_slice(&mut self) -> &mut [f32] {
        self.0.storage_mut()
    }

    /// The tensor again, of the backend it came from.
    pub(super) fn into_tensor<B: Backend, const D: usize>(self) -> Tensor<B, D> {
        Tensor::from_primitive(TensorPrimitive::Float(cast(self.0)))
    }

    /// A tensor of `shape` that is filled by `fill`.
    pub(super) fn filled(shape: &[usize], fill: impl FnOnce(&mut [f32])) -> Self {
        let mut values = Self(FlexTensor::empty(shape.to_vec().into(), burn::tensor::DType::F32));
        fill(values.as_mut_slice());
        values
    }
}

/// One type as another that it is.
fn cast<T: 'static, U: 'static>(value: T) -> U {
    let mut slot = Some(value);
    let any: &mut dyn Any = &mut slot;
    any.downcast_mut::<Option<U>>().and_then(Option::take).expect("the types were compared before")
}
