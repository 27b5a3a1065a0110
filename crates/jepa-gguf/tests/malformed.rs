//! Damaged files are refused by name, promptly, and without a panic.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod bundles;

use bundles::{Draft, f, image, s, u, video};
use jepa_gguf::{Bundle, GgmlType, Gguf, GgufError, Value};

fn open(bytes: Vec<u8>) -> Result<Bundle, GgufError> {
    Bundle::from_gguf(Gguf::from_bytes(bytes)?)
}

/// Refused, and the message has the word.
#[track_caller]
fn refuses(bytes: Vec<u8>, word: &str) {
    match open(bytes) {
        Ok(_) => panic!("loaded, wanted a message with {word:?}"),
        Err(e) => {
            let message = e.to_string();
            assert!(message.contains(word), "{message:?} has no {word:?}");
            assert!(!message.contains('\n') && !message.ends_with('.'), "{message:?}");
        }
    }
}

/// Where `needle` stands for the first time.
#[track_caller]
fn find(bytes: &[u8], needle: &[u8]) -> usize {
    bytes.windows(needle.len()).position(|w| w == needle).expect("the needle is in the file")
}

/// The bytes of `draft` with `patch` written `skip` bytes behind the name `name` (a key or a tensor).
fn patched(draft: &Draft, name: &str, skip: usize, patch: &[u8]) -> Vec<u8> {
    let mut bytes = draft.bytes();
    let mut needle = (name.len() as u64).to_le_bytes().to_vec();
    needle.extend(name.as_bytes());
    let at = find(&bytes, &needle) + needle.len() + skip;
    bytes[at..at + patch.len()].copy_from_slice(patch);
    bytes
}

fn overwritten(at: usize, patch: &[u8]) -> Vec<u8> {
    let mut bytes = image().bytes();
    bytes[at..at + patch.len()].copy_from_slice(patch);
    bytes
}

#[test]
fn the_undamaged_bases_load() {
    assert_eq!(open(image().bytes()).unwrap().warnings(), []);
    assert_eq!(open(video().bytes()).unwrap().warnings(), []);
}

#[test]
fn refuses_damaged_heads_by_the_name_of_the_part() {
    let huge = &(1_u64 << 60).to_le_bytes();
    for (bytes, word) in [
        (vec![], "header"),
        (image().bytes()[..11].to_vec(), "header"),
        (overwritten(0, b"GGML"), "magic"),
        (overwritten(4, &0_u32.to_le_bytes()), "version"),
        (overwritten(4, &1_u32.to_le_bytes()), "version"),
        (overwritten(4, &4_u32.to_le_bytes()), "version"),
        (overwritten(4, &3_u32.to_be_bytes()), "big-endian"),
        (overwritten(16, huge), "key/value count"),
        (overwritten(8, huge), "tensor count"),
        (overwritten(24, &(1_u64 << 63 | 5).to_le_bytes()), "key 0"),
        (overwritten(24, &0_u64.to_le_bytes()), "key 0"),
        (overwritten(32, &[0xff]), "key 0"),
    ] {
        refuses(bytes, word);
    }
}

#[test]
fn refuses_damaged_metadata_by_key() {
    let base = image();
    let labels = "jepa.head.labels";
    for (bytes, word) in [
        (patched(&base, "general.name", 4, &(1_u64 << 40).to_le_bytes()), "general.name"),
        (patched(&base, "general.name", 4, &u64::MAX.to_le_bytes()), "general.name"),
        (patched(&base, "general.name", 12, &[0xc3, 0x28]), "general.name"),
        (patched(&base, "jepa.enc.n_head", 0, &99_u32.to_le_bytes()), "jepa.enc.n_head"),
        (patched(&base, "jepa.enc.cls_token", 4, &[2]), "jepa.enc.cls_token"),
        (patched(&base, labels, 8, &(1_u64 << 61).to_le_bytes()), labels),
        (patched(&base, labels, 8, &u64::MAX.to_le_bytes()), labels),
        (patched(&base, labels, 4, &13_u32.to_le_bytes()), labels),
        (patched(&base, labels, 16, &u64::MAX.to_le_bytes()), labels),
    ] {
        refuses(bytes, word);
    }
    // The same length of name, so that one key can become another.
    let mut twice = base.bytes();
    let at = find(&twice, b"jepa.enc.ln_eps");
    twice[at..at + 15].copy_from_slice(b"jepa.enc.n_head");
    refuses(twice, "jepa.enc.n_head");
}

