//! Elementary functions in f32 without branches or calls, so that loops over them vectorise.

/// e^x for x ≤ 0, within 2 units in the last place; 0 below the smallest normal number.
///
/// Reduction to |r| ≤ ln(2)/2 and a degree-6 polynomial, as in the Cephes library (S. Moshier).
#[inline(always)]
pub(super) fn exp_nonpositive(x: f32) -> f32 {
    // Adding 1.5 * 2^23 rounds to the nearest integer and leaves it in the low bits.
    const ROUND: f32 = 12_582_912.0;
    const LN2_HIGH: f32 = 0.693_359_4;
    const LN2_LOW: f32 = -2.121_944_4e-4;
    const SMALLEST: f32 = -87.336_54;
    // Selections, not `max`: NaN must come through.
    let clamped = if x < SMALLEST { SMALLEST } else { x };
    let shifted = clamped * std::f32::consts::LOG2_E + ROUND;
    let n = shifted - ROUND;
    let r = clamped - n * LN2_HIGH - n * LN2_LOW;
    let mut p = 1.987_569_1e-4;
    p = p * r + 1.398_199_9e-3;
    p = p * r + 8.333_452e-3;
    p = p * r + 4.166_579_6e-2;
    p = p * r + 1.666_666_5e-1;
    p = p * r + 0.5;
    let p = p * (r * r) + r + 1.0;
    let two_to_n = f32::from_bits((shifted.to_bits() << 23).wrapping_add(0x3f80_0000));
    if x < SMALLEST { 0.0 } else { p * two_to_n }
}

/// The error function, within 5e-7 relative.
///
/// The rational approximation on [-4, 4] that Eigen uses; beyond 3.92 the nearest f32 is ±1, which
/// the approximation misses by a unit.
#[inline(always)]
pub(super) fn erf(x: f32) -> f32 {
    const ALPHA: [f32; 7] = [
        -2.726_142e-10,
        2.770_681_5e-8,
        -2.101_024e-6,
        -5.692_506_4e-5,
        -7.349_906e-4,
        -2.954_6e-3,
        -1.609_603_3e-2,
    ];
    const BETA: [f32; 5] =
        [-1.456_607_2e-5, -2.133_740_5e-4, -1.682_827e-3, -7.373_329e-3, -1.426_473_9e-2];
    let x = if x > 4.0 { 4.0 } else { x };
    let x = if x < -4.0 { -4.0 } else { x };
    let square = x * x;
    let mut p = ALPHA[0];
    for alpha in &ALPHA[1..] {
        p = p * square + alpha;
    }
    let mut q = BETA[0];
    for beta in &BETA[1..] {
        q = q * square + beta;
    }
    let y = x * p / q;
    let y = if x > 3.92 { 1.0 } else { y };
    if x < -3.92 { -1.0 } else { y }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exp_is_within_two_units_in_the_last_place() {
        let mut worst = 0f64;
        for i in 0..2_000_000 {
            let x = -(i as f32) * 4.36e-5;
            let exact = f64::from(x).exp();
            worst = worst.max(((f64::from(exp_nonpositive(x)) - exact) / exact).abs());
        }
        assert!(worst < 2.0 * f64::from(f32::EPSILON), "worst relative error {worst:e}");
    }

    #[test]
    fn exp_keeps_its_special_values() {
        assert_eq!(exp_nonpositive(0.0), 1.0);
        assert_eq!(exp_nonpositive(-1e30), 0.0);
        assert_eq!(exp_nonpositive(f32::NEG_INFINITY), 0.0);
        assert!(exp_nonpositive(f32::NAN).is_nan());
    }

    #[test]
    fn erf_is_within_its_stated_error() {
        let mut worst = 0f64;
        for i in 1..1_000_000 {
            let x = i as f32 * 6e-6;
            let exact = libm::erf(f64::from(x));
            worst = worst.max(((f64::from(erf(x)) - exact) / exact).abs());
            assert_eq!(erf(-x), -erf(x));
        }
        assert!(worst < 5e-7, "worst relative error {worst:e}");
        assert_eq!((erf(0.0), erf(-1e30), erf(f32::INFINITY)), (0.0, -1.0, 1.0));
        assert!(erf(f32::NAN).is_nan());
    }
}
