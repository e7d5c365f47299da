//! The functions of the host that scripts call.

use std::sync::Arc;
use std::time::Instant;

use navlocks_core::kit::{Group, HostLock, Member};
use navlocks_core::{LossCause, Mode, Name, Request, Wait};
use navlocks_threads::{Mail, News, Post, Report, SharedHost};
use rquickjs::{Array, Ctx, Exception, Function, Object, Result, Value};

use crate::Process;
use crate::agent::{Agent, Bell};

/// The answer to an input: 1 if it had an effect, then mail, three numbers each: its kind, the
/// number of the request, and a token or a cause.
struct Answer(Vec<f64>);

const GRANTED: f64 = 1.0;
const UNAVAILABLE: f64 = 2.0;
const ABORTED: f64 = 3.0;
const LOST: f64 = 4.0;

impl Post for Answer {
    fn put(&mut self, mail: &Mail) -> bool {
        let (kind, value) = match mail.news {
            News::Granted(token) => (GRANTED, token.get() as f64),
            News::Unavailable => (UNAVAILABLE, 0.0),
            News::Aborted(cause) => (ABORTED, number_of(cause)),
            News::Lost(cause) => (LOST, number_of(cause)),
            // Only subscribers and extended locks get others.
            _ => return true,
        };
        self.0.extend([kind, mail.number as f64, value]);
        true
    }
}

impl Answer {
    fn to(input: impl FnOnce(&mut Self) -> bool) -> Vec<f64> {
        let mut answer = Self(vec![0.0]);
        let effect = input(&mut answer);
        answer.0[0] = f64::from(u8::from(effect));
        answer.0
    }
}

fn number_of(cause: Option<LossCause>) -> f64 {
    if matches!(cause, Some(LossCause::Stolen { .. })) { 0.0 } else { 1.0 }
}

/// Takes the mail of an agent, as the answer to an input.
pub fn take_mail(locks: &SharedHost<Bell>, mailbox: Group) -> Vec<f64> {
    Answer::to(|answer| {
        locks.take_mail(mailbox, false, answer);
        true
    })
}

/// Returns a name from a string, or from code units if they are no text.
fn name_from(value: &Value<'_>) -> Result<Name> {
    match value.as_string() {
        Some(text) => Ok(Name::from(text.to_string()?)),
        None => Ok(Name::from_utf16(&value.get::<Vec<u16>>()?)),
    }
}

fn set_name(object: &Object<'_>, name: &Name) -> Result<()> {
    match name.to_str() {
        Some(text) => object.set("name", text),
        None => object.set("name", name.encode_utf16().collect::<Vec<u16>>()),
    }
}

fn list<'js>(ctx: &Ctx<'js>, report: &Report, held: bool) -> Result<Array<'js>> {
    let locks = if held { &report.snapshot.held } else { &report.snapshot.pending };
    let array = Array::new(ctx.clone())?;
    for (index, lock) in locks.iter().enumerate() {
        array.set(index, describe(ctx, report, lock)?)?;
    }
    Ok(array)
}

fn describe<'js>(
    ctx: &Ctx<'js>,
    report: &Report,
    lock: &HostLock<u64, Name>,
) -> Result<Object<'js>> {
    let object = Object::new(ctx.clone())?;
    if let [name, ..] = lock.scope.names() {
        set_name(&object, name)?;
    }
    object.set("mode", if lock.mode == Mode::Exclusive { "exclusive" } else { "shared" })?;
    let client = report.clients.get(&lock.address.member).and_then(Name::to_str);
    object.set("clientId", client.unwrap_or_default())?;
    Ok(object)
}

/// Returns the functions of the host, and opens the client of the agent.
pub fn functions<'js>(ctx: &Ctx<'js>, agent: &Arc<Agent>, mailbox: Group) -> Result<Object<'js>> {
    let host = Object::new(ctx.clone())?;
    let id = format!("{mailbox:?}").chars().filter(char::is_ascii_digit).collect::<String>();
    let client = Name::from(format!("client {id}"));
    let member = agent.process().locks.open(mailbox, Name::from(""), client);
    let member = member.map_err(|error| Exception::throw_internal(ctx, &error.to_string()))?;
    set_locks(&host, agent.process(), member)?;

    let spawner = agent.clone();
    host.set(
        "startWorker",
        Function::new(ctx.clone(), move |files: Vec<String>| spawner.start_worker(files))?,
    )?;
    let poster = agent.clone();
    host.set(
        "post",
        Function::new(ctx.clone(), move |to: u32, text: String| poster.post(to, text))?,
    )?;
    let killer = agent.clone();
    host.set(
        "terminate",
        Function::new(ctx.clone(), move |worker: u32| killer.terminate(worker))?,
    )?;
    host.set("isWorker", agent.has_owner())?;
    host.set("isSecure", agent.process().secure)?;
    let start = Instant::now();
    host.set("now", Function::new(ctx.clone(), move || start.elapsed().as_secs_f64() * 1000.0)?)?;
    host.set("print", Function::new(ctx.clone(), |text: String| println!("{text}"))?)?;
    host.set(
        "readFile",
        Function::new(ctx.clone(), |path: String| std::fs::read_to_string(path).ok())?,
    )?;
    Ok(host)
}

fn set_locks<'js>(host: &Object<'js>, process: &Arc<Process>, member: Member) -> Result<()> {
    let ctx = host.ctx();
    let shared = process.clone();
    let request = move |ctx: Ctx<'_>, number: f64, name: Value<'_>, is_shared: bool, wait: u8| {
        let mode = if is_shared { Mode::Shared } else { Mode::Exclusive };
        let wait = [Wait::Queue, Wait::IfAvailable, Wait::Steal][usize::from(wait.min(2))];
        let request = Request::exclusive(name_from(&name)?).mode(mode).wait(wait);
        let mut refused = None;
        let answer = Answer::to(|answer| {
            let made = shared.locks.request(member, number as u64, &request, None, answer);
            refused = made.err();
            refused.is_none()
        });
        match refused {
            None => Ok(answer),
            Some(error) => Err(Exception::throw_internal(&ctx, &error.to_string())),
        }
    };
    host.set("request", Function::new(ctx.clone(), request)?)?;
    let shared = process.clone();
    let release =
        move |number: f64| Answer::to(|answer| shared.locks.release(member, number as u64, answer));
    host.set("release", Function::new(ctx.clone(), release)?)?;
    let shared = process.clone();
    let cancel =
        move |number: f64| Answer::to(|answer| shared.locks.cancel(member, number as u64, answer));
    host.set("cancel", Function::new(ctx.clone(), cancel)?)?;
    let shared = process.clone();
    let query = move |ctx: Ctx<'js>| -> Result<Object<'js>> {
        let mut answer = Answer(vec![1.0]);
        let snapshot = Object::new(ctx.clone())?;
        if let Some(report) = shared.locks.query(member, &mut answer) {
            snapshot.set("held", list(&ctx, &report, true)?)?;
            snapshot.set("pending", list(&ctx, &report, false)?)?;
        }
        snapshot.set("mail", answer.0)?;
        Ok(snapshot)
    };
    host.set("query", Function::new(ctx.clone(), query)?)
}
