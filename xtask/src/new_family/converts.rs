//! The made-up family of `cargo xtask ci`: a checkpoint that only its `model_type` tells from a ViT.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::fs;
use std::path::Path;

use jepa_gguf::convert::{Conversion, Options};
use jepa_gguf::schema::Family;
use jepa_gguf::{Bundle, GgmlType};

/// The bundle of the ViT fixture under a `model_type`.
fn converted(model_type: &str) -> (tempfile::TempDir, Bundle) {
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/convert/hfvit_vit/src");
    let folder = tempfile::tempdir().unwrap();
    for file in ["config.json", "model.safetensors", "preprocessor_config.json"] {
        fs::copy(fixture.join(file), folder.path().join(file)).unwrap();
    }
    let config = fs::read_to_string(folder.path().join("config.json")).unwrap();
    let renamed = config.replace("\"model_type\": \"vit\"", &format!("\"model_type\": \"{model_type}\""));
    assert_eq!(renamed == config, model_type == "vit");
    fs::write(folder.path().join("config.json"), renamed).unwrap();

    let out = folder.path().join("out.gguf");
    let options = Options { dtype: GgmlType::F32, ..Options::default() };
    Conversion::plan(folder.path(), &options).unwrap().start(&out).unwrap().finish(|_| ()).unwrap();
    (folder, Bundle::open(&out).unwrap())
}

#[test]
fn a_checkpoint_of_the_family_becomes_a_bundle_of_it() {
    let (_new_folder, new) = converted("walkjepa");
    let (_old_folder, old) = converted("vit");
    assert_eq!((new.hparams().family, old.hparams().family), (Family::Walkjepa, Family::Hfvit));
    assert_eq!(new.hparams().enc, old.hparams().enc);
    assert_eq!(new.hparams().head, old.hparams().head);
    for tensor in old.gguf().tensors() {
        let values = |bundle: &Bundle| bundle.gguf().tensor(tensor.name()).unwrap().to_f32();
        assert_eq!(values(&new), values(&old), "{}", tensor.name());
    }
}
