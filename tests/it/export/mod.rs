mod command;
mod page;
