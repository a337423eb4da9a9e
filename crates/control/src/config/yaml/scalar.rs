//! The types of plain scalars in YAML 1.1 (<https://yaml.org/type/>), with the spellings that
//! PyYAML knows.

use super::Value;

/// The value of a scalar without quotes and without a tag.
pub(super) fn plain(text: &str) -> Value {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Value::Null,
        _ => {}
    }
    if let Some(bool) = boolean(text) {
        return Value::Bool(bool);
    }
    if let Some(int) = integer(text) {
        return Value::Int(int);
    }
    if is_float(text) {
        return Value::Float(text.to_owned());
    }
    Value::Text(text.to_owned())
}

/// `yes`, `on`, `true`, and their opposites: in lower case, in capitals, or with a capital.
pub(super) fn boolean(text: &str) -> Option<bool> {
    match text {
        "yes" | "Yes" | "YES" | "true" | "True" | "TRUE" | "on" | "On" | "ON" => Some(true),
        "no" | "No" | "NO" | "false" | "False" | "FALSE" | "off" | "Off" | "OFF" => Some(false),
        _ => None,
    }
}

/// Decimal, `0x` hexadecimal, `0b` binary, `0` octal or base 60 (`1:30` is 90); `_` may separate
/// digits.
pub(super) fn integer(text: &str) -> Option<i128> {
    let (negative, digits) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    let magnitude = if let Some(hex) = digits.strip_prefix("0x") {
        radix(hex, 16)?
    } else if let Some(binary) = digits.strip_prefix("0b") {
        radix(binary, 2)?
    } else if digits.contains(':') {
        sexagesimal(digits)?
    } else if digits.len() > 1 && digits.starts_with('0') {
        radix(&digits[1..], 8)?
    } else {
        digits
            .as_bytes()
            .first()
            .filter(|first| first.is_ascii_digit())?;
        radix(digits, 10)?
    };
    Some(if negative { -magnitude } else { magnitude })
}

fn radix(digits: &str, radix: u32) -> Option<i128> {
    let mut value = 0i128;
    let mut any = false;
    for digit in digits.chars().filter(|c| *c != '_') {
        let digit = digit.to_digit(radix)?;
        value = value
            .saturating_mul(radix.into())
            .saturating_add(digit.into());
        any = true;
    }
    any.then_some(value)
}

fn sexagesimal(text: &str) -> Option<i128> {
    let mut groups = text.split(':');
    let first = groups.next()?;
    if !first.starts_with(|c: char| ('1'..='9').contains(&c)) {
        return None;
    }
    let mut value = radix(first, 10)?;
    for group in groups {
        let fits = matches!(group.as_bytes(), [b'0'..=b'9'] | [b'0'..=b'5', b'0'..=b'9']);
        let digits = fits.then(|| radix(group, 10)).flatten()?;
        value = value.saturating_mul(60).saturating_add(digits);
    }
    Some(value)
}

/// A number with a point, with or without an exponent; infinity; not a number.
fn is_float(text: &str) -> bool {
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    if matches!(unsigned, ".inf" | ".Inf" | ".INF") || matches!(text, ".nan" | ".NaN" | ".NAN") {
        return true;
    }
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (unsigned, None),
    };
    let Some((whole, part)) = mantissa.split_once('.') else {
        return false;
    };
    let digits = |text: &str| text.bytes().all(|b| b.is_ascii_digit() || b == b'_');
    let starts = |text: &str| text.starts_with(|c: char| c.is_ascii_digit());
    let exponent_fits = exponent.is_none_or(|exponent| {
        let digits = exponent.strip_prefix(['-', '+']);
        digits.is_some_and(|d| !d.is_empty() && d.bytes().all(|b| b.is_ascii_digit()))
    });
    digits(whole)
        && digits(part)
        && exponent_fits
        && (starts(whole) || whole.is_empty() && starts(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scalars_are_those_of_yaml_1_1() {
        let int = |text| match plain(text) {
            Value::Int(int) => Some(int),
            _ => None,
        };
        for (text, value) in [
            ("0", 0),
            ("1500", 1500),
            ("-1024", -1024),
            ("+7", 7),
            ("0x5dc", 1500),
            ("0X5dc", -1),
            ("02734", 1500),
            ("0b11", 3),
            ("1_500", 1500),
            ("25:0", 1500),
            ("10:20:30:40:50:58", 8_041_827_058),
            ("1:60", -1),
            ("02:00:5e:10:00:01", -1),
            ("089", -1),
            ("_1", -1),
            ("0x", -1),
            ("", -1),
            ("-", -1),
        ] {
            assert_eq!(int(text), (value != -1).then_some(value), "{text}");
        }
        let huge = "9".repeat(60);
        assert_eq!(int(&huge), Some(i128::MAX));
        for text in ["1.5", ".5", "1.", "-1.5e+3", ".inf", "-.INF", ".nan"] {
            assert!(matches!(plain(text), Value::Float(_)), "{text}");
        }
        for text in [
            "1e3",
            "1.5e3",
            "192.0.2.1",
            "2001:db8::1",
            ".",
            "yEs",
            "y",
            "e0.100",
        ] {
            assert_eq!(plain(text), Value::Text(text.into()));
        }
        for (text, value) in [("yes", true), ("Off", false), ("TRUE", true), ("no", false)] {
            assert_eq!(plain(text), Value::Bool(value));
        }
        assert_eq!(plain("~"), Value::Null);
    }
}
