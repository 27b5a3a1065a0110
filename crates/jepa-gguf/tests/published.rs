//! The heads of the published files, rebuilt at full size: every tensor is declared, the data is a hole in a sparse file.
//!
//! Tensor and f16 counts, sizes and parameter counts are those that the files' cards give.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod bundles;

use bundles::{Draft, f, s, u};
use jepa_gguf::schema::{Activation, HeadKind, PosInterp, PredictorKind, ResizeMode, RopeLayout};
use jepa_gguf::{Bundle, GgmlType, Value};

/// Encoder sizes: width, layers, heads, MLP, patch, tubelet, side, frames.
type Sizes = (u32, u32, u32, u32, u32, u32, u32, u32);

fn start(family: &str, modality: &str, (dim, layers, heads, ffn, patch, tubelet, side, frames): Sizes) -> Draft {
    let mut d = Draft::new(vec![
        ("general.architecture", s("jepa")),
        ("general.name", s("rebuilt")),
        ("general.license", s("mit")),
        ("general.source_url", s("https://example.invalid")),
        ("general.file_type", u(0)),
        ("jepa.schema_version", u(1)),
        ("jepa.family", s(family)),
        ("jepa.modality", s(modality)),
        ("jepa.enc.embed_dim", u(dim)),
        ("jepa.enc.n_layer", u(layers)),
        ("jepa.enc.n_head", u(heads)),
        ("jepa.enc.ffn_dim", u(ffn)),
        ("jepa.enc.patch_size", u(patch)),
        ("jepa.enc.tubelet_size", u(tubelet)),
        ("jepa.enc.img_size", u(side)),
        ("jepa.enc.n_frames", u(frames)),
        ("jepa.enc.in_chans", u(3)),
        ("jepa.enc.ln_eps", f(1e-6)),
        ("jepa.enc.act", s("gelu_erf")),
        ("jepa.enc.n_registers", u(0)),
        ("jepa.enc.qkv_fused", true.into()),
        ("jepa.enc.layer_scale", false.into()),
        ("jepa.head.kind", s("none")),
        ("jepa.pre.mean", vec![0.485_f32, 0.456, 0.406].into()),
        ("jepa.pre.std", vec![0.229_f32, 0.224, 0.225].into()),
        ("jepa.pre.rescale", f(1.0 / 255.0)),
    ]);
    let [dim, layers, ffn, patch, tubelet] = [dim, layers, ffn, patch, tubelet].map(|v| v as usize);
    d.linear("enc.patch_embed", dim, 3 * tubelet * patch * patch);
    for i in 0..layers {
        d.block(&format!("enc.blk.{i}"), dim, ffn);
    }
    d.norm("enc.norm", dim);
    d
}

fn pre(d: Draft, short: u32, crop: u32, resample: &str) -> Draft {
    d.set("jepa.pre.resize_short", short).set("jepa.pre.crop", crop).set("jepa.pre.resample", resample)
}

fn rope(d: Draft, layout: &str) -> Draft {
    d.set("jepa.enc.pos_type", "rope3d").set("jepa.enc.rope_theta", 1e4_f32).set("jepa.enc.rope_freq_layout", layout)
}

/// A masked predictor of 384 x 12 x 12 x 1536.
fn masked(d: Draft, enc: usize, masks: u32, out: u32) -> Draft {
    let mut d =
        pred(d, "masked", [384, 12, 12, 1536]).set("jepa.pred.n_mask_tokens", masks).set("jepa.pred.out_dim", out);
    d.linear("pred.embed", 384, enc);
    d.add("pred.mask_tokens", &[masks as usize, 384]);
    for i in 0..12 {
        d.block(&format!("pred.blk.{i}"), 384, 1536);
    }
    d.norm("pred.norm", 384);
    d.linear("pred.proj", out as usize, 384);
    d
}

fn pred(d: Draft, kind: &str, [dim, layers, heads, ffn]: [u32; 4]) -> Draft {
    d.set("jepa.pred.kind", kind)
        .set("jepa.pred.embed_dim", dim)
        .set("jepa.pred.n_layer", layers)
        .set("jepa.pred.n_head", heads)
        .set("jepa.pred.ffn_dim", ffn)
}

