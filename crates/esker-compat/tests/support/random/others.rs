//! A database of somebody else's.

use std::ffi::{CStr, CString, c_char};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr::null_mut;

use super::Op;
use super::target::{Ptr, Slot, Target, load};

/// A database of the real library's is refused by ours, with an error that says what it is, and stays as it was.
pub fn assert_refuses_the_others(ours: &Path, real: &Path, prefix: &'static str, full: bool) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("theirs");
    let mut theirs = Target::open(real, prefix, path.clone(), full);
    assert_eq!(theirs.run(&Op::Put(1, b"kept".to_vec())), "ok");
    theirs.close();
    let ours = load(ours);
    let name = CString::new(path.as_os_str().as_bytes()).unwrap();
    // SAFETY: each function has the type of its header; options and error are ours to free.
    unsafe {
        type Call = unsafe extern "C" fn(Ptr, *const c_char, Slot) -> Ptr;
        let f = |function: &str| format!("{prefix}{function}");
        let create = ours
            .get::<unsafe extern "C" fn() -> Ptr>(f("options_create").as_bytes())
            .unwrap();
        let destroy = ours
            .get::<unsafe extern "C" fn(Ptr)>(f("options_destroy").as_bytes())
            .unwrap();
        let free = ours
            .get::<unsafe extern "C" fn(Ptr)>(f("free").as_bytes())
            .unwrap();
        let options = create();
        // The last two return nothing; what is read as their result is not looked at.
        for function in ["open", "repair_db", "destroy_db"] {
            let mut error = null_mut();
            ours.get::<Call>(f(function).as_bytes()).unwrap()(options, name.as_ptr(), &raw mut error);
            assert!(!error.is_null(), "{function}");
            let text = CStr::from_ptr(error).to_string_lossy().into_owned();
            assert!(
                text.starts_with("Invalid argument: ") && text.contains("LevelDB or RocksDB"),
                "{text}"
            );
            free(error.cast());
        }
        destroy(options);
    }
    theirs.open_again();
    assert_eq!(theirs.run(&Op::Get(1)), "'kept'");
}
