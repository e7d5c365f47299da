//! A registry that is opened again, after a good end and after a kill.

use std::time::Duration;

use super::super::process::Process;
use super::super::request_table::RequestState;
use super::super::table::tests::{folder, killed_at_every_store};
use super::*;

const BOOT: u128 = 7;

fn opened(folder: &Path) -> (Registry, Found) {
    opened_at(folder, BOOT, true, false)
}

fn opened_at(folder: &Path, boot: u128, trusted: bool, believed: bool) -> (Registry, Found) {
    let unknown = if believed { Unknown::Lost } else { Unknown::None };
    let opened = Registry::open(folder, boot, trusted, unknown, false);
    let (registry, _, found) = opened.expect("a registry");
    (registry, found)
}

fn session(number: u32) -> SessionRecord {
    SessionRecord {
        slot: 0,
        number,
        secret: [number as u8; 16],
        lease: number.is_multiple_of(2).then(|| Duration::from_secs(u64::from(number))),
        process: Some(Process { pid: 4711, started: 99 }),
        party: 12,
        present: false,
        until_ms: 0,
        proof: String::new(),
    }
}

fn hashes(count: usize) -> Vec<u64> {
    (0..count as u64).map(|hash| hash + 100).collect()
}

#[test]
fn sessions_and_requests_are_found_by_the_next_service() {
    let folder = folder("registry");
    let (mut registry, found) = opened(&folder);
    assert_eq!(found.sessions, []);
    let slots: Vec<Index> =
        (1..4).map(|number| registry.begin_session(&session(number)).expect("room").0).collect();
    registry.set_present(slots[0]);
    registry.end_session(slots[2], false);
    let mut made = Vec::new();
    for (number, count) in [1, 2, 3, 8, 9, 1000].into_iter().enumerate() {
        let key = (1, number as u64);
        let slot = registry.begin_request(key, Mode::Shared, 50, &hashes(count));
        made.push(slot.expect("room"));
    }
    registry.hold(made[1], 77, None);
    registry.lose(RequestKey::new(0, 0), made[3], LossCause::Stolen(RequestKey::new(2, 9)));
    registry.end_request(made[4]);
    let orphan = registry.begin_request((3, 1), Mode::Exclusive, 51, &hashes(20));
    orphan.expect("room");
    drop(registry);

    let (_, found) = opened(&folder);
    let Found { sessions, requests, .. } = found;
    let present = SessionRecord { slot: slots[0], present: true, ..session(1) };
    assert_eq!(sessions, [present, SessionRecord { slot: slots[1], ..session(2) }]);
    let told: Vec<_> = requests.iter().map(|it| (it.number, it.state, it.hashes.len())).collect();
    let stolen = RequestState::Lost(LossCause::Stolen(RequestKey::new(2, 9)));
    let pending = RequestState::Pending(50);
    assert_eq!(
        told,
        [
            (0, pending, 1),
            (1, RequestState::Held(77), 2),
            (2, pending, 3),
            (3, stolen, 8),
            (5, pending, 1000)
        ]
    );
    assert!(requests.iter().all(|it| it.session == 1 && it.hashes == hashes(it.hashes.len())));
    assert!(requests.iter().filter(|it| it.number != 3).all(|it| it.mode == Mode::Shared));
    std::fs::remove_dir_all(folder).expect("the folder goes");
}

#[test]
fn tables_of_another_boot_or_of_no_trust_are_empty() {
    let folder = folder("boot");
    for (boot, trusted, count) in
        [(BOOT, true, 0), (BOOT, true, 1), (BOOT + 1, true, 0), (BOOT + 1, false, 0)]
    {
        let (mut registry, found) = opened_at(&folder, boot, trusted, false);
        assert_eq!(found.sessions.len(), count);
        registry.begin_session(&session(1)).expect("room");
    }
    std::fs::remove_dir_all(folder).expect("the folder goes");
}

#[test]
fn sockets_of_sessions_that_the_tables_do_not_know_are_removed() {
    let folder = folder("sockets");
    opened(&folder);
    let socket = folder.join("presence/7");
    std::fs::write(&socket, "").expect("a file");
    opened(&folder);
    assert!(socket.exists());
    opened_at(&folder, BOOT + 1, true, false);
    assert!(!socket.exists());
    std::fs::remove_dir_all(folder).expect("the folder goes");
}

#[test]
fn tables_that_were_removed_are_made_again() {
    let folder = folder("removed");
    let (mut registry, _) = opened(&folder);
    let slot = registry.begin_session(&session(1)).expect("room").0;
    registry.set_present(slot);
    registry.begin_request((1, 5), Mode::Shared, 50, &hashes(3)).expect("room");
    assert!(!registry.keep().expect("all is there"));
    std::fs::remove_dir_all(&folder).expect("the folder goes");
    std::fs::create_dir(&folder).expect("a new folder");
    assert!(registry.keep().expect("they can be made"));
    registry.begin_request((1, 6), Mode::Shared, 51, &hashes(1)).expect("room");
    let (_, found) = opened(&folder);
    assert_eq!(found.sessions, [SessionRecord { slot, ..session(1) }]);
    assert_eq!(found.requests.len(), 2);
    std::fs::remove_dir_all(folder).expect("the folder goes");
}

#[test]
fn unknown_holders_last_over_further_starts_until_they_are_ended() {
    let folder = folder("blind");
    assert_eq!(opened_at(&folder, BOOT, true, true).1.unknown, Unknown::Lost);
    let (mut registry, found) = opened_at(&folder, BOOT, true, true);
    assert_eq!(found.unknown, Unknown::Lost);
    registry.end_unknown();
    drop(registry);
    assert_eq!(opened_at(&folder, BOOT, true, true).1.unknown, Unknown::None);
    std::fs::remove_dir_all(folder).expect("the folder goes");
}

/// A kill after any store leaves each request as it was before or after the input.
#[test]
fn a_kill_between_two_stores_leaves_no_wrong_request() {
    let folder = folder("kill");
    let copy = super::super::table::tests::folder("killed");
    let (mut registry, _) = opened(&folder);
    let slot = registry.begin_session(&session(1)).expect("room").0;
    let sessions = std::fs::read(folder.join("sessions.table")).expect("the table");
    std::fs::write(copy.join("sessions.table"), sessions).expect("a copy");
    let look = copy.clone();
    killed_at_every_store(
        || {
            for count in [1, 3, 30] {
                let made = registry.begin_request((1, 5), Mode::Shared, 50, &hashes(count));
                let made = made.expect("room");
                registry.hold(made, 77, None);
                registry.lose(
                    RequestKey::new(0, 0),
                    made,
                    LossCause::Stolen(RequestKey::new(2, 9)),
                );
                registry.end_request(made);
            }
        },
        move |bytes| {
            std::fs::write(look.join("requests.table"), bytes).expect("a copy");
            let (_, found) = opened(&look);
            for request in found.requests {
                assert_eq!((request.session, request.number), (1, 5));
                assert_eq!(request.hashes, hashes(request.hashes.len()));
                match request.state {
                    // A request that is about to be held counts as the first that waits.
                    RequestState::Pending(place) => assert!(place == 50 || place == 77),
                    RequestState::Held(token) => assert_eq!(token, 77),
                    RequestState::Lost(cause) => {
                        assert_eq!(cause, LossCause::Stolen(RequestKey::new(2, 9)));
                    }
                }
            }
        },
    );
    registry.end_session(slot, false);
    std::fs::remove_dir_all(folder).expect("the folder goes");
    std::fs::remove_dir_all(copy).expect("the folder goes");
}
