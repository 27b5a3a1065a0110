//! `GgufStore` and `BundleWriter`: modules from files and back.
#![allow(clippy::unwrap_used, reason = "a test may panic")]
#![cfg(feature = "burn")]

mod bundles;

use burn::module::{Module, Param};
use burn::nn::{LayerNorm, LayerNormConfig, Linear, LinearConfig};
use burn::tensor::{DType, Distribution, Tensor, backend::Backend};
use burn_flex::Flex;
use burn_store::{ModuleSnapshot, ModuleStore};
use jepa_gguf::schema::{HeadHparams, HeadKind};
use jepa_gguf::{Bundle, BundleWriter, GgmlType, Gguf, GgufError, GgufStore, Metadata};

/// The shape of the image bundle's encoder, named after the schema.
#[derive(Module, Debug)]
struct Block<B: Backend> {
    ln1: LayerNorm<B>,
    ln2: LayerNorm<B>,
    attn_qkv: Linear<B>,
    attn_out: Linear<B>,
    ffn_up: Linear<B>,
    ffn_down: Linear<B>,
    ls1: Param<Tensor<B, 1>>,
    ls2: Param<Tensor<B, 1>>,
}

#[derive(Module, Debug)]
struct Encoder<B: Backend> {
    patch_embed: Linear<B>,
    pos_embed: Param<Tensor<B, 2>>,
    cls_token: Param<Tensor<B, 1>>,
    reg_tokens: Param<Tensor<B, 2>>,
    blk: Vec<Block<B>>,
    norm: LayerNorm<B>,
}

fn random<const D: usize>(shape: [usize; D]) -> Param<Tensor<Flex, D>> {
    Param::from_tensor(Tensor::random(shape, Distribution::Default, &Default::default()))
}

fn encoder() -> Encoder<Flex> {
    let device = Default::default();
    let norm = || LayerNormConfig::new(16).init(&device);
    let linear = |i, o| LinearConfig::new(i, o).init(&device);
    Encoder {
        patch_embed: linear(48, 16),
        pos_embed: random([5, 16]),
        cls_token: random([16]),
        reg_tokens: random([2, 16]),
        blk: vec![Block {
            ln1: norm(),
            ln2: norm(),
            attn_qkv: linear(16, 48),
            attn_out: linear(16, 16),
            ffn_up: linear(16, 32),
            ffn_down: linear(32, 16),
            ls1: random([16]),
            ls2: random([16]),
        }],
        norm: norm(),
    }
}

fn values<const D: usize>(p: &Param<Tensor<Flex, D>>) -> Vec<f32> {
    p.val().into_data().to_vec().unwrap()
}

fn bundle() -> Bundle {
    Bundle::from_gguf(Gguf::from_bytes(bundles::image().bytes()).unwrap()).unwrap()
}

#[test]
fn loads_a_prefix_and_turns_linear_weights_around() {
    let bundle = bundle();
    let mut module = encoder();
    let result = module.load_from(&mut GgufStore::from_bundle(&bundle).prefix("enc.")).unwrap();
    assert_eq!(result.applied.len(), 21);

    let file = bundle.gguf();
    let stored = file.tensor("enc.blk.0.ffn_up.weight").unwrap().to_f32();
    let loaded = module.blk[0].ffn_up.weight.val();
    assert_eq!(loaded.dims(), [16, 32], "burn keeps [in, out]");
    assert_eq!(loaded.transpose().into_data().to_vec::<f32>().unwrap(), stored);
    assert_eq!(values(&module.pos_embed), file.tensor("enc.pos_embed").unwrap().to_f32(), "a table is no linear layer");
    assert_eq!(values(&module.norm.gamma), file.tensor("enc.norm.weight").unwrap().to_f32());
    assert_eq!(values(module.norm.beta.as_ref().unwrap()), file.tensor("enc.norm.bias").unwrap().to_f32());
    assert_eq!(
        values(module.blk[0].ffn_up.bias.as_ref().unwrap()),
        file.tensor("enc.blk.0.ffn_up.bias").unwrap().to_f32()
    );
}

