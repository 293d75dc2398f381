//! A dashboard for Grafana: what the operator tells of itself and of the work it holds.

use super::Sheet;
use serde_json::{Value, json};

/// Title, unit and query of each panel, in reading order.
const PANELS: &[(&str, &str, &str)] = &[
    ("Attempts by state", "short", "sum by (is) (peregrine_operator_attempts)"),
    ("Pods that could not report, by reason", "short", "sum by (is) (increase(peregrine_operator_gone_total[1h]))"),
    (
        "Attempts made and removed",
        "ops",
        "rate(peregrine_operator_made_total[5m]) or rate(peregrine_operator_removed_total[5m])",
    ),
    (
        "Gangs released and taken back",
        "ops",
        "rate(peregrine_operator_freed_total[5m]) or rate(peregrine_operator_taken_back_total[5m])",
    ),
    ("Connected to the server", "short", "max(peregrine_operator_connected)"),
    ("Nodes", "short", "max(peregrine_operator_nodes)"),
    (
        "Memory of the operator",
        "bytes",
        "container_memory_working_set_bytes{container=\"operator\",pod=~\"peregrine-operator-.*\"}",
    ),
    (
        "CPU of the operator",
        "percentunit",
        "rate(container_cpu_usage_seconds_total{container=\"operator\",pod=~\"peregrine-operator-.*\"}[5m])",
    ),
];

/// Found by the sidecar that Grafana's chart runs.
pub(super) fn config_map(sheet: &Sheet) -> Value {
    let mut metadata = sheet.metadata("peregrine-dashboard");
    metadata["labels"]["grafana_dashboard"] = json!("1");
    json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata,
        "data": {"peregrine.json": json!(dashboard()).to_string()},
    })
}

fn dashboard() -> Value {
    let panel = |(at, (title, unit, query)): (usize, &(&str, &str, &str))| {
        json!({
            "id": at + 1, "type": "timeseries", "title": title, "datasource": "${source}",
            "gridPos": {"h": 8, "w": 12, "x": 12 * (at % 2), "y": 8 * (at / 2)},
            "fieldConfig": {"defaults": {"unit": unit}},
            "targets": [{"refId": "A", "expr": query}],
        })
    };
    json!({
        "uid": "peregrine", "title": "Peregrine on Kubernetes", "schemaVersion": 39, "refresh": "30s",
        "time": {"from": "now-6h", "to": "now"},
        "templating": {"list": [{"name": "source", "type": "datasource", "query": "prometheus"}]},
        "panels": PANELS.iter().enumerate().map(panel).collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::PANELS;
    use crate::operator::metrics::Metrics;

    #[test]
    fn every_panel_asks_for_something_the_operator_tells() {
        let told = Metrics::default();
        told.gone("Evicted");
        told.attempts([("placed", 1), ("waiting", 0), ("to make", 0)]);
        let told = told.render();
        let words = |query: &'static str| query.split(|letter: char| !letter.is_alphanumeric() && letter != '_');
        let ours = PANELS.iter().flat_map(|(_, _, query)| words(query)).filter(|word| word.starts_with("peregrine_"));
        for name in ours {
            assert!(told.lines().any(|line| line.starts_with(name)), "{name} is not told:\n{told}");
        }
    }
}
