//! Node-API as far as this addon uses it, in safe Rust. All `unsafe` of the addon is here.
//!
//! Soundness: a function gets an [`Env`] and a [`Value`] only during a call from JavaScript, on the
//! thread of that JavaScript. Neither can be sent elsewhere; only an [`Instance`], a [`Post`] or a
//! [`LoopWaker`] outlives a call.

#![allow(unsafe_code, reason = "Node-API is a C interface")]

use std::ffi::{CStr, c_void};
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::{null, null_mut};
use std::sync::{Mutex, PoisonError};

use napi_sys as sys;

use crate::Instance;
use crate::report::Columns;

/// The JavaScript environment of this thread, during one call.
#[derive(Clone, Copy)]
pub(crate) struct Env<'call>(sys::napi_env, PhantomData<&'call ()>);

/// A JavaScript value, during one call. A returned null pointer is `undefined`.
#[derive(Clone, Copy)]
pub(crate) struct Value<'call>(sys::napi_value, PhantomData<&'call ()>);

/// Why a call fails: it throws an Error with this text.
pub(crate) struct Failure(pub(crate) &'static str);

pub(crate) type Result<T> = std::result::Result<T, Failure>;

/// A function for JavaScript.
pub(crate) trait Function {
    const NAME: &'static CStr;

    fn call<'call>(
        env: Env<'call>,
        instance: &mut Instance,
        arguments: &[Value<'call>; ARGUMENTS_MAX],
    ) -> Result<Value<'call>>;
}

/// The most arguments of a function of this addon.
pub(crate) const ARGUMENTS_MAX: usize = 4;

/// JavaScript has no strings of more than half a billion code units.
const TOO_LONG: Failure =
    Failure("all names together are too long for a query: use shorter names, or hold fewer locks");

fn ok(status: sys::napi_status, failure: &'static str) -> Result<()> {
    if status == sys::Status::napi_ok { Ok(()) } else { Err(Failure(failure)) }
}

impl<'call> Env<'call> {
    fn new(env: sys::napi_env) -> Self {
        Self(env, PhantomData)
    }

    pub(crate) fn number(self, number: f64) -> Result<Value<'call>> {
        self.make(|env, result| unsafe { sys::napi_create_double(env, number, result) })
    }

    pub(crate) fn boolean(self, boolean: bool) -> Result<Value<'call>> {
        self.make(|env, result| unsafe { sys::napi_get_boolean(env, boolean, result) })
    }

    pub(crate) fn string(self, units: &[u16]) -> Result<Value<'call>> {
        let length = units.len().cast_signed();
        self.make(|env, result| unsafe {
            sys::napi_create_string_utf16(env, units.as_ptr(), length, result)
        })
    }

    pub(crate) fn undefined(self) -> Value<'call> {
        Value(null_mut(), PhantomData)
    }

    /// Makes a Float64Array with these numbers.
    pub(crate) fn numbers(self, numbers: &[f64]) -> Result<Value<'call>> {
        let mut data = null_mut();
        let buffer = self.make(|env, result| unsafe {
            sys::napi_create_arraybuffer(env, size_of_val(numbers), &raw mut data, result)
        })?;
        if !numbers.is_empty() {
            // Sound: the buffer was made just now with this size, and no other code has it.
            unsafe { data.cast::<f64>().copy_from_nonoverlapping(numbers.as_ptr(), numbers.len()) };
        }
        let kind = sys::TypedarrayType::float64_array;
        self.make(|env, result| unsafe {
            sys::napi_create_typedarray(env, kind, numbers.len(), buffer.0, 0, result)
        })
    }

    /// Makes an array of the numbers, the text and its ends, both as Float64Array.
    pub(crate) fn columns(self, columns: &Columns) -> Result<Value<'call>> {
        let array =
            self.make(|env, result| unsafe { sys::napi_create_array_with_length(env, 3, result) })?;
        let text = self.string(&columns.text).map_err(|_| TOO_LONG)?;
        let values = [self.numbers(&columns.numbers)?, text, self.numbers(&columns.ends)?];
        for (index, value) in (0..).zip(values) {
            let status = unsafe { sys::napi_set_element(self.0, array.0, index, value.0) };
            ok(status, "an element could not be set")?;
        }
        Ok(array)
    }

    pub(crate) fn get_number(self, value: Value<'_>) -> Result<f64> {
        let mut number = 0.0;
        let status = unsafe { sys::napi_get_value_double(self.0, value.0, &raw mut number) };
        ok(status, "a number was expected").map(|()| number)
    }

    pub(crate) fn is_undefined(self, value: Value<'_>) -> bool {
        let mut kind = sys::ValueType::napi_undefined;
        let status = unsafe { sys::napi_typeof(self.0, value.0, &raw mut kind) };
        status != sys::Status::napi_ok || kind == sys::ValueType::napi_undefined
    }

    /// Passes the code units of a string to `read` and returns its result; none if the value is no
    /// string.
    #[inline]
    pub(crate) fn read_string<T>(
        self,
        value: Value<'_>,
        read: impl FnOnce(&[u16]) -> T,
    ) -> Option<T> {
        let mut short = [0_u16; SHORT_UNITS];
        let length = self.copy_string(value, &mut short)?;
        // Node-API reserves one unit for a NUL, and reports only the units that it copied.
        if length < SHORT_UNITS - 1 {
            return Some(read(&short[..length]));
        }
        let mut length = 0;
        let status = unsafe {
            sys::napi_get_value_string_utf16(self.0, value.0, null_mut(), 0, &raw mut length)
        };
        ok(status, "").ok()?;
        let mut long = vec![0; length + 1];
        let length = self.copy_string(value, &mut long)?;
        Some(read(&long[..length]))
    }

    fn copy_string(self, value: Value<'_>, units: &mut [u16]) -> Option<usize> {
        let mut length = 0;
        let status = unsafe {
            sys::napi_get_value_string_utf16(
                self.0,
                value.0,
                units.as_mut_ptr(),
                units.len(),
                &raw mut length,
            )
        };
        ok(status, "").ok().map(|()| length)
    }

    pub(crate) fn array_length(self, array: Value<'_>) -> Result<usize> {
        let mut length = 0;
        let status = unsafe { sys::napi_get_array_length(self.0, array.0, &raw mut length) };
        ok(status, "a string or an array was expected").map(|()| length as usize)
    }

    pub(crate) fn element(self, array: Value<'_>, index: usize) -> Result<Value<'call>> {
        let index = u32::try_from(index).map_err(|_| Failure("an array is too long"))?;
        self.make(|env, result| unsafe { sys::napi_get_element(env, array.0, index, result) })
    }

    /// Calls `hook` when this environment ends, before everything that was made for it earlier is
    /// freed.
    pub(crate) fn at_end<H: FnOnce() + 'static>(self, hook: H) -> Result<EndHook> {
        unsafe extern "C" fn run<H: FnOnce()>(hook: *mut c_void) {
            // Sound: the hook runs once, with the box that was leaked for it.
            let hook = unsafe { Box::from_raw(hook.cast::<H>()) };
            // Unwinding must not reach Node, and no caller is left to receive the panic.
            let _panicked = catch_unwind(AssertUnwindSafe(hook));
        }
        let data = Box::into_raw(Box::new(hook)).cast();
        let status = unsafe { sys::napi_add_env_cleanup_hook(self.0, Some(run::<H>), data) };
        ok(status, "the end of the environment could not be watched")?;
        Ok(EndHook { run: run::<H>, data })
    }

    fn make(
        self,
        make: impl FnOnce(sys::napi_env, *mut sys::napi_value) -> sys::napi_status,
    ) -> Result<Value<'call>> {
        let mut value = null_mut();
        ok(make(self.0, &raw mut value), "a value could not be made")?;
        Ok(Value(value, PhantomData))
    }
}

