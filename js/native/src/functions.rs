//! The functions that `js/native/native.js` calls.

use std::ffi::CStr;
use std::sync::{Arc, LazyLock, OnceLock};

use coarsetime::Clock;
use navlocks_core::kit::{Group, HostError, Limits, Member, SpaceError};
use navlocks_core::{DeadlockPolicy, HashKey, Name, Request, Scope};
use navlocks_threads::{SharedHost, Wake};

use crate::mail::{self, Postbag};
use crate::napi::{
    self, ARGUMENTS_MAX, EndHook, Env, Failure, Function, LoopWaker, Post, Result, Value,
};
use crate::{report, request};

/// The addon's state of one environment: the clients that it opened, by their handles.
#[derive(Default)]
pub(crate) struct Instance {
    clients: Vec<Option<Client>>,
    /// The handles of closed clients.
    free: Vec<usize>,
}

/// A client of a lock space, as its environment knows it.
struct Client {
    mailbox: Group,
    member: Member,
    waker: Arc<LoopWaker>,
    post: Post,
    /// Ends the client with its environment.
    end: EndHook,
}

/// The lock spaces of the process.
static HOST: LazyLock<SharedHost<Waker>> = LazyLock::new(|| {
    let key = HashKey::drawn_from(&std::hash::RandomState::new());
    SharedHost::new(key, Limits::NONE, DeadlockPolicy::Ignore)
});

/// Wakes the event loop of a thread.
struct Waker(Arc<LoopWaker>);

impl Wake for Waker {
    fn wake(&self) {
        self.0.wake();
    }

    #[inline]
    fn now() -> u64 {
        Clock::now_since_epoch().as_millis()
    }
}

impl Instance {
    #[inline]
    fn client(&mut self, env: Env<'_>, handle: Value<'_>) -> Result<&mut Client> {
        let handle = env.get_number(handle)? as usize;
        let client = self.clients.get_mut(handle).and_then(Option::as_mut);
        client.ok_or(Failure("no client has this handle"))
    }
}

impl Client {
    /// Lets `work` fill the array with mail. It gets the number of the request that the call is
    /// about.
    #[inline]
    fn with_mail<T>(
        &mut self,
        work: impl FnOnce(&SharedHost<Waker>, Member, u64, &mut Postbag<'_>) -> T,
    ) -> T {
        let member = self.member;
        mail::fill(self.post.numbers(), |number, bag| work(&HOST, member, number, bag))
    }
}

type Arguments<'call> = [Value<'call>; ARGUMENTS_MAX];

/// Declares a function that JavaScript can call.
macro_rules! function {
    ($(#[$doc:meta])* $type:ident, $name:literal, $body:expr) => {
        $(#[$doc])*
        struct $type;

        impl Function for $type {
            const NAME: &'static CStr = $name;

            #[inline]
            fn call<'call>(
                env: Env<'call>,
                instance: &mut Instance,
                arguments: &Arguments<'call>,
            ) -> Result<Value<'call>> {
                let body: fn(Env<'call>, &mut Instance, &Arguments<'call>) -> Result<Value<'call>> =
                    $body;
                body(env, instance, arguments)
            }
        }
    };
}

function!(
    /// `choose(engine)`: returns the engine of this process, 0 for this addon and 1 for
    /// WebAssembly. The first call of all threads chooses it.
    Choose,
    c"choose",
    |env, _, &[engine, ..]| {
        static CHOSEN: OnceLock<f64> = OnceLock::new();
        let engine = env.get_number(engine)?;
        env.number(*CHOSEN.get_or_init(|| engine))
    }
);

function!(
    /// `open(partition, clientId, array, wake)`: opens a client of a lock space and returns its
    /// handle. `wake` is called when there is mail.
    Open,
    c"open",
    |env, instance, &[partition, name, array, wake]| {
        let (partition, name) = (get_name(env, partition)?, get_name(env, name)?);
        let post = Post::new(env, array)?;
        let waker = Arc::new(LoopWaker::new(env, wake)?);
        let mailbox = HOST.add_mailbox(Waker(waker.clone()));
        let disabled = waker.clone();
        // Registered after the waker was made, so that it runs before Node frees the waker.
        let end = env.at_end(move || {
            disabled.disable();
            HOST.end(mailbox);
        })?;
        let member = HOST.open(mailbox, partition, name);
        let member = member.map_err(|_| Failure("the lock space takes no more clients"))?;
        let client = Some(Client { mailbox, member, waker, post, end });
        let handle = instance.free.pop().unwrap_or(instance.clients.len());
        match instance.clients.get_mut(handle) {
            Some(free) => *free = client,
            None => instance.clients.push(client),
        }
        env.number(handle as f64)
    }
);

