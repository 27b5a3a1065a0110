//! Checkpoints that lie: each is refused in one line that names the thing, and nothing is allocated out of proportion.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use jepa_gguf::checkpoint::Checkpoint;

#[track_caller]
fn refused(bytes: Vec<u8>, wanted: &str) {
    let error = Checkpoint::from_bytes(bytes).expect_err("was accepted").to_string();
    assert!(error.contains(wanted), "found: {error}\nwanted: {wanted}");
    assert!(error.lines().count() == 1 && error.len() < 400, "not one line: {error}");
}

mod safetensors {
    use super::*;

    fn file(header: &str, data: usize) -> Vec<u8> {
        let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
        bytes.extend(header.as_bytes());
        bytes.resize(bytes.len() + data, 0);
        bytes
    }

    fn entry(name: &str, dtype: &str, shape: &str, start: u64, end: u64) -> String {
        format!("\"{name}\":{{\"dtype\":\"{dtype}\",\"shape\":{shape},\"data_offsets\":[{start},{end}]}}")
    }

    fn of(entries: &[String], data: usize) -> Vec<u8> {
        file(&format!("{{{}}}", entries.join(",")), data)
    }

    fn f32(name: &str, start: u64, end: u64) -> String {
        entry(name, "F32", &format!("[{}]", (end - start) / 4), start, end)
    }

    #[test]
    fn a_sound_file_is_accepted() {
        let whole = Checkpoint::from_bytes(of(&[f32("b", 4, 12), f32("a", 0, 4)], 12)).unwrap();
        assert_eq!(whole.read("b").unwrap(), [0.0, 0.0]);
        assert_eq!(Checkpoint::from_bytes(file("{\"__metadata__\":{\"a\":\"b\"}}", 0)).unwrap().tensors().len(), 0);
    }

    #[test]
    fn refuses_headers_that_lie_about_their_length() {
        for len in [1 << 63, u64::MAX, 100_000_001] {
            let mut bytes = file("{}", 64);
            bytes[..8].copy_from_slice(&u64::to_le_bytes(len));
            refused(bytes, "safetensors header, length in bytes");
        }
        let mut bytes = file("{}", 64);
        bytes[..8].copy_from_slice(&u64::to_le_bytes(99_999_999));
        refused(bytes, "safetensors header: wanted 99999999 bytes at byte 8");
    }

    #[test]
    fn refuses_headers_that_are_not_the_json_wanted() {
        refused(file("{\"a\":", 0), "safetensors header: EOF");
        refused(file("{\"a\":1}", 0), "safetensors header");
        refused(file(&"{\"a\":".repeat(100_000), 0), "safetensors header");
        refused(of(&[entry("a", "F32", "[-1]", 0, 4)], 4), "safetensors header");
        refused(of(&[entry("a", "F32", "[1.5]", 0, 4)], 4), "safetensors header");
        refused(file("{\"__metadata__\":{\"a\":1}}", 0), "safetensors header");
        refused(file("{\"a\":{\"dtype\":\"F32\",\"dtype\":\"F32\"}}", 0), "duplicate field");
        refused(file("{\"a\":{\"dtype\":\"F32\",\"x\\n\":1}}", 0), "unknown field");
    }

    #[test]
    fn refuses_ranges_that_do_not_tile_the_data() {
        refused(
            of(&[f32("a", 0, 8), f32("b", 4, 12)], 12),
            "tensor b: starts at byte 4 of the tensor data, inside tensor a",
        );
        refused(of(&[f32("a", 0, 8), f32("b", 0, 8)], 8), "inside tensor a");
        refused(of(&[f32("a", 0, 4), f32("b", 8, 12)], 12), "bytes 4 to 8 belong to no tensor");
        refused(of(&[f32("a", 4, 8)], 8), "bytes 0 to 4 belong to no tensor");
        refused(of(&[f32("a", 0, 4)], 8), "bytes 4 to 8 belong to no tensor");
        refused(of(&[f32("a", 0, 8)], 4), "tensor a: bytes 0 to 8, but the tensor data is 4 bytes long");
        refused(of(&[entry("a", "F32", "[1]", 8, 4)], 8), "tensor a: bytes 8 to 4");
        refused(of(&[entry("a", "F32", "[1]", 0, u64::MAX)], 8), "tensor a");
    }