#[test]
fn what_is_saved_loads_as_the_same_module() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("module.gguf");
    let module = encoder();
    let mut metadata = Metadata::default();
    metadata.insert("general.architecture", "jepa").unwrap();
    module.save_into(&mut GgufStore::to_file(&path).prefix("enc.").metadata(metadata.clone())).unwrap();

    let file = Gguf::open(&path).unwrap();
    assert_eq!(file.metadata(), &metadata);
    assert_eq!(file.tensor("enc.blk.0.ffn_up.weight").unwrap().info().shape(), [32, 16], "files keep [out, in]");
    assert!(file.tensor("enc.norm.weight").is_some() && file.tensor("enc.norm.gamma").is_none());

    let mut back = encoder();
    back.load_from(&mut GgufStore::from_file(&path).unwrap().prefix("enc.")).unwrap();
    for (a, b) in module.collect(None, None, false).iter().zip(back.collect(None, None, false)) {
        assert_eq!(a.to_data().unwrap(), b.to_data().unwrap(), "{}", a.full_path());
    }
}

#[test]
fn linear_layers_take_the_type_that_is_asked_for_and_norms_stay_f32() {
    let mut store = GgufStore::from_bundle(&bundle()).prefix("enc.").dtype(DType::F16);
    let mut module = encoder();
    module.load_from(&mut store).unwrap();
    assert_eq!(module.norm.gamma.val().dtype(), DType::F32);
    assert_eq!(module.norm.beta.as_ref().unwrap().val().dtype(), DType::F32);
    assert_eq!(module.patch_embed.weight.val().dtype(), DType::F16);
    assert_eq!(module.patch_embed.bias.as_ref().unwrap().val().dtype(), DType::F16);
    assert!(matches!(store.dtype(DType::I32).keys(), Err(GgufError::Module { .. })));
}

#[test]
fn refuses_a_module_that_does_not_fit_and_names_the_parameter() {
    let bundle = bundle();
    let store = || GgufStore::from_bundle(&bundle).prefix("enc.");

    let mut more = encoder();
    more.blk.push(encoder().blk.remove(0));
    let message = more.load_from(&mut store()).unwrap_err().to_string();
    assert!(
        message.contains("enc.blk.1.attn_qkv.weight")
            && message.contains("and 9 more")
            && message.contains("the file has none"),
        "{message}"
    );
    more.load_from(&mut store().allow_partial(true)).unwrap();

    let mut fewer = encoder();
    fewer.blk.clear();
    let message = fewer.load_from(&mut store()).unwrap_err().to_string();
    assert!(message.contains("enc.blk.0.") && message.contains("no place for it"), "{message}");

    let mut other = encoder();
    other.norm = LayerNormConfig::new(17).init(&Default::default());
    let message = other.load_from(&mut store()).unwrap_err().to_string();
    assert!(message.contains("enc.norm.weight") && message.contains("[16]") && message.contains("[17]"), "{message}");
}

#[test]
fn a_store_works_in_one_direction() {
    let mut load = GgufStore::from_bundle(&bundle());
    assert!(matches!(load.collect_from(&encoder()), Err(GgufError::StoreDirection { .. })));
    let mut save = GgufStore::to_file("never-written.gguf");
    assert!(matches!(save.apply_to(&mut encoder()), Err(GgufError::StoreDirection { .. })));
}

#[derive(Module, Debug)]
struct Head<B: Backend> {
    cls: Linear<B>,
}

fn head(n_classes: usize) -> Head<Flex> {
    Head { cls: LinearConfig::new(16, n_classes).init(&Default::default()) }
}

fn head_keys(labels: &[&str]) -> HeadHparams {
    let labels: Vec<String> = labels.iter().map(|&label| label.to_owned()).collect();
    HeadHparams::new(HeadKind::LinearCls, labels.len(), Some(labels))
}

/// Names of what is in a folder.
fn names(folder: &std::path::Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect()
}

#[test]
fn a_head_takes_the_place_of_another_and_the_rest_is_copied_byte_for_byte() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out.gguf");
    let bytes = bundles::image().retype("enc.blk.0.ffn_up.weight", GgmlType::F16).bytes();
    let bundle = Bundle::from_gguf(Gguf::from_bytes(bytes).unwrap()).unwrap();
    let labels = ["plain", "comma, and \"quote\"", "Übermaß", "猫", ""];
    let new = head(5);
    let mut writer = BundleWriter::from_bundle(&bundle);
    writer.set_head(&head_keys(&labels)).put_module("head.", &new).set("general.name", "probed");
    writer.start(&path).unwrap().finish().unwrap();

    let back = Bundle::open(&path).unwrap();
    assert_eq!(back.hparams().head, Some(head_keys(&labels)));
    assert_eq!(back.hparams().name.as_deref(), Some("probed"));
    let mut loaded = head(5);
    loaded.load_from(&mut GgufStore::from_bundle(&back).prefix("head.")).unwrap();
    assert_eq!(values(&loaded.cls.weight), values(&new.cls.weight));
    for before in bundle.gguf().tensors().iter().filter(|t| t.name().starts_with("enc.")) {
        let (before, after) =
            (bundle.gguf().tensor(before.name()).unwrap(), back.gguf().tensor(before.name()).unwrap());
        assert_eq!((before.info().dtype(), before.bytes()), (after.info().dtype(), after.bytes()));
    }
    assert_eq!(back.gguf().tensor("enc.blk.0.ffn_up.weight").unwrap().info().dtype(), GgmlType::F16);
    assert_eq!(names(folder.path()), ["out.gguf"]);
}

