//! Iterators over a column family, of the database or of a transaction.

use std::mem::MaybeUninit;

use esker::{Error, ErrorKind, Result};

use crate::boundary::{Guarded, answer, given, made, put, release};
use crate::call_options::esker_read_options;
use crate::database::esker_db;
use crate::error::esker_error;
use crate::family::esker_family;
use crate::slice::{esker_row, esker_slice};

/// A cursor over the rows of a column family as they were when it was made. Not positioned at first. For one thread at a time.
///
/// It keeps the files alive that it reads. It may outlive its database's handle, and its transaction; it can then be moved over what it
/// pinned, and not be positioned anew.
pub struct esker_iterator {
    pub cursor: Guarded<Cursor>,
    /// The key of a positioning: what C gave may be the iterator's own bytes.
    target: Vec<u8>,
}

impl esker_iterator {
    pub fn new(cursor: Cursor) -> Self {
        Self {
            cursor: Guarded::new(cursor),
            target: Vec::new(),
        }
    }
}

/// The two kinds, which have the same calls.
#[allow(clippy::large_enum_variant, reason = "it is on the heap with its handle")]
pub enum Cursor {
    Plain(esker::Iter),
    Transaction(esker_txn::Iter),
}

/// Calls the same method of either kind.
macro_rules! either {
    ($cursor:expr, $iter:ident => $call:expr) => {
        match $cursor {
            Cursor::Plain($iter) => $call,
            Cursor::Transaction($iter) => $call,
        }
    };
}

impl Cursor {
    /// The row it stands on.
    #[inline]
    fn row(&self) -> esker_row<'_> {
        either!(self, iter => match iter.valid() {
            true => esker_row {
                key: esker_slice::new(iter.key()),
                value: esker_slice::new(iter.value()),
            },
            false => NO_ROW,
        })
    }
}

const NO_ROW: esker_row<'static> = esker_row {
    key: esker_slice::NONE,
    value: esker_slice::NONE,
};

/// Moves it, and says where it stands then.
#[inline]
fn moved<'a>(
    iterator: Option<&'a mut esker_iterator>,
    row: Option<&mut MaybeUninit<esker_row<'a>>>,
    work: impl FnOnce(&mut Cursor, &mut Vec<u8>) -> Result<()>,
) -> Option<Box<esker_error>> {
    let mut stands_on = NO_ROW;
    let result = answer(|| {
        let iterator = given(iterator, "the iterator")?;
        let target = &mut iterator.target;
        iterator.cursor.change(|cursor| work(cursor, target))?;
        stands_on = iterator.cursor.get().row();
        Ok(())
    });
    put(row, stands_on);
    result
}

/// Makes an iterator over a family.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn esker_iterator_create(
    db: Option<&esker_db>,
    family: Option<&esker_family>,
    options: Option<&esker_read_options>,
    iterator: Option<&mut MaybeUninit<Option<Box<esker_iterator>>>>,
) -> Option<Box<esker_error>> {
    made(iterator, || {
        let db = given(db, "db")?;
        let options = options.map(|options| options.0.clone()).unwrap_or_default();
        let iter = db.db.iter_cf(db.family(family), options)?;
        Ok(esker_iterator::new(Cursor::Plain(iter)))
    })
}

/// Makes iterators over `count` families that see them all as of the same moment: `iterators` has room for as many, and is set to
/// null where there is an error. A null among the families is `default`.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_iterator_create_many(
    db: Option<&esker_db>,
    families: *const Option<&esker_family>,
    count: usize,
    options: Option<&esker_read_options>,
    iterators: *mut Option<Box<esker_iterator>>,
) -> Option<Box<esker_error>> {
    answer(|| {
        let db = given(db, "db")?;
        if count > 0 && (families.is_null() || iterators.is_null()) {
            return Err(Error::invalid(
                "the families, or the place for iterators, is a null pointer",
            ));
        }
        for i in 0..count {
            // SAFETY: the contract; nothing is dropped, as C need not have initialised it.
            unsafe { iterators.add(i).write(None) };
        }
        // SAFETY: the contract.
        let families = unsafe { esker_compat::bytes::array(families, count) };
        let families: Vec<_> = families.iter().map(|&family| db.family(family)).collect();
        let options = options.map(|options| options.0.clone()).unwrap_or_default();
        let made = db.db.iter_many(&families, &options)?;
        for (i, iter) in made.into_iter().enumerate() {
            let iterator = Box::new(esker_iterator::new(Cursor::Plain(iter)));
            // SAFETY: as above.
            unsafe { iterators.add(i).write(Some(iterator)) };
        }
        Ok(())
    })
}

