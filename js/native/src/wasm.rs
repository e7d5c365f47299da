//! The functions that `js/native/wasm.js` calls, where the crate is compiled to WebAssembly.
//!
//! The module imports nothing. JavaScript writes texts and reads answers in its memory, at the
//! places that [`place`] returns, and gives it the time and the key of its hash.

#![allow(unsafe_code, reason = "an exported name is an unsafe attribute")]

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

use navlocks_core::kit::{Group, HostError, Limits, Member, SpaceError};
use navlocks_core::{DeadlockPolicy, HashKey, Name, Scope};
use navlocks_threads::{SharedHost, Wake};

use crate::mail::{self, Postbag};
use crate::report::{self, Columns};
use crate::request;

/// The lock spaces of the process.
static HOST: LazyLock<SharedHost<Waker>> = LazyLock::new(|| {
    let key = HashKey::from_bytes(desk().key);
    SharedHost::new(key, Limits::NONE, DeadlockPolicy::Ignore)
});

static DESK: Mutex<Desk> = Mutex::new(Desk {
    key: [0; 16],
    texts: Columns { numbers: Vec::new(), text: Vec::new(), ends: Vec::new() },
    answer: Vec::new(),
    report: Columns { numbers: Vec::new(), text: Vec::new(), ends: Vec::new() },
    clients: Vec::new(),
    free: Vec::new(),
});

/// The values that cross to JavaScript, and the clients by their handles.
struct Desk {
    key: [u8; 16],
    /// The texts that JavaScript gives to the next call.
    texts: Columns,
    /// The array of the calling client, see [`mail::fill`].
    answer: Vec<f64>,
    /// The report of the last call that has one.
    report: Columns,
    clients: Vec<Option<Client>>,
    /// The handles of closed clients.
    free: Vec<usize>,
}

#[derive(Clone, Copy)]
struct Client {
    mailbox: Group,
    member: Member,
}

/// The clients to be woken, by their handles.
static WOKEN: Mutex<Vec<usize>> = Mutex::new(Vec::new());

/// The milliseconds since 1970, as JavaScript has told them last.
static NOW: AtomicU64 = AtomicU64::new(0);

struct Waker(usize);

impl Wake for Waker {
    fn wake(&self) {
        lock(&WOKEN).push(self.0);
    }

    fn now() -> u64 {
        NOW.load(Ordering::Relaxed)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn desk() -> MutexGuard<'static, Desk> {
    lock(&DESK)
}

impl Desk {
    fn client(&self, handle: usize) -> Option<Client> {
        *self.clients.get(handle)?
    }

