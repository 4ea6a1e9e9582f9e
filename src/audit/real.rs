//! A number of a record: readable, and exact.

use serde::de::{Deserialize, Deserializer, Error};
use serde::{Serialize, Serializer};

/// An f64 as `{"value": 0.5, "bits": "3fe0000000000000"}`. The bits are what is read back: a decimal number may change its
/// last bit on the way through a JSON parser. A value that is another number than its bits is refused: people read the
/// value. It is null for a number that is not finite.
#[derive(Clone, Copy, Debug)]
pub struct Real(pub f64);

/// How far a JSON parser may be off.
const PARSER_ULPS: u64 = 4;

impl Real {
    /// How many representable numbers lie between two numbers; 0 for equal bits.
    pub fn ulps(self, other: Self) -> u64 {
        // Adjacent numbers have adjacent keys, across zero too.
        let key = |number: f64| {
            let bits = number.to_bits() as i64;
            i128::from(if bits < 0 { i64::MIN.wrapping_sub(bits) } else { bits })
        };
        match (key(self.0) - key(other.0)).unsigned_abs() {
            // 0 and -0 are one number of two bit patterns.
            0 if self != other => 1,
            distance => u64::try_from(distance).unwrap_or(u64::MAX),
        }
    }
}

impl PartialEq for Real {
    fn eq(&self, other: &Self) -> bool {
        self.0.to_bits() == other.0.to_bits()
    }
}

impl std::fmt::Display for Real {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ({:016x})", self.0, self.0.to_bits())
    }
}

impl Serialize for Real {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Wire {
            value: Option<f64>,
            bits: String,
        }
        let value = Some(self.0).filter(|value| value.is_finite());
        Wire { value, bits: format!("{:016x}", self.0.to_bits()) }.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Real {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(serde::Deserialize)]
        struct Wire {
            value: Option<f64>,
            bits: String,
        }
        let Wire { value, bits } = Wire::deserialize(deserializer)?;
        let digits = bits.len() == 16 && bits.bytes().all(|digit| digit.is_ascii_hexdigit());
        let real = match u64::from_str_radix(&bits, 16) {
            Ok(bits) if digits => Self(f64::from_bits(bits)),
            _ => return Err(D::Error::custom("the bits of a number have 16 hexadecimal digits")),
        };
        let same = match value {
            Some(value) => real.0.is_finite() && real.ulps(Self(value)) <= PARSER_ULPS,
            None => !real.0.is_finite(),
        };
        if same { Ok(real) } else { Err(D::Error::custom("a value is another number than its bits")) }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use super::*;

    #[test]
    fn numbers_are_readable_and_come_back_bit_by_bit() {
        assert_eq!(serde_json::to_string(&Real(0.5)).unwrap(), r#"{"value":0.5,"bits":"3fe0000000000000"}"#);
        assert_eq!(serde_json::to_string(&Real(f64::NAN)).unwrap(), r#"{"value":null,"bits":"7ff8000000000000"}"#);
        for number in [0.1 + 0.2, -0.0, f64::MIN_POSITIVE / 3.0, f64::INFINITY, f64::from_bits(0xfff0_dead_beef_0001)] {
            let text = serde_json::to_string(&Real(number)).unwrap();
            assert_eq!(serde_json::from_str::<Real>(&text).unwrap(), Real(number), "{text}");
        }
        for wrong in [r#"{"bits":"3fe"}"#, r#"{"bits":"+fe0000000000000"}"#, r#"{"value":0.5}"#, "0.5"] {
            assert!(serde_json::from_str::<Real>(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_value_that_people_would_read_otherwise_than_its_bits_is_refused() {
        let forged = |value: &str, bits: &str| {
            serde_json::from_str::<Real>(&format!(r#"{{"value":{value},"bits":"{bits}"}}"#)).is_err()
        };
        let half = "3fe0000000000000";
        assert!(!forged("0.5", half));
        for value in ["0.999", "0.5000000001", "-0.5", "null", "\"0.5\""] {
            assert!(forged(value, half), "{value}");
        }
        assert!(forged("0.5", "7ff8000000000000"));
    }

    #[test]
    fn the_distance_counts_representable_numbers() {
        let ulps = |a: f64, b: f64| Real(a).ulps(Real(b));
        assert_eq!(ulps(1.0, 1.0), 0);
        assert_eq!(ulps(1.0, 1.0 + f64::EPSILON), 1);
        assert_eq!(ulps(1.0 - f64::EPSILON / 2.0, 1.0), 1);
        // From one half to one there are 2^52 numbers.
        assert_eq!(ulps(1.0, 0.5), 1 << 52);
        assert_eq!(ulps(0.0, -0.0), 1);
        let least = f64::from_bits(1);
        assert_eq!(ulps(least, -least), 2);
    }
}
