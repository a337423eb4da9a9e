//! Layout of the tables' lines: written down once, for the code here and for programs in C
//! ([`header`]).

use std::fmt::Write;

use crate::adjacency::Kind;
use crate::field::Field;
use crate::interface::{self, Mode};
use crate::ip6::word;
use crate::mem::LINE;
use crate::special::{FIRST_FREE, Special};
use crate::translated::{self, Ports};
use crate::{adjacency, entry, tunnels};

/// `tables.h`: what a program in C must know to read the tables.
pub fn header() -> String {
    let mut text = String::from(
        "/* The tables' layouts, written by `tables::layout`; a test compares. Fields are read out of their word:\n \
         * X_WORD is the number of the word in its line, X(word) the value. */\n\
         #ifndef PARSHALL_TABLES_H\n#define PARSHALL_TABLES_H\n\n",
    );
    let mut define = |name: &str, value: String| {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "#define {name} {value}");
    };
    define("LINE_WORDS", LINE.to_string());
    define("FIRST_FREE", FIRST_FREE.to_string());
    for (name, bits) in entry::ENTRY_BITS {
        define(&format!("ENTRY_{name}"), format!("{bits:#x}u"));
    }
    define("IP6_LEAF", format!("{:#x}u", word::LEAF));
    define(
        "IP6_BYTE(word)",
        format!("((word) >> {} & 15)", word::BYTE_SHIFT),
    );
    define("IP6_INDEX", format!("{:#x}u", word::INDEX));
    define("IP6_RANGES", word::RANGES.to_string());
    define("OUTER_TAGS_LINES", interface::OUTER_TAGS_LINES.to_string());
    define("TUNNEL_USED", format!("{:#x}u", tunnels::USED));
    define("TUNNEL_STEPS", tunnels::STEPS.to_string());
    define("TUNNEL_FACTOR", format!("{:#x}u", tunnels::FACTOR));
    define("TRANSLATED_LINES", translated::LINES.to_string());
    for ports in Ports::ALL {
        let name = format!("TRANSLATED{}_LINE", constant(&format!("{ports:?}")));
        define(&name, ports.line().to_string());
    }
    let special = Special::ALL.map(|special| ("GROUP", format!("{special:?}"), special.number()));
    let modes = Mode::ALL.map(|mode| ("MODE", format!("{mode:?}"), mode as u32));
    let kinds = Kind::ALL.map(|kind| ("KIND", format!("{kind:?}"), kind as u32));
    for (of, variant, number) in special.into_iter().chain(modes).chain(kinds) {
        define(&format!("{of}{}", constant(&variant)), number.to_string());
    }
    for (table, fields) in [
        ("INTERFACE", interface::FIELDS),
        ("ADJACENCY", adjacency::FIELDS),
        ("TUNNEL", tunnels::FIELDS),
    ] {
        for field in fields {
            let Field {
                name,
                word,
                shift,
                bits,
            } = *field;
            define(&format!("{table}_{name}_WORD"), word.to_string());
            let mask = u32::MAX >> (32 - bits);
            define(
                &format!("{table}_{name}(word)"),
                format!("((word) >> {shift} & {mask:#x})"),
            );
        }
    }
    text + "\n#endif\n"
}

/// `_NO_ROUTE` of `NoRoute`.
fn constant(variant: &str) -> String {
    let letters = variant.chars().flat_map(|letter| {
        let break_before = letter.is_uppercase().then_some('_');
        break_before.into_iter().chain(letter.to_uppercase())
    });
    letters.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_is_its_bits() {
        let (low, high, word) = (Field::low("L", 0), Field::high("H", 0), Field::word("W", 1));
        let both = low.put(0x1234) | high.put(0xfedc);
        assert_eq!(both, 0xfedc_1234);
        assert_eq!((low.of(both), high.of(both)), (0x1234, 0xfedc));
        assert_eq!(word.of(word.put(u32::MAX)), u32::MAX);
    }

    /// No two fields of a line share a bit.
    #[test]
    fn fields_do_not_overlap() {
        for fields in [interface::FIELDS, adjacency::FIELDS, tunnels::FIELDS] {
            let mut taken = [0u32; LINE];
            for field in fields {
                let mask = field.put(u32::MAX >> (32 - field.bits));
                assert_eq!(taken[field.word] & mask, 0, "{field:?}");
                taken[field.word] |= mask;
            }
        }
    }
}
