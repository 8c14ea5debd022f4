mod leaks;
mod swap;
