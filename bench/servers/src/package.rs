//! Programs of Debian's packages: found, or installed.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::output;

/// With `no` in this variable, missing programs are skipped.
const INSTALL: &str = "NAVLOCKS_BENCH_INSTALL";

/// Returns the path of a program, after installing its package if necessary.
pub fn program(name: &str, package: &str) -> Result<PathBuf, String> {
    if let Some(path) = find(name) {
        return Ok(path);
    }
    install(package)?;
    find(name).ok_or_else(|| format!("package {package} has no {name}"))
}

fn find(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
    folders.push("/usr/sbin".into());
    folders.extend(postgres_folders());
    folders.iter().map(|folder| folder.join(name)).find(|path| path.is_file())
}

/// Returns the folders of all PostgreSQL versions, the newest first; Debian keeps them apart.
fn postgres_folders() -> Vec<PathBuf> {
    let versions = Path::new("/usr/lib/postgresql").read_dir().into_iter().flatten().flatten();
    let mut versions: Vec<(u32, PathBuf)> = versions
        .filter_map(|entry| {
            let version = entry.file_name().to_str()?.parse().ok()?;
            Some((version, entry.path().join("bin")))
        })
        .collect();
    versions.sort_by(|a, b| b.cmp(a));
    versions.into_iter().map(|(_, path)| path).collect()
}

/// Returns true if missing programs may be installed.
pub fn may_install() -> bool {
    std::env::var_os(INSTALL).is_none_or(|word| word != "no")
}

fn install(package: &str) -> Result<(), String> {
    let no_way =
        |why: &str| format!("it is not installed and {why}; please run: apt-get install {package}");
    if !may_install() {
        return Err(no_way("nothing is to be installed"));
    }
    if find("apt-get").is_none() {
        return Err(no_way("there is no apt-get here"));
    }
    let sudo: &[&str] = if rustix::process::geteuid().is_root() { &[] } else { &["sudo", "-n"] };
    if !sudo.is_empty() && !Command::new("sudo").args(["-n", "true"]).quiet() {
        return Err(no_way("sudo wants a password"));
    }
    eprintln!("bench: installing {package}");
    let apt_get = |words: &[&str]| {
        // At run level 1 a package starts no service of its own.
        let around = ["env", "DEBIAN_FRONTEND=noninteractive", "RUNLEVEL=1", "timeout", "300"];
        let words = [sudo, &around, &["apt-get", "-o", "DPkg::Lock::Timeout=120"], words].concat();
        output(Command::new(words[0]).args(&words[1..]).stdin(Stdio::null()))
    };
    let wanted = ["install", "--yes", "--no-install-recommends", package];
    // An old list of packages often suffices, and fetching a new one takes longer than the package.
    apt_get(&wanted).or_else(|_| apt_get(&["update"]).and_then(|_| apt_get(&wanted)))?;
    Ok(())
}

trait Quiet {
    fn quiet(&mut self) -> bool;
}

impl Quiet for Command {
    /// Runs without output. Returns true if it succeeds.
    fn quiet(&mut self) -> bool {
        self.stdin(Stdio::null()).output().is_ok_and(|output| output.status.success())
    }
}