#[test]
fn refuses_arrays_nested_without_end() {
    let mut header = Vec::from(*b"GGUF");
    header.extend(3_u32.to_le_bytes());
    header.extend(0_u64.to_le_bytes());
    header.extend(1_u64.to_le_bytes());
    header.extend(1_u64.to_le_bytes());
    header.extend(b"k");
    header.extend(9_u32.to_le_bytes());
    for _ in 0..100_000 {
        header.extend(9_u32.to_le_bytes());
        header.extend(1_u64.to_le_bytes());
    }
    refuses(header, "metadata key k");
}

#[test]
fn refuses_damaged_tensor_tables_by_tensor() {
    let base = image();
    // Behind a vector's name: dimensions (4), size (8), type (4), offset (8). Behind a matrix's: 4, 8, 8, 4, 8.
    let offset = |v: u64| v.to_le_bytes();
    for (bytes, word) in [
        (patched(&base, "enc.norm.bias", 0, &5_u32.to_le_bytes()), "enc.norm.bias"),
        (patched(&base, "enc.norm.bias", 0, &0_u32.to_le_bytes()), "enc.norm.bias"),
        (patched(&base, "enc.norm.bias", 4, &0_u64.to_le_bytes()), "enc.norm.bias"),
        (patched(&base, "enc.norm.bias", 4, &(1_u64 << 62).to_le_bytes()), "enc.norm.bias"),
        (patched(&base, "enc.norm.bias", 16, &offset(20)), "offset 20"),
        (patched(&base, "enc.norm.bias", 16, &offset(1 << 30)), "enc.norm.bias: offset"),
        (patched(&base, "enc.norm.bias", 16, &offset(u64::MAX - 31)), "enc.norm.bias: offset"),
        (patched(&base, "enc.norm.bias", 16, &offset(0)), "tensor enc.norm.bias: offset 0 lies inside"),
        (patched(&base, "enc.blk.0.ffn_up.weight", 20, &1000_u32.to_le_bytes()), "enc.blk.0.ffn_up.weight"),
        (patched(&base, "enc.blk.0.ffn_up.weight", 20, &28_u32.to_le_bytes()), "enc.blk.0.ffn_up.weight: type f64"),
        (patched(&base, "enc.blk.0.ffn_up.weight", 20, &20_u32.to_le_bytes()), "enc.blk.0.ffn_up.weight: type iq4_nl"),
        (patched(&base, "enc.blk.0.ffn_up.weight", 20, &12_u32.to_le_bytes()), "enc.blk.0.ffn_up.weight"),
    ] {
        refuses(bytes, word);
    }
    let mut twice = base.bytes();
    let at = find(&twice, b"enc.blk.0.ls2");
    twice[at..at + 13].copy_from_slice(b"enc.blk.0.ls1");
    refuses(twice, "enc.blk.0.ls1");
    let whole = base.bytes();
    refuses(whole[..whole.len() - 64].to_vec(), "head.cls");
    let at = find(&whole, b"enc.blk.0.ffn_down.bias");
    refuses(whole[..at].to_vec(), "tensor info");
}

#[test]
fn refuses_bad_alignments() {
    for value in [u(0), u(24), Value::I32(-32), s("32"), Value::U64(1 << 40)] {
        // The writer writes no alignment, so another key of the same length becomes one.
        let mut bytes = image().set("general.alignmenx", value).bytes();
        let at = find(&bytes, b"general.alignmenx") + 16;
        bytes[at] = b't';
        refuses(bytes, "general.alignment");
    }
}