fn ijepa() -> Draft {
    let mut d = start("ijepa", "image", (1280, 32, 16, 5120, 14, 1, 224, 1))
        .set("jepa.enc.pos_type", "sincos2d")
        .set("jepa.enc.cls_token", false)
        .set("jepa.pre.resize_mode", "squash");
    d.add("enc.pos_embed", &[256, 1280]);
    pre(d, 224, 224, "bilinear")
}

fn lejepa() -> Draft {
    let mut d = start("hfvit", "image", (384, 12, 6, 1536, 16, 1, 224, 1))
        .set("jepa.enc.pos_type", "learned")
        .set("jepa.enc.cls_token", true)
        .set("jepa.pre.resize_mode", "shortest_edge");
    d.add("enc.pos_embed", &[197, 384]);
    d.add("enc.cls_token", &[384]);
    pre(d, 256, 224, "bicubic")
}

fn lewm() -> Draft {
    let d = start("lewm", "image", (192, 12, 3, 768, 14, 1, 224, 1))
        .set("jepa.enc.pos_type", "learned")
        .set("jepa.enc.cls_token", true)
        .set("jepa.enc.ln_eps", 1e-12_f32)
        .set("jepa.enc.proj_act", "gelu_erf")
        .set("jepa.pre.resize_mode", "squash");
    let mut d = pred(pre(d, 224, 224, "bilinear"), "lewm", [192, 6, 16, 2048])
        .set("jepa.pred.head_dim", 64_u32)
        .set("jepa.pred.n_frames", 3_u32)
        .set("jepa.pred.action_dim", 10_u32)
        .set("jepa.pred.state_dim", 0_u32)
        .set("jepa.pred.frame_causal", true)
        .set("jepa.pred.ln_eps", 1e-5_f32)
        .set("jepa.pred.adaln_eps", 1e-6_f32)
        .set("jepa.pred.act", "gelu_erf")
        .set("jepa.pred.qkv_bias", false)
        .set("jepa.pred.action_act", "silu")
        .set("jepa.pred.proj_act", "gelu_erf");
    d.add("enc.pos_embed", &[257, 192]);
    d.add("enc.cls_token", &[192]);
    d.linear("enc.proj.0", 2048, 192);
    d.linear("enc.proj.2", 192, 2048);
    d.add("pred.pos_embed", &[3, 192]);
    for i in 0..6 {
        let base = format!("pred.blk.{i}");
        d.linear(format!("{base}.adaln"), 6 * 192, 192);
        d.norm(format!("{base}.ln1"), 192);
        d.add(format!("{base}.attn_qkv.weight"), &[3 * 1024, 192]);
        d.linear(format!("{base}.attn_out"), 192, 1024);
        d.norm(format!("{base}.ln2"), 192);
        d.linear(format!("{base}.ffn_up"), 2048, 192);
        d.linear(format!("{base}.ffn_down"), 192, 2048);
    }
    d.norm("pred.norm", 192);
    d.linear("pred.action_embed.0", 768, 10);
    d.linear("pred.action_embed.2", 192, 768);
    d.linear("pred.proj.0", 2048, 192);
    d.linear("pred.proj.2", 192, 2048);
    d
}

/// V-JEPA 2 files omit `pred.grid_size`, `pre.resize_mode` and `pred.act`.
fn vjepa2_l(frames: u32) -> Draft {
    let d = rope(start("vjepa2", "video", (1024, 24, 16, 4096, 16, 2, 256, frames)), "tiled");
    masked(pre(d, 292, 256, "bilinear"), 1024, 10, 1024).set("jepa.pred.rope_freq_layout", "tiled")
}

fn ssv2() -> Draft {
    let labels: Vec<String> = (0..174).map(|i| format!("doing {i}")).collect();
    let mut d = vjepa2_l(16)
        .set("jepa.head.kind", "attentive_pool")
        .set("jepa.head.n_classes", 174_u32)
        .set("jepa.head.n_pool_layers", 3_u32)
        .set("jepa.head.labels", labels);
    for i in 0..3 {
        d.block(&format!("head.blk.{i}"), 1024, 4096);
    }
    d.add("head.query", &[1, 1024]);
    d.norm("head.xattn.ln_kv", 1024);
    for part in ["q", "k", "v"] {
        d.linear(format!("head.xattn.{part}"), 1024, 1024);
    }
    d.norm("head.xattn.ln2", 1024);
    d.linear("head.xattn.ffn_up", 4096, 1024);
    d.linear("head.xattn.ffn_down", 1024, 4096);
    d.linear("head.cls", 174, 1024);
    d
}

