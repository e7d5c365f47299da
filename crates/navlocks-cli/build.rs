//! Links the unwinder into the command: a library less to load is a twentieth of the time of a
//! short `navlocks run`.

use std::path::Path;
use std::process::Command;

const LIBRARY: &str = "libgcc_eh.a";

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let variable = |name: &str| std::env::var(name).unwrap_or_default();
    let native = variable("HOST") == variable("TARGET");
    if !native || variable("CARGO_CFG_TARGET_ENV") != "gnu" {
        return;
    }
    // Without that library, or another compiler than gcc, the command is linked as any other.
    let found = Command::new("cc").arg(format!("-print-file-name={LIBRARY}")).output();
    let Ok(found) = found else { return };
    let path = String::from_utf8_lossy(&found.stdout);
    if let (true, Some(folder)) =
        (Path::new(path.trim()).is_absolute(), Path::new(path.trim()).parent())
    {
        println!("cargo::rustc-link-search=native={}", folder.display());
        println!("cargo::rustc-link-lib=static=gcc_eh");
    }
}
