mod aborts;
mod images;
mod order;
mod resources;
