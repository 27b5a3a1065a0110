//! `verify`, `compare` and `trace`.

use crate::session::{Session, fixture, model, npy_bytes, picture};

#[test]
fn verify_skips_by_name_a_kind_that_it_does_not_know() {
    let s = Session::new();
    for file in std::fs::read_dir(fixture("cases/ijepa_split")).unwrap() {
        let path = file.unwrap().path();
        std::fs::copy(&path, s.path(path.file_name().unwrap().to_str().unwrap())).unwrap();
    }
    let case = std::fs::read_to_string(s.path("case.json")).unwrap();
    s.write("case.json", case.replace("\"encode\"", "\"dream\"").replace("\"classify\"", "\"dream\""));
    let ran = s.good(&["verify", "."]);
    assert!(ran.stdout.contains("skip") && ran.stdout.contains("kind dream is not replayed"), "{}", ran.stdout);
    assert!(ran.stderr.contains("nothing was compared"), "{}", ran.stderr);
}

#[test]
fn verify_passes_a_sound_case() {
    let ran = Session::new().good(&["verify", &fixture("cases/levjepa")]);
    assert!(ran.stdout.contains("pass  levjepa f32 ") && ran.stdout.contains(" 0 missed"), "{}", ran.stdout);
}

#[test]
fn verify_misses_a_case_whose_expectation_is_wrong() {
    let s = Session::new();
    for file in std::fs::read_dir(fixture("cases/ijepa_split")).unwrap() {
        let path = file.unwrap().path();
        std::fs::copy(&path, s.path(path.file_name().unwrap().to_str().unwrap())).unwrap();
    }
    let expect = s.path("expect.safetensors");
    let mut bytes = std::fs::read(&expect).unwrap();
    let header = u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
    let json: serde_json::Value = serde_json::from_slice(&bytes[8..8 + header]).unwrap();
    let name = json.as_object().unwrap().keys().find(|name| name.ends_with("enc_native.tokens")).unwrap().clone();
    let start = 8 + header + json[&name]["data_offsets"][0].as_u64().unwrap() as usize;
    bytes[start..start + 4].copy_from_slice(&9.0f32.to_le_bytes());
    std::fs::write(&expect, bytes).unwrap();
    let ran = s.run(&["verify", ".", "--dump", "got.safetensors"]);
    assert_eq!(ran.code, 1, "{ran:?}");
    assert!(ran.stdout.contains("MISS") && ran.stderr.contains("outputs miss their bar"), "{ran:?}");
    let ran = s.run(&["compare", "got.safetensors", "expect.safetensors", "--max-rel", "1e-4"]);
    assert_eq!(ran.code, 1, "{ran:?}");
}

#[test]
fn verify_misses_an_output_whose_expectation_is_not_stored() {
    let s = Session::new();
    for file in std::fs::read_dir(fixture("cases/ijepa_split")).unwrap() {
        let path = file.unwrap().path();
        std::fs::copy(&path, s.path(path.file_name().unwrap().to_str().unwrap())).unwrap();
    }
    let case = std::fs::read_to_string(s.path("case.json")).unwrap();
    s.write("case.json", case.replacen("\"enc_native.tokens\"", "\"enc_native.nothing\"", 1));
    let ran = s.run(&["verify", "."]);
    assert_eq!(ran.code, 1, "{ran:?}");
    assert!(ran.stdout.contains("enc_native.nothing is not in"), "{}", ran.stdout);
}

#[test]
fn verify_takes_the_type_asked_for() {
    let s = Session::new();
    let case = fixture("cases/ijepa");
    let json: serde_json::Value =
        serde_json::from_str(&s.good(&["verify", &case, "--type", "q8_0", "--json"]).stdout).unwrap();
    assert!(json["lines"].as_array().unwrap().iter().all(|line| line["type"] == "q8_0"));
    let ran = s.run(&["verify", &case, "--type", "q9"]);
    assert_eq!(ran.code, 2);
    assert!(ran.stderr.contains("q8_0"), "the types that are there are named: {}", ran.stderr);
}

