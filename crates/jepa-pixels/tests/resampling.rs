//! Resize, crop and normalise give what torchvision and the Hugging Face processors give, bit for bit.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod fixture;

use fixture::Array;
use jepa_pixels::{Filter, Pipeline, PixelError, Resize, Rgb8, resize};
use proptest::prelude::*;

fn picture(array: &Array<u8>) -> Rgb8 {
    Rgb8::new(array.shape[1], array.shape[0], array.data.clone()).unwrap()
}

fn filter(name: &str) -> Filter {
    match name {
        "bilinear" => Filter::Bilinear,
        "bicubic" => Filter::Bicubic,
        _ => panic!("no filter {name}"),
    }
}

fn other(filter: Filter) -> Filter {
    if filter == Filter::Bilinear { Filter::Bicubic } else { Filter::Bilinear }
}

#[test]
fn resize_is_torchvisions_to_the_bit() {
    let stored = fixture::bytes("resized.safetensors");
    let mut told_apart = 0;
    for (name, want) in stored.iter().filter(|(name, _)| name.starts_with("resize.")) {
        let parts: Vec<&str> = name.split('.').collect();
        let source = picture(&stored[&format!("source.{}.{}", parts[2], parts[3])]);
        let filter = filter(parts[1]);
        let got = resize(&source, want.shape[0], want.shape[1], filter).unwrap();
        assert!(got.pixels() == want.data, "{name}");
        let wrong = resize(&source, want.shape[0], want.shape[1], other(filter)).unwrap();
        told_apart += usize::from(wrong.pixels() != want.data);
    }
    assert!(told_apart > 30, "the filters differ in {told_apart} cases only");
}

#[test]
fn pipelines_are_the_processors_to_the_bit() {
    let stored = fixture::bytes("processed.safetensors");
    let file = std::fs::read(fixture::path("processed.safetensors")).unwrap();
    let (_, header) = safetensors::SafeTensors::read_metadata(&file).unwrap();
    let metadata = header.metadata().as_ref().unwrap();
    let tensors = safetensors::SafeTensors::deserialize(&file).unwrap();
    let cases: Vec<serde_json::Value> = serde_json::from_str(&metadata["cases"]).unwrap();
    assert_eq!(cases.len(), 48);
    for case in cases {
        let number = |key: &str| case[key].as_u64().unwrap() as usize;
        let (height, width, name) = (number("height"), number("width"), case["name"].as_str().unwrap());
        let pipeline = Pipeline {
            resize: match case["mode"].as_str().unwrap() {
                "squash" => Resize::Squash { height, width },
                _ => Resize::ShortestEdge { short: number("short"), crop_h: height, crop_w: width },
            },
            filter: filter(case["filter"].as_str().unwrap()),
            rescale: 1.0 / 255.0,
            mean: serde_json::from_str(&metadata["mean"]).unwrap(),
            std: serde_json::from_str(&metadata["std"]).unwrap(),
        };
        let source = picture(&stored[&format!("source.{}", number("source"))]);
        let got = pipeline.resize_and_crop(&source).unwrap();
        assert!(picture(&stored[&format!("{name}.u8")]) == got, "{name}");
        let Ok(want) = tensors.tensor(&format!("{name}.f32")) else { continue };
        let want: Vec<f32> = want.data().as_chunks().0.iter().map(|b| f32::from_le_bytes(*b)).collect();
        let mut planes = vec![f32::NAN; want.len()];
        pipeline.normalise_into(&got, &mut planes).unwrap();
        assert!(planes == want, "{name}");
    }
}

fn pipeline(resize: Resize) -> Pipeline {
    Pipeline { resize, filter: Filter::Bilinear, rescale: 1.0 / 255.0, mean: [0.5; 3], std: [0.5; 3] }
}

#[test]
fn short_side_scales_with_the_crop() {
    let base = pipeline(Resize::ShortestEdge { short: 292, crop_h: 256, crop_w: 256 });
    let short = |h, w| match base.with_size(h, w).resize {
        Resize::ShortestEdge { short, crop_h, crop_w } => (short, crop_h, crop_w),
        Resize::Squash { .. } => panic!("the mode changed"),
    };
    assert_eq!(short(384, 384), (438, 384, 384));
    assert_eq!(short(224, 224), (255, 224, 224));
    assert_eq!(short(256, 512), (292, 256, 512));
    let squash = pipeline(Resize::Squash { height: 224, width: 224 });
    assert_eq!(squash.with_size(32, 48).resize, Resize::Squash { height: 32, width: 48 });
}

