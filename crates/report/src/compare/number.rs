//! Numbers as C's `%g` prints them (ISO C, 7.21.6.1).

/// `value` with so many significant digits, without trailing zeros.
pub(super) fn general(value: f64, digits: usize) -> String {
    if value == 0.0 || !value.is_finite() {
        return format!("{value}").to_lowercase();
    }
    // Rounded to its digits first: that may make the exponent one more.
    let rounded = format!("{value:.*e}", digits - 1);
    let (mantissa, exponent) = rounded.split_once('e').unwrap_or((&rounded, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if (-4..digits as i32).contains(&exponent) {
        let decimals = digits as i32 - 1 - exponent;
        return shorter(&format!("{value:.*}", decimals as usize)).to_owned();
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{}e{sign}{:02}", shorter(mantissa), exponent.abs())
}

/// Without zeros that end a fraction.
fn shorter(number: &str) -> &str {
    match number.contains('.') {
        true => number.trim_end_matches('0').trim_end_matches('.'),
        false => number,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_printf_has_it() {
        for (value, digits, text) in [
            (0.0, 8, "0"),
            (-0.0, 8, "-0"),
            (100.0, 8, "100"),
            (47.571_428_571, 8, "47.571429"),
            (123_456_789.0, 8, "1.2345679e+08"),
            (99_999_999.6, 8, "1e+08"),
            (0.000_123_45, 6, "0.00012345"),
            (0.000_012_345, 6, "1.2345e-05"),
            (-271.5, 6, "-271.5"),
            (1e100, 6, "1e+100"),
            (f64::NAN, 6, "nan"),
            (f64::INFINITY, 6, "inf"),
            (f64::NEG_INFINITY, 6, "-inf"),
        ] {
            assert_eq!(general(value, digits), text);
        }
    }
}
