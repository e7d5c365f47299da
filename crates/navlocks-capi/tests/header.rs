//! The header is made from the source.

use std::fs;
use std::path::Path;

#[test]
fn header_is_what_cbindgen_makes_of_the_source() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let config = cbindgen::Config::from_file(here.join("cbindgen.toml")).expect("it is TOML");
    let mut builder = cbindgen::Builder::new().with_config(config);
    for file in ["types.rs", "functions.rs", "query.rs"] {
        builder = builder.with_src(here.join("src").join(file));
    }
    let mut made = Vec::new();
    builder.generate().expect("the source is read").write(&mut made);
    let path = here.join("include/navlocks.h");
    if std::env::var_os("UPDATE_SNAPSHOTS").is_some() {
        fs::write(&path, &made).expect("the header is written");
    }
    let known = fs::read(&path).unwrap_or_default();
    assert!(known == made, "run: UPDATE_SNAPSHOTS=1 cargo test -p navlocks-capi --test header");
}