#[test]
fn refuses_keys_that_break_the_schema_by_key() {
    let channels = |v: [f32; 3]| Value::from(v.to_vec());
    for (draft, key) in [
        (image().set("general.architecture", "llama"), "general.architecture"),
        (image().without("general.architecture"), "general.architecture"),
        (image().without("jepa.schema_version"), "jepa.schema_version"),
        (image().set("jepa.schema_version", 2_u32), "jepa.schema_version"),
        (image().without("jepa.family"), "jepa.family"),
        (image().set("jepa.family", "xjepa"), "jepa.family"),
        (image().without("jepa.modality"), "jepa.modality"),
        (image().without("jepa.enc.embed_dim"), "jepa.enc.embed_dim"),
        (image().set("jepa.enc.embed_dim", "16"), "jepa.enc.embed_dim"),
        (image().set("jepa.enc.embed_dim", -16_i32), "jepa.enc.embed_dim"),
        (image().set("jepa.enc.embed_dim", u64::MAX), "jepa.enc.embed_dim"),
        (image().set("jepa.enc.n_head", 3_u32), "jepa.enc.n_head"),
        (image().set("jepa.enc.n_head", 0_u32), "jepa.enc.n_head"),
        (image().set("jepa.enc.patch_size", 0_u32), "jepa.enc.patch_size"),
        (image().set("jepa.enc.patch_size", 9_u32), "jepa.enc.img_size"),
        (image().set("jepa.enc.tubelet_size", 0_u32), "jepa.enc.tubelet_size"),
        (image().set("jepa.enc.n_layer", 4_000_000_000_u32), "jepa.enc.n_layer"),
        (image().set("jepa.enc.n_layer", 1000_u32), "enc.blk.1.ln1.weight"),
        (image().set("jepa.enc.ln_eps", f32::NAN), "jepa.enc.ln_eps"),
        (image().set("jepa.enc.ln_eps", f64::INFINITY), "jepa.enc.ln_eps"),
        (image().set("jepa.enc.ln_eps", 0.0_f32), "jepa.enc.ln_eps"),
        (image().set("jepa.enc.act", "relu"), "jepa.enc.act"),
        (image().set("jepa.enc.pos_type", "alibi"), "jepa.enc.pos_type"),
        (image().set("jepa.enc.pos_type", "rope3d"), "jepa.enc.pos_type"),
        (image().set("jepa.enc.pos_interp", "nearest"), "jepa.enc.pos_interp"),
        (image().set("jepa.enc.attn_mode", "sliding"), "jepa.enc.attn_mode"),
        (image().set("jepa.enc.cls_token", false), "jepa.enc.cls_token"),
        (image().set("jepa.enc.cls_token", 1_u32), "jepa.enc.cls_token"),
        (image().set("jepa.head.labels", vec!["a".to_owned(), "b".to_owned()]), "jepa.head.labels"),
        (image().set("jepa.head.labels", vec![1_u32, 2, 3]), "jepa.head.labels"),
        (image().set("jepa.head.kind", "mlp"), "jepa.head.kind"),
        (image().without("jepa.head.n_classes"), "jepa.head.n_classes"),
        (image().set("jepa.pre.mean", 0.5_f32), "jepa.pre.mean"),
        (image().without("jepa.pre.mean"), "jepa.pre.mean"),
        (image().set("jepa.pre.mean", vec![0.5_f32; 4]), "jepa.pre.mean"),
        (image().set("jepa.pre.std", channels([0.5, 0.0, 0.5])), "jepa.pre.std"),
        (image().set("jepa.pre.std", channels([0.5, f32::NAN, 0.5])), "jepa.pre.std"),
        (image().set("jepa.pre.std", vec![0.5_f64, 1e-300, 0.5]), "jepa.pre.std"),
        (image().set("jepa.pre.rescale", 1e-300_f64), "jepa.pre.rescale"),
        (image().set("jepa.pre.resample", "lanczos"), "jepa.pre.resample"),
        (image().set("jepa.pre.resize_mode", "pad"), "jepa.pre.resize_mode"),
        (image().set("jepa.pre.crop", 0_u32), "jepa.pre.crop"),
        (video().set("jepa.enc.rope_freq_layout", "zigzag"), "jepa.enc.rope_freq_layout"),
        (video().set("jepa.enc.rope_theta", -1.0_f32), "jepa.enc.rope_theta"),
        (video().set("jepa.enc.hier_layers", vec![0_u32, 7]), "jepa.enc.hier_layers"),
        (video().set("jepa.enc.hier_layers", vec![1_u32, 0]), "jepa.enc.hier_layers"),
        (video().set("jepa.enc.hier_layers", vec![0_i32, -1]), "jepa.enc.hier_layers"),
        (video().set("jepa.pred.kind", "diffusion"), "jepa.pred.kind"),
        (video().set("jepa.pred.kind", "ac"), "jepa.pred.kind"),
        (video().without("jepa.pred.kind"), "jepa.pred.kind"),
        (video().without("jepa.pred.embed_dim"), "jepa.pred.embed_dim"),
        (video().set("jepa.pred.head_dim", 8_u32), "jepa.pred.head_dim"),
        (video().set("jepa.pred.n_hier_in", 3_u32), "jepa.pred.n_hier_in"),
        (video().set("jepa.pred.n_mask_tokens", 5_u32), "pred.mask_tokens"),
        (video().set("jepa.pred.rope_freq_layout", "spiral"), "jepa.pred.rope_freq_layout"),
    ] {
        refuses(draft.bytes(), key);
    }
}

