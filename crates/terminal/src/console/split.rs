//! Words of a line, as a shell splits them.

/// The words; quotes hold blanks, `#` begins a comment.
///
/// # Errors
/// A quote is not closed.
pub fn split(line: &str) -> Result<Vec<String>, String> {
    let (mut words, mut word) = (Vec::new(), None::<String>);
    let mut letters = line.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '#' if word.is_none() => break,
            quote @ ('"' | '\'') => {
                let word = word.get_or_insert_default();
                loop {
                    match letters.next() {
                        Some(end) if end == quote => break,
                        Some(letter) => word.push(letter),
                        None => return Err(format!("a quote {quote} is not closed")),
                    }
                }
            }
            blank if blank.is_whitespace() => words.extend(word.take()),
            letter => word.get_or_insert_default().push(letter),
        }
    }
    words.extend(word);
    Ok(words)
}
