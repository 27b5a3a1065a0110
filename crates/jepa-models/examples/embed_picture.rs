//! One picture to one vector.
//!
//! ```sh
//! cargo run --release -p jepa-models --example embed_picture -- vjepa2.gguf picture.jpg
//! ```
//!
//! Without arguments it takes the tiny model and the picture of the repository.

#![allow(clippy::print_stdout, reason = "an example shows its result")]

use std::error::Error;
use std::path::{Path, PathBuf};

use burn_flex::Flex;
use jepa_models::{Jepa, Pool};
use jepa_pixels::{Limits, decode_file};

fn main() -> Result<(), Box<dyn Error>> {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/quickstart");
    let mut args = std::env::args_os().skip(1).map(PathBuf::from);
    let model = args.next().unwrap_or_else(|| fixtures.join("tiny.gguf"));
    let picture = args.next().unwrap_or_else(|| fixtures.join("picture.png"));

    let vector = embed(&model, &picture)?;
    println!("{} values, the first are {:?}", vector.len(), &vector[..4.min(vector.len())]);
    Ok(())
}

fn embed(model: &Path, picture: &Path) -> Result<Vec<f32>, Box<dyn Error>> {
    let device = Default::default();
    let model = Jepa::<Flex>::open(model, &device)?;
    let picture = decode_file(picture, &Limits::default())?.image;
    let pixels = model.preprocess().image(&picture, &device)?; // resized, cropped and normalised as in training
    let vector = model.encode(pixels)?.pooled(Pool::Auto)?; //    [1, dim]
    Ok(vector.into_data().iter().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_picture_becomes_a_vector_of_the_models_width() {
        let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/quickstart");
        let vector = embed(&fixtures.join("tiny.gguf"), &fixtures.join("picture.png")).unwrap();
        assert_eq!(vector.len(), 64);
        assert!(vector.iter().all(|v| v.is_finite()) && vector.iter().any(|v| *v != 0.0));
    }
}
