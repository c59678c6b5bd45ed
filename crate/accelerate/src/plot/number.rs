//! Numbers as chart data and as labels.

/// A number that can be drawn.
///
/// ```
/// use candle_accelerate::plot::Number;
///
/// let losses = vec![0.5f32, 0.25];
/// assert_eq!(losses.iter().map(Number::to_f64).sum::<f64>(), 0.75);
/// ```
pub trait Number {
    /// The value.
    fn to_f64(&self) -> f64;
}

macro_rules! number {
    ($($type:ty),*) => {$(
        impl Number for $type {
            fn to_f64(&self) -> f64 {
                *self as f64
            }
        }
    )*};
}

number!(f32, f64, u8, u16, u32, u64, usize, i8, i16, i32, i64, isize);

impl<N: Number + ?Sized> Number for &N {
    fn to_f64(&self) -> f64 {
        (**self).to_f64()
    }
}

/// A number with at most `digits` significant digits, as short as possible.
pub(super) fn format(value: f64, digits: usize) -> String {
    if value == 0.0 || !value.is_finite() {
        return value.abs().to_string();
    }
    let exponent = value.abs().log10().floor() as i32;
    if !(-4..7).contains(&exponent) {
        let text = format!("{:.*e}", digits - 1, value);
        let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        return format!("{}e{exponent}", trim(mantissa));
    }
    let decimals = (digits as i32 - 1 - exponent).max(0) as usize;
    trim(&format!("{value:.decimals$}")).to_owned()
}

/// Without zeros at the end of the fraction.
fn trim(number: &str) -> &str {
    if number.contains('.') { number.trim_end_matches('0').trim_end_matches('.') } else { number }
}

#[cfg(test)]
mod tests {
    use super::format;

    #[test]
    fn numbers_are_short_and_exact_to_the_digits_asked_for() {
        let cases = [
            (0.0, "0"),
            (0.1 + 0.2, "0.3"),
            (-1.5, "-1.5"),
            (1234.567, "1235"),
            (100_000.0, "100000"),
            (2.5e7, "2.5e7"),
            (2e-5, "2e-5"),
            (0.000123, "0.000123"),
            (99.999, "100"),
        ];
        for (value, text) in cases {
            assert_eq!(format(value, 4), text);
        }
    }
}
