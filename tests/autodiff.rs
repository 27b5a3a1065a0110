//! The suite on flex under Burn's autodiff: the graphs as Burn operations, where `cpu.rs` has the same cases on the kernels.

use burn::backend::Flex;
use burn_autodiff::Autodiff;

jepa_tests::suite!(Autodiff<Flex>);

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