/// Work for the end of an environment.
pub(crate) struct EndHook {
    run: unsafe extern "C" fn(*mut c_void),
    data: *mut c_void,
}

impl EndHook {
    /// Does the work now instead.
    pub(crate) fn run_now(self, env: Env<'_>) {
        let status = unsafe { sys::napi_remove_env_cleanup_hook(env.0, Some(self.run), self.data) };
        if status == sys::Status::napi_ok {
            // Sound: Node has forgotten the hook, so it still runs once.
            unsafe { (self.run)(self.data) };
        }
    }
}

/// Names up to this length are read in one step.
const SHORT_UNITS: usize = 128;

/// A Float64Array by which calls return numbers: reading one in JavaScript costs nothing.
pub(crate) struct Post {
    data: *mut f64,
    length: usize,
    keep: sys::napi_ref,
}

impl Post {
    /// Space for the results of each call, and for some mail.
    const LENGTH_MIN: usize = 64;

    /// Keeps the array alive until it is [released](Self::release).
    pub(crate) fn new(env: Env<'_>, array: Value<'_>) -> Result<Self> {
        let (mut kind, mut length, mut data) = (0, 0, null_mut());
        let status = unsafe {
            sys::napi_get_typedarray_info(
                env.0,
                array.0,
                &raw mut kind,
                &raw mut length,
                &raw mut data,
                null_mut(),
                null_mut(),
            )
        };
        ok(status, "a Float64Array was expected")?;
        if kind != sys::TypedarrayType::float64_array {
            return Err(Failure("a Float64Array was expected"));
        }
        let mut keep = null_mut();
        let status = unsafe { sys::napi_create_reference(env.0, array.0, 1, &raw mut keep) };
        ok(status, "the array could not be kept")?;
        if length < Self::LENGTH_MIN {
            return Err(Failure("the array is too short"));
        }
        Ok(Self { data: data.cast(), length, keep })
    }

