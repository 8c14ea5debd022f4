//! Finds out if a command that is about to be stopped waits for a person: a program that reads a
//! terminal, an editor that git has opened, or a window that asks for a password.

/// Returns a sentence for the model if one of the processes below `leader` waits for a person.
#[cfg(target_os = "linux")]
pub(crate) fn describe(leader: u32) -> Option<String> {
    let waiting = linux::processes_below(leader)
        .into_iter()
        .find(linux::Process::waits_for_a_person)?;
    Some(format!(
        "It was waiting for a person: {} (process {}). Nobody can answer a command: use options \
         that need no answer, or give the answer in the command.",
        waiting.command_line(),
        waiting.id
    ))
}

/// Returns `None`: other systems do not show what a process waits for.
#[cfg(not(target_os = "linux"))]
pub(crate) fn describe(_leader: u32) -> Option<String> {
    None
}

#[cfg(target_os = "linux")]
mod linux {
    use std::collections::HashMap;
    use std::fs;
    use std::path::Path;

    use nix::libc;

    /// Number of characters of a command line that are shown.
    const SHOWN_CHARS: usize = 200;

    /// Programs whose only purpose is to ask a person.
    const PROMPT_PROGRAMS: [&str; 11] = [
        "vi",
        "vim",
        "nvim",
        "nano",
        "less",
        "more",
        "pinentry",
        "ssh-askpass",
        "ksshaskpass",
        "git-gui--askpass",
        "zenity",
    ];
    /// Files for which git opens an editor.
    const GIT_EDITED_FILES: [&str; 6] = [
        "COMMIT_EDITMSG",
        "MERGE_MSG",
        "SQUASH_MSG",
        "TAG_EDITMSG",
        "git-rebase-todo",
        "addp-hunk-edit.diff",
    ];

    pub(crate) struct Process {
        pub id: u32,
        arguments: Vec<String>,
    }

    /// Returns the descendants, including those in sessions of their own, as on a terminal that a
    /// program creates. The deepest come first, because their ancestors wait for them.
    pub(crate) fn processes_below(leader: u32) -> Vec<Process> {
        let mut children: HashMap<u32, Vec<u32>> = HashMap::new();
        for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
            let id = entry
                .file_name()
                .to_str()
                .and_then(|name| name.parse().ok());
            if let Some(id) = id
                && let Some(parent) = parent_of(id)
            {
                children.entry(parent).or_default().push(id);
            }
        }
        let mut found = vec![leader];
        let mut next = 0;
        while let Some(parent) = found.get(next) {
            found.extend(children.remove(parent).into_iter().flatten());
            next += 1;
        }
        found.into_iter().rev().filter_map(Process::read).collect()
    }

    /// Reads the parent from `/proc/ID/stat`: the name is in parentheses and may contain any
    /// character; the state and the parent follow.
    fn parent_of(id: u32) -> Option<u32> {
        let stat = fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
        let (_, rest) = stat.rsplit_once(')')?;
        rest.split_whitespace().nth(1)?.parse().ok()
    }

    impl Process {
        fn read(id: u32) -> Option<Self> {
            let line = fs::read(format!("/proc/{id}/cmdline")).ok()?;
            let line = String::from_utf8_lossy(&line);
            let arguments = line.split('\0').filter(|word| !word.is_empty());
            let arguments: Vec<_> = arguments.map(str::to_owned).collect();
            (!arguments.is_empty()).then_some(Self { id, arguments })
        }

        pub(crate) fn waits_for_a_person(&self) -> bool {
            self.is_asking() || self.edits_for_git() || self.reads_a_terminal()
        }

        fn is_asking(&self) -> bool {
            let program = Path::new(&self.arguments[0]).file_name();
            let program = program.and_then(|name| name.to_str()).unwrap_or_default();
            // There is one program for each kind of window: pinentry-gtk-2, pinentry-curses.
            let name = match program.starts_with("pinentry-") {
                true => "pinentry",
                false => program,
            };
            PROMPT_PROGRAMS.contains(&name)
        }

        fn edits_for_git(&self) -> bool {
            let file = self.arguments.last().map(Path::new);
            let name = file
                .and_then(Path::file_name)
                .and_then(|name| name.to_str());
            name.is_some_and(|name| GIT_EDITED_FILES.contains(&name))
        }

        /// Returns true in a system call that reads a terminal, or that waits for one of several
        /// descriptors while the standard input is a terminal.
        fn reads_a_terminal(&self) -> bool {
            let call = fs::read_to_string(format!("/proc/{}/syscall", self.id));
            let call = call.unwrap_or_default();
            let mut words = call.split_whitespace();
            let number = words.next().and_then(|word| word.parse::<i64>().ok());
            let descriptor = words
                .next()
                .and_then(|word| i64::from_str_radix(word.trim_start_matches("0x"), 16).ok());
            match number {
                Some(number) if number == READ_CALLS => {
                    descriptor.is_some_and(|number| self.is_terminal(number))
                }
                Some(number) if WAIT_CALLS.contains(&number) => self.is_terminal(0),
                _ => false,
            }
        }

        fn is_terminal(&self, descriptor: i64) -> bool {
            let file = fs::read_link(format!("/proc/{}/fd/{descriptor}", self.id));
            file.is_ok_and(|file| file.starts_with("/dev/pts") || file == Path::new("/dev/tty"))
        }

        pub(crate) fn command_line(&self) -> String {
            let line = self.arguments.join(" ");
            match line.char_indices().nth(SHOWN_CHARS) {
                Some((end, _)) => format!("{}\u{2026}", &line[..end]),
                None => line,
            }
        }
    }

    const READ_CALLS: i64 = libc::SYS_read;
    /// Newer architectures have only these system calls; `poll` and the others are made of them.
    #[cfg(not(target_arch = "x86_64"))]
    const WAIT_CALLS: [i64; 3] = [libc::SYS_ppoll, libc::SYS_pselect6, libc::SYS_epoll_pwait];
    #[cfg(target_arch = "x86_64")]
    const WAIT_CALLS: [i64; 6] = [
        libc::SYS_poll,
        libc::SYS_ppoll,
        libc::SYS_select,
        libc::SYS_pselect6,
        libc::SYS_epoll_wait,
        libc::SYS_epoll_pwait,
    ];
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::os::unix::process::CommandExt;
    use std::process::{Child, Command, Stdio};

    use nix::sys::signal::{Signal, killpg};
    use nix::unistd::Pid;

    use super::describe;

    fn shell(script: &str) -> Child {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        command.process_group(0).spawn().unwrap()
    }

    fn end(mut child: Child) {
        let group = Pid::from_raw(child.id().cast_signed());
        killpg(group, Signal::SIGKILL).unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn reading_a_terminal_is_waiting_for_a_person() {
        // `script` makes the terminal, and would end with its own input.
        let child = shell("sleep 60 | script -qec 'cat; true' /dev/null");
        let text = loop {
            match describe(child.id()) {
                Some(text) => break text,
                None => std::thread::sleep(std::time::Duration::from_millis(5)),
            }
        };
        assert!(
            text.starts_with("It was waiting for a person: cat (process "),
            "{text}"
        );
        end(child);
    }

    #[test]
    fn other_waits_are_not_reported() {
        let mut child = shell("echo begun; sleep 60");
        let mut text = String::new();
        let output = child.stdout.as_mut().unwrap();
        std::io::BufRead::read_line(&mut std::io::BufReader::new(output), &mut text).unwrap();
        assert_eq!(describe(child.id()), None);
        end(child);
    }
}
