//! Reads and writes of the caller's memory. All unsafe code of the crate is here and in the
//! attributes of the exported functions.
//!
//! Soundness is the caller's: a pointer that is not null points to as many values as the call says,
//! and no other thread writes there during the call.

#![allow(unsafe_code, reason = "C passes pointers")]

use std::slice;

use navlocks_core::Name;

use crate::types::{NAVLOCKS_UTF8, NAVLOCKS_UTF16, navlocks_status, navlocks_text};

/// Writes a result, unless the caller wants none.
pub(crate) fn write<T>(place: *mut T, value: T) {
    if !place.is_null() {
        // SAFETY: see above.
        unsafe { place.write(value) };
    }
}

/// Returns the values that the caller passed.
pub(crate) fn read<'a, T>(data: *const T, count: usize) -> Result<&'a [T], navlocks_status> {
    match (data.is_null(), count) {
        (_, 0) => Ok(&[]),
        (true, _) => Err(navlocks_status::Invalid),
        // SAFETY: see above.
        (false, _) => Ok(unsafe { slice::from_raw_parts(data, count) }),
    }
}

/// Returns the buffer of the caller.
pub(crate) fn buffer<'a, T>(data: *mut T, count: usize) -> &'a mut [T] {
    if data.is_null() || count == 0 {
        return &mut [];
    }
    // SAFETY: see above.
    unsafe { slice::from_raw_parts_mut(data, count) }
}

/// Copies a text.
pub(crate) fn name(text: &navlocks_text) -> Result<Name, navlocks_status> {
    match text.encoding {
        NAVLOCKS_UTF8 => {
            let bytes = read(text.data.cast::<u8>(), text.length)?;
            let text = str::from_utf8(bytes).map_err(|_| navlocks_status::InvalidText)?;
            Ok(text.into())
        }
        NAVLOCKS_UTF16 if text.data.cast::<u16>().is_aligned() => {
            Ok(Name::from_utf16(read(text.data.cast::<u16>(), text.length)?))
        }
        _ => Err(navlocks_status::Invalid),
    }
}
