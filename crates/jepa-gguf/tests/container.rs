//! The container: what is written reads back, in every version, type and alignment.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod bundles;

use std::path::Path;

use jepa_gguf::{Access, Array, GgmlType, Gguf, GgufError, GgufWriter, Metadata, Value};

/// A file of one vector and some metadata.
fn writer(metadata: Metadata) -> GgufWriter {
    let mut writer = GgufWriter::new(metadata);
    writer.declare("a.weight", &[3], GgmlType::F32).unwrap();
    writer.declare("b.weight", &[2, 32], GgmlType::Q8_0).unwrap();
    writer
}

fn write(writer: GgufWriter, path: &Path) -> Result<(), GgufError> {
    let mut data = writer.create(path)?;
    data.tensor("a.weight", &[0; 12])?;
    data.start("b.weight")?;
    data.piece(&[0; 34])?;
    data.piece(&[0; 34])?;
    data.finish()
}

fn entries(folder: &Path) -> usize {
    std::fs::read_dir(folder).unwrap().count()
}

#[test]
fn every_value_type_survives_a_round_trip_in_order() {
    let values: Vec<Value> = vec![
        Value::U8(255),
        Value::I8(-128),
        Value::U16(65535),
        Value::I16(-32768),
        Value::U32(u32::MAX),
        Value::I32(i32::MIN),
        Value::F32(1e-6),
        Value::Bool(true),
        Value::String("größe".to_owned()),
        Value::String(String::new()),
        Value::U64(u64::MAX),
        Value::I64(i64::MIN),
        Value::F64(-0.1),
        vec![1_u8, 2].into(),
        vec![-1_i8].into(),
        vec![1_u16].into(),
        vec![-1_i16].into(),
        vec![1_u32].into(),
        vec![-1_i32].into(),
        vec![0.5_f32].into(),
        vec![true, false].into(),
        vec!["a".to_owned(), String::new()].into(),
        vec![1_u64].into(),
        vec![-1_i64].into(),
        vec![0.5_f64].into(),
        Vec::<u32>::new().into(),
        Value::Array(Array::Array(vec![Array::U8(vec![1]), Array::Array(vec![Array::String(vec!["x".to_owned()])])])),
    ];
    let mut metadata = Metadata::default();
    for (i, value) in values.into_iter().enumerate() {
        metadata.insert(format!("k{}", i * 7 % 31), value).unwrap();
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("values.gguf");
    write(writer(metadata.clone()), &path).unwrap();
    for access in [Access::Map, Access::Read] {
        let file = Gguf::open_with(&path, access).unwrap();
        assert_eq!(file.metadata(), &metadata);
        assert!(file.metadata().iter().eq(metadata.iter()), "the order is kept");
        assert_eq!((file.version(), file.alignment()), (3, 32));
    }
}

#[test]
fn the_same_declaration_gives_the_same_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let mut metadata = Metadata::default();
    metadata.insert("general.architecture", "jepa").unwrap();
    for name in ["1.gguf", "2.gguf"] {
        write(writer(metadata.clone()), &folder.path().join(name)).unwrap();
    }
    let read = |name| std::fs::read(folder.path().join(name)).unwrap();
    assert_eq!(read("1.gguf"), read("2.gguf"));
    assert_eq!(read("1.gguf").len() as u64, writer(metadata).file_len().unwrap());
}

#[test]
fn an_unfinished_file_leaves_nothing_behind() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.gguf");
    let started = || writer(Metadata::default()).create(&path).unwrap();

    let mut data = started();
    data.tensor("a.weight", &[0; 12]).unwrap();
    drop(data);
    assert_eq!(entries(folder.path()), 0);

    let mut data = started();
    data.tensor("a.weight", &[0; 12]).unwrap();
    let error = data.finish().unwrap_err();
    assert!(matches!(&error, GgufError::WriteOrder { wanted, .. } if wanted == "b.weight"), "{error}");

    let mut data = started();
    assert!(matches!(data.piece(&[0]), Err(GgufError::WriteOrder { .. })));
    assert!(matches!(data.tensor("b.weight", &[0; 68]), Err(GgufError::WriteOrder { .. })));
    assert!(matches!(data.tensor("a.weight", &[0; 13]), Err(GgufError::WriteLength { .. })));
    drop(data);

    let mut data = started();
    data.tensor("a.weight", &[0; 8]).unwrap();
    assert!(matches!(data.start("b.weight"), Err(GgufError::WriteLength { .. })));
    drop(data);
    assert_eq!(entries(folder.path()), 0);
}

#[test]
fn a_file_that_is_replaced_keeps_its_old_bytes_until_the_new_ones_are_complete() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.gguf");
    std::fs::write(&path, "old").unwrap();
    let data = writer(Metadata::default()).create(&path).unwrap();
    assert_eq!(std::fs::read(&path).unwrap(), b"old");
    drop(data);
    assert_eq!(std::fs::read(&path).unwrap(), b"old");
    write(writer(Metadata::default()), &path).unwrap();
    assert!(Gguf::open(&path).is_ok());
    assert_eq!(entries(folder.path()), 1);
}

