//! Tests the answer in one flat object, for other dashboards.

use crate::client::TestServer;

#[test]
fn recipes_for_other_dashboards_use_keys_of_the_glance() {
    let docs = include_str!("../../../docs/dashboard.md");
    let glance = TestServer::start().get("/api/v1/glance").json();
    let fields = docs.lines().filter_map(|line| line.trim().strip_prefix("- field: "));
    let values = docs.split("value_json.").skip(1).filter_map(|rest| rest.split_whitespace().next());
    let attributes = docs.lines().filter_map(|line| line.trim().strip_prefix("json_attributes: ["));
    let attributes = attributes.flat_map(|list| list.trim_end_matches(']').split(", "));
    let keys: Vec<&str> = fields.chain(values).chain(attributes).collect();
    assert_eq!(keys.len(), 9, "{keys:?}");
    assert!(keys.iter().all(|key| glance.get(key).is_some()), "{keys:?} {glance}");
}

#[test]
fn glance_is_the_recommendation_of_the_newest_week() {
    let server = TestServer::start();
    let (glance, weekly) = (server.get("/api/v1/glance").json(), server.get("/api/v1/week").json());
    let recommended = &weekly["recommendation"];
    assert_eq!(
        [&glance["recommendation"], &glance["target"], &glance["confidence"], &glance["minutes_a_week"]],
        [
            &recommended["text"],
            &recommended["target"],
            &recommended["confidence"],
            &recommended["minutes_a_week"]["value"]
        ]
    );
    assert!(server.get("/").text().contains(glance["recommendation"].as_str().unwrap()));
    assert!(glance.as_object().unwrap().values().all(|value| !value.is_object() && !value.is_array()));
}
