//! The output of a suite: a table for people, then the ratio lines for programs.

use std::fmt;

use crate::harness::{Cell, Row, Unit};
use crate::stats;

/// The tables: a side without a column in the table above begins a new table.
pub(crate) struct Tables<'a>(pub(crate) &'a [Row]);

impl fmt::Display for Tables<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rest = self.0;
        while let [first, ..] = rest {
            let fits = |row: &&Row| row.cells.iter().all(|cell| first.peer(cell.peer).is_some());
            let (table, others) = rest.split_at(rest.iter().take_while(fits).count());
            writeln!(f, "{}", Table(table))?;
            rest = others;
        }
        Ok(())
    }
}

/// A table: a line per case, for each side the median and the range of its rounds.
struct Table<'a>(&'a [Row]);

impl fmt::Display for Table<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut columns = vec!["case".to_string()];
        for cell in self.0.iter().flat_map(|row| &row.cells) {
            if !columns.iter().any(|column| column == cell.peer) {
                columns.push(cell.peer.to_string());
            }
        }
        let mut lines = vec![columns.clone()];
        for row in self.0 {
            let mut line = vec![row.case.clone()];
            for peer in &columns[1..] {
                line.push(row.peer(peer).map_or_else(String::new, |cell| text(row, cell)));
            }
            lines.push(line);
        }
        let widths: Vec<usize> = (0..columns.len())
            .map(|column| (lines.iter().map(|line| line[column].chars().count())).max())
            .map(Option::unwrap_or_default)
            .collect();
        for line in lines {
            let padded: Vec<String> =
                (line.iter().zip(&widths)).map(|(cell, width)| format!("{cell:<width$}")).collect();
            writeln!(f, "{}", padded.join("  ").trim_end())?;
        }
        Ok(())
    }
}

fn text(row: &Row, cell: &Cell) -> String {
    let median = cell.median();
    let scale = Scale::of(row.unit, median);
    let mut text = format!("{} {}", scale.digits(median), scale.word);
    if cell.rounds.len() > 1 {
        let (mut low, mut high) = (stats::min(&cell.rounds), stats::max(&cell.rounds));
        if row.unit == Unit::Rate {
            std::mem::swap(&mut low, &mut high);
        }
        text += &format!(" ({}–{})", scale.digits(low), scale.digits(high));
    }
    if cell.peer != row.ours().peer {
        text += &format!(" ×{:.2}", row.ratio(cell));
    }
    text
}

/// The unit in which a whole cell is printed.
struct Scale {
    word: &'static str,
    of_cost: fn(f64) -> f64,
}

impl Scale {
    fn of(unit: Unit, value: f64) -> Self {
        let (word, of_cost): (_, fn(f64) -> f64) = match unit {
            Unit::Nanoseconds if value >= 1e6 => ("ms", |cost| cost / 1e6),
            Unit::Nanoseconds if value >= 1e4 => ("µs", |cost| cost / 1e3),
            Unit::Nanoseconds => ("ns", |cost| cost),
            Unit::Rate => ("/s", |cost| 1e9 / cost),
            Unit::Bytes => ("B", |cost| cost),
            Unit::Count => ("of them", |cost| cost),
        };
        Self { word, of_cost }
    }

    /// Returns the significant digits.
    fn digits(&self, value: f64) -> String {
        let value = (self.of_cost)(value);
        if value < 100.0 { format!("{value:.1}") } else { format!("{value:.0}") }
    }
}

/// The lines for programs: `ratio CASE PEER VALUE`, above 1 = we are faster or smaller.
pub(crate) struct Ratios<'a>(pub(crate) &'a [Row]);

impl fmt::Display for Ratios<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for row in self.0 {
            for theirs in &row.cells[1..] {
                writeln!(f, "ratio {} {} {:.3}", row.case, theirs.peer, row.ratio(theirs))?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row() -> Row {
        let cells = vec![
            Cell { peer: "navlocks", rounds: vec![100.0, 200.0, 20_000.0] },
            Cell { peer: "floor", rounds: vec![50.0, 100.0, 10_000.0] },
        ];
        Row { case: "hot".to_string(), unit: Unit::Nanoseconds, cells }
    }

    #[test]
    fn cell_has_one_unit() {
        let row = row();
        assert_eq!(text(&row, row.ours()), "200 ns (100–20000)");
        assert_eq!(text(&row, &row.cells[1]), "100 ns (50.0–10000) ×0.50");
    }

    #[test]
    fn ratio_line_is_four_words() {
        assert_eq!(Ratios(&[row()]).to_string(), "ratio hot floor 0.500\n");
    }

    #[test]
    fn rate_is_shown_per_second_with_a_rising_range() {
        let row = Row { unit: Unit::Rate, ..row() };
        assert_eq!(text(&row, row.ours()), "5000000 /s (50000–10000000)");
        assert_eq!(text(&row, &row.cells[1]), "10000000 /s (100000–20000000) ×0.50");
    }

    #[test]
    fn new_side_begins_a_new_table() {
        let mut other = row();
        other.cells[1].peer = "redis";
        let fewer = Row { cells: vec![row().cells.remove(0)], ..row() };
        let text = Tables(&[row(), fewer, other]).to_string();
        assert_eq!(text.lines().filter(|line| line.starts_with("case")).count(), 2, "{text}");
    }

    #[test]
    fn columns_are_aligned() {
        let table = Table(&[row()]).to_string();
        let [head, line] = table.lines().collect::<Vec<_>>()[..] else { panic!("{table}") };
        assert_eq!(head.find("navlocks"), line.find("200 ns"));
    }
}