    #[test]
    fn refuses_names_that_are_none_or_twice() {
        refused(of(&[f32("a", 0, 4), f32("a", 4, 8)], 8), "a: appears twice");
        refused(of(&[f32("", 0, 4)], 4), "is empty");
        refused(of(&[f32("a\\u001b[31m", 0, 4)], 4), "has control characters");
        refused(of(&[f32(&"a".repeat(5000), 0, 4)], 4), "longer");
    }

    #[test]
    fn refuses_shapes_that_do_not_fit() {
        refused(of(&[entry("a", "F32", "[4294967296,4294967296]", 0, 4)], 4), "more elements than can be addressed");
        refused(of(&[entry("a", "F64", "[4611686018427387904]", 0, 0)], 0), "more elements than can be addressed");
        refused(of(&[entry("a", "F32", "[2]", 0, 4)], 4), "tensor a: 4 bytes, but its shape [2] and type take 8");
        refused(of(&[entry("a", "F32", &format!("[{}1]", "1,".repeat(16)), 0, 4)], 4), "dimensions: 17");
        refused(of(&[entry("a", "F8_E4M3", "[4]", 0, 4)], 4), "tensor a: numbers of type F8_E4M3");
    }

    #[test]
    fn refuses_an_index_that_does_not_fit_its_shards() {
        let folder = tempfile::tempdir().unwrap();
        let index = |map: &str| {
            let text = format!("{{\"metadata\":{{}},\"weight_map\":{{{map}}}}}");
            std::fs::write(folder.path().join("model.safetensors.index.json"), text).unwrap();
            let error = Checkpoint::open(folder.path()).unwrap_err();
            match std::error::Error::source(&error) {
                Some(cause) => format!("{error}: {cause}"),
                None => error.to_string(),
            }
        };
        std::fs::write(folder.path().join("one"), of(&[f32("a", 0, 4), f32("b", 4, 8)], 8)).unwrap();
        std::fs::write(folder.path().join("two"), of(&[f32("b", 0, 4)], 4)).unwrap();
        assert!(index("\"a\":\"one\",\"b\":\"one\",\"c\":\"one\"").contains("tensor c: not in shard one"));
        assert!(index("\"a\":\"one\"").contains("tensor b: in shard one, but the index does not put it there"));
        assert!(index("\"a\":\"one\",\"b\":\"two\"").contains("tensor b: in shard one"));
        assert!(index("\"a\":\"one\",\"a\":\"one\"").contains("a: appears twice"));
        assert!(index("\"a\":\"three\"").contains("shard three: cannot open"));
        for path in ["../one", "/etc/passwd", "sub/one", "..\\\\one", "..", "", "C:one"] {
            assert!(index(&format!("\"a\":\"{path}\"")).contains("file name of a shard"), "{path}");
        }
        assert!(index("\"a\":1").contains("shard index"));
    }
}

/// A zip archive of stored entries.
fn zip(entries: &[(&str, &[u8])]) -> Vec<u8> {
    let (mut bytes, mut directory) = (Vec::new(), Vec::new());
    for (name, data) in entries {
        let (len, name_len) = ((data.len() as u32).to_le_bytes(), (name.len() as u16).to_le_bytes());
        let at = (bytes.len() as u32).to_le_bytes();
        bytes.extend(b"PK\x03\x04\x0a\0\0\0\0\0\0\0\0\0\0\0\0\0");
        bytes.extend([len, len].concat());
        bytes.extend([name_len, [0; 2]].concat());
        bytes.extend(name.as_bytes());
        bytes.extend(*data);
        directory.extend(b"PK\x01\x02\x0a\0\x0a\0\0\0\0\0\0\0\0\0\0\0\0\0");
        directory.extend([len, len].concat());
        directory.extend(name_len);
        directory.extend([0; 12]);
        directory.extend(at);
        directory.extend(name.as_bytes());
    }
    let count = (entries.len() as u16).to_le_bytes();
    let (at, len) = ((bytes.len() as u32).to_le_bytes(), (directory.len() as u32).to_le_bytes());
    bytes.extend(directory);
    bytes.extend(b"PK\x05\x06\0\0\0\0");
    bytes.extend([count, count].concat());
    bytes.extend([len, at].concat());
    bytes.extend([0; 2]);
    bytes
}

/// An archive whose object is `pickle`, with one storage of eight bytes under the key 0.
fn archive(pickle: &[u8]) -> Vec<u8> {
    zip(&[("m/data.pkl", pickle), ("m/byteorder", b"little"), ("m/data/0", &[0; 8])])
}

