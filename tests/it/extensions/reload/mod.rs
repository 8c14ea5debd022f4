mod kept;
mod leaks;
mod order;
mod random;
mod swap;
mod watch;
