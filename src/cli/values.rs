//! Readers of values that several flags share. Each says what it takes.

/// Reads a whole number from `least` to `most`.
pub fn whole(least: usize, most: usize) -> impl Fn(&str) -> Result<usize, String> + Clone + Send + Sync + 'static {
    move |text| match text.parse() {
        Ok(number) if (least..=most).contains(&number) => Ok(number),
        _ => Err(format!("it must be a whole number from {least} to {most}")),
    }
}

/// Reads a number that is not infinite and not NaN.
pub fn finite(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(value) if value.is_finite() => Ok(value),
        _ => Err("it must be a finite number, for example -0.5".to_owned()),
    }
}

pub fn above_zero(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(value) if value.is_finite() && value > 0.0 => Ok(value),
        _ => Err("it must be a number above zero, for example 0.05".to_owned()),
    }
}