function!(
    /// `close(handle)`: ends a client. Its handle may be given to another one.
    Close,
    c"close",
    |env, instance, &[handle, ..]| {
        let handle = env.get_number(handle)? as usize;
        let client = instance.clients.get_mut(handle).and_then(Option::take);
        let Client { waker, post, end, .. } = client.ok_or(Failure("no client has this handle"))?;
        instance.free.push(handle);
        waker.release();
        post.release(env);
        end.run_now(env);
        Ok(env.undefined())
    }
);

function!(
    /// `request(handle, scope, how, tag)`: requests a lock under the number in the array, and
    /// returns the request's id.
    MakeRequest,
    c"request",
    |env, instance, &[handle, scope, how, tag]| {
        let request = get_request(env, scope, how)?;
        let tag = if env.is_undefined(tag) { None } else { Some(get_name(env, tag)?) };
        let client = instance.client(env, handle)?;
        let made = client.with_mail(|host, member, number, mail| {
            host.request(member, number, &request, tag, mail)
        });
        let (id, _) = made.map_err(|_| Failure("the lock space refuses this request"))?;
        env.number(id.serial() as f64)
    }
);

function!(
    /// `requestWithin(handle, scope, how, tag)`: requests a lock within the one whose number stands
    /// in the array instead of the count of mail. Returns the request's id, or the deadlock of that
    /// lock with itself, see [`report`].
    MakeRequestWithin,
    c"requestWithin",
    |env, instance, &[handle, scope, how, tag]| {
        let request = get_request(env, scope, how)?;
        let tag = if env.is_undefined(tag) { None } else { Some(get_name(env, tag)?) };
        let client = instance.client(env, handle)?;
        let outer = Some(client.post.numbers()[1] as u64);
        let made = client.with_mail(|host, member, number, mail| {
            host.request_within(outer, member, number, &request, tag, mail)
        });
        match made {
            Ok((id, _)) => env.number(id.serial() as f64),
            Err(HostError::Refused(SpaceError::Deadlock(deadlock))) => {
                env.columns(&report::own_deadlock(&deadlock))
            }
            Err(_) => Err(Failure("the lock space refuses this request")),
        }
    }
);

function!(
    /// `release(handle)`: returns whether the request with the number in the array held a lock.
    Release,
    c"release",
    |env, instance, &[handle, ..]| {
        let client = instance.client(env, handle)?;
        let released = client.with_mail(|host, member, number, mail| host.release(member, number, mail));
        env.boolean(released)
    }
);

function!(
    /// `cancel(handle)`: ends the request with the number in the array, pending or held.
    Cancel,
    c"cancel",
    |env, instance, &[handle, ..]| {
        let client = instance.client(env, handle)?;
        let ended = client.with_mail(|host, member, number, mail| host.cancel(member, number, mail));
        env.boolean(ended)
    }
);

function!(
    /// `expire(handle)`: takes the lock with the number in the array away because its time is over.
    Expire,
    c"expire",
    |env, instance, &[handle, ..]| {
        let client = instance.client(env, handle)?;
        let expired = client.with_mail(|host, member, number, mail| host.expire(member, number, mail));
        env.boolean(expired)
    }
);

function!(
    /// `downgrade(handle, limit)`: gives the lock with the number in the array a larger limit, or
    /// none by 0. Returns false if the limit would become smaller, or if no lock is held.
    Downgrade,
    c"downgrade",
    |env, instance, &[handle, limit, ..]| {
        let mode = request::mode(env.get_number(limit)?).ok_or(Failure("there is no such limit"))?;
        let client = instance.client(env, handle)?;
        let downgraded = client.with_mail(|host, member, number, mail| {
            host.downgrade(member, number, mode, mail).is_ok()
        });
        env.boolean(downgraded)
    }
);

function!(
    /// `forceRelease(handle, name)`: returns how many locks were taken away.
    ForceRelease,
    c"forceRelease",
    |env, instance, &[handle, name, ..]| {
        let name = get_name(env, name)?;
        let client = instance.client(env, handle)?;
        let count =
            client.with_mail(|host, member, _, mail| host.force_release(member, &name, mail));
        env.number(count as f64)
    }
);

function!(
    /// `watchContention(handle)`: sends mail, once, when a request waits for the lock with the
    /// number in the array.
    WatchContention,
    c"watchContention",
    |env, instance, &[handle, ..]| {
        let client = instance.client(env, handle)?;
        client.with_mail(|host, member, number, mail| host.watch_contention(member, number, mail));
        Ok(env.undefined())
    }
);

function!(
    /// `subscribe(handle, capacity)`: keeps up to this many events for this client from now on; 0
    /// ends that.
    Subscribe,
    c"subscribe",
    |env, instance, &[handle, capacity, ..]| {
        let capacity = env.get_number(capacity)? as usize;
        HOST.subscribe(instance.client(env, handle)?.member, capacity);
        Ok(env.undefined())
    }
);

