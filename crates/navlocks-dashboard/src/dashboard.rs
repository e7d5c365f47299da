//! The dashboard as the service knows it.

use std::rc::Rc;
use std::time::Instant;

use navlocks_server::inspect::{
    Inspector, Observer, Page, PartitionKey, Recorder, Recorders, Socket, Task, Viewer,
};

use crate::files;
use crate::jobs::Jobs;
use crate::viewer;

/// A dashboard for one service: attach it with
/// [`Service::with_dashboard`](navlocks_server::Service::with_dashboard).
#[derive(Debug, Default)]
pub struct Dashboard(Rc<Jobs>);

impl Recorders for Dashboard {
    fn recorder(&self, key: &PartitionKey, now: Instant) -> Option<Box<dyn Recorder>> {
        self.0.views.histories.recorder(key, now)
    }
}

impl Observer for Dashboard {
    fn page(&self, path: &str) -> Option<Page> {
        files::page(path)
    }

    fn serve(&self, socket: Socket, viewer: Viewer, service: Inspector) -> Task {
        Box::pin(viewer::serve(self.0.clone(), socket, viewer, service))
    }

    fn run(&self, service: Inspector) -> Task {
        let jobs = self.0.clone();
        Box::pin(async move { jobs.run(&service).await })
    }
}
