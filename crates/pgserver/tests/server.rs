//! Real servers.

use pgserver::{Home, Instance, Spec};

#[test]
fn starts_and_stops() {
    let dir = tempfile::tempdir().unwrap();
    let home = Home::at(dir.path()).unwrap();
    let instance = Instance::open(&home, Spec::default()).unwrap();
    instance.attach_or_start(&|_| ()).unwrap().stop().unwrap();
}