fn vjepa2_g() -> Draft {
    let d = rope(start("vjepa2", "video", (1408, 40, 22, 6144, 16, 2, 256, 64)), "tiled");
    masked(pre(d, 292, 256, "bilinear"), 1408, 10, 1408)
}

fn vjepa2_1() -> Draft {
    let mut d = rope(start("vjepa2_1", "image+video", (768, 12, 12, 3072, 16, 2, 384, 64)), "interleaved")
        .set("jepa.enc.rope_interpolate", true)
        .set("jepa.enc.rope_ref_grid", 16_u32)
        .set("jepa.enc.modality_embed", true)
        .set("jepa.enc.image_patch_embed", true)
        .set("jepa.enc.hier_layers", vec![2_u32, 5, 8, 11]);
    d.linear("enc.patch_embed_img", 768, 768);
    d.add("enc.mod_embed_img", &[768]);
    d.add("enc.mod_embed_video", &[768]);
    for i in 0..4 {
        d.norm(format!("enc.hier_norm.{i}"), 768);
    }
    let mut d = masked(pre(d, 438, 384, "bilinear"), 768, 8, 1664)
        .set("jepa.pred.n_hier_in", 1_u32)
        .set("jepa.pred.grid_size", 24_u32)
        .set("jepa.pred.rope_freq_layout", "interleaved")
        .set("jepa.pred.rope_interpolate", false)
        .set("jepa.pred.modality_embed", true)
        .set("jepa.pred.context_proj", true);
    d.add("pred.mod_embed_img", &[384]);
    d.add("pred.mod_embed_video", &[384]);
    d.linear("pred.proj_context", 1664, 384);
    d
}

fn levjepa() -> Draft {
    let mut d = rope(start("levjepa", "video", (1024, 24, 16, 4096, 16, 1, 224, 16)), "tiled")
        .set("jepa.enc.cls_token", true)
        .set("jepa.enc.attn_mode", "block_causal")
        .set("jepa.pre.resize_mode", "shortest_edge");
    d.add("enc.cls_token", &[1024]);
    pre(d, 224, 224, "bicubic")
}

fn ac() -> Draft {
    let d = rope(start("vjepa2", "video", (1408, 40, 22, 6144, 16, 2, 256, 64)), "tiled");
    let mut d = pred(pre(d, 256, 256, "bilinear"), "ac", [1024, 24, 16, 4096])
        .set("jepa.pred.out_dim", 1408_u32)
        .set("jepa.pred.action_dim", 7_u32)
        .set("jepa.pred.state_dim", 7_u32)
        .set("jepa.pred.frame_causal", true)
        .set("jepa.pred.n_cond_tokens", 2_u32)
        .set("jepa.pred.cond_order", "action,state")
        .set("jepa.pred.n_frames", 32_u32)
        .set("jepa.pred.grid_size", 16_u32)
        .set("jepa.pred.normalize_reps", true)
        .set("jepa.pred.norm_reps_eps", 1e-5_f32);
    d.linear("pred.embed", 1024, 1408);
    d.linear("pred.action_embed", 1024, 7);
    d.linear("pred.state_embed", 1024, 7);
    for i in 0..24 {
        d.block(&format!("pred.blk.{i}"), 1024, 4096);
    }
    d.norm("pred.norm", 1024);
    d.linear("pred.proj", 1408, 1024);
    d
}

