//! Values of Redis: what was sealed comes back bit by bit, and nothing else does.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use proptest::prelude::*;

use super::super::seal;
use super::super::{RedisSecret, Seal};
use super::*;
use crate::prism::Dimension;

const NAME: &str = "prism-judge:v1:k";

/// Changes that each test makes.
const CHANGES: usize = 100_000;

fn seal() -> Seal {
    Seal::new(&RedisSecret::new(b"0123456789abcdef").unwrap())
}

fn open(name: &str, value: &[u8]) -> Result<Judgement, Invalid> {
    seal().open(name, value).and_then(decode)
}

fn judgement(dimensions: [([f64; 3], Option<f64>, &[&str]); 3], prompt_tokens: u64) -> Judgement {
    let label = |letter: char| Label::ALL["ABC".find(letter).unwrap()];
    let order = |letters: &&str| -> [Label; 3] { letters.chars().map(label).collect::<Vec<_>>().try_into().unwrap() };
    let [task_framing, interpersonal_stance, linguistic_style] =
        dimensions.map(|([aligned, indeterminate, contradictory], label_mass, orders)| {
            let posterior = Posterior { aligned, indeterminate, contradictory };
            DimensionVerdict::new(posterior, label_mass, orders.iter().map(order).collect())
        });
    let dimensions = DimensionVerdicts { task_framing, interpersonal_stance, linguistic_style };
    Judgement { conclusion: Conclusion::new(dimensions), prompt_tokens }
}

/// The paper's Figure 2.
fn figure_2() -> Judgement {
    let [task, stance, style] = [[0.62, 0.25, 0.13], [0.28, 0.52, 0.20], [0.71, 0.20, 0.09]];
    let cyclic = ["ABC", "BCA", "CAB"];
    judgement([(task, None, &[][..]), (stance, Some(0.75), &["ABC"][..]), (style, Some(1.0), &cyclic[..])], 1234)
}

/// The value of `figure_2` under `NAME`, made by Python's `struct`, `hashlib` and `hmac` from the layout alone: key =
/// sha256 over the fields schema = "prism-judge redis seal 1" and secret, each tag and value after its length as `<Q`;
/// value = 01, `<H` length, body; tag = hmac(key, `<Q` length of the name, name, value).
const GOLDEN: &str = "016a00d204000000000000d7a3703d0ad7e33f000000000000d03fa4703d0ad7a3c03f0000ec51b81e85ebd13fa4703d\
                      0ad7a3e03f9a9999999999c93f01000000000000e83f0124b81e85eb51b8e63f9a9999999999c93f0ad7a3703d0ab73f\
                      01000000000000f03f0324091215e6a8e025249c1a1cbd9d4f2e3651a2104d8c27fbed2ec95344f4bd4ed3a4f9";

fn golden() -> Vec<u8> {
    let digit = |at: usize| u8::from_str_radix(&GOLDEN[at..at + 2], 16).unwrap();
    (0..GOLDEN.len()).step_by(2).map(digit).collect()
}

#[test]
fn a_value_is_the_one_that_python_makes() {
    assert_eq!(seal().seal(NAME, &encode(&figure_2())), golden());
    let read = open(NAME, &golden()).unwrap();
    assert_eq!(read, figure_2());
    // Derived: Eq. 2 and 3, and the least evidence.
    assert_eq!(read.conclusion.s_prism, 0.536_666_666_666_666_6);
    assert_eq!(read.conclusion.dimensions.task_framing.evidence, 0.62);
    assert_eq!(read.conclusion.weakest_dimension, Dimension::InterpersonalStance);
}

#[test]
fn the_longest_value_is_as_long_as_look_ups_read() {
    let all = ["ABC", "ACB", "BAC", "BCA", "CAB", "CBA"];
    let dimension = ([1.0, 0.0, 0.0], Some(0.5), &all[..]);
    let longest = judgement([dimension; 3], u64::MAX);
    let value = seal().seal(NAME, &encode(&longest));
    assert_eq!(value.len(), seal::LONGEST);
    assert_eq!(open(NAME, &value).unwrap(), longest);
}

#[test]
fn another_key_another_secret_or_another_version_is_not_ours() {
    let value = golden();
    assert_eq!(open("prism-judge:v1:l", &value), Err(Invalid::Seal));
    assert_eq!(open("prism-judge:v1:", &value), Err(Invalid::Seal));
    let other = Seal::new(&RedisSecret::new(b"0123456789abcdeF").unwrap());
    assert_eq!(other.open(NAME, &value), Err(Invalid::Seal));
    let mut newer = value.clone();
    newer[0] = 2;
    assert_eq!(open(NAME, &newer), Err(Invalid::Version));
}

#[test]
fn every_flipped_bit_every_cut_and_every_longer_value_is_refused() {
    let value = golden();
    for at in 0..value.len() {
        for bit in 0..8 {
            let mut flipped = value.clone();
            flipped[at] ^= 1 << bit;
            assert!(open(NAME, &flipped).is_err(), "bit {bit} of byte {at}");
        }
        assert!(open(NAME, &value[..at]).is_err(), "{at} bytes");
        assert!(open(NAME, &value[at + 1..]).is_err(), "from byte {at} on");
        let longer = [&value[..], &value[..=at]].concat();
        assert!(open(NAME, &longer).is_err(), "{at} bytes more");
    }
}