#[test]
fn compare_measures_and_judges() {
    let s = Session::new();
    s.write("a.npy", npy_bytes(&[2, 2], &[1.0, 0.0, 0.0, 2.0]));
    s.write("b.npy", npy_bytes(&[2, 2], &[1.0, 0.0, 0.0, 4.0]));
    let json: serde_json::Value =
        serde_json::from_str(&s.good(&["compare", "a.npy", "b.npy", "--json"]).stdout).unwrap();
    assert_eq!(
        (json["tensors"][0]["cos_min"].as_f64(), json["tensors"][0]["rel_max"].as_f64()),
        (Some(1.0), Some(0.5))
    );
    assert_eq!(s.run(&["compare", "a.npy", "b.npy", "--max-rel", "0.4"]).code, 1);
    assert_eq!(s.run(&["compare", "a.npy", "b.npy", "--min-cos", "0.9999"]).code, 0);
    s.write("c.npy", npy_bytes(&[4], &[1.0, 0.0, 0.0, 4.0]));
    let ran = s.run(&["compare", "a.npy", "c.npy"]);
    assert_eq!(ran.code, 1);
    assert!(ran.stderr.contains("[2, 2]") && ran.stderr.contains("[4]"), "{}", ran.stderr);
}

#[test]
fn trace_names_tensors_by_their_place_in_the_schema() {
    let s = Session::new();
    s.good(&["trace", "-m", &model("lewm"), &picture(), "-o", "all.safetensors"]);
    let bytes = std::fs::read(s.path("all.safetensors")).unwrap();
    let tensors = safetensors::SafeTensors::deserialize(&bytes).unwrap();
    let names = tensors.names();
    for name in [
        "enc.patch_embed",
        "enc.blk.0.ln1",
        "enc.blk.0.attn_qkv",
        "enc.blk.1.attn_out",
        "enc.blk.1.ffn_down",
        "enc.blk.1",
        "enc.norm",
        "enc.proj.2",
    ] {
        assert!(names.contains(&name), "{name} in {names:?}");
    }
    s.good(&["embed", "-m", &model("lewm"), &picture(), "--pool", "state", "-o", "state.npy"]);
    // A watched block is computed part by part: equal up to rounding.
    let (state, traced) = (s.npy("state.npy").1, tensors.tensor("enc.proj.2").unwrap().data().to_vec());
    let (traced, _) = traced.as_chunks::<4>();
    assert_eq!(traced.len(), state.len());
    let scale = state.iter().fold(0.0f32, |most, v| most.max(v.abs()));
    for (traced, v) in traced.iter().zip(&state) {
        assert!((f32::from_le_bytes(*traced) - v).abs() <= 1e-5 * scale, "{v}");
    }

    s.good(&["trace", "-m", &model("lewm"), &picture(), "--filter", "enc.blk.*.attn_out", "-o", "some.safetensors"]);
    let bytes = std::fs::read(s.path("some.safetensors")).unwrap();
    assert!(
        safetensors::SafeTensors::deserialize(&bytes).unwrap().names().iter().all(|name| name.ends_with("attn_out"))
    );
}

#[test]
fn trace_reaches_predictors_heads_and_world_models() {
    let s = Session::new();
    let names = |case: &str| {
        s.good(&["trace", "-m", &model(case), &picture(), "-o", "out.safetensors"]);
        let bytes = std::fs::read(s.path("out.safetensors")).unwrap();
        let tensors = safetensors::SafeTensors::deserialize(&bytes).unwrap();
        tensors.names().into_iter().map(str::to_owned).collect::<Vec<_>>()
    };
    for (case, wanted) in [
        ("ijepa", "pred.blk.0.attn_out"),
        ("vjepa2_1", "pred.proj_context"),
        ("vjepa2_ac", "pred.blk.0.ffn_down"),
        ("lewm", "pred.blk.0.adaln"),
        ("vjepa2_cls", "head.xattn"),
        ("ijepa_split", "head.cls"),
    ] {
        let names = names(case);
        assert!(names.iter().any(|name| name == wanted), "{case}: {wanted} in {names:?}");
    }
}
