//! Tests of the benchmark program itself.

#[test]
fn a_benchmark_prints_one_json_object() {
    let program = std::process::Command::new(env!("CARGO_BIN_EXE_longhaul-bench"));
    let mut program = program;
    let output = program.arg("timing-overhead").output().expect("the program starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let printed: serde_json::Value = serde_json::from_slice(&output.stdout).expect("one JSON object");
    assert_eq!(printed["bench"], "timing-overhead");
}
