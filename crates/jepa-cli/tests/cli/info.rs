use crate::session::{Session, model};

#[test]
fn text_names_family_sizes_and_types() {
    let text = Session::new().good(&["info", &model("vjepa2_1")]).stdout;
    for word in ["vjepa2_1", "V-JEPA 2.1", "parameters", "f32 × ", "hier_layers", "interleaved", "predictor"] {
        assert!(text.contains(word), "{word} in {text}");
    }
}

#[test]
fn json_holds_the_numbers_of_the_file() {
    let s = Session::new();
    let json: serde_json::Value =
        serde_json::from_str(&s.good(&["info", "--json", "--tensors", &model("levjepa")]).stdout).unwrap();
    assert_eq!(json["family"], "levjepa");
    assert_eq!(json["encoder"]["attn_mode"], "block_causal");
    let tensors = json["tensors"].as_array().unwrap();
    let elements: u64 = tensors
        .iter()
        .map(|t| t["shape"].as_array().unwrap().iter().map(|n| n.as_u64().unwrap()).product::<u64>())
        .sum();
    assert_eq!(json["file"]["parameters"], elements);
    assert_eq!(json["file"]["tensors"], tensors.len());
}

#[test]
fn types_of_a_quantised_file_are_listed() {
    let s = Session::new();
    let q8 = model("ijepa").replace("f32", "q8_0");
    assert!(s.good(&["info", &q8]).stdout.contains("q8_0 × "));
}

#[test]
fn devices_names_every_backend_and_the_default() {
    let json: serde_json::Value = serde_json::from_str(&Session::new().good(&["devices", "--json"]).stdout).unwrap();
    let backends = json["backends"].as_array().unwrap();
    assert_eq!(backends.len(), 4);
    assert_eq!(backends.iter().filter(|b| b["default"] == true).count(), 1);
}

#[test]
fn completions_know_the_commands() {
    let s = Session::new();
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        assert!(s.good(&["completions", shell]).stdout.contains("preprocess"), "{shell}");
    }
}

#[test]
fn help_and_version_go_to_stdout() {
    let s = Session::new();
    assert!(s.good(&["--help"]).stdout.contains("Exit codes"));
    assert!(s.good(&["embed", "--help"]).stdout.contains("--pool"));
    assert!(s.good(&["--version"]).stdout.starts_with("jepa-cli "));
}
