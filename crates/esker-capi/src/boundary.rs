//! The boundary: no panic leaves the library, handles are looked at before they are used, answers are put where C wants them.

use std::mem::MaybeUninit;
use std::time::Duration;

use esker::{Error, Result};
use esker_compat::guard::caught;

use crate::error::esker_error;

/// What a call that can fail returns: null, or an error that the caller frees.
pub type Answer = Option<Box<esker_error>>;

/// A place for a value. C may not have initialised it.
pub type Place<'a, T> = Option<&'a mut MaybeUninit<T>>;

/// Runs `work`; what goes wrong in it, a panic included, is the answer.
#[inline]
pub fn answer(work: impl FnOnce() -> Result<()>) -> Answer {
    match caught(work) {
        Ok(Ok(())) => None,
        Ok(Err(error)) => Some(esker_error::new(error)),
        Err(panic) => Some(esker_error::new(Error::bug(panic))),
    }
}

/// [`answer`] of a call that makes an object: the place for it is null if there is none.
pub fn made<T>(place: Place<'_, Option<Box<T>>>, work: impl FnOnce() -> Result<T>) -> Answer {
    answer(|| {
        let place = given(place, "the place for the answer")?.write(None);
        *place = Some(Box::new(work()?));
        Ok(())
    })
}

/// Frees an object; a panic on the way goes no further.
pub fn release<T>(object: Option<Box<T>>) {
    // There is nobody to tell.
    let _ = caught(|| drop(object));
}

/// What a pointer gives that must not be null.
#[inline]
pub fn given<T>(pointer: Option<T>, what: &str) -> Result<T> {
    pointer.ok_or_else(|| null(what))
}

#[cold]
fn null(what: &str) -> Error {
    Error::invalid(format!("{what} is a null pointer"))
}

/// Puts an answer where C wants it, if it does.
#[inline]
pub fn put<T>(place: Place<'_, T>, value: T) {
    if let Some(place) = place {
        place.write(value);
    }
}

/// A time as C has it, in microseconds.
pub fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

/// Something that calls change. After a panic in one of them it is in no known state and is not used again.
pub struct Guarded<T> {
    value: T,
    broken: bool,
}

impl<T> Guarded<T> {
    pub fn new(value: T) -> Self {
        Self { value, broken: false }
    }

    /// Changes it.
    #[inline]
    pub fn change<R>(&mut self, work: impl FnOnce(&mut T) -> Result<R>) -> Result<R> {
        if self.broken {
            return Err(Error::bug(
                "an earlier call on this object met a defect; free it and make another one",
            ));
        }
        self.broken = true;
        let result = work(&mut self.value);
        self.broken = false;
        result
    }

    /// Looks at it.
    #[inline]
    pub fn get(&self) -> &T {
        &self.value
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::{ESKER_BUG, ESKER_INVALID_ARGUMENT, ESKER_OK, esker_error_get_kind};

    #[test]
    fn a_panic_is_an_answer_and_what_it_left_is_not_used_again() {
        let mut number = Guarded::new(1);
        let panics = answer(|| number.change(|_| panic!("number {}", 7)));
        assert_eq!(esker_error_get_kind(panics.as_deref()), ESKER_BUG);
        let refused = answer(|| number.change(|_| Ok(())));
        assert_eq!(esker_error_get_kind(refused.as_deref()), ESKER_BUG);
        let mut number = Guarded::new(1);
        let fails = answer(|| number.change(|_| Err::<(), _>(Error::invalid("no"))));
        assert_eq!(esker_error_get_kind(fails.as_deref()), ESKER_INVALID_ARGUMENT);
        let goes_on = answer(|| {
            number.change(|number| {
                *number += 1;
                Ok(())
            })
        });
        assert_eq!(esker_error_get_kind(goes_on.as_deref()), ESKER_OK);
        assert_eq!(*number.get(), 2);
    }

    #[test]
    fn a_place_for_an_object_is_null_where_none_was_made() {
        let mut place = MaybeUninit::<Option<Box<u8>>>::uninit();
        assert!(made(Some(&mut place), || panic!("on the way")).is_some());
        // SAFETY: written, as the test says.
        assert_eq!(unsafe { place.assume_init_read() }, None);
        assert!(made(Some(&mut place), || Ok(7)).is_none());
        // SAFETY: as above.
        assert_eq!(unsafe { place.assume_init_read() }, Some(Box::new(7)));
        assert!(made(None, || Ok(7)).is_some());
    }

    #[test]
    fn a_panic_while_something_is_freed_stays_inside() {
        struct Late;
        impl Drop for Late {
            fn drop(&mut self) {
                panic!("too late");
            }
        }
        release(Some(Box::new(Late)));
        release::<Late>(None);
    }

    #[test]
    fn handles_can_go_from_thread_to_thread() {
        fn sent<T: Send>() {}
        fn shared<T: Sync>() {}
        sent::<crate::iterator::esker_iterator>();
        sent::<crate::transaction::esker_transaction>();
        sent::<crate::batch::esker_batch>();
        sent::<crate::read::esker_value>();
        sent::<crate::database::esker_db>();
        shared::<crate::database::esker_db>();
        shared::<crate::family::esker_family>();
        shared::<crate::snapshot::esker_snapshot>();
        shared::<crate::environment::esker_env>();
    }
}
