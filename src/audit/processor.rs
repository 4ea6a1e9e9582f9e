//! The kind of processor, as far as it may change the last places of a number: the kernels that a program chooses when it
//! starts add in other orders, or with other roundings.

/// Architecture and those instruction sets that kernels are chosen by, for example `x86_64 fma avx2`.
pub fn processor() -> String {
    let mut name = std::env::consts::ARCH.to_owned();
    for set in instruction_sets() {
        name.push(' ');
        name.push_str(set);
    }
    name
}

#[cfg(target_arch = "x86_64")]
fn instruction_sets() -> Vec<&'static str> {
    let sets = [
        ("fma", is_x86_feature_detected!("fma")),
        ("avx2", is_x86_feature_detected!("avx2")),
        ("avx512f", is_x86_feature_detected!("avx512f")),
        ("avx512vnni", is_x86_feature_detected!("avx512vnni")),
    ];
    sets.into_iter().filter(|(_, here)| *here).map(|(name, _)| name).collect()
}

#[cfg(not(target_arch = "x86_64"))]
fn instruction_sets() -> Vec<&'static str> {
    Vec::new()
}
