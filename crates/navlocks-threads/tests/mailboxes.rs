//! Mailboxes: which thread is woken, and the mail that it takes.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use navlocks_core::kit::{Group, Limits, Member};
use navlocks_core::{Answer, DeadlockPolicy, HashKey, LossCause, Name, Request, Wait};
use navlocks_threads::{Mail, News, SharedHost, Wake};

/// Counts its calls.
#[derive(Clone, Default)]
struct Count(Arc<AtomicUsize>);

impl Wake for Count {
    fn wake(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

impl Count {
    fn take(&self) -> usize {
        self.0.swap(0, Ordering::Relaxed)
    }
}

type TestHost = SharedHost<Count>;

fn host() -> TestHost {
    SharedHost::new(HashKey::from_bytes([7; 16]), Limits::NONE, DeadlockPolicy::Ignore)
}

fn open(host: &TestHost, partition: &str) -> (Group, Member, Count) {
    let waker = Count::default();
    let mailbox = host.add_mailbox(waker.clone());
    let member = host.open(mailbox, partition.into(), "client".into()).expect("a client");
    (mailbox, member, waker)
}

fn request(host: &TestHost, member: Member, number: u64, request: &Request) -> Vec<News> {
    let mut mail = Vec::new();
    host.request(member, number, request, None, &mut mail).expect("a request");
    news(mail)
}

fn take(host: &TestHost, mailbox: Group, polls: bool) -> Vec<News> {
    let mut mail = Vec::new();
    host.take_mail(mailbox, polls, &mut mail);
    news(mail)
}

fn news(mail: Vec<Mail>) -> Vec<News> {
    mail.into_iter().map(|mail| mail.news).collect()
}

#[test]
fn caller_gets_its_mail_and_others_are_woken_once() {
    let host = host();
    let ((_, holder, own), (other, waiter, wakes)) = (open(&host, "p"), open(&host, "p"));
    let lock = Request::exclusive("a");
    assert!(matches!(request(&host, holder, 1, &lock)[..], [News::Granted(_)]));
    assert_eq!(request(&host, waiter, 1, &lock), []);
    assert_eq!(request(&host, waiter, 2, &Request::exclusive("b").wait(Wait::Queue)).len(), 1);
    assert!(host.release(holder, 1, &mut Vec::<Mail>::new()));
    assert_eq!(host.force_release(holder, &Name::from("b"), &mut Vec::<Mail>::new()), 1);
    assert_eq!((own.take(), wakes.take()), (0, 1), "one wake for two pieces of mail");
    let taken = take(&host, other, true);
    assert!(matches!(taken[..], [News::Granted(_), News::Lost(Some(LossCause::ForceReleased))]));
    request(&host, holder, 3, &Request::exclusive("a").wait(Wait::Steal));
    assert_eq!(wakes.take(), 0, "a thread that polls is not woken");
    assert_eq!(take(&host, other, false).len(), 1);
}

#[test]
fn mail_without_room_stays_in_its_box() {
    let host = host();
    let (mailbox, member, _) = open(&host, "p");
    let mut room: Option<Mail> = None;
    for number in 1..=2 {
        host.request(member, number, &Request::shared("a"), None, &mut room).unwrap();
    }
    assert_eq!(room.map(|mail| mail.number), Some(1));
    assert_eq!(host.census(member).mail, 1);
    assert_eq!(take(&host, mailbox, false).len(), 1);
}

#[test]
fn thread_that_ends_grants_its_locks_to_others_alone() {
    let host = host();
    let (mailbox, window, _) = open(&host, "p");
    let worker = host.open(mailbox, "p".into(), "worker".into()).unwrap();
    let (other, waiter, wakes) = open(&host, "p");
    let lock = Request::exclusive("a");
    for member in [window, worker, waiter] {
        request(&host, member, 1, &lock);
    }
    assert!(host.end(mailbox) && !host.end(mailbox));
    assert_eq!(wakes.take(), 1);
    let [News::Granted(token)] = take(&host, other, false)[..] else { panic!("no grant") };
    assert_eq!(token.get(), 2, "the worker, which ended too, was granted nothing");
    assert!(host.request(worker, 2, &lock, None, &mut Vec::<Mail>::new()).is_err());
}

#[test]
fn subscriber_gets_events_of_its_partition_until_it_ends() {
    let host = host();
    let ((here, watcher, wakes), (_, actor, _)) = (open(&host, "p"), open(&host, "p"));
    let (_, stranger, _) = open(&host, "q");
    host.subscribe(watcher, 2);
    let lock = Request::exclusive("a");
    request(&host, stranger, 1, &lock);
    request(&host, actor, 1, &lock);
    assert!(host.release(actor, 1, &mut Vec::<Mail>::new()));
    assert_eq!((wakes.take(), take(&host, here, false)), (1, vec![News::Events]));
    let (missed, events) = host.take_events(watcher);
    let kinds: Vec<News> = events.iter().map(|event| event.news).collect();
    assert!(missed == 1 && matches!(kinds[..], [News::Granted(_), News::Released]), "{kinds:?}");
    assert_eq!((events[0].address.member, &events[0].client), (actor, &Name::from("client")));
    host.subscribe(watcher, 0);
    request(&host, actor, 2, &lock);
    assert_eq!(host.take_events(watcher).1.len(), 0);
}

#[test]
fn query_names_clients_and_cancel_ends_a_granted_request() {
    let host = host();
    let ((_, one, _), (_, two, _)) = (open(&host, "p"), open(&host, "p"));
    let lock = Request::exclusive("a");
    let tag = Some(Name::from("tag"));
    let made = host.request(one, 1, &lock, tag.clone(), &mut Vec::<Mail>::new());
    assert!(matches!(made, Ok((_, Answer::Granted(_)))));
    let report = host.query(two, &mut Vec::<Mail>::new()).unwrap();
    assert_eq!(report.snapshot.held[0].tag, tag);
    assert_eq!(report.clients.get(&one), Some(&Name::from("client")));
    assert!(host.cancel(one, 1, &mut Vec::<Mail>::new()));
    assert!(host.close(one) && !host.close(one));
    assert_eq!(host.census(two).requests, 0);
}
