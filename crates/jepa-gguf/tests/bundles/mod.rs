//! Bundles made in memory: small ones with seeded values, and the heads of full-size ones.
#![allow(dead_code, reason = "every test program uses a part of this")]

use jepa_gguf::{GgmlType, GgufWriter, Metadata, Value};

/// A bundle to be: keys, and tensors with shape (rows first) and type.
#[derive(Clone, Debug)]
pub(crate) struct Draft {
    pub(crate) metadata: Metadata,
    pub(crate) tensors: Vec<(String, Vec<usize>, GgmlType)>,
}

impl Draft {
    pub(crate) fn new(keys: Vec<(&str, Value)>) -> Self {
        let mut metadata = Metadata::default();
        for (key, value) in keys {
            metadata.insert(key, value).unwrap();
        }
        Self { metadata, tensors: Vec::new() }
    }

    pub(crate) fn set(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.metadata.set(key, value);
        self
    }

    pub(crate) fn without(mut self, key: &str) -> Self {
        assert!(self.metadata.remove(key).is_some(), "{key} was not there");
        self
    }

    pub(crate) fn add(&mut self, name: impl Into<String>, shape: &[usize]) {
        self.tensors.push((name.into(), shape.to_vec(), GgmlType::F32));
    }

    pub(crate) fn linear(&mut self, name: impl Into<String>, out: usize, input: usize) {
        let name = name.into();
        self.add(format!("{name}.weight"), &[out, input]);
        self.add(format!("{name}.bias"), &[out]);
    }

    pub(crate) fn norm(&mut self, name: impl Into<String>, dim: usize) {
        let name = name.into();
        self.add(format!("{name}.weight"), &[dim]);
        self.add(format!("{name}.bias"), &[dim]);
    }

    /// A pre-LN block with fused qkv.
    pub(crate) fn block(&mut self, base: &str, dim: usize, ffn: usize) {
        self.norm(format!("{base}.ln1"), dim);
        self.norm(format!("{base}.ln2"), dim);
        self.linear(format!("{base}.attn_qkv"), 3 * dim, dim);
        self.linear(format!("{base}.attn_out"), dim, dim);
        self.linear(format!("{base}.ffn_up"), ffn, dim);
        self.linear(format!("{base}.ffn_down"), dim, ffn);
    }

    pub(crate) fn tensor_mut(&mut self, name: &str) -> &mut (String, Vec<usize>, GgmlType) {
        self.tensors.iter_mut().find(|t| t.0 == name).unwrap_or_else(|| panic!("no {name}"))
    }

    pub(crate) fn drop_tensor(mut self, name: &str) -> Self {
        let before = self.tensors.len();
        self.tensors.retain(|t| t.0 != name);
        assert_eq!(self.tensors.len() + 1, before, "no {name}");
        self
    }

    pub(crate) fn reshape(mut self, name: &str, shape: &[usize]) -> Self {
        self.tensor_mut(name).1 = shape.to_vec();
        self
    }

    pub(crate) fn retype(mut self, name: &str, dtype: GgmlType) -> Self {
        self.tensor_mut(name).2 = dtype;
        self
    }

    pub(crate) fn writer(&self) -> GgufWriter {
        let mut writer = GgufWriter::new(self.metadata.clone());
        for (name, shape, dtype) in &self.tensors {
            writer.declare(name, shape, *dtype).unwrap();
        }
        writer
    }

    /// The whole file, with values from a small generator.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let writer = self.writer();
        let mut out = writer.header().unwrap();
        let start = out.len() as u64;
        let mut state = 1_u32;
        for t in writer.tensors() {
            out.resize((start + t.offset()) as usize, 0);
            if t.dtype() == GgmlType::F32 {
                for _ in 0..t.element_count() {
                    state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                    out.extend((state as f32 / u32::MAX as f32 - 0.5).to_le_bytes());
                }
            } else {
                out.resize(out.len() + t.byte_len() as usize, 0);
            }
        }
        out.resize(writer.file_len().unwrap() as usize, 0);
        out
    }
}

pub(crate) fn u(v: u32) -> Value {
    Value::U32(v)
}

pub(crate) fn f(v: f32) -> Value {
    Value::F32(v)
}

pub(crate) fn s(v: &str) -> Value {
    v.into()
}

