//! Commands that run `true`.

use std::any::Any;
use std::ffi::{OsStr, OsString};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::rc::Rc;
use std::time::Instant;

use crate::stats;

#[derive(Clone)]
pub(super) struct Tool {
    word: &'static str,
    program: OsString,
    arguments: Vec<OsString>,
    environment: Vec<(&'static str, OsString)>,
    /// Values that must live while it runs.
    kept: Option<Rc<dyn Any>>,
}

impl Tool {
    pub(super) fn new(
        word: &'static str,
        program: impl Into<OsString>,
        arguments: &[&OsStr],
    ) -> Self {
        let arguments = arguments.iter().map(OsString::from).collect();
        Self { word, program: program.into(), arguments, environment: Vec::new(), kept: None }
    }

    pub(super) fn env(mut self, key: &'static str, value: impl Into<OsString>) -> Self {
        self.environment.push((key, value.into()));
        self
    }

    /// Returns the same program with other arguments.
    pub(super) fn with(&self, arguments: &[&str]) -> Self {
        Self { arguments: arguments.iter().map(OsString::from).collect(), ..self.clone() }
    }

    pub(super) fn keep(mut self, kept: impl Any) -> Self {
        self.kept = Some(Rc::new(kept));
        self
    }

    pub(super) fn word(&self) -> &'static str {
        self.word
    }

    fn start(&self) -> Child {
        let mut command = Command::new(&self.program);
        command.args(&self.arguments).envs(self.environment.iter().cloned());
        command.stdin(Stdio::null()).stdout(Stdio::null());
        command.spawn().unwrap_or_else(|error| panic!("{}: {error}", self.word))
    }

    fn check(&self, status: std::io::Result<ExitStatus>) {
        let fine = status.as_ref().is_ok_and(ExitStatus::success);
        assert!(fine, "{} failed: {status:?}", self.word);
    }
}

/// Runs one after the other. Returns the median in nanoseconds.
pub(super) fn repeat(tool: &Tool, count: usize) -> f64 {
    let times: Vec<f64> = (0..count)
        .map(|_| {
            let start = Instant::now();
            tool.check(tool.start().wait());
            start.elapsed().as_nanos() as f64
        })
        .collect();
    stats::median(&times)
}

/// Runs all at the same time. Returns nanoseconds per run, from the first start to the last end.
pub(super) fn at_once(tool: &Tool, count: usize) -> f64 {
    let start = Instant::now();
    let mut children: Vec<Child> = (0..count).map(|_| tool.start()).collect();
    for child in &mut children {
        tool.check(child.wait());
    }
    start.elapsed().as_nanos() as f64 / count as f64
}