mod archives {
    use super::*;

    const EMPTY: &[u8] = b"\x80\x02}.";

    #[test]
    fn a_sound_archive_is_accepted() {
        assert_eq!(Checkpoint::from_bytes(archive(EMPTY)).unwrap().tensors().len(), 0);
    }

    /// A good archive with `bytes` put `after` bytes behind the first `signature` from the end.
    fn patched(signature: &[u8], after: usize, bytes: &[u8]) -> Vec<u8> {
        let mut file = archive(EMPTY);
        let at = file.windows(4).rposition(|w| w == signature).unwrap() + after;
        file[at..at + bytes.len()].copy_from_slice(bytes);
        file
    }

    #[test]
    fn refuses_directories_that_lie() {
        let end = b"PK\x05\x06";
        refused(patched(end, 0, b"PKxx"), "zip archive, directory: is missing");
        refused(patched(end, 8, &[0xff, 0x7f, 0xff, 0x7f]), "counts more entries");
        refused(patched(end, 8, &[2, 0, 2, 0]), "has bytes behind its last entry");
        refused(patched(end, 8, &[3, 0, 2, 0]), "several parts");
        refused(patched(end, 12, &[0xf0; 4]), "lies outside the file");
        refused(patched(end, 16, &[0xf0; 4]), "lies outside the file");
        refused(patched(end, 16, &[0xff; 4]), "64-bit directory: is missing");
        refused(patched(end, 8, &[0xff; 4]), "64-bit directory: is missing");
    }

    #[test]
    fn refuses_entries_that_lie() {
        let entry = b"PK\x01\x02";
        refused(patched(entry, 0, b"PKxx"), "without its signature");
        refused(patched(entry, 42, &[0xf0; 4]), "m/data/0: lies outside the file");
        refused(patched(entry, 42, &[1, 0, 0, 0]), "m/data/0: has no header where the directory puts it");
        refused(patched(entry, 42, &[0, 0, 0, 0]), "m/data/0: has another name in its own header");
        refused(patched(entry, 20, &[0xf0; 8]), "m/data/0: lies outside the file");
        refused(
            patched(entry, 20, &[9, 0, 0, 0, 9, 0, 0, 0]),
            "m/data/0: lies outside the file or reaches into the directory",
        );
        refused(patched(entry, 20, &[0xff; 8]), "m/data/0: lacks the 64-bit sizes");
        refused(patched(entry, 24, &[0xf0; 4]), "m/data/0: is stored in another length");
        refused(patched(entry, 10, &[8, 0]), "m/data/0: compressed with method 8");
        refused(patched(entry, 8, &[1, 0]), "m/data/0: is encrypted");
        refused(patched(entry, 28, &[0xff, 0xff]), "zip archive, directory: wanted 65535 bytes");
    }

    #[test]
    fn refuses_archives_that_torch_did_not_write() {
        refused(zip(&[("m/x", EMPTY)]), "0 entries that end in \"/data.pkl\"");
        refused(zip(&[("m/data.pkl", EMPTY), ("n/data.pkl", EMPTY)]), "2 entries");
        refused(zip(&[("m/data.pkl", EMPTY), ("m/data.pkl", EMPTY)]), "m/data.pkl: appears twice");
        refused(zip(&[("m/data.pkl", EMPTY), ("m/byteorder", b"big")]), "big-endian");
        refused(zip(&[("m/data.pkl", EMPTY), ("m/constants.pkl", EMPTY)]), "TorchScript");
        refused(zip(&[]), "0 entries");
    }
}

mod pickles {
    use super::*;

    /// A dictionary with the value that `value` pushes under the key `k`.
    fn under_k(value: &[u8]) -> Vec<u8> {
        [b"\x80\x02}X\x01\0\0\0k", value, b"s."].concat()
    }

    fn storage(key: &str, class: &str, count: u8) -> Vec<u8> {
        let text = |s: &str| [&[b'X', s.len() as u8, 0, 0, 0], s.as_bytes()].concat();
        [
            b"(",
            &text("storage")[..],
            b"ctorch\n",
            class.as_bytes(),
            b"\n",
            &text(key),
            &text("cpu"),
            b"K",
            &[count],
            b"tQ",
        ]
        .concat()
    }

