//! Records: every written line can be read, even if the writer was killed.

use std::fs;
use std::sync::Arc;
use std::time::Duration;

use navlocks_tests::record::{Deed, History, Mode, Moment, Pen, ReadError, Step, Wait, What, Who};

use crate::folder::Folder;

#[test]
fn steps_and_deeds_are_read_as_written() {
    let folder = Folder::new("every-step");
    let pen = Pen::new(folder.path(), Who::from("c1")).unwrap();
    let (id, why): (Arc<str>, Arc<str>) = ("r1".into(), "line\nbreak".into());
    let waits = [
        Wait::Queue,
        Wait::AtMost(Duration::from_micros(7)),
        Wait::IfAvailable,
        Wait::Overtake,
        Wait::Steal,
        Wait::Force,
    ];
    let asked = waits.map(|wait| Step::Asked {
        names: vec!["a".into(), "клавиша/鍵/🔑".into()],
        mode: if wait == Wait::Overtake { Mode::Shared } else { Mode::Exclusive },
        wait,
    });
    let steps = [
        Step::Pending { since: Moment(3), id: id.clone() },
        Step::Held { token: u64::MAX, id },
        Step::Still,
        Step::Releasing,
        Step::Released,
        Step::Lost(why.clone()),
        Step::Withdrawn,
        Step::Unavailable,
        Step::TimedOut,
        Step::Failed(why),
        Step::Forced,
    ];
    let deeds = [
        Deed::Started,
        Deed::Killing,
        Deed::Killed,
        Deed::Stopping,
        Deed::Continued,
        Deed::Finished,
        Deed::Failed,
        Deed::Answered,
    ];
    let steps = asked.into_iter().chain(steps).map(|step| What::Request(u32::MAX, step));
    let deeds = deeds.map(|deed| What::Deed(Who::from("c2"), deed));
    let over = What::Over { patience: Duration::from_secs(10), endurance: Duration::from_secs(1) };
    let written: Vec<What> = steps.chain(deeds).chain([over]).collect();
    for what in &written {
        pen.write(Moment(u64::MAX), what.clone()).unwrap();
    }
    let history = History::read(folder.path()).unwrap();
    let read: Vec<What> = history.lines.iter().map(|line| line.what.clone()).collect();
    assert_eq!(read, written);
    assert!(history.lines.iter().all(|line| line.at.0 == u64::MAX && line.who == *pen.who()));
}

#[test]
fn truncated_line_is_skipped_and_malformed_line_is_an_error() {
    let folder = Folder::new("cut-off");
    let pen = Pen::new(folder.path(), Who::from("c1")).unwrap();
    pen.step(1, Step::Still).unwrap();
    pen.step(2, Step::Still).unwrap();
    let path = folder.path().join("c1.jsonl");
    let text = fs::read_to_string(&path).unwrap();
    for end in text.find('\n').unwrap() + 1..text.len() {
        fs::write(&path, &text[..end]).unwrap();
        assert_eq!(History::read(folder.path()).unwrap().lines.len(), 1);
    }
    fs::write(&path, text.replace("still", "quiet")).unwrap();
    let error = History::read(folder.path()).unwrap_err();
    assert!(matches!(&error, ReadError::Line(at, 1, _) if *at == path), "{error}");
}

#[test]
fn record_is_never_mixed_with_an_earlier_one() {
    let folder = Folder::new("earlier-one");
    let _first = Pen::new(folder.path(), Who::from("c1")).unwrap();
    assert!(Pen::new(folder.path(), Who::from("c1")).is_err());
}

#[test]
fn clock_never_goes_back() {
    let moments: Vec<Moment> = (0..1000).map(|_| Moment::now()).collect();
    assert!(moments.is_sorted() && moments[0] > Moment::START);
}
