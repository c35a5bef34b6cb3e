//! Gives the library the name under which programs look for it at run time.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libesker.so.0");
}
