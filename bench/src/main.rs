//! Measurements side by side: navlocks and its peers in the same run, in interleaved rounds.
//! README.md explains how to run and read them.

mod floor;
mod harness;
mod heap;
mod machine;
mod report;
mod stats;
mod suites;
mod workload;

use std::io::{self, ErrorKind, Write};
use std::process::ExitCode;
use std::str::FromStr;
use std::time::Duration;

use harness::{Options, Scale};
use suites::{SUITES, Suite, scale};

const USAGE: &str = "\
usage: cargo run --release -p bench -- SUITE [--quick] [--filter CASE] [--alone] [--rounds N]

  --quick        a thousandth of every size, two rounds: does it run?
  --filter CASE  only the cases whose name starts with CASE
  --alone        our side without the peers, for a profiler
  --rounds N     rounds that count (7); one more goes before them to warm up

of the suite scale:
  --sessions N   sessions with a lock each (20000)
  --cores X      processors for nodes, etcd and clients together (all)
  --lease S      seconds of the sessions' lease (10)
  --node-lease S seconds of the nodes' lease (3)
";

fn main() -> ExitCode {
    let mut words = std::env::args_os().skip(1);
    if words.next().is_some_and(|word| word == servers::ECHO_SERVER) {
        return match servers::serve_echo(words) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("bench: {error}");
                ExitCode::FAILURE
            }
        };
    }
    let mut out = io::stdout().lock();
    if std::env::args().nth(1).is_some_and(|word| word == scale::CLIENTS) {
        return match scale::serve_clients(std::env::args().skip(2)) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("bench: {error}");
                ExitCode::FAILURE
            }
        };
    }
    let ended = match parse(std::env::args().skip(1)) {
        Ok(Some((suite, options))) => run(suite, &options, &mut out),
        Ok(None) => list(&mut out),
        Err(problem) => {
            eprintln!("bench: {problem}\n\n{USAGE}");
            Ok(ExitCode::from(2))
        }
    };
    match ended {
        Ok(code) => code,
        // The reader of the pipe has closed it.
        Err(error) if error.kind() == ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench: cannot print: {error}");
            ExitCode::FAILURE
        }
    }
}

fn list(out: &mut impl Write) -> io::Result<ExitCode> {
    writeln!(out, "{USAGE}\nsuites:")?;
    for suite in SUITES {
        writeln!(out, "  {:<12} {}", suite.name, suite.about)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Reads the arguments; none if no suite was named.
fn parse(
    mut words: impl Iterator<Item = String>,
) -> Result<Option<(&'static Suite, Options)>, String> {
    let mut suite = None;
    let mut quick = false;
    let mut filter = None;
    let mut alone = false;
    let mut rounds = None;
    let mut scale = Scale::default();
    while let Some(word) = words.next() {
        match word.as_str() {
            "--quick" => quick = true,
            "--filter" => filter = Some(words.next().ok_or("--filter needs a CASE")?),
            "--alone" => alone = true,
            "--rounds" => {
                let count = words.next().and_then(|count| count.parse().ok());
                rounds = Some(count.filter(|&count| count > 0).ok_or("--rounds needs a number")?);
            }
            "--sessions" => scale.sessions = number(&word, words.next())?,
            "--cores" => scale.cores = Some(number(&word, words.next())?),
            "--lease" => scale.lease = Duration::from_secs(number(&word, words.next())?),
            "--node-lease" => {
                scale.node_lease = Duration::from_secs(number(&word, words.next())?);
            }
            name => {
                let named = SUITES.iter().find(|suite| suite.name == name);
                suite = Some(named.ok_or_else(|| format!("no suite {name}"))?);
            }
        }
    }
    let rounds = rounds.unwrap_or(if quick { 2 } else { 7 });
    let options = Options { quick, filter, alone, rounds, scale };
    Ok(suite.map(|suite| (suite, options)))
}

/// Reads the number of an option.
fn number<T: FromStr>(option: &str, word: Option<String>) -> Result<T, String> {
    let number = word.and_then(|word| word.parse().ok());
    number.ok_or_else(|| format!("{option} needs a number"))
}

fn run(suite: &Suite, options: &Options, out: &mut impl Write) -> io::Result<ExitCode> {
    writeln!(out, "suite {}: {}", suite.name, suite.about)?;
    writeln!(out, "machine: {}", machine::facts())?;
    writeln!(
        out,
        "median (min–max) of {} interleaved rounds; ×N = their cost over ours, above 1 we are better",
        options.rounds
    )?;
    if options.quick {
        writeln!(out, "quick: a thousandth of the sizes the names say; the numbers mean little")?;
    }
    let plan = (suite.plan)(options);
    for note in &plan.notes {
        writeln!(out, "{note}")?;
    }
    let (rows, failures) = harness::run(plan.contests, options);
    if rows.is_empty() && failures.is_empty() {
        let why = match &options.filter {
            Some(start) => format!("no case starts with {start}"),
            None => "nothing can be measured here, as said above".to_string(),
        };
        eprintln!("bench: suite {}: {why}", suite.name);
        return Ok(ExitCode::from(2));
    }
    write!(out, "\n{}", report::Tables(&rows))?;
    let targets = (suite.targets)(&rows);
    if !targets.is_empty() {
        writeln!(out, "targets")?;
        for target in targets {
            let verdict = if target.met() { "met   " } else { "MISSED" };
            let (text, measured, limit) = (target.text, target.measured, target.limit);
            writeln!(out, "  {verdict}  {measured:>7.2}  at most {limit:<5}  {text}")?;
        }
        writeln!(out)?;
    }
    write!(out, "{}", report::Ratios(&rows))?;
    for failure in &failures {
        writeln!(out, "{failure}")?;
    }
    Ok(if failures.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> impl Iterator<Item = String> {
        line.split_whitespace().map(String::from)
    }

    #[test]
    fn options_may_stand_on_either_side_of_the_suite() {
        let (suite, options) = parse(words("--quick engine --filter hot")).unwrap().unwrap();
        assert_eq!(suite.name, "engine");
        assert_eq!((options.quick, options.rounds), (true, 2));
        assert_eq!(options.filter.as_deref(), Some("hot"));
    }

    #[test]
    fn unknown_arguments_are_errors() {
        for line in ["nonsense", "engine --filter", "engine --rounds 0"] {
            assert!(parse(words(line)).is_err(), "{line}");
        }
        assert!(parse(words("")).unwrap().is_none());
    }
}