/// Frees an iterator.
#[unsafe(no_mangle)]
pub extern "C" fn esker_iterator_free(iterator: Option<Box<esker_iterator>>) {
    release(iterator);
}

/// Narrows what it may give to the keys from `lower` on, up to `upper` without it (data is null: as its options say). Bounds of the
/// options stay in force beside these, which replace those of an earlier call. It stands on no row afterwards. Much cheaper than
/// another iterator.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn esker_iterator_set_bounds(
    iterator: Option<&mut esker_iterator>,
    lower: esker_slice<'_>,
    upper: esker_slice<'_>,
) -> Option<Box<esker_error>> {
    answer(|| {
        let (lower, upper) = (lower.get_optional()?, upper.get_optional()?);
        given(iterator, "the iterator")?.cursor.change(|cursor| {
            either!(cursor, iter => iter.set_bounds(lower, upper));
            Ok(())
        })
    })
}

/// Moves to the first row within the bounds. `row` (may be null) is set to it, or to a null key if there is none; the bytes stay until the
/// iterator is moved or freed. After an error it stands on no row and may be positioned again. All of the following do the same.
/// Errors: `ESKER_IO`, `ESKER_CORRUPTION`, `ESKER_CLOSED`.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn esker_iterator_seek_to_first<'a>(
    iterator: Option<&'a mut esker_iterator>,
    row: Option<&mut MaybeUninit<esker_row<'a>>>,
) -> Option<Box<esker_error>> {
    moved(
        iterator,
        row,
        |cursor, _| either!(cursor, iter => iter.seek_to_first()),
    )
}

/// Moves to the last row within the bounds.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn esker_iterator_seek_to_last<'a>(
    iterator: Option<&'a mut esker_iterator>,
    row: Option<&mut MaybeUninit<esker_row<'a>>>,
) -> Option<Box<esker_error>> {
    moved(
        iterator,
        row,
        |cursor, _| either!(cursor, iter => iter.seek_to_last()),
    )
}

/// Moves to the first row whose key is `key` or follows it. The key may be the one that it stands on.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn esker_iterator_seek<'a>(
    iterator: Option<&'a mut esker_iterator>,
    key: esker_slice<'_>,
    row: Option<&mut MaybeUninit<esker_row<'a>>>,
) -> Option<Box<esker_error>> {
    moved(iterator, row, |cursor, target| {
        key.get()?.clone_into(target);
        either!(cursor, iter => iter.seek(target))
    })
}

/// Moves to the last row whose key is `key` or precedes it. As `esker_iterator_seek`.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn esker_iterator_seek_for_prev<'a>(
    iterator: Option<&'a mut esker_iterator>,
    key: esker_slice<'_>,
    row: Option<&mut MaybeUninit<esker_row<'a>>>,
) -> Option<Box<esker_error>> {
    moved(iterator, row, |cursor, target| {
        key.get()?.clone_into(target);
        either!(cursor, iter => iter.seek_for_prev(target))
    })
}

/// Moves to the next row; does nothing while it stands on none.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn esker_iterator_next<'a>(
    iterator: Option<&'a mut esker_iterator>,
    row: Option<&mut MaybeUninit<esker_row<'a>>>,
) -> Option<Box<esker_error>> {
    moved(iterator, row, |cursor, _| either!(cursor, iter => iter.next()))
}

/// Moves to the previous row; does nothing while it stands on none.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn esker_iterator_prev<'a>(
    iterator: Option<&'a mut esker_iterator>,
    row: Option<&mut MaybeUninit<esker_row<'a>>>,
) -> Option<Box<esker_error>> {
    moved(iterator, row, |cursor, _| either!(cursor, iter => iter.prev()))
}

/// The row it stands on; a null key if there is none.
#[unsafe(no_mangle)]
pub extern "C" fn esker_iterator_row(iterator: Option<&esker_iterator>) -> esker_row<'_> {
    iterator.map_or(NO_ROW, |iterator| iterator.cursor.get().row())
}

/// Shows the rows of now (or of the options' snapshot). Not positioned afterwards. For an iterator of a transaction:
/// `esker_transaction_refresh_iterator`.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn esker_iterator_refresh(iterator: Option<&mut esker_iterator>) -> Option<Box<esker_error>> {
    answer(|| {
        given(iterator, "the iterator")?
            .cursor
            .change(|cursor| match cursor {
                Cursor::Plain(iter) => iter.refresh(),
                Cursor::Transaction(_) => Err(Error::new(
                    ErrorKind::InvalidArgument,
                    "an iterator of a transaction is refreshed by esker_transaction_refresh_iterator",
                )),
            })
    })
}
