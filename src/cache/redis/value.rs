//! A judgement as bytes. What the method derives from the posteriors is not among them: a value cannot contradict itself.

use super::{Invalid, Judgement};
use crate::prism::{Conclusion, DimensionVerdict, DimensionVerdicts, Label, Posterior};

/// Displayed orders of three labels: no dimension has more.
const ORDERS: usize = 6;

/// Bytes of the longest body: tokens; for each dimension three shares, the label mass and the orders.
pub(super) const LONGEST: usize = 8 + 3 * (3 * 8 + 1 + 8 + 1 + ORDERS);

/// How far from 1 the sum of a posterior may be: its rounding, with much to spare.
const ROUNDING: f64 = 1e-9;

/// The body of a judgement: little endian, numbers as their bits.
pub fn encode(judgement: &Judgement) -> Vec<u8> {
    // Named one by one, so that a new field cannot be forgotten here.
    let Judgement { conclusion, prompt_tokens } = judgement;
    let Conclusion { s_prism: _, dimensions, weakest_dimension: _ } = conclusion;
    let DimensionVerdicts { task_framing, interpersonal_stance, linguistic_style } = dimensions;
    let mut body = Vec::with_capacity(LONGEST);
    body.extend(prompt_tokens.to_le_bytes());
    for dimension in [task_framing, interpersonal_stance, linguistic_style] {
        let DimensionVerdict { posterior, evidence: _, label_mass, label_order } = dimension;
        let Posterior { aligned, indeterminate, contradictory } = posterior;
        for share in [aligned, indeterminate, contradictory] {
            body.extend(share.to_bits().to_le_bytes());
        }
        body.push(u8::from(label_mass.is_some()));
        body.extend(label_mass.iter().flat_map(|mass| mass.to_bits().to_le_bytes()));
        body.push(u8::try_from(label_order.len()).unwrap_or(u8::MAX));
        body.extend(label_order.iter().map(|[a, b, c]| (*a as u8) | ((*b as u8) << 2) | ((*c as u8) << 4)));
    }
    body
}

/// The judgement of a body; for any bytes whatever.
///
/// # Errors
/// It is not one that [`encode`] makes: too short or too long, shares that are no posterior, orders that are none.
pub fn decode(body: &[u8]) -> Result<Judgement, Invalid> {
    let mut reader = Reader(body);
    let prompt_tokens = u64::from_le_bytes(reader.take()?);
    let dimensions = DimensionVerdicts {
        task_framing: reader.dimension()?,
        interpersonal_stance: reader.dimension()?,
        linguistic_style: reader.dimension()?,
    };
    if !reader.0.is_empty() {
        return Err(Invalid::Length);
    }
    Ok(Judgement { conclusion: Conclusion::new(dimensions), prompt_tokens })
}

/// What is left to read.
struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], Invalid> {
        let (bytes, rest) = self.0.split_first_chunk().ok_or(Invalid::Length)?;
        self.0 = rest;
        Ok(*bytes)
    }

    fn byte(&mut self) -> Result<u8, Invalid> {
        let [byte] = self.take()?;
        Ok(byte)
    }

    /// A number from 0 to 1.
    fn share(&mut self) -> Result<f64, Invalid> {
        let share = f64::from_bits(u64::from_le_bytes(self.take()?));
        // What is not finite is in no range.
        if (0.0..=1.0).contains(&share) { Ok(share) } else { Err(Invalid::Content) }
    }

    fn dimension(&mut self) -> Result<DimensionVerdict, Invalid> {
        let posterior =
            Posterior { aligned: self.share()?, indeterminate: self.share()?, contradictory: self.share()? };
        let sum = posterior.aligned + posterior.indeterminate + posterior.contradictory;
        if (sum - 1.0).abs() > ROUNDING {
            return Err(Invalid::Content);
        }
        let label_mass = match self.byte()? {
            0 => None,
            1 => Some(self.share()?),
            _ => return Err(Invalid::Content),
        };
        let orders = usize::from(self.byte()?);
        if orders > ORDERS {
            return Err(Invalid::Content);
        }
        let label_order = (0..orders).map(|_| self.order()).collect::<Result<_, _>>()?;
        Ok(DimensionVerdict::new(posterior, label_mass, label_order))
    }

    /// Three different labels in the six lower bits of a byte.
    fn order(&mut self) -> Result<[Label; 3], Invalid> {
        let byte = self.byte()?;
        let label = |shift: u8| Label::ALL.get(usize::from((byte >> shift) & 3)).copied().ok_or(Invalid::Content);
        let [a, b, c] = [label(0)?, label(2)?, label(4)?];
        if byte >> 6 == 0 && a != b && b != c && a != c { Ok([a, b, c]) } else { Err(Invalid::Content) }
    }
}

#[cfg(test)]
#[path = "value_tests.rs"]
mod tests;
