//! Actions of operators: by the id of a request or the number of a session, never by a name alone.

use std::rc::Rc;
use std::time::Instant;

use navlocks_server::inspect::{Inspector, PartitionKey, Viewer};
use navlocks_wire::Fault;

use crate::shown::Acted;
use crate::view::{Act, Action};
use crate::views::{Views, entry};

/// The most losses that a preview lists.
const LOSSES_MAX: usize = 50;

/// Does what an operator asks for, or tells what would be lost by it.
pub(crate) fn act(
    views: &Views,
    service: &Inspector,
    viewer: &Viewer,
    act: &Act,
    now: Instant,
) -> Result<Acted, Fault> {
    let action = act.action.into();
    let (acted, first) = service.look(|inspect| {
        let victims = inspect.victims(viewer, action)?;
        let losses = victims.iter().filter_map(|&(partition, id)| entry(partition, id, now));
        let acted = Acted {
            done: !act.preview,
            count: victims.len() as u64,
            losses: losses.take(LOSSES_MAX).collect(),
        };
        Ok((acted, victims.first().map(|(partition, _)| partition.key().clone())))
    })?;
    if !act.preview {
        if let Some(key) = first {
            record(views, service, &key, act.action, &viewer.author, now);
        }
        service.act(viewer, action, now)?;
    }
    Ok(acted)
}

/// Records the action in the history of a partition.
fn record(
    views: &Views,
    service: &Inspector,
    key: &PartitionKey,
    action: Action,
    author: &Rc<str>,
    now: Instant,
) {
    let Some(history) = views.histories.history(key) else { return };
    let (what, request) = match action {
        Action::Release(request) => ("operator released", Some(request)),
        Action::Steal(request) => ("operator stole", Some(request)),
        Action::EndSession(_) => ("operator ended a session", None),
    };
    let noted = service.look(|inspect| {
        let partition = inspect.find(key)?;
        partition.noted(partition.find(request?)?)
    });
    let mut history = history.borrow_mut();
    history.push_event(what, noted.map(Rc::new), Some(author.clone()), now);
}