#[test]
fn a_module_replaces_the_tensors_of_its_names_only_and_the_order_stays() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out.gguf");
    let bundle = bundle();
    let block = encoder().blk.remove(0);
    BundleWriter::from_bundle(&bundle).put_module("enc.blk.0.", &block).start(&path).unwrap().finish().unwrap();
    let back = Bundle::open(&path).unwrap();
    let order = |bundle: &Bundle| bundle.gguf().tensors().iter().map(|t| t.name().to_owned()).collect::<Vec<_>>();
    assert_eq!(order(&back), order(&bundle));
    let mut loaded = encoder();
    loaded.load_from(&mut GgufStore::from_bundle(&back).prefix("enc.")).unwrap();
    assert_eq!(values(&loaded.blk[0].ffn_up.weight), values(&block.ffn_up.weight));
    let stored = |bundle: &Bundle, name: &str| bundle.gguf().tensor(name).unwrap().to_f32();
    assert_eq!(stored(&back, "enc.norm.bias"), stored(&bundle, "enc.norm.bias"));
    assert_ne!(stored(&back, "enc.blk.0.ffn_up.weight"), stored(&bundle, "enc.blk.0.ffn_up.weight"));
}

#[test]
fn hyper_parameters_and_modules_alone_make_a_bundle() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out.gguf");
    let hparams = bundle().hparams().clone();
    let (enc, cls) = (encoder(), head(3));
    let mut writer = BundleWriter::from_hparams(&hparams);
    writer.put_module("enc.", &enc).put_module("head.", &cls).start(&path).unwrap().finish().unwrap();
    let back = Bundle::open(&path).unwrap();
    assert_eq!(back.hparams(), &hparams);
    assert!(back.warnings().is_empty());
    let mut loaded = encoder();
    loaded.load_from(&mut GgufStore::from_bundle(&back).prefix("enc.")).unwrap();
    assert_eq!(values(&loaded.blk[0].attn_qkv.weight), values(&enc.blk[0].attn_qkv.weight));
}

#[test]
fn the_file_that_is_open_can_be_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.gguf");
    std::fs::write(&path, bundles::image().bytes()).unwrap();
    let bundle = Bundle::open(&path).unwrap();
    let before = bundle.gguf().tensor("enc.norm.weight").unwrap().to_f32();
    let mut writer = BundleWriter::from_bundle(&bundle);
    writer.set_head(&head_keys(&["x", "y"])).put_module("head.", &head(2)).start(&path).unwrap().finish().unwrap();
    assert_eq!(bundle.gguf().tensor("enc.norm.weight").unwrap().to_f32(), before, "the map shows the old file");
    let back = Bundle::open(&path).unwrap();
    assert_eq!(back.hparams().head.as_ref().unwrap().n_classes, 2);
    assert_eq!(back.gguf().tensor("enc.norm.weight").unwrap().to_f32(), before);
}

#[test]
fn keys_and_modules_that_do_not_belong_together_leave_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out.gguf");
    let bundle = bundle();
    let refusal = |writer: &BundleWriter| writer.start(&path).unwrap_err().to_string();

    let mut other = BundleWriter::from_bundle(&bundle);
    let message = refusal(other.set_head(&head_keys(&["x", "y"])).put_module("head.", &head(5)));
    assert!(
        message.contains("head.cls.weight") && message.contains("[5, 16]") && message.contains("[2, 16]"),
        "{message}"
    );
    let message = refusal(BundleWriter::from_bundle(&bundle).set_head(&head_keys(&["x", "y"])));
    assert!(message.contains("head.cls.weight: missing"), "{message}");
    let message = refusal(BundleWriter::from_bundle(&bundle).put_module("enc.more.", &head(5)));
    assert!(message.contains("enc.more.cls.weight: not part of"), "{message}");
    drop(BundleWriter::from_bundle(&bundle).start(&path).unwrap());
    assert!(names(folder.path()).is_empty());
}
