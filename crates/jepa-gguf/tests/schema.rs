//! Keys and tensors that are spelled in more than one way, and what their absence means.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod bundles;

use bundles::{Draft, image, video};
use jepa_gguf::schema::{
    Activation, HeadPool, Hparams, KEYS, KeyKind, PosInterp, Resample, ResizeMode, expected_tensors,
};
use jepa_gguf::{Bundle, GgmlType, Gguf, GgufError, Value};

fn open(draft: &Draft) -> Result<Bundle, GgufError> {
    Bundle::from_gguf(Gguf::from_bytes(draft.bytes())?)
}

fn hparams(draft: &Draft) -> Hparams {
    open(draft).unwrap().hparams().clone()
}

#[test]
fn every_key_of_the_table_is_refused_by_name_when_it_has_the_wrong_type() {
    let ac = [("n_cond_tokens", "ac"), ("cond_order", "ac"), ("normalize_reps", "ac"), ("norm_reps_eps", "ac")];
    let lewm = ["adaln_eps", "action_act", "proj_act", "action_dim", "state_dim", "frame_causal", "n_frames"];
    for key in KEYS {
        let own = key.name.rsplit('.').next().unwrap();
        if key.name.starts_with("jepa.pred.") && (ac.iter().any(|(k, _)| *k == own) || lewm.contains(&own)) {
            continue; // Read with another kind of predictor only.
        }
        if matches!(key.name, "jepa.enc.proj_act" | "jepa.head.n_pool_layers") {
            continue; // Read with LeWM and with an attentive head only.
        }
        let base = if key.name.starts_with("jepa.pred.") { video() } else { image() };
        let wrong: Value = if matches!(key.kind, KeyKind::Flag) { "yes".into() } else { true.into() };
        let message = open(&base.set(key.name, wrong)).unwrap_err().to_string();
        assert!(message.starts_with(&format!("key {}: found ", key.name)), "{}: {message}", key.name);
    }
}

#[test]
fn integers_and_numbers_of_any_width_mean_the_same() {
    let wanted = hparams(&image().set("jepa.enc.ln_eps", 1e-6_f64));
    for n in
        [Value::U8(16), Value::I8(16), Value::U16(16), Value::I16(16), Value::I32(16), Value::U64(16), Value::I64(16)]
    {
        let draft =
            image().set("jepa.enc.ln_eps", 1e-6_f64).set("jepa.enc.embed_dim", n).set("jepa.schema_version", 1_u8);
        assert_eq!(hparams(&draft), wanted);
    }
    let wide = video().set("jepa.enc.hier_layers", vec![0_i64, 1]).set("jepa.pre.mean", vec![0.5_f64; 3]);
    assert_eq!(hparams(&wide), hparams(&video()));
}

#[test]
fn absent_keys_have_the_defaults_of_the_published_loader() {
    let bare = image()
        .without("jepa.enc.ln_eps")
        .without("jepa.enc.act")
        .without("jepa.enc.in_chans")
        .without("jepa.enc.cls_token")
        .without("jepa.pre.resize_short")
        .without("jepa.pre.crop")
        .without("jepa.head.labels")
        .without("general.name");
    let hp = hparams(&bare);
    assert_eq!((hp.enc.ln_eps, hp.enc.act, hp.enc.in_chans), (1e-6, Activation::GeluErf, 3));
    assert_eq!((hp.enc.tubelet_size, hp.enc.n_frames, hp.enc.qkv_fused, hp.enc.cls_token), (1, 1, true, true));
    assert_eq!((hp.pre.crop, hp.pre.resize_short), (8, 8));
    assert_eq!((hp.pre.resample, hp.pre.resize_mode), (Resample::Bilinear, ResizeMode::ShortestEdge));
    assert_eq!(hp.pre.rescale, 1.0 / 255.0);
    assert_eq!((hp.head.unwrap().labels, hp.name, hp.enc.pos_interp), (None, None, PosInterp::Offset));

    let hp = hparams(&video().without("jepa.pred.rope_freq_layout").without("jepa.enc.rope_freq_layout"));
    assert_eq!(hp, hparams(&video()), "interleaved is the default of vjepa2_1, ref_grid is 256 div patch_size");
    assert_eq!(hp.enc.rope.unwrap().ref_grid, 64);

    let side = image().without("jepa.enc.img_size").set("jepa.enc.patch_size", 112_u32);
    let side = side.reshape("enc.patch_embed.weight", &[16, 3 * 112 * 112]).without("jepa.pre.crop");
    assert_eq!(hparams(&side).enc.img_size, 224);
}

