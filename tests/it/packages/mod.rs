mod changes;
mod install;
mod package_manager;
