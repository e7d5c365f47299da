//! The facts about the machine that the figures depend on.

use std::fs;

/// Returns one line: the processor, its cores, and whether this process is pinned to some of them.
pub(crate) fn facts() -> String {
    let model = field("/proc/cpuinfo", "model name").unwrap_or_else(|| "unknown processor".into());
    let online = fs::read_to_string("/sys/devices/system/cpu/online").unwrap_or_default();
    let online = online.trim();
    let allowed = field("/proc/self/status", "Cpus_allowed_list").unwrap_or_default();
    let placed = match allowed.as_str() {
        "" => "unknown".to_string(),
        all if all == online => format!("spread over cores {all}"),
        some => format!("pinned to core {some}"),
    };
    let usable = std::thread::available_parallelism().map_or(1, usize::from);
    let build = if cfg!(debug_assertions) {
        "debug build: the numbers mean nothing"
    } else {
        "release build"
    };
    format!("{model}, cores online {online}, usable {usable}, {placed}; {build}")
}

/// Returns the value of a `key : value` line of a file under /proc.
fn field(path: &str, key: &str) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    text.lines()
        .filter_map(|line| line.split_once(':'))
        .find(|(name, _)| name.trim() == key)
        .map(|(_, value)| value.trim().to_string())
}
