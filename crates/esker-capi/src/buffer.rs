//! Bytes that the library owns and a program reads: texts that calls give, values that callbacks make.

use crate::boundary::{answer, given, release};
use crate::error::esker_error;
use crate::slice::esker_slice;

/// Bytes that the library owns. A call that fills one empties it before, so that it can be used again and again.
#[derive(Default)]
pub struct esker_buffer(pub Vec<u8>);

/// An empty buffer.
#[unsafe(no_mangle)]
pub extern "C" fn esker_buffer_create() -> Box<esker_buffer> {
    Box::default()
}

/// Frees a buffer. Not one that a callback was given.
#[unsafe(no_mangle)]
pub extern "C" fn esker_buffer_free(buffer: Option<Box<esker_buffer>>) {
    release(buffer);
}

/// What is in it, until it is changed or freed.
#[unsafe(no_mangle)]
pub extern "C" fn esker_buffer_slice(buffer: Option<&esker_buffer>) -> esker_slice<'_> {
    buffer.map_or(esker_slice::NONE, |buffer| esker_slice::new(&buffer.0))
}

/// Sets what is in it, to a copy of `bytes`.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn esker_buffer_set(
    buffer: Option<&mut esker_buffer>,
    bytes: esker_slice<'_>,
) -> Option<Box<esker_error>> {
    answer(|| {
        // A copy first, as they may be bytes of the buffer itself.
        let bytes = bytes.get()?.to_vec();
        given(buffer, "the buffer")?.0 = bytes;
        Ok(())
    })
}

/// Adds a copy of `bytes` behind what is in it.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn esker_buffer_append(
    buffer: Option<&mut esker_buffer>,
    bytes: esker_slice<'_>,
) -> Option<Box<esker_error>> {
    answer(|| {
        // As above.
        let bytes = bytes.get()?.to_vec();
        given(buffer, "the buffer")?.0.extend_from_slice(&bytes);
        Ok(())
    })
}