    /// Allows the array to be garbage collected.
    pub(crate) fn release(self, env: Env<'_>) {
        // If it fails, the array lives as long as the environment.
        let _kept = unsafe { sys::napi_delete_reference(env.0, self.keep) };
    }

    pub(crate) fn numbers(&mut self) -> &mut [f64] {
        // Sound: the array is alive, its memory does not move, and JavaScript neither detaches it
        // nor runs during this call.
        unsafe { std::slice::from_raw_parts_mut(self.data, self.length) }
    }
}

/// Wakes the event loop of another thread, which then calls a function there.
pub(crate) struct LoopWaker(Mutex<Option<ThreadsafeFunction>>);

struct ThreadsafeFunction(sys::napi_threadsafe_function);

// Sound: a thread-safe function may be called from any thread while it lives; see `disable`.
unsafe impl Send for ThreadsafeFunction {}

impl LoopWaker {
    /// Makes a waker that calls `function`. It does not keep the loop alive.
    pub(crate) fn new(env: Env<'_>, function: Value<'_>) -> Result<Self> {
        let name = env.string(&"navlocks".encode_utf16().collect::<Vec<_>>())?;
        let mut handle = null_mut();
        let status = unsafe {
            sys::napi_create_threadsafe_function(
                env.0,
                function.0,
                null_mut(),
                name.0,
                0,
                1,
                null_mut(),
                None,
                null_mut(),
                None,
                &raw mut handle,
            )
        };
        ok(status, "a function was expected")?;
        let waker = Self(Mutex::new(Some(ThreadsafeFunction(handle))));
        waker.keep_alive(env, false)?;
        Ok(waker)
    }

    /// Wakes the loop, from any thread. No user code runs here; the function is called on its own
    /// thread.
    pub(crate) fn wake(&self) {
        if let Some(ThreadsafeFunction(function)) =
            &*self.0.lock().unwrap_or_else(PoisonError::into_inner)
        {
            let mode = sys::ThreadsafeFunctionCallMode::nonblocking;
            // A loop that is closing needs no call: its client is about to end.
            let _closing =
                unsafe { sys::napi_call_threadsafe_function(*function, null_mut(), mode) };
        }
    }

