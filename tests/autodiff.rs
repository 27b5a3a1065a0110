//! The suite on flex under Burn's autodiff: the graphs as Burn operations, where `cpu.rs` has the same cases on the kernels.

use burn::backend::Flex;
use burn_autodiff::Autodiff;

jepa_tests::suite!(Autodiff<Flex>);

#[test]
fn gradients_are_those_of_central_differences() {
    jepa_tests::gradients_are_those_of_central_differences::<Autodiff<Flex>>();
}