#[cfg(target_os = "linux")]
#[test]
fn a_folder_that_is_not_there_and_a_name_that_is_a_folder_are_errors_with_the_path() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("no/such/folder/x.gguf");
    let message = write(writer(Metadata::default()), &path).unwrap_err().to_string();
    assert!(message.contains("x.gguf"), "{message}");
    assert!(matches!(write(writer(Metadata::default()), folder.path()), Err(GgufError::Io { .. })));
    assert!(matches!(Gguf::open(folder.path()), Err(GgufError::NotAFile { .. })));
    assert!(matches!(Gguf::open("/dev/zero"), Err(GgufError::NotAFile { .. })));
    assert!(matches!(Gguf::open(folder.path().join("none.gguf")), Err(GgufError::Io { .. })));
}

#[test]
fn refuses_to_declare_what_no_reader_would_take() {
    let mut w = GgufWriter::new(Metadata::default());
    w.declare("a", &[1], GgmlType::F32).unwrap();
    assert!(matches!(w.declare("a", &[1], GgmlType::F32), Err(GgufError::TensorTwice { .. })));
    assert!(matches!(w.declare("", &[1], GgmlType::F32), Err(GgufError::Name { .. })));
    assert!(matches!(w.declare("b\n", &[1], GgmlType::F32), Err(GgufError::Name { .. })));
    assert!(matches!(w.declare(&"b".repeat(256), &[1], GgmlType::F32), Err(GgufError::Limit { .. })));
    assert!(matches!(w.declare("b", &[], GgmlType::F32), Err(GgufError::Rank { .. })));
    assert!(matches!(w.declare("b", &[1; 5], GgmlType::F32), Err(GgufError::Rank { .. })));
    assert!(matches!(w.declare("b", &[0], GgmlType::F32), Err(GgufError::ZeroDimension { .. })));
    assert!(matches!(w.declare("b", &[48], GgmlType::Q8_0), Err(GgufError::RowLength { .. })));
    assert!(matches!(w.declare("b", &[usize::MAX, 2], GgmlType::F32), Err(GgufError::TooManyElements { .. })));
    let mut metadata = Metadata::default();
    metadata.insert("", 1_u32).unwrap();
    assert!(matches!(GgufWriter::new(metadata).header(), Err(GgufError::Name { .. })));
}

#[test]
fn version_2_and_other_alignments_are_read() {
    let mut bytes = bundles::image().bytes();
    bytes[4] = 2;
    assert_eq!(Gguf::from_bytes(bytes).unwrap().version(), 2);

    // One vector at alignment 8 and one at 64: built by hand, since the writer knows 32 only.
    for alignment in [1_u32, 8, 64] {
        let mut file = Vec::from(*b"GGUF");
        file.extend(3_u32.to_le_bytes());
        file.extend(1_u64.to_le_bytes());
        file.extend(1_u64.to_le_bytes());
        file.extend(17_u64.to_le_bytes());
        file.extend(b"general.alignment");
        file.extend(4_u32.to_le_bytes());
        file.extend(alignment.to_le_bytes());
        file.extend(1_u64.to_le_bytes());
        file.extend(b"x");
        file.extend(1_u32.to_le_bytes());
        file.extend(2_u64.to_le_bytes());
        file.extend(0_u32.to_le_bytes());
        file.extend(0_u64.to_le_bytes());
        file.resize(file.len().next_multiple_of(alignment as usize), 0);
        file.extend(1.5_f32.to_le_bytes());
        file.extend((-2.0_f32).to_le_bytes());
        let file = Gguf::from_bytes(file).unwrap();
        assert_eq!(file.alignment(), u64::from(alignment));
        assert_eq!(file.tensor("x").unwrap().to_f32(), [1.5, -2.0]);
    }
}

#[test]
fn rows_are_unpacked_one_by_one_as_all_at_once() {
    let file = Gguf::from_bytes(bundles::image().bytes()).unwrap();
    let weight = file.tensor("enc.blk.0.ffn_up.weight").unwrap();
    let all = weight.to_f32();
    let mut row = [0.0; 16];
    for r in 0..32 {
        weight.dequantize_rows(r..r + 1, &mut row).unwrap();
        assert_eq!(row, all[r * 16..][..16]);
    }
    assert!(matches!(weight.dequantize_rows(31..33, &mut [0.0; 32]), Err(GgufError::RowRange { .. })));
    assert!(matches!(
        weight.dequantize_rows(std::ops::Range { start: 3, end: 1 }, &mut []),
        Err(GgufError::RowRange { .. })
    ));
    assert!(matches!(weight.dequantize_rows(usize::MAX..usize::MAX, &mut []), Err(GgufError::RowRange { .. })));
    assert!(matches!(weight.dequantize_rows(0..2, &mut row), Err(GgufError::BufferLength { .. })));
    let turned = weight.to_f32_transposed();
    assert!((0..32).all(|r| (0..16).all(|c| turned[c * 32 + r] == all[r * 16 + c])));
}
