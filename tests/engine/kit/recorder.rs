//! An embedder that attaches labels, and a sink that records its notices.

use navlocks_core::kit::{About, Embedder, Notes, Notice, Sink};
use navlocks_core::{ClientId, RequestId};

use super::words;

/// The embedder of these tests: attaches a label to each request.
pub(super) struct Labels;

impl Embedder for Labels {
    type Note = &'static str;
    type Time = u64;
    type Tag = &'static str;
}

/// Records the notices that the sink receives.
#[derive(Default)]
pub(super) struct Record {
    pub(super) now: u64,
    pub(super) notified: Vec<String>,
    pub(super) published: Vec<String>,
    pub(super) evicted: Vec<ClientId>,
}

impl Record {
    pub(super) fn take(&mut self) -> Vec<String> {
        std::mem::take(&mut self.notified)
    }
}

impl Sink<Labels> for Record {
    fn now(&self) -> u64 {
        self.now
    }

    fn notify(&mut self, id: RequestId, notes: &mut Notes<Labels>, notice: &Notice<'_, u64>) {
        let label = notes.get(id).copied().unwrap_or("unknown");
        self.notified.push(format!("{label}: {}", words(notice)));
    }

    fn publish(
        &mut self,
        _id: RequestId,
        about: &About<&'static str>,
        _notes: &Notes<Labels>,
        notice: &Notice<'_, u64>,
    ) {
        let About { client, scope, mode, tag } = about;
        let tag = tag.unwrap_or("-");
        self.published.push(format!("{client} {mode} {scope} {tag}: {}", words(notice)));
    }

    fn evicted(&mut self, client: ClientId) {
        self.evicted.push(client);
    }
}
