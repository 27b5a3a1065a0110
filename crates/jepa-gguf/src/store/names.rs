//! Tensor names and the paths of Burn's parameters.

/// The path of the parameter for a tensor, inside the module that is loaded; `of_norm` when its layer's weight is a vector.
pub(super) fn path_of(tensor: &str, of_norm: bool) -> String {
    match tensor.rsplit_once('.') {
        Some((layer, "weight")) if of_norm => format!("{layer}.gamma"),
        Some((layer, "bias")) if of_norm => format!("{layer}.beta"),
        None if of_norm && tensor == "weight" => "gamma".to_owned(),
        None if of_norm && tensor == "bias" => "beta".to_owned(),
        _ => tensor.to_owned(),
    }
}

/// The tensor for the parameter at `path`.
pub(super) fn tensor_of(path: &str) -> String {
    let (layer, last) = path.rsplit_once('.').map_or(("", path), |(layer, last)| (layer, last));
    let last = match last {
        "gamma" => "weight",
        "beta" => "bias",
        other => other,
    };
    if layer.is_empty() { last.to_owned() } else { format!("{layer}.{last}") }
}

/// Whether a tensor or parameter with this name and rank is the matrix of a linear layer, which the two sides keep the other way round.
pub(super) fn is_linear(name: &str, rank: usize) -> bool {
    rank == 2 && (name == "weight" || name.ends_with(".weight"))
}

/// Whether the parameter at this path and of this rank is the bias of a linear layer: those of norms are called `beta`.
pub(super) fn is_linear_bias(path: &str, rank: usize) -> bool {
    rank == 1 && (path == "bias" || path.ends_with(".bias"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn norms_change_their_names_and_nothing_else_does() {
        for (tensor, norm, path) in [
            ("blk.0.ln1.weight", true, "blk.0.ln1.gamma"),
            ("blk.0.ln1.bias", true, "blk.0.ln1.beta"),
            ("blk.0.attn_qkv.weight", false, "blk.0.attn_qkv.weight"),
            ("blk.0.attn_qkv.bias", false, "blk.0.attn_qkv.bias"),
            ("proj.2.weight", false, "proj.2.weight"),
            ("weight", true, "gamma"),
            ("bias", true, "beta"),
            ("pos_embed", false, "pos_embed"),
        ] {
            assert_eq!(path_of(tensor, norm), path);
            assert_eq!(tensor_of(path), tensor);
        }
    }

    #[test]
    fn tables_are_no_linear_layers() {
        assert!(is_linear("attn_out.weight", 2));
        assert!(!is_linear("ln1.weight", 1));
        assert!(!is_linear("pos_embed", 2));
        assert!(!is_linear("my_weight", 2));
    }
}
