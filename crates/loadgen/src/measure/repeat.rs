//! The repetition of measurements that something disturbed.

/// Times that something is measured until nothing disturbs it: not for ever, because a machine may
/// never be still.
pub const ATTEMPTS: u32 = 3;

/// Measures until a measurement counts, which `measure` says of each, up to [`ATTEMPTS`] times.
/// Returns the last one.
///
/// # Errors
/// That of `measure`, at once.
pub fn until_it_counts<T, E>(mut measure: impl FnMut() -> Result<(T, bool), E>) -> Result<T, E> {
    for _ in 1..ATTEMPTS {
        if let (measured, true) = measure()? {
            return Ok(measured);
        }
    }
    Ok(measure()?.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_counts_is_not_repeated() {
        for (counts_from, expected) in [(1, 1), (2, 2), (3, 3), (9, 3)] {
            let mut made = 0;
            let last: Result<u32, ()> = until_it_counts(|| {
                made += 1;
                Ok((made, made >= counts_from))
            });
            assert_eq!(last, Ok(expected));
        }
        let failed: Result<(), &str> = until_it_counts(|| Err("no port"));
        assert_eq!(failed, Err("no port"));
    }
}
