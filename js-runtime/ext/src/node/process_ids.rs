//! Implements `process.setuid()` and similar calls. User and groups apply to the whole process: as
//! another user it could not read and write the sessions any more. A script with a process of its
//! own may change them.

use std::cell::RefCell;
use std::rc::Rc;

use deno_core::{OpState, op2, v8};
use deno_error::JsErrorBox;
use nix::unistd::{self, Gid, Group, Uid, User};

use crate::node::process::{owns_process, refuse_because};

const WHY: &str = "the user and the groups are those of the whole program, which has to read and \
                   write its files; start a child process with them (uid and gid of spawn)";

enum Id {
    Number(u32),
    Name(String),
}

fn id_of(scope: &mut v8::PinScope<'_, '_>, value: v8::Local<'_, v8::Value>) -> Id {
    match value.is_number() {
        true => Id::Number(value.uint32_value(scope).unwrap_or_default()),
        false => Id::Name(value.to_rust_string_lossy(scope)),
    }
}

fn unknown(what: &str, name: &str) -> JsErrorBox {
    JsErrorBox::generic(format!("{what} identifier does not exist: {name}"))
}

fn from_os(error: nix::Error) -> JsErrorBox {
    JsErrorBox::from_err(std::io::Error::from(error))
}

fn user(id: Id) -> Result<Uid, JsErrorBox> {
    match id {
        Id::Number(number) => Ok(Uid::from_raw(number)),
        Id::Name(name) => match User::from_name(&name).map_err(from_os)? {
            Some(user) => Ok(user.uid),
            None => Err(unknown("User", &name)),
        },
    }
}

fn group(id: Id) -> Result<Gid, JsErrorBox> {
    match id {
        Id::Number(number) => Ok(Gid::from_raw(number)),
        Id::Name(name) => match Group::from_name(&name).map_err(from_os)? {
            Some(group) => Ok(group.gid),
            None => Err(unknown("Group", &name)),
        },
    }
}

macro_rules! setter {
    ($op:ident, $call:literal, $find:ident, $now:expr, $set:expr) => {
        #[op2(nofast, reentrant)]
        pub(crate) fn $op<'s, 'i>(
            scope: &mut v8::PinScope<'s, 'i>,
            state: Rc<RefCell<OpState>>,
            id: v8::Local<'s, v8::Value>,
        ) -> Result<(), JsErrorBox> {
            let id = $find(id_of(scope, id))?;
            if id == $now || owns_process(&state.borrow()) {
                return $set(id).map_err(from_os);
            }
            let call = format!("process.{}({id})", $call);
            Err(refuse_because(scope, &state.borrow(), &call, WHY))
        }
    };
}

setter!(
    op_node_process_setuid,
    "setuid",
    user,
    unistd::getuid(),
    unistd::setuid
);
setter!(
    op_node_process_seteuid,
    "seteuid",
    user,
    unistd::geteuid(),
    unistd::seteuid
);
setter!(
    op_node_process_setgid,
    "setgid",
    group,
    unistd::getgid(),
    unistd::setgid
);
setter!(
    op_node_process_setegid,
    "setegid",
    group,
    unistd::getegid(),
    unistd::setegid
);

/// Implements `process.setgroups()` and `process.initgroups()`.
#[op2(nofast)]
pub(crate) fn op_process_groups(
    scope: &mut v8::PinScope<'_, '_>,
    state: &mut OpState,
    #[string] call: &str,
) -> Result<(), JsErrorBox> {
    match owns_process(state) {
        true => Err(JsErrorBox::generic(format!(
            "{call} is not available in this version of pi: use process.setgid(), or node"
        ))),
        false => Err(refuse_because(scope, state, call, WHY)),
    }
}