    /// Disables the waker before the environment ends: Node then frees the thread-safe function.
    pub(crate) fn disable(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Frees the thread-safe function. The waker does nothing from now on.
    pub(crate) fn release(&self) {
        let function = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(ThreadsafeFunction(function)) = function {
            let mode = sys::ThreadsafeFunctionReleaseMode::abort;
            // Sound: no thread has the function any more, and Node frees it by and by.
            let _freed = unsafe { sys::napi_release_threadsafe_function(function, mode) };
        }
    }

    /// Sets whether the event loop stays alive for the calls that may come.
    pub(crate) fn keep_alive(&self, env: Env<'_>, keep: bool) -> Result<()> {
        let Some(ThreadsafeFunction(function)) =
            *self.0.lock().unwrap_or_else(PoisonError::into_inner)
        else {
            return Ok(());
        };
        let status = unsafe {
            if keep {
                sys::napi_ref_threadsafe_function(env.0, function)
            } else {
                sys::napi_unref_threadsafe_function(env.0, function)
            }
        };
        ok(status, "the event loop could not be kept")
    }
}

/// Calls `F` from JavaScript.
unsafe extern "C" fn trampoline<F: Function>(
    raw: sys::napi_env,
    info: sys::napi_callback_info,
) -> sys::napi_value {
    let env = Env::new(raw);
    let call = || {
        let mut arguments = [null_mut(); ARGUMENTS_MAX];
        let mut count = ARGUMENTS_MAX;
        let status = unsafe {
            sys::napi_get_cb_info(
                raw,
                info,
                &raw mut count,
                arguments.as_mut_ptr(),
                null_mut(),
                null_mut(),
            )
        };
        ok(status, "the arguments could not be read")?;
        let mut instance = null_mut();
        let status = unsafe { sys::napi_get_instance_data(raw, &raw mut instance) };
        ok(status, "the addon was not set up here")?;
        // Sound: `register` put an instance there; functions of one environment run one at a time
        // and never call JavaScript.
        let instance = unsafe { instance.cast::<Instance>().as_mut() };
        let instance = instance.ok_or(Failure("the addon was not set up here"))?;
        F::call(env, instance, &arguments.map(|value| Value(value, PhantomData)))
    };
    // Unwinding must not reach Node.
    let result = catch_unwind(AssertUnwindSafe(call))
        .unwrap_or(Err(Failure("an internal error of navlocks; please report it")));
    match result {
        Ok(value) => value.0,
        Err(Failure(message)) => {
            throw(raw, message);
            null_mut()
        }
    }
}

fn throw(env: sys::napi_env, message: &str) {
    let text: Vec<u8> = message.bytes().chain([0]).collect();
    // If an exception is pending already, that one is thrown.
    let _pending = unsafe { sys::napi_throw_error(env, null(), text.as_ptr().cast()) };
}

/// Registers the instance of an environment, which is dropped with it.
fn register(env: sys::napi_env, instance: Instance) -> bool {
    unsafe extern "C" fn drop_instance(_: sys::napi_env, instance: *mut c_void, _: *mut c_void) {
        // Sound: the box that was leaked below, finalized once.
        drop(unsafe { Box::from_raw(instance.cast::<Instance>()) });
    }
    let instance = Box::into_raw(Box::new(instance)).cast();
    let status =
        unsafe { sys::napi_set_instance_data(env, instance, Some(drop_instance), null_mut()) };
    status == sys::Status::napi_ok
}

/// The exports of the addon.
pub(crate) struct Exports {
    env: sys::napi_env,
    object: sys::napi_value,
}

impl Exports {
    /// Adds a function to the exports. Returns false when that fails.
    pub(crate) fn add<F: Function>(&self) -> bool {
        let mut function = null_mut();
        let length = F::NAME.count_bytes().cast_signed();
        let name = F::NAME.as_ptr();
        let call = Some(trampoline::<F> as unsafe extern "C" fn(_, _) -> _);
        let status = unsafe {
            sys::napi_create_function(self.env, name, length, call, null_mut(), &raw mut function)
        };
        let set = || unsafe { sys::napi_set_named_property(self.env, self.object, name, function) };
        status == sys::Status::napi_ok && set() == sys::Status::napi_ok
    }
}

/// The entry point that Node calls once in each environment that loads the addon.
#[unsafe(no_mangle)]
unsafe extern "C" fn napi_register_module_v1(
    env: sys::napi_env,
    exports: sys::napi_value,
) -> sys::napi_value {
    #[cfg(target_env = "msvc")]
    // Sound: never unloaded, so the functions found stay valid.
    std::mem::forget(unsafe { sys::setup() });
    let object = exports;
    if !(register(env, Instance::default()) && crate::export_all(&Exports { env, object })) {
        throw(env, "the navlocks addon could not be set up");
    }
    exports
}