    /// A tensor over a storage, with sizes and steps as the instructions that push tuples.
    fn tensor(storage: &[u8], offset: &[u8], shape: &[u8], strides: &[u8]) -> Vec<u8> {
        let call = b"ctorch._utils\n_rebuild_tensor_v2\n(";
        under_k(&[call, storage, offset, shape, strides, b"\x89}tR"].concat())
    }

    #[test]
    fn a_sound_tensor_is_accepted() {
        let pickle = tensor(&storage("0", "FloatStorage", 2), b"K\0", b"K\x02\x85", b"K\x01\x85");
        assert_eq!(Checkpoint::from_bytes(archive(&pickle)).unwrap().read("k").unwrap(), [0.0, 0.0]);
    }

    #[test]
    fn code_is_refused_by_name() {
        for (global, name) in [
            ("cos\nsystem\n", "os.system: a Python object"),
            ("cposix\nsystem\n", "posix.system"),
            ("c__builtin__\neval\n", "__builtin__.eval"),
            ("cbuiltins\nexec\n", "builtins.exec"),
            ("cbuiltins\ngetattr\n", "builtins.getattr"),
            ("cjepa\nJEPA\n", "jepa.JEPA"),
            ("comegaconf.dictconfig\nDictConfig\n", "omegaconf.dictconfig.DictConfig"),
            ("ctorch\nload\n", "torch.load"),
            ("ctorch.hub\nload\n", "torch.hub.load"),
            ("cnumpy\nload\n", "numpy.load"),
            ("cpathlib\nPath.unlink\n", "pathlib.Path.unlink"),
            ("ccollections\nOrderedDict.__class__\n", "collections.OrderedDict.__class__"),
        ] {
            let call = [global.as_bytes(), b"X\x04\0\0\0true\x85R"].concat();
            refused(archive(&under_k(&call)), name);
            // The same in a file that is nothing but a pickle.
            refused([b"\x80\x02", call.as_slice(), b"."].concat(), name);
        }
        refused(archive(&under_k(b"\x8c\x02os\x8c\x06system\x93\x8c\x04true\x85R")), "os.system");
        refused(archive(&under_k(b"cos\n\x1b[31m\n)R")), "os.\\u{1b}[31m");
    }

    #[test]
    fn instructions_outside_the_list_are_refused() {
        for code in [b'i', b'o', b'I', b'P', b'p', b'g', b'S', 0x82, 0x97, 0xff, 0] {
            refused(archive(&[b"\x80\x02", &[code][..], b"."].concat()), &format!("byte 2: instruction 0x{code:02x}"));
        }
        refused(archive(b"\x80\x02."), "empty stack");
        refused(archive(b"\x80\x02R"), "empty stack");
        refused(archive(b"\x80\x02}(K\x01\x86."), "empty stack");
        refused(archive(b"\x80\x02}(K\x01u."), "a key without a value");
        refused(archive(b"\x80\x02}t."), "mark");
        refused(archive(b"\x80\x02h\x07."), "memo");
        refused(archive(b"\x80\x02}cos"), "line of text");
        refused(archive(b"\x80\x02}"), "data.pkl: wanted 1 bytes at byte 3");
        refused(archive(b""), "data.pkl");
        refused(archive(&under_k(b"K\x01)R")), "a call: found an integer");
        refused(archive(&under_k(b"K\x01Q")), "persistent id: found an integer");
        refused(archive(&under_k(b"NK\x01a")), "appended to: found None");
        refused(archive(&under_k(b"NK\x01K\x01s")), "gets entries: found None");
        refused(archive(&under_k(b"N}b")), "attributes: found None");
    }

    #[test]
    fn counts_are_compared_with_the_bytes_that_are_there() {
        for code in [b'X', b'B', b'T', 0x8b] {
            let bomb = under_k(&[&[code][..], &[0xff, 0xff, 0xff, 0x7f]].concat());
            refused(archive(&bomb), "data.pkl: wanted 2147483647 bytes");
        }
        for code in [0x8d, 0x8e, 0x96] {
            let bomb = under_k(&[&[code][..], &[0xff; 8]].concat());
            refused(archive(&bomb), &format!("wanted {} bytes", u64::MAX));
        }
    }

    #[test]
    fn lists_that_double_at_every_level_do_not_unfold() {
        // Also with nothing at the bottom, where no leaf counts the visits.
        for bottom in [&b"]"[..], b"K\x01", b"N"] {
            let mut bomb = bottom.to_vec();
            for level in 0..64 {
                bomb.extend([b'q', level, b'0', b']', b'(', b'h', level, b'h', level, b'e']);
            }
            refused(archive(&under_k(&bomb)), "unfold to");
        }
    }

