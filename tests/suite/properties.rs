//! What must hold for any weights.

use std::collections::BTreeMap;

use burn::prelude::*;
use burn::tensor::Distribution;
use jepa_cli::parity::Case;
use jepa_models::{ActivationStatistics, EncodeOptions, Jepa, Pixels, TokenIds, Trace};

use crate::{cases, fixtures, load};

fn random_pixels<B: Backend>(shape: [usize; 5]) -> Tensor<B, 5> {
    let device = B::Device::default();
    B::seed(&device, 11);
    Tensor::random(shape, Distribution::Normal(0.0, 1.0), &device)
}

fn case_model<B: Backend>(name: &str) -> Jepa<B> {
    let case = Case::read(&fixtures().join("cases").join(name)).expect("the committed cases are sound");
    load(&case.variants(Some("f32")).expect("every case has an f32 model")[0])
}

fn values<B: Backend, const D: usize>(x: Tensor<B, D>) -> Vec<f32> {
    x.into_data().iter::<f32>().collect()
}

fn worst(a: &[f32], b: &[f32]) -> f32 {
    assert_eq!(a.len(), b.len());
    let scale = b.iter().fold(0.0f32, |most, v| most.max(v.abs()));
    a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max) / scale
}

/// Pictures and clips encoded together come out as they do alone, for every committed model.
pub fn a_batch_equals_its_elements<B: Backend>() {
    for folder in cases() {
        let case = Case::read(&folder).expect("the committed cases are sound");
        let model = load::<B>(&case.variants(Some("f32")).expect("every case has an f32 model")[0]);
        let h = &model.hparams().enc;
        let pixels = random_pixels::<B>([3, h.in_chans, h.n_frames, h.img_size, h.img_size]);
        let encode = |x| values(model.encode(Pixels::from_normalised_clips(x)).expect("the native size fits").tokens);
        let together = encode(pixels.clone());
        let alone: Vec<f32> = (0..3).flat_map(|i| encode(pixels.clone().narrow(0, i, 1))).collect();
        let difference = worst(&together, &alone);
        assert!(difference < 1e-5, "{}: {difference}", case.name);
    }
}

/// LeVJEPA: another last frame leaves every token of the earlier frames as it was, bit for bit.
pub fn a_later_frame_changes_no_earlier_one<B: Backend>() {
    let model = case_model::<B>("levjepa");
    let h = &model.hparams().enc;
    let (frames, side) = (4, h.img_size);
    let clip = random_pixels::<B>([1, h.in_chans, frames, side, side]);
    let changed = Tensor::cat(vec![clip.clone().narrow(2, 0, frames - 1), clip.clone().narrow(2, 0, 1) + 1.0], 2);
    let encode = |x| {
        let out = model.encode(Pixels::from_normalised_clips(x)).expect("the native size fits");
        let earlier = out.grid.tokens() / frames * (frames - 1);
        let n = out.tokens.dims()[1];
        (values(out.tokens.clone().narrow(1, out.prefix, earlier)), values(out.tokens.narrow(1, n - 1, 1)))
    };
    let ((before, last_before), (after, last_after)) = (encode(clip), encode(changed));
    assert_eq!(before, after);
    assert_ne!(last_before, last_after);
}

/// The order of the context ids is the order of the rows and nothing else, also where frames hide each other.
pub fn context_ids_in_any_order_give_the_same_rows<B: Backend>() {
    for name in ["ijepa", "vjepa", "vjepa2", "vjepa2_1", "levjepa", "hfvit_registers", "lewm"] {
        let model = case_model::<B>(name);
        let h = &model.hparams().enc;
        let pixels = random_pixels::<B>([2, h.in_chans, h.n_frames, h.img_size, h.img_size]);
        let encode = |rows: Vec<Vec<usize>>| {
            let ids = TokenIds::per_element(rows).expect("rows are equally long");
            let options = EncodeOptions { context: Some(&ids), layers: &[] };
            let pixels = Pixels::from_normalised_clips(pixels.clone());
            let out = model.encoder().encode_with(pixels, options, &mut Trace::none()).expect("ids are on the grid");
            let (prefix, n) = (out.prefix, out.tokens.dims()[1]);
            out.tokens.narrow(1, prefix, n - prefix)
        };
        let ascending = encode(vec![vec![0, 1, 2, 3, 4], vec![1, 2, 3, 4, 5]]);
        let mixed = encode(vec![vec![3, 0, 4, 2, 1], vec![5, 4, 3, 2, 1]]);
        let undone = TokenIds::per_element(vec![vec![1, 4, 3, 0, 2], vec![4, 3, 2, 1, 0]])
            .expect("rows are equally long")
            .gather(mixed);
        let difference = worst(&values(undone), &values(ascending));
        assert!(difference < 1e-5, "{name}: {difference}");
    }
}

/// Sums of squares per column, over two batches, are those of the rows that enter each matrix; only CLS enters the projector.
pub fn statistics_are_those_of_what_enters_a_matrix<B: Backend>() {
    for (name, projected) in [("vjepa2", false), ("ijepa_split", false), ("lewm", true)] {
        let model = case_model::<B>(name);
        let h = &model.hparams().enc;
        let mut statistics = ActivationStatistics::default();
        let mut wanted: BTreeMap<String, (Vec<f64>, u64)> = BTreeMap::new();
        for batch in [1, 2] {
            let pixels = random_pixels::<B>([batch, h.in_chans, h.n_frames, h.img_size, h.img_size]);
            statistics.add(&model, Pixels::from_normalised_clips(pixels.clone())).expect("the native size fits");
            let mut sink = |name: &str, x: &Tensor<B, 3>| {
                let rows = if name == "enc.norm" { x.clone().narrow(1, 0, 1) } else { x.clone() };
                let [b, n, d] = rows.dims();
                let entry = wanted.entry(name.to_owned()).or_insert_with(|| (vec![0.0; d], 0));
                for (i, v) in values(rows).into_iter().enumerate() {
                    entry.0[i % d] += f64::from(v).powi(2);
                }
                entry.1 += (b * n) as u64;
            };
            let (pixels, options) = (Pixels::from_normalised_clips(pixels), EncodeOptions::default());
            model.encoder().encode_with(pixels, options, &mut Trace::to(&mut sink)).expect("the native size fits");
        }
        let mut matrices = 0;
        for (matrix, energy) in statistics.matrices() {
            let (at, part) = matrix.trim_end_matches(".weight").rsplit_once('.').expect("a name of the schema");
            let entered = match part {
                "attn_out" => format!("{at}.attn"),
                "ffn_up" => format!("{at}.ln2"),
                "ffn_down" => format!("{at}.ffn_act"),
                "0" => "enc.norm".to_owned(),
                "2" => format!("{at}.act"),
                _ => format!("{at}.ln1"),
            };
            let (sums, rows) = &wanted[&entered];
            assert_eq!(energy.rows, *rows, "{name}: {matrix}");
            for (a, b) in energy.sum_of_squares.iter().zip(sums) {
                assert!((a - b).abs() <= 1e-5 * b, "{name}: {matrix}: {a} {b}");
            }
            matrices += 1;
        }
        let per_block = if h.qkv_fused { 4 } else { 6 };
        assert_eq!(matrices, h.n_layer * per_block + 2 * usize::from(projected), "{name}");
    }
}