function!(
    /// `takeEvents(handle)`: returns how many events are missing, and then each kept one, see
    /// [`report`].
    TakeEvents,
    c"takeEvents",
    |env, instance, &[handle, ..]| {
        let (missed, events) = HOST.take_events(instance.client(env, handle)?.member);
        env.columns(&report::events(missed, &events))
    }
);

function!(
    /// `take(handle, polls)`: puts mail into the array. A client that polls takes again soon, and
    /// is not woken meanwhile.
    Take,
    c"take",
    |env, instance, &[handle, polls, ..]| {
        let polls = env.get_number(polls)? != 0.0;
        let client = instance.client(env, handle)?;
        let mailbox = client.mailbox;
        client.with_mail(|host, _, _, mail| host.take_mail(mailbox, polls, mail));
        Ok(env.undefined())
    }
);

function!(
    /// `keepAlive(handle, keep)`: sets whether the event loop waits for mail.
    KeepAlive,
    c"keepAlive",
    |env, instance, &[handle, keep, ..]| {
        let keep = env.get_number(keep)? != 0.0;
        instance.client(env, handle)?.waker.keep_alive(env, keep)?;
        Ok(env.undefined())
    }
);

function!(
    /// `query(handle)`: returns all locks held and requests pending, see [`report`].
    Query,
    c"query",
    |env, instance, &[handle, ..]| {
        let client = instance.client(env, handle)?;
        let report = client.with_mail(|host, member, _, mail| host.query(member, mail));
        env.columns(&report::snapshot(&report.ok_or(Failure("the client was closed"))?))
    }
);

function!(
    /// `blockers(handle, serial)`: returns the serials of the locks and the requests that a request
    /// waits for, see [`report`].
    Blockers,
    c"blockers",
    |env, instance, &[handle, serial, ..]| {
        let serial = env.get_number(serial)? as u64;
        let blockers = HOST.blockers(instance.client(env, handle)?.member, serial);
        env.columns(&report::blockers(&blockers))
    }
);

function!(
    /// `deadlocks(handle)`: returns for each the names of its clients, the serials of its requests,
    /// and whether it is certain, see [`report`].
    Deadlocks,
    c"deadlocks",
    |env, instance, &[handle, ..]| {
        let deadlocks = HOST.deadlocks(instance.client(env, handle)?.member);
        env.columns(&report::deadlocks(&deadlocks))
    }
);

function!(
    /// `census(handle)`: returns how many names its lock space keeps, and how many requests, bytes,
    /// pieces of mail and lock spaces the process keeps.
    Census,
    c"census",
    |env, instance, &[handle, ..]| {
        let census = HOST.census(instance.client(env, handle)?.member);
        env.numbers(&report::census(census))
    }
);

/// Puts all functions on the exports of the addon.
pub(crate) fn export_all(exports: &napi::Exports) -> bool {
    exports.add::<Choose>()
        && exports.add::<Open>()
        && exports.add::<Close>()
        && exports.add::<MakeRequest>()
        && exports.add::<MakeRequestWithin>()
        && exports.add::<Release>()
        && exports.add::<Cancel>()
        && exports.add::<Expire>()
        && exports.add::<Downgrade>()
        && exports.add::<ForceRelease>()
        && exports.add::<WatchContention>()
        && exports.add::<Subscribe>()
        && exports.add::<TakeEvents>()
        && exports.add::<Take>()
        && exports.add::<KeepAlive>()
        && exports.add::<Query>()
        && exports.add::<Blockers>()
        && exports.add::<Deadlocks>()
        && exports.add::<Census>()
}

fn get_name(env: Env<'_>, value: Value<'_>) -> Result<Name> {
    env.read_string(value, Name::from_utf16).ok_or(Failure("a string was expected"))
}

/// Reads a scope, which is a string or an array of strings, and `how`: the number of the wait, plus
/// eight times the limit, which is 0 for a shared lock.
#[inline]
fn get_request(env: Env<'_>, scope: Value<'_>, how: Value<'_>) -> Result<Request> {
    let scope = match env.read_string(scope, Name::from_utf16) {
        Some(name) => Scope::from(name),
        None => get_scope(env, scope)?,
    };
    request::request(scope, env.get_number(how)?).ok_or(Failure("there is no such wait or limit"))
}

fn get_scope(env: Env<'_>, array: Value<'_>) -> Result<Scope> {
    let length = env.array_length(array)?;
    let names: Result<Vec<Name>> =
        (0..length).map(|index| get_name(env, env.element(array, index)?)).collect();
    Scope::new(names?).map_err(|_| Failure("the scope is empty"))
}
