//! Link arguments of a Node addon.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    match std::env::var("CARGO_CFG_TARGET_OS").as_deref() {
        // Node unloads an addon with the last worker that loaded it. The lock space must outlive
        // that: its fencing tokens never repeat.
        Ok("linux") => println!("cargo::rustc-cdylib-link-arg=-Wl,-z,nodelete"),
        // Node-API is found in the process that loads the addon.
        Ok("macos") => {
            println!("cargo::rustc-cdylib-link-arg=-Wl,-undefined,dynamic_lookup");
        }
        _ => {}
    }
}