#[test]
fn crop_beyond_the_picture_is_black_around_it() {
    let white = Rgb8::new(4, 4, vec![255; 48]).unwrap();
    let crop = pipeline(Resize::ShortestEdge { short: 4, crop_h: 7, crop_w: 2 }).resize_and_crop(&white).unwrap();
    let rows: Vec<u8> = crop.pixels().chunks(6).map(|row| row[0]).collect();
    assert_eq!(rows, [0, 255, 255, 255, 255, 0, 0]);
}

#[test]
fn an_extreme_strip_costs_only_its_crop() {
    let strip = Rgb8::new(1, 2_000_000, vec![77; 6_000_000]).unwrap();
    for filter in [Filter::Bilinear, Filter::Bicubic] {
        let resize = Resize::ShortestEdge { short: 256, crop_h: 224, crop_w: 224 };
        let crop = Pipeline { filter, ..pipeline(resize) }.resize_and_crop(&strip).unwrap();
        assert!(crop.pixels().iter().all(|&v| v == 77));
    }
}

#[test]
fn refuses_sizes_of_nothing_and_of_everything() {
    let dot = Rgb8::new(1, 1, vec![0; 3]).unwrap();
    let empty = [
        Resize::ShortestEdge { short: 0, crop_h: 4, crop_w: 4 },
        Resize::ShortestEdge { short: 4, crop_h: 0, crop_w: 4 },
        Resize::Squash { height: 4, width: 0 },
    ];
    for resize in empty {
        assert!(matches!(pipeline(resize).resize_and_crop(&dot), Err(PixelError::EmptyTarget { .. })));
    }
    for side in [usize::MAX, usize::MAX / 2, 1 << 40] {
        let huge = Resize::Squash { height: side, width: side };
        assert!(matches!(pipeline(huge).resize_and_crop(&dot), Err(PixelError::HugeTarget { .. })));
        assert!(matches!(resize(&dot, side, side, Filter::Bilinear), Err(PixelError::HugeTarget { .. })));
    }
    assert!(matches!(resize(&dot, 0, 1, Filter::Bilinear), Err(PixelError::EmptyTarget { .. })));
    assert!(Rgb8::new(usize::MAX, 2, vec![]).is_err());
}

#[test]
fn a_plan_serves_frames_of_its_size_only() {
    let frame = Rgb8::new(20, 10, (0..600).map(|v| v as u8).collect()).unwrap();
    let pipeline = pipeline(Resize::ShortestEdge { short: 8, crop_h: 6, crop_w: 6 });
    let plan = pipeline.plan(20, 10).unwrap();
    assert_eq!(plan.apply(&frame).unwrap(), pipeline.resize_and_crop(&frame).unwrap());
    let turned = Rgb8::new(10, 20, vec![0; 600]).unwrap();
    assert!(matches!(plan.apply(&turned), Err(PixelError::FrameSize { width: 20, found_width: 10, .. })));
}

#[test]
fn normalising_needs_a_buffer_that_fits() {
    let dot = Rgb8::new(1, 1, vec![0, 128, 255]).unwrap();
    let pipeline = pipeline(Resize::Squash { height: 1, width: 1 });
    let mut planes = [0.0; 3];
    pipeline.normalise_into(&dot, &mut planes).unwrap();
    assert_eq!(planes, [-1.0, (128.0 - 127.5) / 127.5, 1.0]);
    assert!(matches!(pipeline.normalise_into(&dot, &mut [0.0; 4]), Err(PixelError::BufferLength { found: 4, .. })));
}

fn any_filter() -> impl Strategy<Value = Filter> {
    prop_oneof![Just(Filter::Bilinear), Just(Filter::Bicubic)]
}

fn any_picture() -> impl Strategy<Value = Rgb8> {
    (1usize..24, 1usize..24)
        .prop_flat_map(|(w, h)| prop::collection::vec(any::<u8>(), w * h * 3).prop_map(move |p| (w, h, p)))
        .prop_map(|(w, h, p)| Rgb8::new(w, h, p).unwrap())
}