/// A picture encoder with CLS, registers and layer scale, and a linear head.
pub(crate) fn image() -> Draft {
    let mut d = Draft::new(vec![
        ("general.architecture", s("jepa")),
        ("general.name", s("image-base")),
        ("jepa.schema_version", u(1)),
        ("jepa.family", s("hfvit")),
        ("jepa.modality", s("image")),
        ("jepa.enc.embed_dim", u(16)),
        ("jepa.enc.n_layer", u(1)),
        ("jepa.enc.n_head", u(2)),
        ("jepa.enc.ffn_dim", u(32)),
        ("jepa.enc.patch_size", u(4)),
        ("jepa.enc.img_size", u(8)),
        ("jepa.enc.in_chans", u(3)),
        ("jepa.enc.ln_eps", f(1e-6)),
        ("jepa.enc.act", s("gelu_erf")),
        ("jepa.enc.pos_type", s("learned")),
        ("jepa.enc.cls_token", true.into()),
        ("jepa.enc.n_registers", u(2)),
        ("jepa.enc.layer_scale", true.into()),
        ("jepa.head.kind", s("linear_cls")),
        ("jepa.head.n_classes", u(3)),
        ("jepa.head.labels", vec!["a".to_owned(), "b".to_owned(), "c".to_owned()].into()),
        ("jepa.pre.mean", vec![0.5_f32, 0.5, 0.5].into()),
        ("jepa.pre.std", vec![0.25_f32, 0.25, 0.25].into()),
        ("jepa.pre.resize_short", u(8)),
        ("jepa.pre.crop", u(8)),
    ]);
    d.linear("enc.patch_embed", 16, 48);
    d.add("enc.pos_embed", &[5, 16]);
    d.add("enc.cls_token", &[16]);
    d.add("enc.reg_tokens", &[2, 16]);
    d.block("enc.blk.0", 16, 32);
    d.add("enc.blk.0.ls1", &[16]);
    d.add("enc.blk.0.ls2", &[16]);
    d.norm("enc.norm", 16);
    d.linear("head.cls", 3, 16);
    d
}

/// A picture encoder whose `ffn_down` has rows of 256 values and whose other matrices have rows of 64.
pub(crate) fn ijepa() -> Draft {
    let mut d = Draft::new(vec![
        ("general.architecture", s("jepa")),
        ("jepa.schema_version", u(1)),
        ("jepa.family", s("ijepa")),
        ("jepa.modality", s("image")),
        ("jepa.enc.embed_dim", u(64)),
        ("jepa.enc.n_layer", u(2)),
        ("jepa.enc.n_head", u(2)),
        ("jepa.enc.ffn_dim", u(256)),
        ("jepa.enc.patch_size", u(4)),
        ("jepa.enc.img_size", u(8)),
        ("jepa.enc.pos_type", s("sincos2d")),
        ("jepa.head.kind", s("none")),
        ("jepa.pre.mean", vec![0.5_f32, 0.5, 0.5].into()),
        ("jepa.pre.std", vec![0.25_f32, 0.25, 0.25].into()),
    ]);
    d.linear("enc.patch_embed", 64, 48);
    d.add("enc.pos_embed", &[4, 64]);
    d.block("enc.blk.0", 64, 256);
    d.block("enc.blk.1", 64, 256);
    d.norm("enc.norm", 64);
    d
}

/// A clip encoder with hierarchical norms, modality vectors and a masked predictor.
pub(crate) fn video() -> Draft {
    let mut d = Draft::new(vec![
        ("general.architecture", s("jepa")),
        ("jepa.schema_version", u(1)),
        ("jepa.family", s("vjepa2_1")),
        ("jepa.modality", s("image+video")),
        ("jepa.enc.embed_dim", u(24)),
        ("jepa.enc.n_layer", u(2)),
        ("jepa.enc.n_head", u(2)),
        ("jepa.enc.ffn_dim", u(48)),
        ("jepa.enc.patch_size", u(4)),
        ("jepa.enc.tubelet_size", u(2)),
        ("jepa.enc.img_size", u(8)),
        ("jepa.enc.n_frames", u(4)),
        ("jepa.enc.pos_type", s("rope3d")),
        ("jepa.enc.rope_freq_layout", s("interleaved")),
        ("jepa.enc.rope_interpolate", true.into()),
        ("jepa.enc.modality_embed", true.into()),
        ("jepa.enc.image_patch_embed", true.into()),
        ("jepa.enc.hier_layers", vec![0_u32, 1].into()),
        ("jepa.pred.kind", s("masked")),
        ("jepa.pred.embed_dim", u(16)),
        ("jepa.pred.n_layer", u(1)),
        ("jepa.pred.n_head", u(1)),
        ("jepa.pred.ffn_dim", u(32)),
        ("jepa.pred.n_mask_tokens", u(2)),
        ("jepa.pred.out_dim", u(20)),
        ("jepa.pred.n_hier_in", u(1)),
        ("jepa.pred.modality_embed", true.into()),
        ("jepa.pred.context_proj", true.into()),
        ("jepa.pred.rope_freq_layout", s("interleaved")),
        ("jepa.head.kind", s("none")),
        ("jepa.pre.mean", vec![0.5_f32, 0.5, 0.5].into()),
        ("jepa.pre.std", vec![0.25_f32, 0.25, 0.25].into()),
    ]);
    d.linear("enc.patch_embed", 24, 96);
    d.linear("enc.patch_embed_img", 24, 48);
    d.add("enc.mod_embed_img", &[24]);
    d.add("enc.mod_embed_video", &[24]);
    d.block("enc.blk.0", 24, 48);
    d.block("enc.blk.1", 24, 48);
    d.norm("enc.hier_norm.0", 24);
    d.norm("enc.hier_norm.1", 24);
    d.norm("enc.norm", 24);
    d.linear("pred.embed", 16, 24);
    d.add("pred.mask_tokens", &[2, 16]);
    d.add("pred.mod_embed_img", &[16]);
    d.add("pred.mod_embed_video", &[16]);
    d.block("pred.blk.0", 16, 32);
    d.norm("pred.norm", 16);
    d.linear("pred.proj", 20, 16);
    d.linear("pred.proj_context", 20, 16);
    d
}
