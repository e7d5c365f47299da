//! The packaged alerts and the dashboard use metrics that exist.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::{World, assert_ended, finish};

fn packaging() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging")
}

/// Returns the metrics of navlocks that a text names, without the ends that Prometheus adds.
fn metrics(text: &str) -> BTreeSet<&str> {
    let words = text.split(|char: char| !char.is_ascii_alphanumeric() && char != '_');
    let ours = words.filter(|word| word.starts_with("navlocks_") || word.starts_with("process_"));
    ours.map(|word| word.trim_end_matches("_bucket").trim_end_matches("_total")).collect()
}

#[test]
fn alerts_pass_their_tests() {
    if !Command::new("promtool").arg("--version").output().is_ok_and(|it| it.status.success()) {
        return servers::skip("there is no promtool: install prometheus to test the alerts");
    }
    let mut promtool = Command::new("promtool");
    promtool.args(["test", "rules", "navlocks.rules.test.yml"]);
    promtool.current_dir(packaging().join("prometheus"));
    assert_ended(&finish(promtool), 0, "");
}

#[test]
fn alerts_and_dashboard_use_metrics_of_the_service_and_each_alert_has_a_runbook() {
    let read = |path: &str| fs::read_to_string(packaging().join(path)).expect("a packaged file");
    let (rules, dashboard) = (read("prometheus/navlocks.rules.yml"), read("grafana/navlocks.json"));
    let page = read("../docs/operating.md");
    let documented = metrics(&page);
    for used in metrics(&rules).union(&metrics(&dashboard)) {
        assert!(documented.contains(used), "{used} is not in docs/operating.md");
    }
    let alerts: Vec<&str> =
        rules.lines().filter_map(|line| line.trim().strip_prefix("- alert: ")).collect();
    assert_eq!(alerts.len(), 11);
    for alert in alerts {
        assert!(page.contains(&format!("### {alert}\n")), "{alert} has no runbook");
        let link = format!("docs/operating.md#{}\"", alert.to_lowercase());
        assert!(rules.contains(&link), "{alert} has no link");
    }
    let dashboard: serde_json::Value = serde_json::from_str(&dashboard).expect("JSON");
    let panels = dashboard["panels"].as_array().expect("panels");
    let ids: BTreeSet<u64> = panels.iter().filter_map(|panel| panel["id"].as_u64()).collect();
    assert_eq!(ids.len(), panels.len());
    for panel in panels {
        assert!(panel["targets"][0]["expr"].is_string() && panel["gridPos"]["w"].is_u64());
    }
}

/// Every metric of the page is one of a real service, and the other way round.
#[test]
fn page_lists_the_metrics_of_the_service() {
    let world = World::new();
    drop(world.hold("run a"));
    let script = r#"curl --silent --unix-socket "$NAVLOCKS_DIR/socket" http://localhost/metrics"#;
    let mut shell = Command::new("sh");
    world.settle(&mut shell);
    let output = finish({
        shell.args(["-c", script]);
        shell
    });
    if output.status.code() == Some(127) {
        return servers::skip("there is no curl");
    }
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    let types = text.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split_once(' '));
    let page = fs::read_to_string(packaging().join("../docs/operating.md")).expect("the page");
    for (name, kind) in types {
        let name = if kind == "info" { format!("{name}_info") } else { name.to_owned() };
        let short = name.strip_prefix("navlocks_tenant").map(|rest| format!("…{rest}"));
        let is_listed = page.contains(&name) || short.is_some_and(|short| page.contains(&short));
        assert!(is_listed, "{name} is not in docs/operating.md");
    }
}