#[test]
fn a_hundred_thousand_poisoned_values_are_refused() {
    let mut random = Random(20_261_130);
    let (one, other) = (golden(), seal().seal("prism-judge:v1:l", &encode(&figure_2())));
    let mut changed = 0;
    for _ in 0..CHANGES {
        let mut value = if random.below(2) == 0 { one.clone() } else { other.clone() };
        for _ in 0..=random.below(4) {
            poison(&mut value, &other, &mut random);
        }
        if value != one {
            changed += 1;
            assert!(open(NAME, &value).is_err(), "{value:?}");
        }
    }
    assert!(changed > CHANGES / 10 * 9, "{changed}");
}

/// A seal that an attacker cannot make would let these through: whatever the body, there is no number that is not one.
#[test]
fn a_hundred_thousand_poisoned_bodies_give_errors_or_whole_judgements() {
    let mut random = Random(7);
    let body = encode(&figure_2());
    let (mut taken, mut refused) = (0, 0);
    for _ in 0..CHANGES {
        let mut changed = body.clone();
        poison(&mut changed, &body, &mut random);
        match decode(&changed) {
            Ok(judgement) => {
                taken += 1;
                whole(&judgement);
                assert_eq!(encode(&judgement), changed, "one judgement has one body");
            }
            Err(_) => refused += 1,
        }
    }
    // Both happen: the count of tokens and the last bits of a share say nothing of themselves.
    assert!(taken > 1_000 && refused > CHANGES / 4, "{taken} taken, {refused} refused");
}

#[test]
fn shares_that_are_no_posterior_and_orders_that_are_none_are_refused() {
    let body = encode(&figure_2());
    for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -0.1, 1.1, 0.0, 0.63, f64::MIN_POSITIVE] {
        for share in 0..3 {
            let mut changed = body.clone();
            changed[8 + 8 * share..][..8].copy_from_slice(&bad.to_bits().to_le_bytes());
            assert_eq!(decode(&changed), Err(Invalid::Content), "{bad} as share {share}");
        }
    }
    // The orders of the last dimension: A twice, a fourth label, a seventh bit, and the count before them.
    for order in [0b0000_0100, 0b0011_0100, 0b0100_1001] {
        let mut changed = body.clone();
        *changed.last_mut().unwrap() = order;
        assert_eq!(decode(&changed), Err(Invalid::Content), "{order:b}");
    }
    let mut changed = body.clone();
    changed[body.len() - 4] = 7;
    assert_eq!(decode(&changed), Err(Invalid::Content));
}

/// A judgement that can be told to anybody.
fn whole(judgement: &Judgement) {
    assert!(judgement.is_finite());
    assert!((0.0..=1.0).contains(&judgement.conclusion.s_prism));
    for dimension in Dimension::ALL {
        let dimension = judgement.conclusion.dimensions.get(dimension);
        let Posterior { aligned, indeterminate, contradictory } = dimension.posterior;
        assert!((aligned + indeterminate + contradictory - 1.0).abs() <= 1e-9);
        assert_eq!(dimension.evidence.to_bits(), aligned.to_bits());
    }
}

/// One change: a flip, another byte, a cut, a longer value, a piece of another one, or all of it made up.
fn poison(value: &mut Vec<u8>, other: &[u8], random: &mut Random) {
    let at = random.below(value.len().max(1));
    match random.below(8) {
        0..=2 if !value.is_empty() => value[at] ^= 1 << random.below(8),
        3 if !value.is_empty() => value[at] = random.below(256) as u8,
        4 => value.truncate(at),
        5 => value.extend((0..random.below(64)).map(|_| random.below(256) as u8)),
        6 => {
            let end = (at + random.below(48)).min(value.len()).min(other.len());
            if at < end {
                value[at..end].copy_from_slice(&other[at..end]);
            }
        }
        7 if random.below(8) == 0 => *value = (0..random.below(300)).map(|_| random.below(256) as u8).collect(),
        _ => {}
    }
}

/// SplitMix64.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % limit as u64) as usize
    }
}

proptest! {
    #[test]
    fn any_judgement_comes_back_bit_by_bit(
        scores in prop::array::uniform3(prop::array::uniform3(-50.0..50f64)),
        masses in prop::array::uniform3(prop::option::of(0.0..=1f64)),
        orders in 0usize..=6,
        tokens in any::<u64>(),
        name in "[a-z:{}0-9]{1,40}",
    ) {
        let all = ["ABC", "ACB", "BAC", "BCA", "CAB", "CBA"];
        let softmax = |scores: [f64; 3]| {
            let shares = scores.map(f64::exp);
            shares.map(|share| share / shares.iter().sum::<f64>())
        };
        let dimension = |at: usize| (softmax(scores[at]), masses[at], &all[..orders]);
        let judgement = judgement([dimension(0), dimension(1), dimension(2)], tokens);
        let value = seal().seal(&name, &encode(&judgement));
        let read = open(&name, &value).unwrap();
        // Equal bits, which equal numbers need not be.
        prop_assert_eq!(encode(&read), encode(&judgement));
        prop_assert_eq!(read.conclusion.s_prism.to_bits(), judgement.conclusion.s_prism.to_bits());
        prop_assert_eq!(read, judgement);
    }

    #[test]
    fn no_bytes_make_the_decoder_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        prop_assert!(open(NAME, &bytes).is_err());
        if let Ok(judgement) = decode(&bytes) {
            whole(&judgement);
        }
    }
}
