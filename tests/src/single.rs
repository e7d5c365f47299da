//! The single-name texts as witnesses: they must grant the same locks in the same order as the
//! model with scopes.

use crate::history::Witness;
use crate::model::words::{Answer, Decided, Event, Info, Input, Name};
use crate::model::{Outcome, Scan, Scopes, Single, SingleNames, Standard};

/// A text that follows a history with one name a request.
#[derive(Debug)]
pub struct SingleNamed<Text> {
    text: Text,
    /// True if the text orders grants of different names.
    ordered: bool,
    /// All requests ever made, by number.
    requests: Vec<Single>,
    /// The outcomes of the model since the last operation.
    told: Vec<Outcome>,
    /// A request that was granted at once, until its place among the events is known.
    granted: Option<Outcome>,
}

impl SingleNamed<Standard> {
    /// Makes the standard: "no guarantees are made with respect to the relative ordering of
    /// requests across different resources".
    pub fn standard() -> Self {
        Self {
            text: Standard::default(),
            ordered: false,
            requests: Vec::new(),
            told: Vec::new(),
            granted: None,
        }
    }
}

impl SingleNamed<Scan> {
    /// Makes the draft with `acquire`: one queue, in one order.
    pub fn scan() -> Self {
        Self {
            text: Scan::default(),
            ordered: true,
            requests: Vec::new(),
            told: Vec::new(),
            granted: None,
        }
    }
}

impl<Text: SingleNames> SingleNamed<Text> {
    /// Sorts by name where the text leaves the order between names open.
    fn arrange<T>(&self, mut list: Vec<T>, name: impl Fn(&T) -> Name) -> Vec<T> {
        if !self.ordered {
            list.sort_by_key(name);
        }
        list
    }
}

fn single(info: &Info) -> Single {
    let name = *info.scope.first().expect("a scope is not empty");
    assert_eq!(info.scope.len(), 1, "these texts know single names only");
    Single { request: info.request, client: info.client, name, mode: info.mode }
}

impl<Text: SingleNames> Witness for SingleNamed<Text> {
    fn see(&mut self, input: &Input, answer: &Answer, _: &Scopes) -> Result<(), String> {
        match (input, answer) {
            (Input::Request { client, scope, mode, wait }, &Answer::Made(request, decided)) => {
                let info = Info {
                    request,
                    client: *client,
                    scope: scope.clone(),
                    mode: *mode,
                    token: None,
                };
                self.requests.push(single(&info));
                self.text.request(single(&info), *wait);
                match decided {
                    Decided::Granted { .. } => self.granted = Some(Outcome::Granted(request)),
                    Decided::Unavailable => self.told.push(Outcome::Unavailable(request)),
                    Decided::Pending => {}
                }
            }
            (&Input::Release(request), _) => self.text.release(request),
            (&Input::Abort(request), _) => self.text.abort(request),
            (&Input::Terminate(client), _) => self.text.terminate(client),
            (_, Answer::Event(Some(event))) => {
                let outcome = match *event {
                    Event::Granted { request, .. } => Outcome::Granted(request),
                    Event::Lost { request, .. } | Event::Aborted { request, .. } => {
                        Outcome::Rejected(request)
                    }
                    Event::Evicted { .. } => return Err("these texts evict no client".into()),
                };
                // A request granted at once comes after its victims' losses and before later
                // grants.
                if let Outcome::Granted(_) = outcome {
                    self.told.extend(self.granted.take());
                }
                self.told.push(outcome);
            }
            _ => {}
        }
        Ok(())
    }

    fn settle(&mut self, model: &Scopes) -> Result<(), String> {
        self.told.extend(self.granted.take());
        let outcomes = self.text.take_outcomes();
        let told = core::mem::take(&mut self.told);
        let name = |outcome: &Outcome| self.requests[outcome.request()].name;
        let (outcomes, told) = (self.arrange(outcomes, name), self.arrange(told, name));
        if outcomes != told {
            return Err(format!("the text says {outcomes:?}, the model {told:?}"));
        }

        let snapshot = model.snapshot();
        for (what, by_text, by_model) in [
            ("held", self.text.held(), snapshot.held),
            ("pending", self.text.pending(), snapshot.pending),
        ] {
            let by_model = self.arrange(by_model.iter().map(single).collect(), |entry| entry.name);
            let by_text = self.arrange(by_text, |entry| entry.name);
            if by_text != by_model {
                return Err(format!("{what}: the text says {by_text:?}, the model {by_model:?}"));
            }
        }
        Ok(())
    }
}
