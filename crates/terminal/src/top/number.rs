//! Numbers in few places.

const UNITS: [&str; 6] = ["", "k", "M", "G", "T", "P"];

/// A number of at most six characters with three digits that count: `0`, `7.50`, `999`, `1.23k`,
/// `17.9G`.
pub fn short(value: f64) -> String {
    if !value.is_finite() || value <= 0.0 {
        return "0".to_owned();
    }
    let mut scaled = value;
    let mut unit = 0;
    // What would be rounded up to four digits has the next unit.
    while scaled >= 999.5 && unit + 1 < UNITS.len() {
        scaled /= 1000.0;
        unit += 1;
    }
    let digits = match scaled {
        _ if unit == 0 && scaled.fract() == 0.0 => 0,
        s if s < 9.995 => 2,
        s if s < 99.95 => 1,
        _ => 0,
    };
    format!("{scaled:.digits$}{}", UNITS[unit])
}

/// A count in full, if it has at most 13 digits.
pub fn count(value: u64) -> String {
    match value < 10_u64.pow(13) {
        true => value.to_string(),
        false => short(value as f64),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_three_digits_and_fit() {
        for (value, text) in [
            (0.0, "0"),
            (-1.0, "0"),
            (f64::NAN, "0"),
            (f64::INFINITY, "0"),
            (0.25, "0.25"),
            (1.0, "1"),
            (7.5, "7.50"),
            (42.0, "42"),
            (99.96, "100"),
            (999.4, "999"),
            (999.6, "1.00k"),
            (12_345.0, "12.3k"),
            (999_600.0, "1.00M"),
            (17_886_000_000.0, "17.9G"),
            (1e18, "1000P"),
        ] {
            assert_eq!(short(value), text, "{value}");
        }
        let mut value = 1e-3;
        while value < 9.9e17 {
            assert!(short(value).len() <= 6, "{value}: {}", short(value));
            value *= 1.0173;
        }
        assert_eq!(count(9_999_999_999_999), "9999999999999");
        assert_eq!(count(10_000_000_000_000), "10.0T");
    }
}
