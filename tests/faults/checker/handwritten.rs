//! Histories written by hand, a line for each line.
//!
//! ```text
//! 10 A1 asked exclusive queue x y     the client A, its request 1
//! 20 A1 held 7 r1                     token, id
//! 30 A1 pending 25 r1                 since, id
//! 40 killing A                        the conductor
//! 99 over 10 5                        patience, endurance
//! ```

use std::time::Duration;

use navlocks_tests::check::check;
use navlocks_tests::record::{CONDUCTOR, Deed, History, Line, Mode, Moment, Step, Wait, What, Who};

/// Returns the verdict of the checker on a story.
pub(crate) fn verdict(story: &str) -> Vec<String> {
    check(&history(story)).iter().map(ToString::to_string).collect()
}

pub(crate) fn history(story: &str) -> History {
    let lines = story.lines().map(str::trim).filter(|line| !line.is_empty());
    History { lines: lines.map(line).collect() }
}

fn line(text: &str) -> Line {
    let words: Vec<&str> = text.split_whitespace().collect();
    let at = Moment(number(words[0]));
    let (who, what) = match words[1..] {
        ["over", patience] => (CONDUCTOR, over(patience, "0")),
        ["over", patience, endurance] => (CONDUCTOR, over(patience, endurance)),
        [deed, whom] if deed_of(deed).is_some() => {
            (CONDUCTOR, What::Deed(Who::from(whom), deed_of(deed).expect("it is one")))
        }
        [key, ref step @ ..] => {
            let (who, request) = key.split_at(1);
            (who, What::Request(number(request) as u32, step_of(step)))
        }
        [] => panic!("nothing is said in {text:?}"),
    };
    Line { at, who: Who::from(who), what }
}

fn over(patience: &str, endurance: &str) -> What {
    let [patience, endurance] = [patience, endurance].map(number).map(Duration::from_nanos);
    What::Over { patience, endurance }
}

fn step_of(words: &[&str]) -> Step {
    match *words {
        ["asked", mode, wait, ref names @ ..] => Step::Asked {
            names: names.iter().map(|&name| name.into()).collect(),
            mode: if mode == "shared" { Mode::Shared } else { Mode::Exclusive },
            wait: match wait {
                "queue" => Wait::Queue,
                "if-available" => Wait::IfAvailable,
                "overtake" => Wait::Overtake,
                "steal" => Wait::Steal,
                "force" => Wait::Force,
                time => Wait::AtMost(Duration::from_nanos(number(time))),
            },
        },
        ["pending", since, id] => Step::Pending { since: Moment(number(since)), id: id.into() },
        ["held", token, id] => Step::Held { token: number(token), id: id.into() },
        ["still"] => Step::Still,
        ["releasing"] => Step::Releasing,
        ["released"] => Step::Released,
        ["lost"] => Step::Lost("stolen".into()),
        ["withdrawn"] => Step::Withdrawn,
        ["unavailable"] => Step::Unavailable,
        ["timed-out"] => Step::TimedOut,
        ["failed"] => Step::Failed("the service is gone".into()),
        ["forced"] => Step::Forced,
        _ => panic!("no step is called {words:?}"),
    }
}

fn deed_of(word: &str) -> Option<Deed> {
    let deeds = [
        ("started", Deed::Started),
        ("killing", Deed::Killing),
        ("killed", Deed::Killed),
        ("stopping", Deed::Stopping),
        ("continued", Deed::Continued),
        ("finished", Deed::Finished),
        ("answered", Deed::Answered),
    ];
    deeds.into_iter().find(|(name, _)| *name == word).map(|(_, deed)| deed)
}

fn number(word: &str) -> u64 {
    word.parse().unwrap_or_else(|error| panic!("{word}: {error}"))
}