/// Stores matrices in `dtype` the way the family's converter does.
fn stored(mut d: Draft, dtype: GgmlType) -> Draft {
    if dtype == GgmlType::F32 {
        return d;
    }
    let word = |key: &str| d.metadata.get(key).and_then(Value::as_str);
    // By their sizes: the f16 file of AC keeps its input layers in f32, unlike the other video files, and so do the quantised files of the
    // ViT-g models and of levjepa. What does not fit a q4_k block is q4_0.
    let quantized = !dtype.is_float();
    let singles = match word("jepa.family") {
        Some("ijepa" | "hfvit" | "lewm") => true,
        Some("levjepa") => quantized,
        _ => {
            word("jepa.pred.kind") == Some("ac") || quantized && d.metadata.get("jepa.enc.embed_dim") == Some(&u(1408))
        }
    };
    for (name, shape, stored) in &mut d.tensors {
        if shape.len() != 2 || !name.ends_with(".weight") {
            continue;
        }
        let quantizable = !["patch_embed", "action_embed", "state_embed", "adaln"].iter().any(|p| name.contains(p));
        let row = shape[1];
        *stored = match (quantizable, singles) {
            (true, _) if row % dtype.block_len() == 0 => dtype,
            (true, _) if row % 32 == 0 => GgmlType::Q4_0,
            (true, _) | (false, false) => GgmlType::F16,
            (false, true) => GgmlType::F32,
        };
    }
    d.set("general.file_type", dtype.file_type())
}

/// Writes the head, leaves a hole for the data, and opens the file.
fn open(d: &Draft) -> (Bundle, u64) {
    let file = tempfile::NamedTempFile::new().unwrap();
    let writer = d.writer();
    std::fs::write(file.path(), writer.header().unwrap()).unwrap();
    let len = writer.file_len().unwrap();
    file.as_file().set_len(len).unwrap();
    let started = std::time::Instant::now();
    let bundle = Bundle::open(file.path()).unwrap();
    assert!(started.elapsed().as_millis() < 500, "opening took {:?}", started.elapsed());
    (bundle, len)
}

/// Size in MiB of a file, to the cards' precision.
#[track_caller]
fn is_mib(len: u64, wanted: f64, digits: f64) {
    let found = len as f64 / f64::from(1 << 20);
    assert!((found - wanted).abs() <= digits, "{found} MiB, the card says {wanted}");
}

#[test]
fn every_published_file_loads_in_every_published_type() {
    for base in [ijepa(), lejepa(), lewm(), vjepa2_l(64), ssv2(), vjepa2_g(), vjepa2_1(), levjepa(), ac()] {
        for dtype in [GgmlType::F32, GgmlType::F16, GgmlType::Q8_0, GgmlType::Q4_0, GgmlType::Q4K] {
            let (bundle, _) = open(&stored(base.clone(), dtype));
            assert_eq!(bundle.warnings(), []);
            assert_eq!(bundle.gguf().file_type(), Some(dtype.file_type()));
        }
    }
}

#[test]
fn tensor_counts_are_those_of_the_cards() {
    for (base, tensors, halves) in [
        (ijepa(), 389, 128),
        (lejepa(), 150, 48),
        (lewm(), 243, 76),
        (vjepa2_l(64), 443, 147),
        (ssv2(), 496, 165),
        (vjepa2_1(), 315, 101),
        (levjepa(), 293, 97),
    ] {
        let (bundle, _) = open(&stored(base, GgmlType::F16));
        let family = bundle.hparams().family;
        assert_eq!(bundle.gguf().tensors().len(), tensors, "{family}");
        let mix = bundle.gguf().type_mix();
        let half = mix.iter().find(|share| share.dtype == GgmlType::F16).unwrap();
        assert_eq!(half.tensors, halves, "{family}");
    }
}

