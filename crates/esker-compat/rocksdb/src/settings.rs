//! Options that are plain numbers: a field, its default, and the two functions that set and get it.

/// What must follow from a changed number.
pub trait Changed {
    /// Called after every change.
    fn changed(&mut self) {}
}

/// Declares a struct of numbers, each with RocksDB's default, setter and getter. The object that the functions take
/// holds the struct, which it gives by `AsMut`.
macro_rules! settings {
    (
        $(#[$doc:meta])* $name:ident of $object:ident;
        $( $field:ident: $type:ty = $default:expr, $set:ident, $get:ident; )*
    ) => {
        $(#[$doc])*
        #[derive(Clone, Debug)]
        #[allow(dead_code, reason = "numbers without meaning here are kept for their getters")]
        pub struct $name {
            $( pub $field: $type, )*
        }

        impl Default for $name {
            fn default() -> Self {
                Self { $( $field: $default, )* }
            }
        }

        $(
            #[unsafe(no_mangle)]
            unsafe extern "C" fn $set(object: *mut $object, value: $type) {
                // SAFETY: the contract; options are changed by one thread at a time.
                let object = unsafe { &mut *object };
                AsMut::<$name>::as_mut(object).$field = value;
                $crate::settings::Changed::changed(object);
            }

            #[unsafe(no_mangle)]
            unsafe extern "C" fn $get(object: *mut $object) -> $type {
                // SAFETY: as above.
                AsMut::<$name>::as_mut(unsafe { &mut *object }).$field
            }
        )*
    };
}
pub(crate) use settings;

/// Declares `create` and `destroy` of an object that begins as its default.
macro_rules! object {
    ($object:ty, $create:ident, $destroy:ident) => {
        #[unsafe(no_mangle)]
        extern "C" fn $create() -> *mut $object {
            Box::into_raw(Box::<$object>::default())
        }

        $crate::settings::destroyed!($object, $destroy);
    };
}
pub(crate) use object;

/// Declares `destroy` of an object; null is nothing.
macro_rules! destroyed {
    ($object:ty, $destroy:ident) => {
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $destroy(object: *mut $object) {
            if !object.is_null() {
                // SAFETY: the contract; a destroyed object is not used again.
                drop(unsafe { Box::from_raw(object) });
            }
        }
    };
}
pub(crate) use destroyed;

/// Implements access to a struct of numbers that an object holds in a field.
macro_rules! holds {
    ($object:ty, $field:ident: $name:ty) => {
        impl AsMut<$name> for $object {
            fn as_mut(&mut self) -> &mut $name {
                &mut self.$field
            }
        }
    };
}
pub(crate) use holds;
