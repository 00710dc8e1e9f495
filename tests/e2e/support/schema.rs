//! Checks JSON output against schema 1, which scripts rely on.

use serde_json::Value;

const OUTCOMES: [&str; 5] = ["ok", "error", "hung", "unavailable", "void"];

/// Value in a JSON document together with its path, which panic messages contain.
struct At<'a> {
    value: &'a Value,
    place: String,
}

impl<'a> At<'a> {
    fn root(value: &'a Value, name: &str) -> Self {
        Self { value, place: name.to_owned() }
    }

    fn key(&self, key: &str) -> At<'a> {
        let place = format!("{}.{key}", self.place);
        let value = self.value.get(key).unwrap_or_else(|| panic!("{place} is missing"));
        At { value, place }
    }

    fn each(&self) -> impl Iterator<Item = At<'a>> {
        let items = self.value.as_array().unwrap_or_else(|| panic!("{} is not an array", self.place));
        let place = self.place.clone();
        items.iter().enumerate().map(move |(n, value)| At { value, place: format!("{place}[{n}]") })
    }

    fn text(&self) -> &'a str {
        self.value.as_str().unwrap_or_else(|| panic!("{} is not a string: {}", self.place, self.value))
    }

    fn count(&self) -> u64 {
        self.value
            .as_u64()
            .unwrap_or_else(|| panic!("{} is not an unsigned integer: {}", self.place, self.value))
    }

    fn number(&self) -> f64 {
        let number = self.value.as_f64().filter(|number| number.is_finite() && number.is_sign_positive());
        number
            .unwrap_or_else(|| panic!("{} is not a finite number of at least 0: {}", self.place, self.value))
    }

    fn one_of(&self, allowed: &[&str]) -> &'a str {
        assert!(allowed.contains(&self.text()), "{} is {}", self.place, self.value);
        self.text()
    }
}

/// Checks an output of `run --json`: the runs, then an end record that counts them.
pub fn check_output(lines: &[Value]) {
    check_output_of_interrupted(lines);
    let (end, runs) = lines.split_last().expect("at least the end");
    let failed = runs.iter().filter(|run| run["outcome"] != "ok").count();
    assert_eq!(end["failed"], failed);
}

/// Like [`check_output`], for an output that the user interrupted: the interrupted run is not counted as failed.
pub fn check_output_of_interrupted(lines: &[Value]) {
    let (end, runs) = lines.split_last().expect("at least the end");
    runs.iter().for_each(check_run);
    let end = At::root(end, "end");
    end.key("type").one_of(&["end"]);
    assert_eq!(end.key("runs").count(), runs.len() as u64);
    assert!(end.key("failed").count() <= runs.len() as u64);
}

/// Checks a run record.
pub fn check_run(run: &Value) {
    let run = At::root(run, "run");
    run.key("type").one_of(&["run"]);
    assert!(run.key("run").count() > 0 && run.key("round").count() > 0);
    run.key("target").text();
    run.key("workload").text();
    run.key("seconds").number();
    let ok = run.key("outcome").one_of(&OUTCOMES) == "ok";
    assert!(run.key("protocol").value.is_string() || !ok, "an ok run has a protocol");
    assert_eq!(run.key("failure").value.is_null(), ok, "a run has a failure exactly if it is not ok");
    assert!(!ok || run.key("phases").each().count() > 0, "an ok run has phases");
    run.key("phases").each().for_each(|phase| check_phase(&phase));
}

fn check_phase(phase: &At<'_>) {
    phase.key("name").text();
    let is_cold = phase.key("cache").one_of(&["cold", "warm", "none"]) == "cold";
    assert_eq!(phase.key("cold_by").value.is_string(), is_cold, "{}", phase.place);
    phase.key("seconds").number();
    phase.key("bytes_read").count();
    phase.key("bytes_written").count();
    for figure in phase.key("figures").each() {
        figure.key("name").text();
        figure.key("unit").one_of(&["s", "B/s", "1/s", "1", "share"]);
        figure.key("value").number();
    }
    phase.key("ops").each().for_each(|operation| check_operation(&operation));
}

fn check_operation(operation: &At<'_>) {
    operation.key("op").text();
    let count = operation.key("count").count();
    assert!(count > 0 && operation.key("errors").count() <= count, "{}", operation.place);
    let times = ["p50_us", "p95_us", "p99_us", "max_us"].map(|name| operation.key(name).number());
    assert!(times.is_sorted(), "{}: {times:?}", operation.place);
}

/// Checks the output of `runs --summary --json`.
pub fn check_summary(summary: &Value) {
    let summary = At::root(summary, "summary");
    assert_eq!(summary.key("schema").count(), 1);
    let listed = summary.key("targets");
    let targets: Vec<String> = listed.each().map(|target| target.key("name").text().to_owned()).collect();
    for workload in summary.key("workloads").each() {
        workload.key("name").text();
        workload.key("figures").each().for_each(|figure| check_figure(&figure, &targets));
    }
}

fn check_figure(figure: &At<'_>, targets: &[String]) {
    figure.key("name").text();
    figure.key("unit").one_of(&["s", "B/s", "1/s", "1", "share"]);
    let by_target = figure.key("by_target");
    for name in by_target.value.as_object().unwrap().keys() {
        assert!(targets.contains(name), "{name} is not a target");
        let spread = by_target.key(name);
        let n = spread.key("n").count();
        spread.key("failed").count();
        assert_eq!(spread.key("median").value.is_null(), n == 0, "{}", spread.place);
        if n > 0 {
            assert!(spread.key("median").number() <= spread.key("p95").number(), "{}", spread.place);
        }
    }
    for ratio in figure.key("ratios").each() {
        let (a, b) = (ratio.key("a").text(), ratio.key("b").text());
        assert!(a != b && targets.iter().any(|name| name == a) && targets.iter().any(|name| name == b));
        assert!(ratio.key("median_ratio").number() > 0.0 && ratio.key("rounds").count() > 0);
    }
}
