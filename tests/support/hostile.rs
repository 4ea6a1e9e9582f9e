//! Texts that are made to be slow to tokenise.

/// Makes a text of about so many bytes.
pub type Make = fn(usize) -> String;

/// Each is one long run that no rule of pre-tokenization cuts, or one that makes rules look far ahead. Ordinary prose, to
/// compare with, comes first.
pub const FAMILIES: [(&str, Make); 12] = [
    ("prose", |bytes| repeat("It was early, and the harbour lay quiet under the first light. ", bytes)),
    ("one long run of spaces", |bytes| repeat(" ", bytes)),
    ("one letter without end", |bytes| repeat("a", bytes)),
    ("words without spaces", |bytes| repeat("theandingerstionsalways", bytes)),
    ("combining marks", |bytes| format!("e{}", repeat("\u{301}\u{316}", bytes))),
    ("long digits", |bytes| repeat("3141592653589793", bytes)),
    ("emoji joined by ZWJ", |bytes| repeat("👩\u{200d}👧\u{200d}", bytes)),
    ("base64", base64),
    ("mixed scripts", |bytes| repeat("aдñ漢यΩ가жא", bytes)),
    ("punctuation", |bytes| repeat("=-<|>(~", bytes)),
    ("lines of spaces", |bytes| repeat("\n  \r\n \t", bytes)),
    ("apostrophes", |bytes| repeat("'s'll're", bytes)),
];

fn repeat(unit: &str, bytes: usize) -> String {
    unit.repeat(bytes.div_ceil(unit.len()))
}

/// Digits that do not repeat: base64 of a counter's bits, mixed.
fn base64(bytes: usize) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = "https://example.org/?q=".to_owned();
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    while text.len() < bytes {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        text.push(char::from(DIGITS[(state >> 58) as usize]));
    }
    text
}
