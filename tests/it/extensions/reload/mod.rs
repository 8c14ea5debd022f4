mod leaks;
mod random;
mod swap;
mod watch;