#[test]
fn refuses_tensors_that_break_the_schema_by_tensor() {
    let mut surplus = image();
    surplus.add("enc.blk.1.ls1", &[16]);
    let mut foreign = image();
    foreign.add("adapter.weight", &[16]);
    for (draft, tensor) in [
        (image().drop_tensor("enc.norm.weight"), "enc.norm.weight: missing"),
        (image().drop_tensor("enc.blk.0.ls2"), "enc.blk.0.ls2: missing"),
        (image().drop_tensor("head.cls.bias"), "head.cls.bias: missing"),
        (video().drop_tensor("enc.blk.1.ffn_down.weight"), "enc.blk.1.ffn_down.weight: missing"),
        (video().drop_tensor("pred.proj_context.bias"), "pred.proj_context.bias: missing"),
        (surplus, "enc.blk.1.ls1: not part of"),
        (foreign, "adapter.weight: not part of"),
        (image().set("jepa.head.kind", "none"), "head.cls.weight: not part of"),
        (image().reshape("enc.blk.0.ffn_up.weight", &[16, 32]), "enc.blk.0.ffn_up.weight: shape [16, 32]"),
        (image().reshape("enc.pos_embed", &[4, 16]), "enc.pos_embed: shape [4, 16], wanted [5, 16]"),
        (image().reshape("enc.patch_embed.weight", &[16, 75]), "enc.patch_embed.weight: shape"),
        (image().reshape("enc.cls_token", &[16, 1]), "enc.cls_token: shape"),
        (image().retype("enc.blk.0.ln1.weight", GgmlType::F16), "enc.blk.0.ln1.weight: type f16, wanted f32"),
        (image().retype("enc.cls_token", GgmlType::F16), "enc.cls_token: type f16"),
        (image().retype("enc.pos_embed", GgmlType::Bf16), "enc.pos_embed: type bf16"),
        (image().retype("enc.blk.0.attn_qkv.bias", GgmlType::F16), "enc.blk.0.attn_qkv.bias: type f16"),
        (image().retype("enc.blk.0.ls1", GgmlType::F16), "enc.blk.0.ls1: type f16"),
        (video().retype("pred.mask_tokens", GgmlType::F16), "pred.mask_tokens: type f16"),
        (video().retype("enc.patch_embed.weight", GgmlType::Q8_0), "enc.patch_embed.weight: type q8_0"),
    ] {
        refuses(draft.bytes(), tensor);
    }
}

#[test]
fn every_prefix_is_refused_without_a_panic() {
    for draft in [image(), video()] {
        let whole = draft.bytes();
        for len in (0..4096.min(whole.len())).chain((4096..whole.len() - 32).step_by(61)) {
            assert!(open(whole[..len].to_vec()).is_err(), "{len} of {} bytes load", whole.len());
        }
    }
}

#[test]
fn damaged_bytes_never_cause_a_panic() {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    for draft in [image(), video()] {
        let whole = draft.bytes();
        let head = draft.writer().header().unwrap().len() as u64;
        let mut refused = 0;
        for _ in 0..4000 {
            let mut bytes = whole.clone();
            for _ in 0..1 + random() % 3 {
                let at = (random() % head) as usize;
                bytes[at] = match random() % 3 {
                    0 => bytes[at] ^ (1 << (random() % 8)),
                    1 => 0xff,
                    _ => random() as u8,
                };
            }
            if let Err(e) = open(bytes) {
                assert!(!e.to_string().contains('\n'));
                refused += 1;
            }
        }
        assert!(refused > 2000, "only {refused} of 4000 damaged heads were refused");
    }
}

#[test]
fn an_unknown_key_of_ours_is_a_warning_and_of_others_nothing() {
    let draft = image()
        .set("jepa.enc.window", 7_u32)
        .set("general.quantization_version", 2_u32)
        .set("tokenizer.ggml.tokens", vec!["a".to_owned()])
        .set("jepax.odd", f(1.0));
    let bundle = open(draft.bytes()).unwrap();
    let warnings: Vec<String> = bundle.warnings().iter().map(ToString::to_string).collect();
    assert_eq!(warnings, ["key jepa.enc.window: not in the schema, ignored"]);
}