    #[test]
    fn long_words_that_are_repeated_do_not_unfold() {
        let word = [&b"X\0\x10\0\0"[..], &[b'a'; 4096], b"q\0"].concat();
        let bomb = [b"](", &word[..], &b"h\0".repeat(60_000), b"e"].concat();
        refused(archive(&under_k(&bomb)), "unfold to");
        let keys = [b"}(", &word[..], b"N", &b"h\0N".repeat(60_000), b"u"].concat();
        refused(archive(&under_k(&keys)), "longer");
    }

    #[test]
    fn dictionaries_that_are_copied_again_and_again_are_refused() {
        let members: Vec<u8> = (0..100).flat_map(|i| [b'K', i, b'N']).collect();
        let mut bomb = [b"](}(", &members[..], b"uq\x000cargparse\nNamespace\nq\x010"].concat();
        bomb.extend(b"h\x01)Rh\0b".repeat(10_000));
        bomb.push(b'e');
        refused(archive(&under_k(&bomb)), "objects");
    }

    #[test]
    fn what_contains_itself_is_refused() {
        refused(archive(b"\x80\x02}q\0X\x01\0\0\0kh\0s."), "k: contains itself");
        refused(archive(&under_k(b"]q\0h\0a")), "k.0: contains itself");
    }

    #[test]
    fn deep_nesting_ends_in_a_refusal() {
        let deep = [b"]".repeat(100_000), b"a".repeat(99_999)].concat();
        refused(archive(&under_k(&deep)), "depth of dictionaries and lists: 101");
        refused(archive(&under_k(&[b"(".repeat(100_000), b"t".repeat(100_000)].concat())), "open marks: 1001");
        refused(archive(&under_k(&[&b")"[..], &b"\x85".repeat(100_000)].concat())), "depth");
    }

    #[test]
    fn tensors_must_lie_inside_their_storage() {
        let float = storage("0", "FloatStorage", 2);
        let with = |offset: &[u8], shape: &[u8], strides: &[u8]| archive(&tensor(&float, offset, shape, strides));
        refused(with(b"K\0", b"K\x03\x85", b"K\x01\x85"), "tensor k: reaches past the 2 elements of storage 0");
        refused(with(b"K\x01", b"K\x02\x85", b"K\x01\x85"), "reaches past");
        refused(with(b"K\0", b"K\x02\x85", b"K\x02\x85"), "reaches past");
        refused(with(b"K\0", b"K\x02\x85", b"\x8a\x08\xff\xff\xff\xff\xff\xff\xff\x7f\x85"), "reaches past");
        refused(with(b"J\xff\xff\xff\xff", b"K\x02\x85", b"K\x01\x85"), "found a negative number");
        refused(with(b"K\0", b"J\xff\xff\xff\xff\x85", b"K\x01\x85"), "tensor k, shape: found a negative number");
        refused(with(b"K\0", b"K\x02\x85", b")"), "tensor k, strides");
        refused(with(b"K\0", b"K\x02", b"K\x01\x85"), "tensor k, shape: found an integer");
        let huge = b"\x8a\x08\0\0\0\0\0\0\0\x40q\x05h\x05h\x05\x87";
        refused(with(b"K\0", huge, b"K\0K\0K\0\x87"), "more elements than can be addressed");
        refused(with(b"K\0", &[&b"("[..], &b"K\x01".repeat(17), b"t"].concat(), b")"), "dimensions: 17");
    }

    #[test]
    fn an_expanded_tensor_takes_no_memory_for_its_shape() {
        let shape = b"\x8a\x08\0\0\0\0\0\0\0\x40\x85";
        let pickle = tensor(&storage("0", "FloatStorage", 2), b"K\0", shape, b"K\0\x85");
        let error = Checkpoint::from_bytes(archive(&pickle)).unwrap().read("k").unwrap_err().to_string();
        assert!(error.contains("elements of 1 stored ones"), "{error}");
    }

