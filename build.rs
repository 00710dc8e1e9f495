//! On Linux the programs are linked to a fixed place. Elsewhere each worker would write its own copy of 216 kB of pointers at
//! its start, half of the memory that an idle one takes; libraries, heap and stacks are still placed at random.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let is = |name: &str, value: &str| std::env::var(name).is_ok_and(|found| found == value);
    if is("CARGO_CFG_TARGET_OS", "linux") && is("CARGO_CFG_TARGET_ENV", "gnu") {
        println!("cargo::rustc-link-arg-bins=-no-pie");
    }
}