proptest! {
    #[test]
    fn a_flat_picture_stays_flat(
        level: u8, w in 1usize..80, h in 1usize..80, out_w in 1usize..80, out_h in 1usize..80, filter in any_filter(),
    ) {
        let flat = Rgb8::new(w, h, vec![level; w * h * 3]).unwrap();
        let resized = resize(&flat, out_h, out_w, filter).unwrap();
        prop_assert!(resized.pixels().iter().all(|&v| v == level));
    }

    #[test]
    fn the_same_size_is_the_same_picture(picture in any_picture(), filter in any_filter()) {
        let same = resize(&picture, picture.height(), picture.width(), filter).unwrap();
        prop_assert_eq!(same.pixels(), picture.pixels());
    }

    /// Only the outputs inside the crop are computed; they are those of the whole.
    #[test]
    fn a_crop_is_cut_from_the_whole(
        picture in any_picture(), filter in any_filter(), short in 1usize..40, crop_h in 1usize..40, crop_w in 1usize..40,
    ) {
        let (w, h) = (picture.width(), picture.height());
        let (resized_w, resized_h) = if h <= w { (short * w / h, short) } else { (short, short * h / w) };
        prop_assume!(crop_w <= resized_w && crop_h <= resized_h);
        let pipeline = Pipeline { filter, ..pipeline(Resize::ShortestEdge { short, crop_h, crop_w }) };
        let crop = pipeline.resize_and_crop(&picture).unwrap();
        let whole = resize(&picture, resized_h, resized_w, filter).unwrap();
        let (top, left) = ((resized_h - crop_h) / 2, (resized_w - crop_w) / 2);
        for y in 0..crop_h {
            let row = &whole.pixels()[((top + y) * resized_w + left) * 3..][..crop_w * 3];
            prop_assert_eq!(&crop.pixels()[y * crop_w * 3..][..crop_w * 3], row);
        }
    }

    /// Views are cut from the picture whose short side is the crop's, from end to end.
    #[test]
    fn views_slide_from_end_to_end(picture in any_picture(), filter in any_filter(), side in 1usize..20, views in 2usize..5) {
        let (w, h) = (picture.width(), picture.height());
        let (resized_w, resized_h) = if h <= w { (side * w / h, side) } else { (side, side * h / w) };
        let pipeline =
            Pipeline { filter, ..pipeline(Resize::ShortestEdge { short: side + 3, crop_h: side, crop_w: side }) };
        let whole = resize(&picture, resized_h, resized_w, filter).unwrap();
        let step = (resized_w.max(resized_h) - side) / (views - 1);
        let plans = pipeline.view_plans(w, h, views).unwrap();
        prop_assert_eq!(plans.len(), views);
        for (view, plan) in plans.iter().enumerate() {
            let cut = plan.apply(&picture).unwrap();
            let (top, left) = if h > w { (view * step, 0) } else { (0, view * step) };
            for y in 0..side {
                let row = &whole.pixels()[((top + y) * resized_w + left) * 3..][..side * 3];
                prop_assert_eq!(&cut.pixels()[y * side * 3..][..side * 3], row);
            }
        }
        prop_assert_eq!(&pipeline.view_plans(w, h, 1).unwrap()[0].apply(&picture).unwrap(), &pipeline.resize_and_crop(&picture).unwrap());
    }

    /// Bilinear weights are never negative, so no output leaves the range of the inputs.
    #[test]
    fn bilinear_stays_within_the_range(picture in any_picture(), out_w in 1usize..40, out_h in 1usize..40) {
        let range = |p: &Rgb8| (p.pixels().iter().min().copied(), p.pixels().iter().max().copied());
        let ((low, high), resized) = (range(&picture), resize(&picture, out_h, out_w, Filter::Bilinear).unwrap());
        let (out_low, out_high) = range(&resized);
        prop_assert!(low <= out_low && out_high <= high);
    }
}

#[test]
fn views_of_squashed_or_oblong_pictures_are_refused() {
    let squash = pipeline(Resize::Squash { height: 8, width: 8 });
    let oblong = pipeline(Resize::ShortestEdge { short: 8, crop_h: 8, crop_w: 16 });
    assert!(squash.view_plans(20, 10, 2).unwrap_err().to_string().contains("squashes"));
    assert!(oblong.view_plans(20, 10, 2).unwrap_err().to_string().contains("not square"));
    assert_eq!(squash.view_plans(20, 10, 1).unwrap().len(), 1);
}
