mod attacks;
mod changes;
mod install;
mod lock_file;
mod npm;
mod package_manager;
mod scripts;
