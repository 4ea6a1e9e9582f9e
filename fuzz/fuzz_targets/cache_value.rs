//! Bytes from a shared cache: a judgement that is one, or a refusal.
#![no_main]

use libfuzzer_sys::fuzz_target;
use prism_judge::cache::redis::{RedisSecret, Seal, decode, encode};

fuzz_target!(|bytes: &[u8]| {
    if let Ok(judgement) = decode(bytes) {
        assert!(judgement.is_finite());
        assert_eq!(encode(&judgement), bytes, "one judgement has one body");
    }
    let seal = Seal::new(&RedisSecret::new(&[7; 64]).unwrap());
    // Nobody guesses a seal; and what is sealed is opened for its own key alone.
    assert!(seal.open("key", bytes).is_err());
    if bytes.len() <= 256 {
        let sealed = seal.seal("key", bytes);
        assert_eq!(seal.open("key", &sealed).unwrap(), bytes);
        assert!(seal.open("other key", &sealed).is_err());
    }
});
