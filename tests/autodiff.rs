//! The suite on flex under Burn's autodiff: the graphs as Burn operations, where `cpu.rs` has the same cases on the kernels.

use burn::backend::Flex;
use burn::tensor::DType;
use burn_autodiff::Autodiff;

jepa_tests::suite!(Autodiff<Flex>);

#[test]
fn every_parameter_has_the_gradient_of_central_differences() {
    jepa_tests::every_parameter_has_the_gradient_of_central_differences::<Autodiff<Flex>>();
}

/// Graphs in shorter numbers, which the kernels do not have.
#[test]
fn every_case_passes_in_f16_and_bf16() {
    for dtype in [DType::F16, DType::BF16] {
        jepa_tests::every_case_passes_as::<Autodiff<Flex>>(dtype);
    }
}

#[test]
fn gradients_are_those_of_central_differences() {
    jepa_tests::gradients_are_those_of_central_differences::<Autodiff<Flex>>();
}

#[test]
fn the_loss_of_lewm_has_its_whole_gradient() {
    jepa_tests::the_loss_of_lewm_has_its_whole_gradient::<Autodiff<Flex>>();
}

#[test]
fn a_finished_lewm_is_its_trainee() {
    jepa_tests::a_finished_lewm_is_its_trainee::<Autodiff<Flex>>();
}
