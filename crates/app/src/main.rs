//! The one binary, `parshall`.

fn main() {}
