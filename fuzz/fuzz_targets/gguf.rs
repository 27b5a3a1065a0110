#![no_main]

#[path = "../bodies.rs"]
#[allow(dead_code, reason = "every target uses one of them")]
mod bodies;

libfuzzer_sys::fuzz_target!(|data: &[u8]| bodies::gguf(data));
