//! The process of the service: its processor time, memory and descriptors, under the names that
//! Prometheus has for every process.

use std::fs;
use std::sync::atomic::AtomicU64;
use std::time::{SystemTime, UNIX_EPOCH};

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use rustix::process::{Resource, getrlimit};
use rustix::time::{ClockId, clock_gettime};

/// The resources that the process uses.
#[derive(Debug)]
pub(super) struct Process {
    pub(super) registry: Registry,
    cpu: Counter<f64, AtomicU64>,
    resident: Gauge,
    open_fds: Gauge,
    max_fds: Gauge,
}

impl Default for Process {
    fn default() -> Self {
        let mut registry = Registry::default();
        let cpu = Counter::<f64, AtomicU64>::default();
        let text = "Processor time, user and system";
        registry.register("process_cpu_seconds", text, cpu.clone());
        let mut gauge = |name: &str, text: &str| {
            let gauge = Gauge::<i64>::default();
            registry.register(name, text, gauge.clone());
            gauge
        };
        let resident = gauge("process_resident_memory_bytes", "Memory that is resident");
        let open_fds = gauge("process_open_fds", "Descriptors that are open");
        let max_fds = gauge("process_max_fds", "The most descriptors that may be open");
        let start = gauge("process_start_time_seconds", "When the service was started");
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        start.set(now.as_secs() as i64);
        Self { registry, cpu, resident, open_fds, max_fds }
    }
}

impl Process {
    /// Looks at the process.
    pub(super) fn measure(&self) {
        let cpu = clock_gettime(ClockId::ProcessCPUTime);
        let cpu = cpu.tv_sec as f64 + cpu.tv_nsec as f64 / 1e9;
        self.cpu.inc_by((cpu - self.cpu.get()).max(0.0));
        let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kib = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<i64>().ok());
        self.resident.set(kib.unwrap_or_default() << 10);
        self.open_fds.set(fs::read_dir("/proc/self/fd").map_or(0, Iterator::count) as i64);
        let files = getrlimit(Resource::Nofile).current;
        self.max_fds.set(files.and_then(|files| i64::try_from(files).ok()).unwrap_or(i64::MAX));
    }
}
