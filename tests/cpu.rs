//! The suite on Burn's flex backend.

use burn::backend::Flex;

jepa_tests::suite!(Flex);
