//! The socket by which a service knows that a session is alive.

use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use navlocks::LossCause;
use navlocks_wire::{FaultCode, ToService, Welcome};
use rustix::io::{FdFlags, fcntl_getfd};

use crate::client::{claimed, connected, held};
use crate::peer::{Peer, lasting};
use crate::run;

fn present(path: &Path, welcome: Welcome) -> Welcome {
    Welcome { presence: Some(path.to_str().expect("text").to_owned()), ..welcome }
}

fn listens(path: &PathBuf) -> bool {
    UnixStream::connect(path).is_ok()
}

#[test]
fn presence_is_shown_for_the_life_of_the_session() {
    run(async {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("7");
        let peer = Peer::unix().await;
        let (locks, mut talk) = connected(&peer, present(&path, lasting(7, 1))).await;
        talk.hears(ToService::Present).await;
        assert!(listens(&path));
        let lock = held(&locks, "a", &mut talk).await;
        talk.breaks();
        assert!(listens(&path), "it does not depend on the connection");
        let (mut talk, _) = peer.wants_claim(present(&path, lasting(7, 2))).await;
        talk.hears(ToService::Present).await;
        talk.hears_claim(&[claimed(1, "a", 1)]).await;
        assert!(listens(&path));
        drop(lock);
        locks.disconnect().await;
        talk.hears(ToService::End(1)).await;
        talk.sees_leave().await;
        assert!(!listens(&path));
    });
}

#[test]
fn presence_of_a_session_that_is_over_ends() {
    run(async {
        let folder = tempfile::tempdir().unwrap();
        let (first, second) = (folder.path().join("7"), folder.path().join("8"));
        let peer = Peer::unix().await;
        let (locks, mut talk) = connected(&peer, present(&first, lasting(7, 1))).await;
        talk.hears(ToService::Present).await;
        let lock = held(&locks, "a", &mut talk).await;
        talk.breaks();
        let mut talk = peer.greeted().await.0;
        talk.fails(FaultCode::UnknownSession, "never heard of it").await;
        assert_eq!(lock.lost().await, LossCause::ServiceGone);
        assert!(!listens(&first));
        talk.ends().await;
        let mut talk = peer.begins(present(&second, lasting(8, 2))).await;
        talk.hears(ToService::Present).await;
        assert!(listens(&second));
    });
}

#[test]
fn copy_of_the_presence_outlives_the_client() {
    run(async {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("7");
        let peer = Peer::unix().await;
        let (locks, mut talk) = connected(&peer, present(&path, lasting(7, 1))).await;
        talk.hears(ToService::Present).await;
        let copy = locks.liveness_fd().unwrap();
        assert!(fcntl_getfd(&copy).unwrap().contains(FdFlags::CLOEXEC));
        locks.disconnect().await;
        talk.sees_leave().await;
        assert!(listens(&path));
        drop(copy);
        assert!(!listens(&path));
    });
}

#[test]
fn session_goes_on_without_presence_where_the_path_cannot_be_listened_at() {
    run(async {
        let folder = tempfile::tempdir().unwrap();
        let taken = folder.path().join("taken");
        std::fs::write(&taken, "").unwrap();
        for path in [
            folder.path().join("x".repeat(200)),
            folder.path().join("none").join("7"),
            taken,
            PathBuf::new(),
        ] {
            let peer = Peer::unix().await;
            let (locks, mut talk) = connected(&peer, present(&path, lasting(7, 1))).await;
            let lock = held(&locks, "a", &mut talk).await;
            assert!(locks.liveness_fd().is_none());
            talk.breaks();
            let (mut talk, _) = peer.wants_claim(present(&path, lasting(7, 2))).await;
            talk.hears_claim(&[claimed(1, "a", 1)]).await;
            assert_eq!(lock.loss(), None);
        }
    });
}
