use std::io::Write;

use tempfile::TempDir;

use super::*;

fn file(directory: &TempDir, name: &str, bytes: &[u8]) -> Source {
    let path = directory.path().join(name);
    fs::write(&path, bytes).unwrap();
    Source::file(path).unwrap()
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn read(source: &Source) -> (String, Form) {
    let mut opened = source.open_watched().unwrap();
    let mut text = String::new();
    opened.sql.read_to_string(&mut text).unwrap();
    assert_eq!(Some(opened.read.load(Ordering::Relaxed)), source.size());
    (text, opened.form)
}

#[test]
fn a_byte_order_mark_is_skipped() {
    let directory = tempfile::tempdir().unwrap();
    let marked = "\u{feff}SELECT 1;\n".as_bytes();
    assert_eq!(read(&file(&directory, "plain", marked)), ("SELECT 1;\n".to_owned(), Form::Plain));
    assert_eq!(read(&file(&directory, "gzip", &gzip(marked))), ("SELECT 1;\n".to_owned(), Form::Gzip));
}

#[test]
fn what_it_is_is_seen_by_its_first_bytes() {
    let directory = tempfile::tempdir().unwrap();
    let sql = "SELECT 1;\n".repeat(100_000);
    let plain = file(&directory, "plain.gz", sql.as_bytes());
    assert_eq!(read(&plain), (sql.clone(), Form::Plain));
    assert_eq!(read(&plain), (sql.clone(), Form::Plain), "once more");
    let zstd = zstd::encode_all(sql.as_bytes(), 1).unwrap();
    assert_eq!(read(&file(&directory, "zstd", &zstd)), (sql.clone(), Form::Zstd));
    assert_eq!(read(&file(&directory, "gzip", &gzip(sql.as_bytes()))), (sql, Form::Gzip));
    assert_eq!(read(&file(&directory, "empty", b"")), (String::new(), Form::Plain));
    assert_eq!(read(&file(&directory, "short", b"\n")), ("\n".to_owned(), Form::Plain));
}

#[test]
fn compressed_files_may_be_joined() {
    let directory = tempfile::tempdir().unwrap();
    let joined = [gzip(b"SELECT 1;\n"), gzip(b""), gzip(b"SELECT 2;\n")].concat();
    assert_eq!(read(&file(&directory, "a", &joined)).0, "SELECT 1;\nSELECT 2;\n");
    let frame = |text: &str| zstd::encode_all(text.as_bytes(), 1).unwrap();
    let joined = [frame("SELECT 1;\n"), frame("SELECT 2;\n")].concat();
    assert_eq!(read(&file(&directory, "b", &joined)).0, "SELECT 1;\nSELECT 2;\n");
}

#[test]
fn what_is_cut_off_is_an_error() {
    let directory = tempfile::tempdir().unwrap();
    let text = (0..100_000).map(|number: u32| number.to_string()).collect::<Vec<_>>().join(";\n");
    for (bytes, method) in
        [(gzip(text.as_bytes()), "gzip"), (zstd::encode_all(text.as_bytes(), 1).unwrap(), "zstd")]
    {
        let source = file(&directory, method, &bytes[..bytes.len() - 9]);
        let error = io::copy(&mut source.open().unwrap(), &mut io::sink()).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
        let error = error.to_string();
        assert!(error.contains(&format!("the {method} data are damaged or cut off")), "{error}");
    }
}

#[test]
fn what_is_no_dump_is_told() {
    let directory = tempfile::tempdir().unwrap();
    let mut tar = vec![0; 512];
    tar[257..262].copy_from_slice(b"ustar");
    let cases = [
        (&b"\x04\x22\x4d\x18...."[..], "lz4 -dk FILE"),
        (b"BZh91AY&SY", "bzip2 -dk FILE"),
        (b"\xfd7zXZ\0", "xz -dk FILE"),
        (b"\xff\xfeS\0E\0", "UTF-16"),
        (b"\x7fELF\x02\x01\x01\0\0\0", "bytes that are not text"),
        (&tar, "not a pg_dump archive"),
        (&gzip(&gzip(b"SELECT 1;")), "compressed twice"),
        (&gzip(b"\0\0"), "bytes that are not text"),
    ];
    for (bytes, told) in cases {
        let Err(error) = file(&directory, "a", bytes).open() else { panic!("{told}") };
        assert!(error.is_usage());
        assert!(error.to_string().contains(told), "{error}");
    }
    assert!(Source::file(directory.path()).unwrap().open().is_err());
    assert!(Source::file(directory.path().join("missing")).is_err_and(|error| error.is_usage()));
    let cut = &gzip(b"SELECT 1;")[..15];
    assert!(file(&directory, "cut", cut).open().is_err_and(|error| error.is_usage()));
}

#[test]
fn the_hash_is_that_of_the_bytes() {
    let directory = tempfile::tempdir().unwrap();
    let hash = |name: &str, bytes: &[u8]| file(&directory, name, bytes).hash().unwrap();
    assert_eq!(hash("a", b"abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    assert_eq!(hash("b", b"abc"), hash("a", b"abc"));
    let of_directory = || Source::file(directory.path()).unwrap().hash().unwrap();
    let before = of_directory();
    assert_eq!(before, of_directory());
    file(&directory, "b", b"abd");
    assert_ne!(before, of_directory());
}