    #[test]
    fn storages_must_be_there_in_the_length_stated() {
        let of = |storage: &[u8]| archive(&tensor(storage, b"K\0", b"K\x01\x85", b"K\x01\x85"));
        refused(of(&storage("0", "FloatStorage", 3)), "storage 0: 8 in the file, 12 in the pickle (bytes)");
        refused(of(&storage("0", "DoubleStorage", 2)), "storage 0: 8 in the file, 16");
        refused(of(&storage("1", "FloatStorage", 2)), "storage 1: missing");
        refused(of(&storage("../data.pkl", "FloatStorage", 2)), "storage ../data.pkl: missing");
        refused(of(&storage("0", "QInt8Storage", 8)), "torch.QInt8Storage");
        refused(of(&storage("0", "UntypedStorage", 8)), "a storage without a type");
        refused(of(b"N"), "_rebuild_tensor_v2, argument 1: found None, wanted a storage");
        refused(archive(&under_k(b"ctorch._utils\n_rebuild_tensor_v2\n)R")), "argument 1");
        refused(archive(&under_k(b"ctorch._utils\n_rebuild_parameter\nN\x85R")), "wanted a tensor");
    }

    #[test]
    fn names_must_be_names_and_differ() {
        let number = b"K\x01";
        let entry = |key: &[u8]| [b"\x80\x02}(", key, number, b"u."].concat();
        refused(archive(&entry(b"N")), "a key of dictionary \"\": found None");
        refused(archive(&entry(b"X\0\0\0\0")), "is empty");
        refused(archive(&entry(b"X\x01\0\0\0\n")), "has control characters");
        refused(archive(b"\x80\x02}(X\x01\0\0\0aK\x01X\x01\0\0\0aK\x02u."), "a: appears twice");
        refused(archive(b"\x80\x02}(X\x01\0\0\x001K\x01K\x01K\x02u."), "1: appears twice");
        refused(archive(b"\x80\x02]."), "the top of the checkpoint: found a list");
    }
}

mod legacy {
    use super::*;

    const MAGIC: &[u8] = b"\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.";
    const PROTOCOL: &[u8] = b"\x80\x02M\xe9\x03.";
    const SYSTEM: &[u8] = b"\x80\x02}X\x0d\0\0\0little_endian\x88s.";
    const OBJECT: &[u8] = b"\x80\x02}X\x01\0\0\0kctorch._utils\n_rebuild_tensor_v2\n((X\x07\0\0\0storagectorch\nFloatStorage\nX\x01\0\0\x000X\x03\0\0\0cpuK\x02NtQK\0K\x02\x85K\x01\x85\x89NtRs.";
    const KEYS: &[u8] = b"\x80\x02]X\x01\0\0\x000a.";
    const DATA: &[u8] = b"\x02\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0";

    #[test]
    fn a_sound_file_is_accepted() {
        let file = [MAGIC, PROTOCOL, SYSTEM, OBJECT, KEYS, DATA].concat();
        assert_eq!(Checkpoint::from_bytes(file).unwrap().read("k").unwrap(), [0.0, 0.0]);
    }

    #[test]
    fn refuses_what_does_not_fit() {
        let file = |parts: [&[u8]; 6]| parts.concat();
        let good = [MAGIC, PROTOCOL, SYSTEM, OBJECT, KEYS, DATA];
        let with = |i: usize, part: &[u8]| {
            let mut parts = good;
            parts[i] = part;
            file(parts)
        };
        refused(with(0, b"\x80\x02}."), "torch.save did not write: its first object is a dictionary");
        refused(with(1, b"\x80\x02K\x01."), "protocol version: found an integer, wanted 1001");
        refused(with(2, b"\x80\x02}X\x0d\0\0\0little_endian\x89s."), "big-endian");
        refused(with(4, b"\x80\x02]."), "belong to no tensor");
        refused(with(4, b"\x80\x02](X\x01\0\0\x000X\x01\0\0\x000e."), "storage 0");
        refused(with(4, b"\x80\x02]X\x01\0\0\x001a."), "storage 1: found no tensor that uses it");
        refused(with(5, b"\x03\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"), "storage 0: 3 in the file, 2 in the pickle (elements)");
        refused(with(5, b"\xff\xff\xff\xff\xff\xff\xff\xff\0\0\0\0\0\0\0\0"), "storage 0");
        refused(with(5, &DATA[..15]), "storage 0: wanted 8 bytes");
        refused(with(5, b""), "storage 0: wanted 8 bytes");
        refused(file([MAGIC, PROTOCOL, SYSTEM, OBJECT, b"\x80\x02].", b""]), "storage 0: missing");
        refused(file([MAGIC, PROTOCOL, SYSTEM, b"\x80\x02}cos\nsystem\n", b"", b""]), "os.system");
    }
}
