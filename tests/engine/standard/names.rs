//! Names: sequences of UTF-16 code units.

use navlocks_core::{Name, Wait};

use crate::support::{NOTHING, Table, units, x};

/// Returns the names of the public test `resource-names`, and a few similar ones.
fn odd_names() -> Vec<Vec<u16>> {
    vec![
        vec![],
        "abc\0def".encode_utf16().collect(),
        vec![0x0000],
        vec![0xD800],
        vec![0xDC00],
        vec![0xDC00, 0xD800],
        vec![0xD800, 0xDC00],
        vec![0xFFFF],
        vec![0xFFFD],
        vec![0xFEFF],
        vec![u16::from(b'a'), 0xD800],
        vec![u16::from(b'a'), 0xD800, u16::from(b'b')],
        r"\u{D800}".encode_utf16().collect(),
        r"\\".encode_utf16().collect(),
    ]
}

#[test]
fn f01_name_keeps_every_code_unit() {
    let mut table = Table::new();
    for (at, name) in odd_names().iter().enumerate() {
        // All at once: no name equals another one.
        table.holds("C1", &format!("lock {at}"), x(units(name)));
    }
    let held = table.snapshot().held;
    let back = held.iter().map(|info| info.scope.names()[0].encode_utf16().collect::<Vec<u16>>());
    assert_eq!(back.collect::<Vec<_>>(), odd_names());
}

#[test]
fn f01_name_is_displayed_without_loss() {
    for name in odd_names() {
        let name = units(&name);
        let shown = name.to_string();
        assert_eq!(Name::from_escaped(&shown).ok().as_ref(), Some(&name), "shown as {shown}");
    }
}

#[test]
fn f01_well_formed_name_is_the_same_from_either_encoding() {
    for text in ["", "abc\0def", "é", "\u{10000}", "\u{FFFF}", "日本"] {
        let wide: Vec<u16> = text.encode_utf16().collect();
        assert_eq!(units(&wide), Name::from(text));
        assert_eq!(units(&wide).to_str(), Some(text));
        assert_eq!(Name::from(text).len_utf16(), wide.len());
    }
    assert_eq!(units(&[0xD800]).to_str(), None);
}

#[test]
fn f02_lone_surrogate_is_not_the_replacement_character() {
    let mut table = Table::new();
    table.holds("C1", "lone lead", x(units(&[0xD800])));
    table.holds("C1", "replacement", x("\u{FFFD}"));
    table.holds("C1", "lone trail", x(units(&[0xDC00])));
    table.waits("C1", "lone lead again", x(units(&[0xD800])));
}

#[test]
fn f03_d17_leading_hyphen_is_reserved() {
    for reserved in ["-", "-foo", "--"] {
        assert!(Name::from(reserved).starts_with_hyphen(), "{reserved}");
    }
    for free in ["x-anything", "", "x", "a-"] {
        assert!(!Name::from(free).starts_with_hyphen(), "{free}");
    }
}

#[test]
fn f04_only_first_code_unit_and_only_hyphen_minus_is_reserved() {
    // Hyphen, non-breaking hyphen, en dash, minus sign, fullwidth hyphen-minus; and characters
    // before a hyphen-minus.
    let lookalikes = ["\u{2010}a", "\u{2011}a", "\u{2013}a", "\u{2212}a", "\u{FF0D}a"];
    for free in lookalikes.into_iter().chain([" -a", "\0-", "\u{FEFF}-", "a-"]) {
        assert!(!Name::from(free).starts_with_hyphen(), "{free}");
    }
    // A wide name is checked by the same rule, and U+002D as one half of a wider unit is no hyphen.
    assert!(units(&[0x2D, 0xD800]).starts_with_hyphen());
    assert!(!units(&[0x2D00, 0xD800]).starts_with_hyphen());
    assert!(!units(&[0xD800, 0x2D]).starts_with_hyphen());
}

#[test]
fn f05_name_of_digits_is_text() {
    // The JavaScript surface converts to a string; here digits are text like any other.
    let mut table = Table::new();
    table.holds("C1", "one", x("1"));
    for other in ["01", "1.0", " 1", "\u{FF11}"] {
        table.holds("C1", other, x(other));
    }
    assert_eq!(table.snapshot().held[0].scope.names()[0].to_str(), Some("1"));
    table.waits("C2", "one again", x(units(&[0x31])));
}

#[test]
fn f06_names_are_neither_normalised_nor_folded() {
    let mut table = Table::new();
    // NFC and NFD, case, full width, ligature, trailing space, Turkish i.
    let distinct =
        ["\u{E9}", "e\u{301}", "e", "A", "a", "\u{FF21}", "\u{FB01}", "fi", "a ", "i", "\u{131}"];
    for name in distinct {
        table.holds("C1", name, x(name).wait(Wait::IfAvailable));
    }
    assert_eq!(table.held(), distinct);
    assert_eq!(table.pending(), NOTHING);
}

#[test]
fn g17_names_that_look_alike_are_distinct() {
    let alike = [["\u{E9}", "e\u{301}"], ["A", "a"], ["\u{212B}", "\u{C5}"], ["\u{DF}", "ss"]];
    for [held, other] in alike {
        let mut table = Table::new();
        table.holds("C1", "held", x(held));
        table.holds("C2", "other", x(other).wait(Wait::IfAvailable));
        // Equal names from either encoding are one name.
        assert_eq!(
            table.request("C2", "same", x(held).wait(Wait::IfAvailable)),
            ["unavailable same"]
        );
    }
}
