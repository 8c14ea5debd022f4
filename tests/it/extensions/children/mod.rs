mod extension_files;
mod extension_functions;
mod messages;
mod parts;
mod sessions;
mod settings_and_tools;
mod tool_hooks;
