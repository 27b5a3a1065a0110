//! The suite on Burn's ndarray backend.

use burn::backend::NdArray;

jepa_tests::suite!(NdArray);
