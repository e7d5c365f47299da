//! The modules that each global object begins with: those of this folder, and the npm package.

use std::path::{Path, PathBuf};

use rquickjs::loader::{ImportAttributes, Resolver};
use rquickjs::{Ctx, Error, Result};

/// This example in its checkout.
pub const FOLDER: &str = env!("CARGO_MANIFEST_DIR");

/// Finds modules by relative paths, and the entry of the npm package by its name.
pub struct Modules;

impl Resolver for Modules {
    fn resolve<'js>(
        &mut self,
        _: &Ctx<'js>,
        base: &str,
        name: &str,
        _: Option<ImportAttributes<'js>>,
    ) -> Result<String> {
        let path = match name {
            "navlocks/embed" => PathBuf::from(FOLDER).join("../../js/embed.js"),
            _ if name.starts_with('.') => Path::new(base).with_file_name(name),
            _ => PathBuf::from(name),
        };
        let path = path.canonicalize().map_err(|_| Error::new_resolving(base, name))?;
        Ok(path.to_string_lossy().into_owned())
    }
}