    /// Returns a text of the call.
    fn name(&self, index: usize) -> Name {
        let end = |index: usize| self.texts.ends.get(index).map_or(0, |&end| end as usize);
        let start = if index == 0 { 0 } else { end(index - 1) };
        Name::from_utf16(self.texts.text.get(start..end(index)).unwrap_or_default())
    }
}

/// Lets `work` fill the array of a client with mail. `none` is the result for an unknown client.
fn with_mail<T>(
    handle: usize,
    none: T,
    work: impl FnOnce(Member, u64, &mut Postbag<'_>) -> T,
) -> T {
    let mut desk = desk();
    let Some(Client { member, .. }) = desk.client(handle) else { return none };
    mail::fill(&mut desk.answer, |number, bag| work(member, number, bag))
}

/// Prepares the module, with 16 random bytes and so many numbers in the array.
#[unsafe(no_mangle)]
extern "C" fn start(a: u32, b: u32, c: u32, d: u32, numbers: usize) {
    let words = [a, b, c, d].map(u128::from);
    let key = words.into_iter().fold(0, |key, word| key << 32 | word);
    let mut desk = desk();
    desk.key = key.to_le_bytes();
    desk.answer = vec![0.0; numbers];
}

/// Makes room for the texts of the next call.
#[unsafe(no_mangle)]
extern "C" fn reserve(units: usize, texts: usize) {
    let Columns { text, ends, .. } = &mut desk().texts;
    text.resize(units.max(text.len()), 0);
    ends.resize(texts.max(ends.len()), 0.0);
}

/// Returns the address of a list in memory: the text and the ends of the next call, the array, and
/// of the last report the numbers, the text and its ends.
#[unsafe(no_mangle)]
extern "C" fn place(list: u32) -> usize {
    let Desk { texts, answer, report, .. } = &*desk();
    match list {
        0 => texts.text.as_ptr().addr(),
        1 => texts.ends.as_ptr().addr(),
        2 => answer.as_ptr().addr(),
        3 => report.numbers.as_ptr().addr(),
        4 => report.text.as_ptr().addr(),
        _ => report.ends.as_ptr().addr(),
    }
}

/// Returns the length of the same list.
#[unsafe(no_mangle)]
extern "C" fn length(list: u32) -> usize {
    let Desk { texts, answer, report, .. } = &*desk();
    match list {
        0 => texts.text.len(),
        1 => texts.ends.len(),
        2 => answer.len(),
        3 => report.numbers.len(),
        4 => report.text.len(),
        _ => report.ends.len(),
    }
}

/// Sets the time of the next inputs.
#[unsafe(no_mangle)]
extern "C" fn tell_time(now: f64) {
    NOW.store(now as u64, Ordering::Relaxed);
}

/// Returns the handle of a client that has mail, once; -1 if there is none.
#[unsafe(no_mangle)]
extern "C" fn take_woken() -> f64 {
    lock(&WOKEN).pop().map_or(-1.0, |handle| handle as f64)
}

/// Opens a client, by the texts of its partition and of its name. Returns its handle, or -1.
#[unsafe(no_mangle)]
extern "C" fn open() -> f64 {
    let mut desk = desk();
    let (partition, name) = (desk.name(0), desk.name(1));
    let handle = desk.free.pop().unwrap_or(desk.clients.len());
    // The first use of the host reads the key.
    drop(desk);
    let mailbox = HOST.add_mailbox(Waker(handle));
    let member = HOST.open(mailbox, partition, name);
    let mut desk = self::desk();
    let Ok(member) = member else {
        desk.free.push(handle);
        return -1.0;
    };
    let client = Some(Client { mailbox, member });
    match desk.clients.get_mut(handle) {
        Some(free) => *free = client,
        None => desk.clients.push(client),
    }
    handle as f64
}

/// Ends a client. Its handle may be given to another one.
#[unsafe(no_mangle)]
extern "C" fn close(handle: usize) {
    let mut desk = desk();
    if let Some(client) = desk.clients.get_mut(handle).and_then(Option::take) {
        desk.free.push(handle);
        HOST.end(client.mailbox);
    }
}

/// Requests a lock by so many names, and a tag after them, within the lock of this number if it is
/// not 0. Returns the serial; -1 if the request is refused, and -2 if the outer lock would wait for
/// itself, which is reported.
#[unsafe(no_mangle)]
extern "C" fn request(handle: usize, how: f64, names: usize, has_tag: u32, outer: f64) -> f64 {
    let desk = desk();
    let scope = match names {
        1 => Some(Scope::from(desk.name(0))),
        _ => Scope::new((0..names).map(|index| desk.name(index))).ok(),
    };
    let tag = (has_tag != 0).then(|| desk.name(names));
    drop(desk);
    let Some(request) = scope.and_then(|scope| request::request(scope, how)) else { return -1.0 };
    let outer = (outer != 0.0).then_some(outer as u64);
    let made = with_mail(handle, None, |member, number, bag| {
        Some(HOST.request_within(outer, member, number, &request, tag, bag))
    });
    match made {
        Some(Ok((id, _))) => id.serial() as f64,
        Some(Err(HostError::Refused(SpaceError::Deadlock(deadlock)))) => {
            self::desk().report = report::own_deadlock(&deadlock);
            -2.0
        }
        _ => -1.0,
    }
}

/// Releases the lock with the number in the array.
#[unsafe(no_mangle)]
extern "C" fn release(handle: usize) -> bool {
    with_mail(handle, false, |member, number, bag| HOST.release(member, number, bag))
}

/// Ends the request with the number in the array, pending or held.
#[unsafe(no_mangle)]
extern "C" fn cancel(handle: usize) -> bool {
    with_mail(handle, false, |member, number, bag| HOST.cancel(member, number, bag))
}

/// Takes the lock with the number in the array away because its time is over.
#[unsafe(no_mangle)]
extern "C" fn expire(handle: usize) -> bool {
    with_mail(handle, false, |member, number, bag| HOST.expire(member, number, bag))
}

/// Gives the lock with the number in the array a larger limit, or none by 0.
#[unsafe(no_mangle)]
extern "C" fn downgrade(handle: usize, limit: f64) -> bool {
    let Some(mode) = request::mode(limit) else { return false };
    with_mail(handle, false, |member, number, bag| {
        HOST.downgrade(member, number, mode, bag).is_ok()
    })
}

/// Takes away all locks on the name in the text. Returns how many there were.
#[unsafe(no_mangle)]
extern "C" fn force_release(handle: usize) -> usize {
    let name = desk().name(0);
    with_mail(handle, 0, |member, _, bag| HOST.force_release(member, &name, bag))
}

/// Sends mail, once, when a request waits for the lock with the number in the array.
#[unsafe(no_mangle)]
extern "C" fn watch_contention(handle: usize) {
    with_mail(handle, (), |member, number, bag| HOST.watch_contention(member, number, bag));
}

/// Puts mail into the array. A client that polls is not woken meanwhile.
#[unsafe(no_mangle)]
extern "C" fn take(handle: usize, polls: bool) {
    let mailbox = desk().client(handle).map(|client| client.mailbox);
    with_mail(handle, (), |_, _, bag| {
        if let Some(mailbox) = mailbox {
            HOST.take_mail(mailbox, polls, bag);
        }
    });
}

/// Keeps up to this many events for a client from now on; 0 ends that.
#[unsafe(no_mangle)]
extern "C" fn subscribe(handle: usize, capacity: f64) {
    if let Some(client) = desk().client(handle) {
        HOST.subscribe(client.member, capacity as usize);
    }
}

/// Lets `work` make the report. Returns false for an unknown client.
fn with_report(handle: usize, work: impl FnOnce(Member) -> Option<Columns>) -> bool {
    let member = desk().client(handle).map(|client| client.member);
    let report = member.and_then(work);
    let is_known = report.is_some();
    desk().report = report.unwrap_or_default();
    is_known
}

/// Reports how many events are missing, and then each kept one.
#[unsafe(no_mangle)]
extern "C" fn take_events(handle: usize) -> bool {
    with_report(handle, |member| {
        let (missed, events) = HOST.take_events(member);
        Some(report::events(missed, &events))
    })
}

/// Reports all locks held and requests pending.
#[unsafe(no_mangle)]
extern "C" fn query(handle: usize) -> bool {
    let found = with_mail(handle, None, |member, _, bag| HOST.query(member, bag));
    with_report(handle, |_| found.as_ref().map(report::snapshot))
}

/// Reports the locks and the requests that the request with this serial waits for.
#[unsafe(no_mangle)]
extern "C" fn blockers(handle: usize, serial: f64) -> bool {
    with_report(handle, |member| Some(report::blockers(&HOST.blockers(member, serial as u64))))
}

/// Reports the clients that wait for each other.
#[unsafe(no_mangle)]
extern "C" fn deadlocks(handle: usize) -> bool {
    with_report(handle, |member| Some(report::deadlocks(&HOST.deadlocks(member))))
}

/// Reports how much is kept.
#[unsafe(no_mangle)]
extern "C" fn census(handle: usize) -> bool {
    with_report(handle, |member| {
        let numbers = report::census(HOST.census(member)).to_vec();
        Some(Columns { numbers, ..Columns::default() })
    })
}
