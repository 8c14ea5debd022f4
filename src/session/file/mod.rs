//! Session files: the locked file itself, its lock, and sessions that use it in other ways.

pub(crate) mod fs;
pub(crate) mod id_reservation;
pub(crate) mod lock;
pub(crate) mod lock_holder;
pub(crate) mod pending_writes;
pub(crate) mod persistence;
pub(crate) mod read_only;
pub(crate) mod session_file;
pub(crate) mod unlocked;