#[test]
fn parameter_counts_and_sizes_are_those_of_the_cards() {
    for (base, parameters, f32_mib, f16_mib, q8_mib, q4_mib) in [
        (lejepa(), Some(21_665_664), 82.7, 42.2, 23.2, 13.0),
        (lewm(), Some(18_026_176), 68.8, 37.7, 23.1, 15.3),
        (vjepa2_1(), Some(109_709_440), 418.5, 209.7, 113.3, 61.9),
        (levjepa(), None, 1156.0, 578.7, 310.3, 166.3),
        (vjepa2_l(64), Some(325_971_328), 1243.5, 622.5, 332.8, 178.3),
        (ssv2(), Some(375_485_998), 1432.4, 717.1, 383.2, 205.1),
        (ijepa(), None, 2406.2, 1206.2, 643.7, 343.7),
        (vjepa2_g(), Some(1_034_555_264), 3946.6, 1974.9, 1056.7, 564.8),
        (ac(), Some(1_317_387_776), 5025.5, 2519.0, 1344.1, 717.4),
    ] {
        let (bundle, len) = open(&stored(base.clone(), GgmlType::F32));
        if let Some(wanted) = parameters {
            assert_eq!(bundle.gguf().parameter_count(), wanted, "{}", bundle.hparams().family);
        }
        // Some cards round the large sizes to whole MiB.
        is_mib(len, f32_mib, 0.55);
        is_mib(open(&stored(base.clone(), GgmlType::F16)).1, f16_mib, 0.06);
        is_mib(open(&stored(base.clone(), GgmlType::Q8_0)).1, q8_mib, 0.06);
        is_mib(open(&stored(base.clone(), GgmlType::Q4_0)).1, q4_mib, 0.06);
        is_mib(open(&stored(base, GgmlType::Q4K)).1, q4_mib, 0.06);
    }
}

#[test]
fn what_video_files_leave_out_has_its_default() {
    let hp = open(&vjepa2_l(64)).0.hparams().clone();
    assert_eq!(hp.pre.resize_mode, ResizeMode::ShortestEdge);
    let pred = hp.pred.unwrap();
    assert_eq!((pred.act, pred.ln_eps, pred.head_dim, pred.qkv_bias), (Activation::GeluErf, hp.enc.ln_eps, 32, true));
    let PredictorKind::Masked(masked) = pred.kind else { panic!("a masked predictor") };
    assert_eq!((masked.grid_size, masked.n_hier_in, masked.n_mask_tokens), (16, 1, 10));
    assert_eq!(masked.rope.unwrap().layout, RopeLayout::Tiled);
}

#[test]
fn hyper_parameters_are_those_of_the_table() {
    let hp = open(&vjepa2_1()).0.hparams().clone();
    let rope = hp.enc.rope.unwrap();
    assert_eq!((rope.layout, rope.interpolate, rope.ref_grid), (RopeLayout::Interleaved, true, 16));
    assert_eq!(hp.enc.hier_layers, [2, 5, 8, 11]);

    let hp = open(&lewm()).0.hparams().clone();
    assert_eq!(hp.enc.proj.unwrap().hidden, 2048);
    assert_eq!(hp.enc.pos_interp, PosInterp::Size);
    let pred = hp.pred.unwrap();
    let PredictorKind::Lewm(lewm) = pred.kind else { panic!("a lewm predictor") };
    assert_eq!((pred.head_dim, lewm.action_hidden, lewm.proj.hidden, lewm.n_frames), (64, 768, 2048, 3));

    let hp = open(&ssv2()).0.hparams().clone();
    let kind = hp.head.unwrap().kind;
    assert_eq!(kind, HeadKind::AttentivePool { n_pool_layers: 3, ffn_dim: 4096, xattn_ffn_dim: 4096 });

    assert_eq!(open(&lejepa()).0.hparams().enc.pos_interp, PosInterp::Offset);
}

#[test]
fn older_lewm_files_say_shortest_edge() {
    let hp = open(&lewm().set("jepa.pre.resize_mode", "shortest_edge")).0.hparams().clone();
    assert_eq!(hp.pre.resize_mode, ResizeMode::ShortestEdge);
}

#[test]
fn ac_files_without_the_later_keys_get_their_values() {
    let mut bare = ac();
    for key in
        ["n_cond_tokens", "cond_order", "n_frames", "normalize_reps", "norm_reps_eps", "grid_size", "frame_causal"]
    {
        bare = bare.without(&format!("jepa.pred.{key}"));
    }
    assert_eq!(open(&bare).0.hparams(), &{
        let mut hp = open(&ac()).0.hparams().clone();
        // The file has 1e-5 as f32.
        if let Some(PredictorKind::Ac(ac)) = hp.pred.as_mut().map(|p| &mut p.kind) {
            ac.norm_reps_eps = 1e-5;
        }
        hp
    });
}