#[test]
fn the_source_may_stand_under_its_alias() {
    assert_eq!(hparams(&image()).source_url, None);
    assert_eq!(hparams(&image().set("general.source.url", "a")).source_url.as_deref(), Some("a"));
    let both = image().set("general.source.url", "a").set("general.source_url", "b");
    assert_eq!(hparams(&both).source_url.as_deref(), Some("b"));
}

#[test]
fn the_rule_for_other_grids_may_be_stated() {
    assert_eq!(hparams(&image().set("jepa.enc.pos_interp", "antialias")).enc.pos_interp, PosInterp::Antialias);
}

#[test]
fn a_linear_head_may_read_several_layers_and_another_pooling() {
    let layers = vec![0_u32, 0];
    let draft =
        image().set("jepa.head.pool", "mean").set("jepa.head.layers", layers).reshape("head.cls.weight", &[3, 32]);
    let head = hparams(&draft).head.unwrap();
    assert_eq!((head.pool, &head.layers[..]), (HeadPool::Mean, &[0, 0][..]));
    let narrow = image().set("jepa.head.layers", vec![0_u32, 0]);
    let message = open(&narrow).unwrap_err().to_string();
    assert!(message.contains("head.cls.weight") && message.contains("[3, 32]"), "{message}");
    let message = open(&image().set("jepa.head.layers", vec![1_u32])).unwrap_err().to_string();
    assert!(message.contains("jepa.head.layers: 1, wanted 0 to 0"), "{message}");
    let message = open(&image().set("jepa.head.pool", "state")).unwrap_err().to_string();
    assert!(message.contains("jepa.head.pool: state") && message.contains("projector"), "{message}");
}

#[test]
fn leading_sizes_of_one_make_no_difference() {
    let draft = image()
        .reshape("enc.cls_token", &[1, 1, 16])
        .reshape("enc.norm.weight", &[1, 16])
        .reshape("enc.pos_embed", &[1, 5, 16]);
    let bundle = open(&draft).unwrap();
    for (tensor, shape) in [("enc.cls_token", &[16][..]), ("enc.norm.weight", &[16]), ("enc.pos_embed", &[5, 16])] {
        assert_eq!(bundle.gguf().tensor(tensor).unwrap().info().shape(), shape, "the schema's shape wins");
    }
}

#[test]
fn matrices_may_be_stored_in_any_type_and_input_layers_in_any_float() {
    for &dtype in GgmlType::ALL {
        if 256 % dtype.block_len() != 0 {
            continue;
        }
        let wide = image().set("jepa.enc.ffn_dim", 256_u32).reshape("enc.blk.0.ffn_up.weight", &[256, 16]);
        let wide = wide.reshape("enc.blk.0.ffn_up.bias", &[256]).reshape("enc.blk.0.ffn_down.weight", &[16, 256]);
        open(&wide.retype("enc.blk.0.ffn_down.weight", dtype)).unwrap();
    }
    for dtype in [GgmlType::F16, GgmlType::Bf16] {
        open(&image().retype("enc.patch_embed.weight", dtype)).unwrap();
    }
}

#[test]
fn a_bundle_has_exactly_the_tensors_that_are_expected() {
    for draft in [image(), video()] {
        let bundle = open(&draft).unwrap();
        let mut wanted: Vec<_> = expected_tensors(bundle.hparams()).into_iter().map(|t| (t.name, t.shape)).collect();
        let mut found: Vec<_> =
            bundle.gguf().tensors().iter().map(|t| (t.name().to_owned(), t.shape().to_vec())).collect();
        wanted.sort();
        found.sort();
        assert_eq!(wanted, found);
    }
}

#[test]
fn separate_queries_keys_and_values_are_a_bundle_too() {
    let mut split = image().set("jepa.enc.qkv_fused", false);
    split = split.drop_tensor("enc.blk.0.attn_qkv.weight").drop_tensor("enc.blk.0.attn_qkv.bias");
    for part in ["q", "k", "v"] {
        split.linear(format!("enc.blk.0.attn_{part}"), 16, 16);
    }
    open(&split).unwrap();
    let message = open(&image().set("jepa.enc.qkv_fused", false)).unwrap_err().to_string();
    assert!(message.contains("enc.blk.0.attn_q.weight: missing"), "{message}");
}

#[test]
fn the_page_is_the_one_in_the_repository() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/schema.md");
    let found = std::fs::read_to_string(path).unwrap();
    assert_eq!(found, jepa_gguf::schema::schema_page(), "run `cargo xtask docs`");
}
